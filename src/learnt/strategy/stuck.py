"""Detect that work is stuck, on one task or on several tasks for the same reason.

A task is stuck after several failures in a row, whichever models made the attempts: the next one shall be warned before
it costs what the others have cost. Errors are compared in their normalised form, and an empty error is not equal to any
error. Failures from before a task was last done are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from learnt.model import Value
from learnt.strategy.figures import PastAttempt
from learnt.text.clean import fold
from learnt.text.titles import cut_words

TIMES = 3
_MAX_QUOTE_LENGTH = 200


class Stuck(Value):
    """Why work is stuck, and on which tasks."""

    reason: str
    error: str = ""
    tasks: tuple[str, ...] = ()
    learnings: tuple[str, ...] = ()
    """Learnings that all of the tasks were given. They might be misleading."""


def list_open_failures(attempts: Iterable[PastAttempt]) -> list[PastAttempt]:
    """Return the failed attempts at one task since it was last done. The attempts must be passed oldest first."""
    failures: list[PastAttempt] = []
    for attempt in attempts:
        if attempt.done:
            failures.clear()
        elif attempt.is_conclusive:
            failures.append(attempt)
    return failures


def find_stuck_task(attempts: Iterable[PastAttempt], *, times: int = TIMES) -> Stuck | None:
    """Return why a task is stuck: it failed too often in a row, whichever models tried; None if it is not."""
    failures = list_open_failures(attempts)
    if len(failures) < times:
        return None
    tasks = tuple(dict.fromkeys(failure.task for failure in failures))
    errors = Counter(failure.error for failure in failures if failure.error)
    error, count = errors.most_common(1)[0] if errors else ("", 0)
    if count >= times:
        quote = _quote_error(failures, error)
        return Stuck(reason=f"{count} attempts ended with the same error: {quote}", error=quote, tasks=tasks)
    models = list(dict.fromkeys(failure.model for failure in failures if failure.model))
    who = f" ({', '.join(models)})" if models else ""
    quote = _quote_error(failures, failures[-1].error)
    return Stuck(reason=f"{len(failures)} attempts in a row failed{who}", error=quote, tasks=tasks)


def find_stuck_run(
    attempts: Sequence[PastAttempt], learnings_by_task: Mapping[str, Collection[str]], *, times: int = TIMES
) -> Stuck | None:
    """Return why a run must stop: too many unfinished tasks failed with the same error; None if it need not.

    The attempts must be passed oldest first. `learnings_by_task` has the learnings that each task was given.
    """
    by_task: dict[str, list[PastAttempt]] = {}
    for attempt in attempts:
        by_task.setdefault(attempt.task, []).append(attempt)
    tasks_of: dict[str, list[str]] = {}
    for task, own in by_task.items():
        for error in dict.fromkeys(failure.error for failure in list_open_failures(own) if failure.error):
            tasks_of.setdefault(error, []).append(task)
    error, tasks = max(tasks_of.items(), key=lambda item: len(item[1]), default=("", []))
    if len(tasks) < times:
        return None
    shared = set.intersection(*(set(learnings_by_task.get(task, ())) for task in tasks))
    quote = _quote_error(attempts, error)
    reason = f"{len(tasks)} tasks failed with the same error: {quote}"
    return Stuck(reason=reason, error=quote, tasks=tuple(tasks), learnings=tuple(sorted(shared)))


def _quote_error(failures: Sequence[PastAttempt], error: str) -> str:
    """Return an error in the wording of its latest occurrence."""
    quotes = (failure.error_text for failure in reversed(failures) if failure.error == error)
    return cut_words(fold(next(filter(str.strip, quotes), error)), _MAX_QUOTE_LENGTH)
