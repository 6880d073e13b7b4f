"""Consolidations that are killed at any point, while people edit the files and branches are merged: nothing is lost.

Each entry has a word of its own. Whatever happens, the word stands in exactly one of the files, every file is whole,
the index has no fault, and another run changes nothing.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory
from learnt.errors import TryAgain
from learnt.system.journal import Intent, Journal
from tests.soak import seed_of
from tests.support.repository import STAGING, Repository

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

RUNS = 1_000
PER_PROJECT = 25
MOST_STEPS = 45
TOPICS = "docs/learnings"
SETTINGS = """\
[consolidate]
freshness_days = 0
staleness_days = 1
size_lines = 1
batch_entries = 1
topic_lines = 60
"""
CATEGORIES = ("testing", "deployment", "database", "")
SYSTEM_CALLS = ("replace", "fsync", "unlink", "open", "write", "mkdir")


class Project:
    """A project with entries that come by every way, and what must be found again."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.repository = Repository(folder)
        self.repository.write(SETTINGS, "learnt.toml")
        self.chance = chance
        self.words: list[str] = []
        self.killed = self.edited = self.merged = 0
        with Memory.open(folder):
            pass
        driver = f"'{sys.executable}' -m learnt merge-file %O %A %B %P"
        self.repository.git("config", "merge.learnt.driver", driver)
        self.repository.write(f"{STAGING} merge=learnt\n", ".gitattributes")

    def make_text(self) -> str:
        """Return an entry that resembles no other one."""
        word = f"unit{len(self.words)}x{self.chance.randrange(10**6)}"
        self.words.append(word)
        return f"## Run `{word}` first\n\nOtherwise the step of {word} is skipped.\n"

    def write_by_hand(self) -> None:
        """Add entries as a person does."""
        above = self.repository.read() if (self.repository.folder / STAGING).exists() else "# Ours\n"
        texts = [self.make_text() for _ in range(self.chance.randint(1, 3))]
        self.repository.write(above.rstrip("\n") + "\n\n" + "\n".join(texts))

    def hand_over(self) -> None:
        """Add entries as an agent does."""
        with Memory.open(self.repository.folder) as memory:
            text = "".join(self.make_text() + "\n" for _ in range(self.chance.randint(1, 3)))
            assert not memory.handoff(text).rejected

    def edit(self) -> None:
        """Edit one of the files as a person does, who saves the whole file."""
        topics = [path for path in self.list_topics() if path.name != "memory-index.md"]
        if topics and self.chance.random() < 0.5:
            path = self.chance.choice(topics)
            path.write_text(path.read_text() + f"\nA remark, {self.chance.randrange(10**6)}.\n")
        else:
            self.write_by_hand()

    def list_topics(self) -> list[Path]:
        return sorted((self.repository.folder / TOPICS).glob("*.md"))

    def contents(self) -> dict[str, str]:
        paths = [self.repository.folder / STAGING, *self.list_topics()]
        return {path.name: path.read_text() for path in paths if path.exists()}

    def consolidate(self) -> None:
        """Consolidate as a command does."""
        with Memory.open(self.repository.folder) as memory:
            for _ in range(3):
                report, intent = memory.consolidations.plan(force=True, asks=True)
                if intent is None:
                    return
                try:
                    memory.consolidations.apply(report, intent)
                except TryAgain:
                    continue

    def consolidate_in_child(self) -> None:
        """Consolidate in a process that is killed, or meets a person's edit, at a random step."""
        kills, step = self.chance.random() < 0.7, self.chance.randrange(MOST_STEPS)
        words = len(self.words)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(reader)
                happen = self._kill if kills else self._edit_and_tell(writer, words)
                self._interrupt(step, happen)
                self.consolidate()
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as told:
            more = told.read().split()
        self.words += more
        self.edited += bool(more)
        self.killed += os.waitpid(child, 0)[1] == signal.SIGKILL

    def _kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _edit_and_tell(self, writer: int, words: int) -> Callable[[], None]:
        def edit() -> None:
            self.edit()
            os.write(writer, " ".join(self.words[words:]).encode())

        return edit

    def _interrupt(self, step: int, happen: Callable[[], None]) -> None:
        """Let something happen at one of the calls that change files after the plan was made."""
        begin, count = Journal.begin, iter(range(10**9))

        def begin_counting(journal: Journal, intent: Intent) -> None:
            for name in SYSTEM_CALLS:
                setattr(os, name, counted(getattr(os, name)))
            begin(journal, intent)

        def counted(call: Callable[..., object]) -> Callable[..., object]:
            def run(*words: object, **options: object) -> object:
                if next(count) == step:
                    happen()
                return call(*words, **options)

            return run

        setattr(Journal, "begin", begin_counting)  # noqa: B010 - a type checker knows no patches

    def merge_branch(self, number: int) -> None:
        """Consolidate on one branch while another one adds entries, and merge them."""
        git, day = self.repository.git, f"2026-02-01T10:{number % 60:02d}:00+0000"
        self.repository.commit(day)
        git("checkout", "-q", "-b", f"other{number}")
        self.write_by_hand()
        self.repository.commit(day)
        git("checkout", "-q", "main")
        self.consolidate()
        self.repository.commit(day)
        self.repository.merge(f"other{number}", day)
        self.merged += 1

    def check(self) -> None:
        """Check that each entry stands in exactly one place, and that all files are whole."""
        contents = self.contents()
        index = contents.pop("memory-index.md", "")
        everything = "\n".join(contents.values())
        for word in self.words:
            assert everything.count(f"the step of {word} is skipped") == 1, (word, contents)
        for name, text in contents.items():
            assert text.endswith("\n"), name
            assert "<<<<<<<" not in text, name
        own = (".git", ".learnt")
        assert not [path for path in self.repository.folder.rglob("*.new") if not {*own} & {*path.parts}]
        for word in self.words:
            assert index.count(f"`{word}` first") <= 1

    def check_settled(self) -> None:
        """Check that a further run changes nothing, and that the index is right."""
        self.consolidate()
        self.check()
        before = self.contents()
        self.consolidate()
        assert self.contents() == before
        with Memory.open(self.repository.folder) as memory:
            report = memory.topics.check_index()
            assert not report.faults, report.faults
            notes = os.listdir(Path(memory.folder) / "consolidating")
            assert not [name for name in notes if not name.endswith(".new")]


def test_nothing_is_lost_or_doubled_by_consolidations_that_are_killed(
    tmp_path: Path, share: Callable[[int], int], request: pytest.FixtureRequest
) -> None:
    runs = share(RUNS)
    chance = random.Random(seed_of(request.config))
    killed = edited = merged = entries = 0
    for start in range(0, runs, PER_PROJECT):
        project = Project(tmp_path / f"shop{start}", chance)
        for number in range(min(PER_PROJECT, runs - start)):
            chance.choice((project.write_by_hand, project.hand_over))()
            if chance.random() < 0.1:
                project.merge_branch(number)
            else:
                project.consolidate_in_child()
            with Memory.open(project.repository.folder):
                pass  # any command completes what was interrupted
            project.check()
        project.check_settled()
        killed, edited, merged = killed + project.killed, edited + project.edited, merged + project.merged
        entries += len(project.words)
    print(f"\n{runs} consolidations of {entries} entries: {killed} killed, {edited} edited meanwhile, {merged} merges")
