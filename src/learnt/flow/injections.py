"""What agents were given: store a brief and its injections, confirm that it arrived, and tell what a task has had.

Clients can continue a conversation under a new name: what the old one was given, the new one has, too. Its briefs stand
in the new transcript.
"""

from __future__ import annotations

import os
import re
import time

from learnt.store import happened, tasks
from learnt.system.files import read_transcript_end
from learnt.text.recommended import recommends_command
from learnt.text.titles import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from learnt.clients.kit.events import HookEvent
    from learnt.flow.context import Context
    from learnt.flow.warnings import CallWarning
    from learnt.model import Brief, Learning, Task

_MAX_BRIEFS = 20
_MAX_TRANSCRIPTS = 20
_TOLERANCE_S = 2  # a client rounds, and a hook takes a moment to start


def record(
    context: Context,
    task: Task,
    brief: Brief,
    *,
    began_ns: int | None = None,
    warning: CallWarning | None = None,
) -> Brief:
    """Store a brief, its injections and how long it took to build; return the brief.

    `began_ns` is when work on the brief began, by `time.perf_counter_ns`; by default, when the brief was created.
    `warning` is the warning that the brief contains.
    """
    spent = context.clock() - brief.created_at if began_ns is None else (time.perf_counter_ns() - began_ns) // 1_000_000
    age_s = context.store.age_s()
    receipt = brief.receipt if age_s is None else {**brief.receipt, "mirror_age_s": age_s}
    brief = brief.replace(duration_ms=max(0, spent), receipt=receipt, delivery=happened.delivery_of(brief.asked_by))
    before = _delivered_before(context, task.id) if brief.delivery else ()
    brief_record = happened.BriefRecord(task=task, brief=brief)
    context.store.record(brief_record if warning is None else warning.as_record(brief_record))
    if brief.delivery:
        _count_elsewhere(context, brief, [id for id in brief.learning_ids if id not in before])
    return brief


def confirm_delivery(context: Context, id: str) -> list[str]:
    """Within a transaction: record that a brief was delivered; return the learnings that are new to the agent."""
    brief, counted = happened.deliver(context.store.database, id)
    _count_elsewhere(context, brief, counted)
    return counted


def injected(
    context: Context, task: str, *, since: int = 0, missed_too: bool = False, agent: str = ""
) -> dict[str, bool]:
    """Return the learnings that a task was given since the given time, and whether each was held out.

    A learning whose brief is known not to have been delivered is left out, unless `missed_too` is set. A conversation
    that began as a copy of another one has what that one was given. With `agent`, what only other roles got is left
    out.
    """
    # Read the spool first, because a replay may move records to the database meanwhile.
    pending = context.store.pending_briefs(task) if task else ()
    database = context.store.database
    held_out_by_id: dict[str, bool] = {}
    origin = tasks.find_origin(database, task) if not since else None
    if origin:
        held_out_by_id |= happened.injected(database, origin.id, since=origin.fresh_since, missed_too=missed_too)
    held_out_by_id |= happened.injected(database, task, since=since, missed_too=missed_too)
    if agent and held_out_by_id:
        for id in tasks.list_given_to_others(database, task, agent, since=since):
            held_out_by_id.pop(id, None)
    for record in pending:
        injections = record.given.brief.injections
        held_out_by_id |= {entry.learning: entry.held_out for entry in injections if entry.injected_at >= since}
    return held_out_by_id


def asks_for_marks(context: Context, task: Task, shown: Iterable[Learning]) -> bool:
    """Return whether a brief in a conversation asks which of its learnings helped: once.

    It does not if hooks see the use of all of them, because each recommends a command.
    """
    if all(learning.scope == "project" and recommends_command(learning) for learning in shown):
        return False
    # Read the spool first, because a replay may move records to the database meanwhile.
    pending = [record.given.brief for record in context.store.pending_briefs(task.id)]
    # Briefs of earlier versions always ask.
    if any(brief.created_at >= task.fresh_since and brief.receipt.get("asks_marks", True) for brief in pending):
        return False
    database = context.store.database
    return not happened.was_asked_for_marks(database, _with_origin(task), since=task.fresh_since)


