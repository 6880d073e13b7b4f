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
    body = turn_body(
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
    context.store.keep("debrief", body)
    start_worker(context)
    return str(body["attempt"]["id"])


def debrief_body(task: Task, attempt: Attempt, output: str, *, result: str | None, at: int) -> dict[str, Any]:
    """Return an agent's output, without secrets, as the object that is applied or spooled."""
    fresh = {"agent": task.agent, "type": task.type, "client": task.client, "parent": task.parent}
    return {"attempt": attempt.as_dict(), "result": result or "", "output": output, "task": fresh, "at": at}


def turn_body(
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
) -> dict[str, Any]:
    """Return what is known of a conversation so far as the object that is applied or spooled.

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
    body = debrief_body(task, attempt, redact(clean(check_text("said", said)))[0], result=result, at=now)
    return {**body, "turn": {"client": task.client, "parent": task.parent, **(read or {})}}


def source_of(path: str) -> str:
    """Return the name of a transcript, the same however its path is written."""
    file, mark, session = path.rpartition("#")
    return f"{os.path.realpath(file)}#{session}" if mark and not os.path.exists(path) else os.path.realpath(path)


def words_of(source: str) -> str:
    """Return the name under which it is kept how much of the words in a transcript was debriefed."""
    return f"words {source}"
