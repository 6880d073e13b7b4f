"""Measurements of the whole product: `python -m bench` prints them as Markdown.

A measurement calls the public API or the real command line. Times depend on the machine, so most bars are ratios of
two times that were measured side by side in one run.
"""
