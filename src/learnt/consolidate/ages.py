"""How old the entries of a file are, in active days.

An active day is a calendar day with a commit anywhere in the current history, by the author's own calendar: a holiday
ages nothing. An entry is as many active days old as there are days with commits after the day on which its heading was
written; an entry that is not committed yet is 0 days old. So an age depends on the history alone, and is the same at
any hour, in any time zone and on any machine.

These are functions of what git has printed; `system/git_history.py` runs it.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence

from learnt.model import Value
from learnt.text.entries import EntryText, split_entries

_LINE_OF_COMMIT = re.compile(r"^([0-9a-f]{40,64}) \d+ (\d+)", re.MULTILINE)


class ActiveDays(Value):
    """The days with commits, and the day of each commit."""

    days: tuple[str, ...] = ()
    """Distinct days such as `2026-02-19`, oldest first."""
    day_of: Mapping[str, str] = {}
    """The day of each commit, by its id."""

    def since(self, day: str) -> int:
        """Return how many active days came after a day; 0 if the day is empty, because it is not known."""
        return len(self.days) - bisect_right(self.days, day) if day else 0


class AgedEntry(Value):
    """An entry of a file, and its age."""

    title: str
    id: str = ""
    """The id of its learning; empty if it is not known."""
    line: int = 0
    """The number of its heading's line, from 1; 0 if it stands in no file."""
    lines: int = 0
    """How many lines it has."""
    day: str = ""
    """The day on which its heading was written; empty if it is not committed yet."""
    active_days: int = 0


def read_log(log: str) -> ActiveDays:
    """Return the active days of a history: a line for each commit, with its id and its day."""
    pairs = (line.partition(" ") for line in log.split("\n"))
    day_of = {commit: day for commit, _, day in pairs if day}
    return ActiveDays(days=tuple(sorted(set(day_of.values()))), day_of=day_of)


def read_blame(blame: str) -> dict[int, str]:
    """Return the commit of each line, whose numbers count from 1, from git's porcelain format."""
    return {int(number): commit for commit, number in _LINE_OF_COMMIT.findall(blame)}


def find_ages(text: str, blame: Mapping[int, str], history: ActiveDays) -> list[AgedEntry]:
    """Return the entries of a file with their ages, in the order of the file; `blame` has the commit of each line."""
    entries = split_entries(text)[1]
    return [_find_age(entry, history.day_of.get(blame.get(entry.line, ""), ""), history) for entry in entries]


def _find_age(entry: EntryText, day: str, history: ActiveDays) -> AgedEntry:
    return AgedEntry(
        title=entry.title,
        id=entry.id,
        line=entry.line,
        lines=entry.lines,
        day=day,
        active_days=history.since(day),
    )


def day_of(at_ms: int) -> str:
    """Return the UTC day of a time of the store, which does not record anybody's time zone."""
    return time.strftime("%Y-%m-%d", time.gmtime(at_ms / 1000))


def since_consolidation(entries: Collection[AgedEntry], last_day: str, history: ActiveDays) -> int:
    """Return the active days since the last consolidation or, if there was none, since the oldest entry was written."""
    return history.since(last_day) if last_day else max((entry.active_days for entry in entries), default=0)


def oldest_first(entries: Sequence[AgedEntry]) -> list[AgedEntry]:
    """Return the entries in the order in which they were written; those of one day in the order of the file."""
    return sorted(entries, key=lambda entry: (-entry.active_days, entry.day or "9", entry.line))
