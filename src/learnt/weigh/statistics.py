"""Statistics by week and month that a person can trust.

A share or a mean over fewer than `MIN_CASES` cases would be mostly chance, so it is None.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from learnt.model import Value
from learnt.text.times import DAY_MS, MONTH_MS
from learnt.text.titles import normalised_error

MIN_CASES = 5
# An error is considered gone after this many attempts without it, or after this time if there were some attempts.
GONE_AFTER_ATTEMPTS = 20
_GONE_AFTER_MS = MONTH_MS
_MIN_TASKS_OF_REPEATED_ERROR = 2
_NO_REPORT = "the attempt ended as "  # begins the report on an agent that reported nothing; it is not an error
_MONDAY = 4  # 1970-01-05
_LETTERS_PER_TOKEN = 4


class Period(Value):
    """The count and the sum for a week or a month."""

    start: str
    """The week's first day (2026-11-02), or the month (2026-11)."""
    count: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float | None:
        """The mean, or None if the period is empty."""
        return self.total / self.count if self.count else None


class Outcomes(Value):
    """The outcomes of a group of tasks."""

    tasks: int = 0
    done: int = 0
    at_first: int = 0
    attempts: int = 0

    @property
    def share_at_first(self) -> float | None:
        """The share of tasks that were done at the first attempt; None if there are too few."""
        return self.at_first / self.tasks if self.tasks >= MIN_CASES else None

    @property
    def attempts_per_done(self) -> float | None:
        """The mean number of attempts at a done task; None if there are too few."""
        return self.attempts / self.done if self.done >= MIN_CASES else None

    def plus(self, tasks: int, done: int, at_first: int, attempts: int) -> Outcomes:
        """Return these outcomes with others added."""
        return Outcomes(
            tasks=self.tasks + tasks,
            done=self.done + done,
            at_first=self.at_first + at_first,
            attempts=self.attempts + attempts,
        )


class Gone(Value):
    """An error that occurred in several tasks, but has not occurred for a long time."""

    error: str
    """The error's latest wording."""
    tasks: tuple[str, ...]
    times: int
    last_at: int


def week_of(day: int) -> str:
    """Return the Monday of a day's week."""
    return time.strftime("%Y-%m-%d", time.gmtime((day - (day - _MONDAY) % 7) * DAY_MS // 1000))


def month_of(day: int) -> str:
    """Return the month of a day."""
    return time.strftime("%Y-%m", time.gmtime(day * DAY_MS // 1000))


def weeks(days: Iterable[tuple[int, int, float]], *, now_ms: int, count: int) -> list[Period]:
    """Return the last weeks up to now from sums by day, oldest first, including empty weeks."""
    today = now_ms // DAY_MS
    starts = dict.fromkeys(week_of(today - 7 * ago) for ago in range(count - 1, -1, -1))
    sums = _sum_by(days, week_of)
    return [sums.get(start, Period(start=start)) for start in starts]


def months(days: Iterable[tuple[int, int, float]]) -> list[Period]:
    """Return the months from sums by day, oldest first, without empty months."""
    return list(_sum_by(days, month_of).values())


def mean_of(periods: Iterable[Period]) -> float | None:
    """Return the mean over these periods; None if there are too few cases."""
    all_periods = list(periods)
    count = sum(period.count for period in all_periods)
    return sum(period.total for period in all_periods) / count if count >= MIN_CASES else None


def share(part: int, whole: int) -> float | None:
    """Return a share; None if there are too few cases."""
    return part / whole if whole >= MIN_CASES else None


def tokens_of_letters(letters: float) -> float:
    """Return approximately how many tokens this many characters are."""
    return letters / _LETTERS_PER_TOKEN


def find_gone(signs: Sequence[tuple[str, str, int]], starts: Sequence[int], *, now_ms: int) -> list[Gone]:
    """Return the errors that occurred in several tasks and no longer occur; errors in the most tasks come first.

    `signs` contains the task, the error and the time of each failed attempt. `starts` contains the start times of the
    latest attempts, newest first. An error is gone only if there have been attempts without it.
    """
    by_error: dict[str, list[tuple[str, str, int]]] = {}
    for sign in signs:
        error = "" if sign[1].startswith(_NO_REPORT) else normalised_error(sign[1])
        if error:
            by_error.setdefault(error, []).append(sign)
    groups = [_group(group) for group in by_error.values()]
    repeated = [group for group in groups if len(group.tasks) >= _MIN_TASKS_OF_REPEATED_ERROR]
    gone = [group for group in repeated if _is_gone(group.last_at, starts, now_ms)]
    return sorted(gone, key=lambda group: (-len(group.tasks), -group.times, -group.last_at, group.error))


def _sum_by(days: Iterable[tuple[int, int, float]], name: Callable[[int], str]) -> dict[str, Period]:
    sums: dict[str, Period] = {}
    for day, count, total in days:
        start = name(day)
        before = sums.get(start, Period(start=start))
        sums[start] = before.replace(count=before.count + count, total=before.total + total)
    return sums


def _group(signs: Sequence[tuple[str, str, int]]) -> Gone:
    _, error, last_at = max(signs, key=lambda sign: sign[2])
    return Gone(error=error, tasks=tuple(sorted({task for task, _, _ in signs})), times=len(signs), last_at=last_at)


def _is_gone(last_at: int, starts: Sequence[int], now_ms: int) -> bool:
    since = sum(start > last_at for start in starts[:GONE_AFTER_ATTEMPTS])
    return since >= GONE_AFTER_ATTEMPTS or (since >= MIN_CASES and last_at < now_ms - _GONE_AFTER_MS)
