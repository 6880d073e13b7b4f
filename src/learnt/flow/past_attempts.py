"""What a brief tells about earlier attempts at its task, and how its loop is going."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from learnt.brief.attempts import OWN_ENTRIES, FailedAttempt, group_attempts, tell_approaches, tell_as_before
from learnt.brief.render import Loop, Past
from learnt.errors import NotFound
from learnt.flow.context import Context
from learnt.flow.tasks import find_stuck, normalise_failure
from learnt.model import Attempt, Failure, Task
from learnt.store import tasks
from learnt.text.times import HOUR_MS

_RECENT_MS = 2 * HOUR_MS


def read_past(context: Context, task: Task, attempts: Sequence[Attempt], *, now: int) -> tuple[tuple[Past, ...], Loop]:
    """Return the approaches that failed, newest first, and the state of a task's loop.

    `attempts` are all attempts at the task, newest first.
    """
    database = context.store.database
    reports = tasks.failures(database, task.id)
    failed = [
        _failed_attempt(attempt.number, attempt.result, attempt.model, reports[attempt.id])
        for attempt in attempts
        if attempt.id in reports and not reports[attempt.id].archived_at
    ]
    counting = tasks.since_fresh(task, attempts)
    before = attempts[len(counting) :]
    recent = tasks.results_since(database, now - _RECENT_MS)
    loop = Loop(
        attempts=len(attempts),
        failures=sum(attempt.result != "interrupted" for attempt in counting),
        anew=bool(before) and before[0].result != "done",
        recent=len(recent),
        recent_done=recent.count("done"),
    )
    return tell_approaches(group_attempts(failed)), loop


def is_stuck(context: Context, task: Task) -> bool:
    """Return whether a task is stuck."""
    return find_stuck(context, task) is not None


def tell_from_receipt(
    reports: Mapping[str, Failure],
) -> Callable[[Sequence[dict[str, Any]], int], tuple[Past, ...]]:
    """Return how the entries of a receipt are told again, with the reports on a task's attempts."""

    def read(entry: Mapping[str, Any]) -> FailedAttempt:
        report = reports.get(entry["attempt"])
        if report is None:
            raise NotFound(f"no report on `{entry['attempt']}`", hint="the report is no longer in this store")
        return _failed_attempt(entry["number"], entry["result"], entry["model"], report)

    def tell(entries: Sequence[dict[str, Any]], version: int) -> tuple[Past, ...]:
        if version < OWN_ENTRIES:
            return tuple(tell_as_before(read(entry), entry.get("longest", 500)) for entry in entries)
        told = tell_approaches([[*map(read, (entry, *entry.get("again", ())))] for entry in entries])
        return tuple(past.replace(form=entry["form"]) for past, entry in zip(told, entries, strict=True))

    return tell


def _failed_attempt(number: int, result: str, model: str, report: Failure) -> FailedAttempt:
    error, _ = normalise_failure(report.symptom)
    return FailedAttempt(number=number, result=result, model=model, failure=report, error=error)
