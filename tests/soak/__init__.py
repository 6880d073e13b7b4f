"""Counted suites: `make soak` runs them in full and prints what they counted, with the seed that repeats it."""

from __future__ import annotations

import os
import random

import pytest


def seed_of(config: pytest.Config) -> int:
    """Return the seed of this run: given, or drawn once for all workers of the run."""
    given = config.getoption("seed")
    return int(given if given is not None else os.environ.setdefault("TEST_SEED", str(random.randrange(10**6))))
