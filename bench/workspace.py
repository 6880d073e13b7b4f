"""Temporary projects to measure in, and learnings to fill them with.

The same count always produces the same learnings. Their length, variety and compressibility are realistic.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.postgres import PostgresServer

from bench.report import say
from learnt import Memory

DOMAINS = ("database", "ui", "build", "testing", "deployment", "security", "payments", "search")
TAGS = tuple(f"{area}-{part}" for area in DOMAINS for part in ("setup", "errors", "speed", "schema", "review"))
_VERBS = ("Run", "Check", "Avoid", "Rename", "Wrap", "Cache", "Retry", "Validate", "Lock", "Restart", "Pin", "Split")
_PROSE = """
migration endpoint session cart invoice worker queue timeout header token fixture index replica schema column
handler middleware browser snapshot container image secret webhook locale currency rounding cursor batch commit
branch release build cache artifact linter formatter type stub mock clock timezone retry backoff deadlock row
transaction isolation pool socket proxy certificate redirect cookie form widget modal focus keyboard screen before
after until unless because while whenever without inside outside the a every each first last stale wrong silently
twice often never rarely is was fails returns blocks hangs expects needs drops keeps overwrites ignores
"""
_WORDS = _PROSE.split()
_BATCH = 1_000
_SECONDS_APART = 40


@dataclass(frozen=True, slots=True)
class Filled:
    """A project with many learnings, whose store is closed, and the seconds that it took to fill."""

    folder: Path
    seconds: float


class Workspace:
    """Creates projects below one temporary folder; a filled project is created once and reused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._filled: dict[int, Filled] = {}

    def new_folder(self) -> Path:
        """Return an empty folder."""
        folder = self._folder / f"project-{next(self._numbers)}"
        folder.mkdir()
        return folder

    def filled(self, count: int) -> Filled:
        """Return a project with this many learnings."""
        if count not in self._filled:
            say(f"  adding {count:,} learnings")
            self._filled[count] = _fill(self.new_folder(), count)
        return self._filled[count]


def on_server(server: PostgresServer, folder: Path) -> Path:
    """Configure a new, empty database for a project."""
    (folder / "learnt.toml").write_text(f'database = "{server.address()}"\nproject = "shop"\n')
    return folder


def record(chance: random.Random) -> dict[str, Any]:
    """Return a learning with a title of about 60 characters, an observation of 200, an action of 80, and three tags."""
    return {
        "title": _sentence(chance, 60),
        "observation": _sentence(chance, 200),
        "action": _sentence(chance, 80),
        "tags": chance.sample(TAGS, 3),
        "domain": chance.choice(DOMAINS),
        "confidence": round(chance.uniform(0.1, 1.0), 2),
    }


def _fill(folder: Path, count: int) -> Filled:
    chance = random.Random(count)
    started = time.perf_counter()
    with Memory.open(folder, clock=_steady_clock(count).__next__) as memory:
        for start in range(0, count, _BATCH):
            memory.add_all([record(chance) for _ in range(min(_BATCH, count - start))])
    return Filled(folder, time.perf_counter() - started)


def _steady_clock(count: int) -> Iterator[int]:
    """Return times at regular intervals that end about now, so that the learnings are spread over weeks."""
    step_ms = _SECONDS_APART * 1000
    return itertools.count(int(time.time() * 1000) - count * step_ms, step_ms)


def _sentence(chance: random.Random, length: int) -> str:
    """Return a sentence with about this many characters; some words are names and numbers, as in real code."""
    words = [chance.choice(_VERBS)]
    size = len(words[0])
    while size < length - 4:
        word = chance.choice(_WORDS)
        if chance.random() < 0.1:
            word = f"`{word}_{chance.randrange(1000)}`"
        words.append(word)
        size += len(word) + 1
    return " ".join(words)
