"""Measurements of the whole product: `python -m bench` prints them as Markdown.

A measurement calls the public API or the real command line. Numbers depend on the machine, so each bar is a ratio of
two things that were measured side by side in one run.
"""
