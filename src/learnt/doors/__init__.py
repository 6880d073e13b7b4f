"""The ways in: each door parses its input, calls `Memory`, and formats the result."""
