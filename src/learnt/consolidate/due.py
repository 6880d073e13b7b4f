"""Decide whether consolidation is due, why, and which entries it takes.

Two questions, with thresholds of their own. Is it time? The file is too long, or the last consolidation was too many
active days ago. Which entries? Those that have stood for long enough, oldest first: until the file is short enough or,
after a long pause, all of them. Young entries are never taken: if a file is too long and too few have aged, a person
decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from learnt.consolidate.ages import AgedEntry, oldest_first
from learnt.model import Value

SIZE, STALENESS = "size", "staleness"


class Thresholds(Value):
    """The thresholds of the settings, `[consolidate]`."""

    size_lines: int = 150
    staleness_days: int = 14
    freshness_days: int = 7
    batch_entries: int = 3


class DueDecision(Value):
    """Whether consolidation is due, and what speaks for it."""

    is_due: bool = False
    needs_person: bool = False
    """Whether the file is too long although too few entries have aged: a person has to shorten it."""
    cause: str = ""
    """What makes it time: `size` or `staleness`; empty if nothing does."""
    reason: str
    """The decision in words, in one line."""
    batch: tuple[AgedEntry, ...] = ()
    """The entries to consolidate, oldest first; empty unless it is due."""


def find_aged(entries: Sequence[AgedEntry], thresholds: Thresholds) -> list[AgedEntry]:
    """Return the entries that are old enough to be consolidated, oldest first."""
    return [entry for entry in oldest_first(entries) if entry.active_days >= thresholds.freshness_days]


def decide(
    entries: Sequence[AgedEntry], *, file_lines: int, since_consolidation: int, thresholds: Thresholds
) -> DueDecision:
    """Return whether consolidation of a file is due; `since_consolidation` counts active days."""
    aged = find_aged(entries, thresholds)
    is_long = file_lines >= thresholds.size_lines
    is_stale = since_consolidation >= thresholds.staleness_days
    size = f"{_count(file_lines, 'line')} (limit {thresholds.size_lines})"
    pause = (
        f"{_count(since_consolidation, 'active day')} since the last consolidation (limit {thresholds.staleness_days})"
    )
    found = f"{_count(len(aged), 'entry', 'entries')} of at least {_count(thresholds.freshness_days, 'active day')}"
    if not is_long and not is_stale:
        return DueDecision(reason=f"{size}; {pause}; {found}")
    cause, time = (SIZE, size) if is_long else (STALENESS, pause)
    if len(aged) < thresholds.batch_entries:
        reason = f"{time}, but only {found}, of {thresholds.batch_entries} needed"
        return DueDecision(needs_person=is_long, cause=cause, reason=reason)
    batch = aged if is_stale else _until_short(aged, file_lines, thresholds)
    return DueDecision(is_due=True, cause=cause, reason=f"{time}, and {found}", batch=tuple(batch))


def _until_short(aged: Sequence[AgedEntry], file_lines: int, thresholds: Thresholds) -> list[AgedEntry]:
    """Return the oldest entries: as many as bring the file below its limit, but no smaller batch than is worth it."""
    batch: list[AgedEntry] = []
    for entry in aged:
        if file_lines < thresholds.size_lines and len(batch) >= thresholds.batch_entries:
            break
        batch.append(entry)
        file_lines -= entry.lines
    return batch


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
