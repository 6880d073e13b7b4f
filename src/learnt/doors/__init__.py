"""Doors: each parses, calls one method of `Memory`, and renders."""
