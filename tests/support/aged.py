"""A project whose staging file has entries that have aged over days of real work."""

from __future__ import annotations

import pytest

from learnt import Memory
from learnt.flow.consolidation_run import ConsolidationReport
from learnt.system.files import replace_shared
from tests.support.repository import STAGING, Repository

TOPICS = "docs/learnings"
PLAIN = (
    "- Start Redis before the queue tests\n"
    "- Run `make gen` before `make test`\n"
    "- Use port 8080 for the dev server\n"
    "- Close the cursor before the commit in `store.py`\n"
)


class Aged:
    """A project whose staging file has aged entries."""

    def __init__(self, repository: Repository, memory: Memory) -> None:
        self.repository = repository
        self.memory = memory
        self._day = 0

    def hand_over(self, text: str) -> list[str]:
        """Hand learnings over, and commit them on a day of their own; return their ids."""
        ids = [learning.id for learning in self.memory.handoff(text).staged]
        self.work(1)
        return ids

    def work(self, days: int) -> None:
        """Commit on so many further days."""
        for _ in range(days):
            self._day += 1
            self.repository.commit(f"2026-{1 + self._day // 28:02d}-{1 + self._day % 28:02d}T12:00:00+0000")

    def consolidate(self, *, force: bool = True) -> ConsolidationReport:
        report, intent = self.memory.consolidations.plan(force=force, asks=True)
        return report if intent is None else self.memory.consolidations.apply(report, intent)

    def files(self) -> dict[str, bytes]:
        """Return the contents of all files that consolidation may write."""
        paths = [self.repository.folder / STAGING, *sorted((self.repository.folder / TOPICS).glob("*.md"))]
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def documents(self) -> str:
        return "".join(text.decode() for name, text in self.files().items() if name not in (STAGING, "memory-index.md"))


def verdicts(report: ConsolidationReport) -> dict[str, str]:
    return {entry.staged.learning.title: entry.verdict for entry in report.plan.entries}


def kill_after(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """Interrupt the journal after it has replaced so many files."""
    count = iter(range(100))

    def replace(*words: object, **options: object) -> bool:
        if next(count) >= files:
            raise KeyboardInterrupt
        return bool(replace_shared(*words, **options))  # type: ignore[arg-type]

    def record(*_words: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("learnt.system.journal.replace_shared", replace)
    monkeypatch.setattr("learnt.flow.consolidation_run.record", record)
