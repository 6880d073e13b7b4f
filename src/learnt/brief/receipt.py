"""The receipt of a brief: what was considered, what was chosen and why, and all that is needed to render it again.

Learnings are kept as pairs of id and version, with the counters that were shown: the text of that version comes from
the history. So the text itself need not be stored, and a receipt proves what an agent was told.
"""

from __future__ import annotations

from learnt.brief.render import RENDERER, Content, FailedBefore, Loop, Past, Shown, Unfinished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.brief.select import Choice
    from learnt.model import Failure, Learning

NO_ROOM = "no room in the budget"
GIVEN_TO = "given to "  # and then to which agent
_LONGEST_QUERY = 2_000


def write_receipt(
    *,
    query: str,
    asked: dict[str, Any],
    choices: Sequence[Choice],
    content: Content,
    beside: Sequence[str],
    no_room: Sequence[str],
    attempts: Sequence[Past],
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Return the receipt as a JSON object.

    `asked` is what was said beside the text, `beside` the ids of what the agent is given beside the brief, `attempts`
    all that there were.
    """
    told = {past.number for past in content.attempts}
    return {
        "query": query[:_LONGEST_QUERY],
        "query_length": len(query),
        **asked,
        "considered": [_considered(choice, no_room) for choice in choices],
        "shown": [_shown(shown) for shown in content.learnings],
        "beside": list(beside),
        "attempts": [{"attempt": past.failure.attempt, **_past(past)} for past in content.attempts],
        "attempts_left_out": [past.number for past in attempts if past.number not in told],
        "failed": [one.as_dict() for one in content.failed],
        "unfinished": [one.as_dict() for one in content.unfinished],
        "notes": list(content.notes),
        "loop": content.loop.as_dict(),
        "stuck": content.stuck,
        "at": content.now_ms,
        "render": RENDERER,
        "settings": settings,
    }


def read_receipt(
    id: str,
    receipt: dict[str, Any],
    *,
    learning_at: Callable[[str, int, str], Learning],
    failure_of: Callable[[str], Failure],
) -> Content:
    """Return the content of the brief, from the history of its learnings and the reports on its attempts."""
    learnings = [
        Shown(
            learning=learning_at(entry["id"], entry["version"], entry["scope"]).replace(
                times_injected=entry["used"], times_helpful=entry["helpful"], scope=entry["scope"]
            ),
            form=entry["form"],
            on_trial=entry["on_trial"],
        )
        for entry in receipt["shown"]
    ]
    attempts = [
        Past(
            number=entry["number"],
            result=entry["result"],
            model=entry["model"],
            failure=failure_of(entry["attempt"]),
            **({"longest": entry["longest"]} if "longest" in entry else {}),
        )
        for entry in receipt["attempts"]
    ]
    return Content(
        id=id,
        now_ms=receipt["at"],
        learnings=tuple(learnings),
        attempts=tuple(attempts),
        loop=Loop(**receipt["loop"]),
        stuck=receipt["stuck"],
        failed=tuple(FailedBefore(**entry) for entry in receipt.get("failed", ())),
        unfinished=tuple(Unfinished(**entry) for entry in receipt.get("unfinished", ())),
        notes=tuple(receipt.get("notes", ())),
    )


def _considered(choice: Choice, no_room: Sequence[str]) -> dict[str, Any]:
    hit = choice.hit
    left_out = choice.left_out or (NO_ROOM if hit.learning.id in no_room else "")
    return {
        "id": hit.learning.id,
        "score": round(hit.score, 4),
        "relevance": round(hit.relevance, 4),
        "confidence": hit.learning.confidence,
        "trigger": hit.trigger,
        "left_out": left_out,
    }


def _shown(shown: Shown) -> dict[str, Any]:
    learning = shown.learning
    return {
        "id": learning.id,
        "version": learning.version,
        "scope": learning.scope,
        "form": shown.form,
        "on_trial": shown.on_trial,
        "used": learning.times_injected,
        "helpful": learning.times_helpful,
    }


def _past(past: Past) -> dict[str, Any]:
    return {"number": past.number, "result": past.result, "model": past.model, "longest": past.longest}
