"""The ends of turns: the agent's last message is stored at once and debriefed later.

A client waits for the hook at the end of a turn, so no database is opened: the message goes to the spool, and the
worker is started. A conversation has one attempt, whose id depends on the conversation. The next turn or the transcript
replaces its debrief; earlier learnings and marks stay.
"""

from __future__ import annotations

import os

from learnt.brief.render import ASKS
from learnt.flow.background import start_worker
from learnt.model import Attempt, Task, check_text, text_id
from learnt.project import head_branch
from learnt.store.happened import ASK, NoticeRecord, was_notice_shown
from learnt.store.mined import DebriefRecord, Turn
from learnt.text.clean import clean
from learnt.text.fence import notice
from learnt.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.flow.context import Context


def ask_once(context: Context, task: str, *, now: int) -> str:
    """Return the line that asks an agent to write down what it found out; empty if the conversation has had it."""
    asked = NoticeRecord(task=task, what=ASK, at=now, shown=True)
    pending = [record.body for record in context.store.spool.pending() if record.kind == asked.kind]
    if was_notice_shown(context.store.database, task, ASK) or any(body["task"] == task for body in pending):
        return ""
    context.store.record(asked)
    return notice(ASKS["stop"])


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
    """Spool the agent's last message in a turn and start the worker; return the attempt's id."""
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
        transcript=transcript_source(transcript) if transcript else "",
        branch=checked_out,
        result=result,
    )
    context.store.spool_for_later(turn)
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
    """Return a conversation's record for the spool.

    `read` contains what was read from the transcript: its `size`, the `last` message and the first prompt (`asked`).
    """
    now = context.clock()
    attempt = Attempt(
        id=text_id("attempt", task.id),
        task=task.id,
        number=1,
        result=result or "incomplete",
        model=context.redact_line(model),
        transcript=redact(clean(transcript))[0],  # blanks in a path must be kept
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


def transcript_source(path: str) -> str:
    """Return a name for a transcript that does not depend on how its path is written."""
    file, mark, session = path.rpartition("#")
    return f"{os.path.realpath(file)}#{session}" if mark and not os.path.exists(path) else os.path.realpath(path)


def debriefed_source(source: str) -> str:
    """Return the name under which the debriefed size of a transcript is recorded."""
    return f"words {source}"
