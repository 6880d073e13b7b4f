"""The ends of turns: what an agent said last in a conversation is kept at once, and made something of later.

A client waits for the end of a turn, so nothing is opened for it: the words go to the spool, on the disk, and a process
of its own is started. A conversation has one attempt, named after it: whatever tells more of it, the next turn or its
transcript, replaces its debrief; what tells nothing replaces nothing. What it taught and marked before stays.
"""

from __future__ import annotations

import os

from learnt.flow.debriefs import debrief_body
from learnt.model import Attempt, Task, check_text, text_id
from learnt.store import mined, tasks
from learnt.text.clean import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.flow.debriefs import Debriefing
    from learnt.store.database import Database


def end_turn(
    memory: Debriefing,
    task: str,
    said: str,
    *,
    agent: str,
    client: str,
    transcript: str,
    branch: str,
    result: str | None,
    parent: str,
) -> str:
    """Keep what an agent said last in a turn, and let it be made something of; return the id of its attempt."""
    from learnt.project import head_branch

    checked_out = branch or (head_branch(memory.root) if memory.root else "")
    body = turn_body(
        memory,
        Task(
            id=task, title=task, type="session", agent=memory._line(agent), client=memory._line(client), parent=parent
        ),
        said,
        transcript=source_of(transcript) if transcript else "",
        branch=checked_out,
        result=result,
    )
    memory.store.keep("debrief", body)
    memory.start_worker()
    return str(body["attempt"]["id"])


def turn_body(
    memory: Debriefing,
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

    `read`: what is told of a transcript that holds it all: its `size`, the `last` message and what was `asked` first.
    """
    from learnt.text.redact import redact

    now = memory._clock()
    attempt = Attempt(
        id=text_id("attempt", task.id),
        task=task.id,
        number=1,
        result=result or "incomplete",
        model=memory._line(model),
        transcript=redact(clean(transcript))[0],  # a path keeps its blanks
        branch=memory._line(branch),
        started_at=now if ended_at is None else ended_at,
    )
    body = debrief_body(task, attempt, redact(clean(check_text("said", said)))[0], result=result, at=now)
    return {**body, "turn": {"client": task.client, "parent": task.parent, **(read or {})}}


def tells_nothing(body: dict[str, Any]) -> bool:
    """Say whether a turn has neither words nor a result, such as one that was broken off."""
    told = "size" in body["turn"] or body["result"] or body["output"].strip()
    return not told


def keep_transcript(database: Database, earlier: Attempt, transcript: str) -> None:
    """Within a transaction: let a conversation stay as it was told before, and know where it is written down."""
    if transcript and transcript != earlier.transcript:
        report = tasks.failures(database, earlier.task).get(earlier.id)
        tasks.replace_attempt(database, earlier.replace(transcript=transcript), report)


def settle(database: Database, task: Task, attempt: Attempt, output: str, turn: dict[str, Any]) -> str:
    """Within the transaction that applies a turn: keep what is known of its conversation; return what is to be mined.

    What is said on the way is mostly a plan or a guess; what is said last is what was found.
    """
    known = tasks.get(database, task.id)
    title = turn.get("asked") if known.title == known.id else None
    told = known.replace(
        title=title or known.title,
        client=known.client or turn.get("client", ""),
        parent=known.parent or turn.get("parent", ""),
    )
    if told != known:
        tasks.change(database, told)
    if attempt.transcript and "size" in turn:
        mined.note_read(database, words_of(attempt.transcript), size=turn["size"], task=task.id, at=attempt.started_at)
    elif attempt.transcript:
        mined.forget_read(database, words_of(attempt.transcript))
    return str(turn.get("last", output))


def source_of(path: str) -> str:
    """Return by what a transcript is known, however its path is written."""
    file, mark, session = path.rpartition("#")
    return f"{os.path.realpath(file)}#{session}" if mark and not os.path.exists(path) else os.path.realpath(path)


def words_of(source: str) -> str:
    """Return under which name is kept how much of the words in a transcript was debriefed."""
    return f"words {source}"
