"""The ends of turns: what an agent said last in a conversation is kept at once, and debriefed later.

A client waits for the end of a turn, so no database is opened for it: the words go to the spool, on the disk, and the
worker is started. A conversation has one attempt, named after it: the next turn, or its transcript, replaces its
debrief if it says more. What the conversation taught and marked before stays.
"""

from __future__ import annotations

import os

from learnt.flow.background import start_worker
from learnt.model import Attempt, Task, check_text, text_id
from learnt.project import head_branch
from learnt.store.mined import DebriefRecord, Turn
from learnt.text.clean import clean
from learnt.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.flow.context import Context


def end_turn(
    context: Context,
    task: str,
    said: str,
    *,
    agent: str = "",
    client: str = "",
    transcript: str = "",
    branch: str = "",
    result: str | None = None,
    parent: str = "",
) -> str:
    """Keep what an agent said last in a turn, and let the worker debrief it; return the id of its attempt."""
    checked_out = branch or (head_branch(context.root) if context.root else "")
    turn = record_turn(
        context,
        Task(
            id=task,
            title=task,
            type="session",
            agent=context.redact_line(agent),
            client=context.redact_line(client),
            parent=parent,
        ),
        said,
        transcript=source_of(transcript) if transcript else "",
        branch=checked_out,
        result=result,
    )
    context.store.keep(turn)
    start_worker(context)
    return turn.attempt.id


def record_turn(
    context: Context,
    task: Task,
    said: str,
    *,
    transcript: str,
    branch: str,
    result: str | None,
    model: str = "",
    ended_at: int | None = None,
    read: dict[str, Any] | None = None,
) -> DebriefRecord:
    """Return what is known of a conversation so far, as it is spooled.

    `read`: of a transcript that holds all of it, its `size`, the `last` message and what was `asked` first.
    """
    now = context.clock()
    attempt = Attempt(
        id=text_id("attempt", task.id),
        task=task.id,
        number=1,
        result=result or "incomplete",
        model=context.redact_line(model),
        transcript=redact(clean(transcript))[0],  # a path keeps its blanks
        branch=context.redact_line(branch),
        started_at=now if ended_at is None else ended_at,
    )
    return DebriefRecord(
        attempt=attempt,
        result=result or "",
        output=redact(clean(check_text("said", said)))[0],
        task=task,
        at=now,
        turn=Turn(client=task.client, parent=task.parent, **(read or {})),
    )


def source_of(path: str) -> str:
    """Return the name of a transcript, the same however its path is written."""
    file, mark, session = path.rpartition("#")
    return f"{os.path.realpath(file)}#{session}" if mark and not os.path.exists(path) else os.path.realpath(path)


def debriefed_words_source(transcript: str) -> str:
    """Return the source under which the store notes how much of a transcript's words was debriefed."""
    return f"words {transcript}"
