"""Branches that both hand over, edit and consolidate, and are merged by our driver: no entry is lost or comes back.

Each entry has a word of its own. After each merge the word stands in one of the files, and after the next consolidation
once, unless a person is asked about it, or both branches have split the same topic file: then `learnt index` names it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory
from tests.soak import seed_of
from tests.support.doors import open_doors
from tests.support.repository import STAGING, Repository

pytestmark = pytest.mark.soak

MERGES = 400
PER_PROJECT = 8
TOPICS = "docs/learnings"
SETTINGS = """\
[consolidate]
freshness_days = 0
staleness_days = 1
size_lines = 1
batch_entries = 1
topic_lines = {lines}
"""
CATEGORIES = ("testing", "deployment", "")


class Project:
    """A project with two branches."""

    def __init__(self, folder: Path, chance: random.Random, *, topic_lines: int) -> None:
        self.repository, self.chance = Repository(folder), chance
        self.repository.write(SETTINGS.format(lines=topic_lines), "learnt.toml")
        self.learnt = open_doors(folder)
        self.words: list[str] = []
        self.conflicts = self._day = 0
        self.learnt("init")
        assert self.learnt("install", "--git").code == 0
        self.commit()

    def commit(self) -> None:
        self._day += 1
        day = f"20{26 + self._day // 336}-{1 + self._day // 28 % 12:02d}-{1 + self._day % 28:02d}"
        self.repository.commit(f"{day}T12:00:00+0000")

    def hand_over(self) -> None:
        with Memory.open(self.repository.folder) as memory:
            for _ in range(self.chance.randint(1, 3)):
                word = f"unit{len(self.words)}x{self.chance.randrange(10**6)}"
                self.words.append(word)
                assert memory.handoff(f"## Run `{word}` first\n\nOtherwise the step of {word} is skipped.\n").staged
            for learning in memory.learnings().learnings:
                if not learning.category and not learning.topic_file and self.chance.random() < 0.6:
                    memory.edit(learning.id, category=self.chance.choice(CATEGORIES))
        self.commit()

    def edit(self) -> None:
        """Edit an entry, as a person does, in the staging file or a topic file."""
        files = [name for name, text in self.contents().items() if " is skipped" in text]
        if files:
            name = self.chance.choice(files)
            parts = self.repository.read(name).split(" is skipped")
            place = self.chance.randrange(1, len(parts))
            text = " is skipped".join(parts[:place]) + f" is left out {self.chance.randrange(999)} times"
            self.repository.write(text + " is skipped".join(parts[place:]), name)
            self.commit()

    def consolidate(self) -> None:
        with Memory.open(self.repository.folder) as memory:
            report, intent = memory.consolidations.plan(force=True, asks=True)
            if intent is not None:
                memory.consolidations.apply(report, intent)
        self.commit()

    def contents(self) -> dict[str, str]:
        """Return the texts of the staging file and of the topic files."""
        paths = [self.repository.folder / STAGING, *(self.repository.folder / TOPICS).glob("*.md")]
        names = (path.relative_to(self.repository.folder).as_posix() for path in paths if path.exists())
        return {name: self.repository.read(name) for name in names if not name.endswith("memory-index.md")}

    def act(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choice((self.hand_over, self.edit, self.consolidate))()

    def merge(self, number: int) -> None:
        """Let two branches go on, and merge them."""
        self.hand_over()
        git = self.repository.git
        git("switch", "-q", "-c", f"side{number}")
        self.act()
        git("switch", "-q", "main")
        self.act()
        git("merge", "--no-edit", f"side{number}", check=False)
        for name in git("diff", "--name-only", "--diff-filter=U").split():
            self.conflicts += 1
            assert not name.endswith("memory-index.md")
            lines = self.repository.read(name).split("\n")
            marks = ("<<<<<<<", "=======", ">>>>>>>")
            self.repository.write("\n".join(line for line in lines if not line.startswith(marks)), name)
        self.commit()

    def check(self, *, is_split: bool) -> None:
        counts = self.count()
        assert not [word for word, count in counts.items() if not count], self.contents()
        assert self.learnt("index", "--fix").code == 0
        assert self.learnt("index", "--check").code == 0
        self.consolidate()
        doubled = [word for word, count in self.count().items() if count != 1]
        with Memory.open(self.repository.folder) as memory:
            known = " ".join(memory.topics.check_index().remarks if is_split else ())
            asked = " ".join(escalation.question for escalation in memory.decisions.pending())
            titles = {learning.title: learning.id for learning in memory.learnings(limit=1_000).learnings}
        for word in doubled:
            assert word in asked or titles[f"Run `{word}` first"] in known, "\n".join((word, *self.contents().values()))

    def count(self) -> dict[str, int]:
        """Return how often each entry stands in the files."""
        everything = "".join(self.contents().values())
        return {word: everything.count(f"## Run `{word}` first") for word in self.words}


@pytest.mark.parametrize("topic_lines", [60, 400])
def test_branches_that_both_consolidate_lose_no_entry(
    tmp_path: Path, share: Callable[[int], int], request: pytest.FixtureRequest, topic_lines: int
) -> None:
    chance = random.Random(f"{seed_of(request.config)} {topic_lines}")
    merges = share(MERGES // 2)
    conflicts = entries = 0
    for number in range(0, merges, PER_PROJECT):
        project = Project(tmp_path / f"p{number}", chance, topic_lines=topic_lines)
        for merge in range(min(PER_PROJECT, merges - number)):
            project.merge(merge)
            project.check(is_split=topic_lines < 400)
        conflicts, entries = conflicts + project.conflicts, entries + len(project.words)
    print(f"\n{merges} merges of {entries} entries, topic files of {topic_lines} lines: {conflicts} conflicts")
