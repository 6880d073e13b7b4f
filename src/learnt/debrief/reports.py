"""Make the report on a failed attempt: the agent's own one, or the minimum without one."""

from __future__ import annotations

from learnt.debrief.marks import remove_marks
from learnt.debrief.sigils import remove_sigils
from learnt.model import NO_REPORT, TEXT_LIMIT, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.debrief.sigils import Sigils

_LONGEST_ENDING = 500
_MOST_UNREADABLE = 0.25


def make_report(sigils: Sigils, output: str, *, attempt: str, task: str, result: str, at: int) -> Failure | None:
    """Return the report on an attempt, or None when it was done or interrupted."""
    if result in ("done", "interrupted"):
        return None
    own = sigils.failure
    if own is None:
        return Failure(
            attempt=attempt,
            task=task,
            reason=f"the attempt ended as {result}{NO_REPORT}" + (f": {sigils.note}" if sigils.note else ""),
            error=_find_ending(output),
            suggestion=sigils.suggestion,
            created_at=at,
        )
    return Failure(
        attempt=attempt,
        task=task,
        tried=own.tried[:TEXT_LIMIT],
        reason=own.reason[:TEXT_LIMIT],
        category=own.category,
        files=own.files,
        error=own.error[:TEXT_LIMIT],
        avoid=own.avoid[:TEXT_LIMIT],
        suggestion=sigils.suggestion,
        created_at=at,
    )


def _find_ending(output: str) -> str:
    """Return the end of an output without marks and sigils: purging a learning must leave no copy of it here."""
    ending = remove_marks(remove_sigils(output)).strip()[-_LONGEST_ENDING:]
    return "(the output is not text)" if ending.count("\ufffd") > _MOST_UNREADABLE * len(ending) else ending