def list_indexed(context: Context, task: Task) -> set[str]:
    """Return the learnings that the index of a conversation has listed since its last compaction."""
    # Read the spool first, because a replay may move records to the database meanwhile.
    pending = [record.given.brief for record in context.store.pending_briefs(task.id)]
    listed = {
        entry["id"]
        for brief in pending
        if brief.created_at >= task.fresh_since
        for entry in brief.receipt.get("index", ())
    }
    database = context.store.database
    return listed | happened.list_indexed(database, _with_origin(task), since=task.fresh_since)


def _with_origin(task: Task) -> list[str]:
    """Return a conversation and the one that it continues, unless it was compacted or cleared since."""
    copied = [task.based_on] if task.based_on and task.type == "session" and not task.fresh_since else []
    return [task.id, *copied]


def find_origin(context: Context, task: str, event: HookEvent) -> str:
    """Return the other conversation that was given the last brief in a transcript; empty if there is none.

    A fork of Claude Code's has no transcript yet when it begins, so the one that it continues is read.
    """
    briefs = _list_briefs(event.transcript)
    if not briefs and event.idle_s is not None:
        answered_s = context.clock() // 1000 - event.idle_s
        briefs = _list_briefs(_find_answered(event.transcript, answered_s)) if event.source == "fork" else []
    tasks = happened.tasks_of(context.store.database, briefs) if briefs else {}
    return next((tasks[brief] for brief in briefs if tasks.get(brief, task) != task), "")


def _find_answered(transcript: str, answered_s: int) -> str:
    """Return the transcript beside this one whose last answer is of this time; empty if none is, or several are."""
    since_s, until_s = answered_s - _TOLERANCE_S, answered_s + _TOLERANCE_S
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)) for second in range(since_s, until_s + 1)]
    try:
        with os.scandir(os.path.dirname(transcript)) as entries:
            changed = {entry.path: entry.stat().st_mtime for entry in entries if entry.name.endswith(".jsonl")}
    except (OSError, ValueError):
        return ""
    # The one that is wanted changed last at about that time, unless it is still open.
    others = sorted((path for path in changed if changed[path] >= since_s), key=changed.__getitem__)
    found = [path for path in others[:_MAX_TRANSCRIPTS] if _has_answered(path, times)]
    return found[0] if len(found) == 1 else ""


def _has_answered(transcript: str, times: list[str]) -> bool:
    """Return whether the last answer in a transcript is of one of these times."""
    lines = reversed(read_transcript_end(transcript).split(b"\n"))
    last = next((line for line in lines if b'"type":"assistant"' in line), b"")
    return any(f'"timestamp":"{at}'.encode() in last for at in times)


def _list_briefs(transcript: str) -> list[str]:
    """Return the ids of the last briefs in a transcript, the last one first."""
    content = read_transcript_end(transcript)
    if b"learnt-brief" not in content:  # compiling the expression would take longer
        return []
    found = re.findall(rb'learnt-brief id=\\*"(brief_\w{1,60})', content)
    return list(dict.fromkeys(id.decode() for id in reversed(found)))[:_MAX_BRIEFS]


def list_given_to_others(context: Context, task: str, agent: str) -> dict[str, str]:
    """Return the learnings in the templates of other agents for the same task, except pinned ones.

    Templates are prepared together and share what is known. What a brief gave to an agent at work counts for that agent
    alone, and templates without an agent are ignored.
    """
    if not agent:
        return {}
    return {
        id: f"given to {other} for this task"
        for id, other in happened.list_given_in_templates(context.store.database, task).items()
        if other and key_of(other) != key_of(agent)
    }


def _delivered_before(context: Context, task: str) -> set[str]:
    """Return the learnings that have reached the agent in a task."""
    briefs = [record.given.brief for record in (context.store.pending_briefs(task) if task else ())]
    pending = {id for brief in briefs if brief.delivery for id in brief.learning_ids}
    return pending | happened.delivered(context.store.database, task)


def _count_elsewhere(context: Context, brief: Brief, ids: Collection[str]) -> None:
    """Count those learnings of a delivered brief that are in other stores; this neither waits long nor fails."""
    for store in context.stores[1:]:
        scope = store.place.scope
        here = [entry["id"] for entry in brief.receipt["shown"] if entry["scope"] == scope and entry["id"] in ids]
        if here and not store.place.read_only and (reason := store.count_uses(here, at=brief.created_at)):
            context.remarks.append(f"not counted in {store.place.folder}: {reason}")
