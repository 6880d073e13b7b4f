"""Counted suites: `make soak` runs them in full and prints what they counted, with the seed that repeats it."""

from __future__ import annotations

import os

import pytest


def seed_of(config: pytest.Config) -> str:
    """Return the seed of this run, given or drawn."""
    given = config.getoption("seed")
    return str(os.environ["TEST_SEED"] if given is None else given)
