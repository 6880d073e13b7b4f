"""What is known of a failed attempt: the agent's own report, or the least that can be said without one."""

from __future__ import annotations

from learnt.debrief.marks import without_marks
from learnt.debrief.sigils import without_sigils
from learnt.model import TEXT_LIMIT, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.debrief.sigils import Sigils

_LONGEST_ENDING = 500
_MOST_UNREADABLE = 0.25

NO_REPORT = ", without a report"


def report_of(sigils: Sigils, output: str, *, attempt: str, task: str, result: str, at: int) -> Failure | None:
    """Return the report on an attempt, or None when it was done or interrupted."""
    if result in ("done", "interrupted"):
        return None
    given = sigils.failure
    if given is None:
        return Failure(
            attempt=attempt,
            task=task,
            reason=f"the attempt ended as {result}{NO_REPORT}" + (f": {sigils.note}" if sigils.note else ""),
            error=_ending(output),
            suggestion=sigils.suggestion,
            created_at=at,
        )
    return Failure(
        attempt=attempt,
        task=task,
        tried=given.tried[:TEXT_LIMIT],
        reason=given.reason[:TEXT_LIMIT],
        category=given.category,
        files=given.files,
        error=given.error[:TEXT_LIMIT],
        avoid=given.avoid[:TEXT_LIMIT],
        suggestion=sigils.suggestion,
        created_at=at,
    )


def _ending(output: str) -> str:
    """Return the last that an output says beside what is kept elsewhere: purging a learning must leave no copy here."""
    ending = without_marks(without_sigils(output)).strip()[-_LONGEST_ENDING:]
    return "(the output is not text)" if ending.count("\ufffd") > _MOST_UNREADABLE * len(ending) else ending
