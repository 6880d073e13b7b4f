"""After a task: read the agent's output, and store its learnings, failure report, marks and statistics.

The redacted output is written to disk before it is parsed. It is applied in one transaction, exactly once: `apply`
returns the outcome to the process that submitted the output, and a later replay of the spool ignores the outcome.
"""

from __future__ import annotations

from functools import partial

from learnt.clients.registry import tells_whole_turn
from learnt.debrief.marks import Marks, read_marks
from learnt.debrief.sigils import LearningSigil, Sigils, discovery_of, kind_of, make_report, read_sigils
from learnt.debrief.tags import find_tags
from learnt.errors import LearntError
from learnt.flow.background import update_when_due
from learnt.flow.context import Talk
from learnt.flow.folding import add_or_repeat, refuse
from learnt.flow.marks import COUNTED_BEFORE, apply_marks
from learnt.flow.tasks import next_number, settle
from learnt.flow.turns import debriefed_source
from learnt.mine.classify import complete, find_kind, find_triggers
from learnt.mine.quality import find_flaw_in
from learnt.model import (
    TAG_LIMIT,
    TEXT_LIMIT,
    TITLE_LIMIT,
    Attempt,
    Debrief,
    Discovery,
    Learning,
    Task,
    Triggers,
    Value,
    check_text,
    new_id,
    text_id,
)
from learnt.project import head_branch, head_commit
from learnt.store import activity, learnings, mined, missteps, tasks
from learnt.store.mined import DebriefRecord, Turn
from learnt.store.regenerations import TASKS_SINCE_UPDATE
from learnt.text.clean import clean, fold, shorten_middle
from learnt.text.records import read_fields
from learnt.text.redact import redact
from learnt.text.titles import AGENT_ENDED_PREFIX, cut_text, text_key
from learnt.weigh import confidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from learnt.flow.context import Context
    from learnt.model import Claim, Failure
    from learnt.store.database import Database

_MAX_SUMMARY_CHARS = 2_000
_MAX_MATERIAL_CHARS = 40_000


class AgentOutput(Value):
    """An agent's output and facts about the attempt; the fields are the keywords of `Memory.debrief`."""

    task: str
    text: str
    result: str | None = None
    model: str = ""
    duration_ms: int | None = None
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens: int | None = None
    agent: str = ""
    task_type: str = "implement"
    model_reason: str = ""
    transcript: str = ""
    failure: Failure | None = None
    claim: Claim | None = None
    ended_at: int | None = None


class Debriefs:
    """Reads agents' output after a task."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def debrief(self, **output: Any) -> Debrief:
        """Read an agent's output; the keywords are the fields of `AgentOutput`."""
        return debrief(self._context, AgentOutput(**output))


def debrief(context: Context, output: AgentOutput) -> Debrief:
    """Read an agent's output: store its learnings, failure report, marks and statistics."""
    now, claim = context.clock(), output.claim
    text, redactions = redact(clean(check_text("output", output.text)))
    attempt = Attempt(
        id=claim.attempt if claim else new_id("attempt", now),
        task=output.task,
        number=1,
        result=output.result or "incomplete",
        model=context.redact_line(output.model),
        model_reason=context.redact_line(output.model_reason, TEXT_LIMIT),
        transcript=redact(clean(output.transcript))[0],
        started_at=now,
        duration_ms=output.duration_ms,
        cost_usd=output.cost_usd,
        price_usd=claim.price_usd if claim and claim.agent_pid else None,
        tokens_in=output.tokens if output.tokens_in is None else output.tokens_in,
        tokens_out=output.tokens_out,
        branch=context.redact_line(head_branch(context.root) if context.root else ""),
    )
    began_at = max(0, (now if output.ended_at is None else output.ended_at) - (output.duration_ms or 0))
    attempt = attempt.replace(started_at=claim.started_at if claim else began_at)
    task = Task(
        id=output.task,
        title=output.task,
        agent=context.redact_line(output.agent),
        type=context.redact_line(output.task_type) or "implement",
    )
    record = DebriefRecord(
        attempt=attempt,
        result=output.result or "",
        output=text,
        task=task,
        at=now,
        claim=claim is not None,
        failure=output.failure and _redact_failure(output.failure),
        # `learnt work` knows the task, whoever started it.
        conversation="" if claim else context.talk.id,
        since=0 if claim else context.talk.since,
    )
    return store_debrief(context, record).replace(redactions=redactions)


def store_debrief(context: Context, record: DebriefRecord) -> Debrief:
    """Spool a debrief, apply it if possible, and return the outcome."""
    op, outcome = context.store.spool_and_apply(record)
    debrief = outcome if isinstance(outcome, Debrief) else _read_back(context, op, record.attempt)
    if not debrief.spooled:
        update_when_due(context)
    return debrief


def apply(context: Context, database: Database, body: dict[str, Any]) -> Debrief | None:
    """Within a transaction: apply an agent's output; return None for a turn that contains nothing new."""
    record = DebriefRecord.from_body(body)
    reading = _Reading(record)
    attempt = record.attempt
    stored = tasks.find(database, attempt.task)
    tasks.ensure(database, stored or record.task)
    task = tasks.get(database, attempt.task, for_update=True)  # locked, so that attempts get distinct numbers
    if record.ends_turn and not tells_whole_turn(task.client or record.task.client):
        missteps.note_seen(database, task.id, record.at)
    if record.claim and tasks.release_claim(database, task=task.id, attempt=attempt.id) is None:
        # The claim has lapsed, and the attempt was recorded as interrupted. Its learnings are still stored.
        tasks.record_cost(database, attempt)
        return _learn_and_mark(context, database, reading, task).replace(result="interrupted")
    earlier = None if record.turn is None else tasks.find_attempt(database, attempt.id)
    if earlier is not None and record.is_empty:
        _store_transcript(database, earlier, attempt.transcript)
        return None
    attempt = attempt.replace(
        number=earlier.number if earlier else next_number(database, task.id),
        result=reading.result,
        difficulty=reading.sigils.difficulty,
        summary=reading.sigils.note[:_MAX_SUMMARY_CHARS],
    )
    failure = _report(reading, task)
    (tasks.replace_attempt if earlier else tasks.add_attempt)(database, attempt, failure)
    how = {"claimed": record.claim, "by_agent": bool(record.conversation)}
    settle(context, task, attempt, next_model=reading.sigils.next_model, at=record.at, **how)
    debrief = _learn_and_mark(context, database, reading, task)
    _store_ignored(database, attempt.id, earlier, debrief)
    _store_material(context, task, attempt, record, is_new=earlier is None)
    return debrief.replace(failure=failure, new_task=stored is None)


class _Reading:
    """An agent's parsed output, before it is applied."""

    def __init__(self, record: DebriefRecord) -> None:
        self.record = record
        self.sigils: Sigils = read_sigils(record.output)
        self.marks: Marks = read_marks(record.output)
        self.result = record.result or self.sigils.result or "incomplete"

    @property
    def ignored(self) -> tuple[str, ...]:
        """The statements in the output that are ignored, each with the reason."""
        stated = self.sigils.result
        is_overruled = stated not in ("", self.result)
        overruled = (f"<task-{stated}>, as the result was given: {self.result}",) if is_overruled else ()
        return (*overruled, *self.sigils.ignored, *self.marks.ignored)


def _learn_and_mark(context: Context, database: Database, reading: _Reading, task: Task) -> Debrief:
    """Within a transaction: store the learnings that the agent reports, and count its marks."""
    record, marks = reading.record, reading.marks
    talk = Talk(id=record.conversation, since=record.since)
    how: dict[str, Any] = {"at": record.at, "talk": talk, "only_once": record.turn is not None}
    added, repeated, refused = _learn(context, database, reading.sigils.learnings, task, **how)
    who = task.agent or "agent"
    refusals = apply_marks(context, marks, task.id, who=who, **how) if marks != Marks() else {}
    return Debrief(
        task=task.id,
        attempt=reading.record.attempt.id,
        result=reading.result,
        learnings=added,
        repeated=repeated,
        helpful=tuple(id for id in marks.helpful if id not in refusals),
        not_helpful=tuple(id for id in marks.not_helpful if id not in refusals),
        refused_marks=tuple(refusals),
        refusals=refusals,
        next_model=reading.sigils.next_model,
        ignored=(*reading.ignored, *refused),
    )


def _learn(
    context: Context,
    database: Database,
    sigils: Sequence[LearningSigil],
    task: Task,
    *,
    at: int,
    talk: Talk,
    only_once: bool,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Add the learnings that an agent reports, or count their recurrence.

    Return the new ids, the known ids, and why others were refused.

    With `only_once`, ignore a learning that the same task has reported before, whatever people have done with it since.
    """
    added: list[str] = []
    repeated: list[str] = []
    refused: list[str] = []
    who = task.agent or "agent"
    for sigil in () if task.skip_learnings else sigils:
        same = learnings.find_same(database, sigil.text)
        if only_once and not context.store.claim_operation(text_id("op", f"learn {task.id} {text_key(sigil.text)}")):
            repeated += [same.id] if same is not None else []
            continue
        make = partial(_learning_of, sigil, task, at=at)
        reason = "" if same else find_flaw_in(title=sigil.title, observation=sigil.text, action=sigil.action)
        if reason:
            refused.append(f"<learning> `{sigil.title}`: {reason}")
            refuse(context, make, _discovery_of(sigil, task), reason, who=who, at=at)
            continue
        learning, is_new = add_or_repeat(context, same, make, task=task.id, who=who, at=at, talk=talk)
        (added if is_new else repeated).append(learning.id)
    return tuple(added), tuple(dict.fromkeys(repeated)), tuple(refused)


def _discovery_of(sigil: LearningSigil, task: Task) -> Discovery:
    """Return what an agent reports as a discovery, which is kept if it is no learning."""
    return Discovery(type=discovery_of(sigil.category), text=sigil.text, rule="words", task=task.id)


def _learning_of(sigil: LearningSigil, task: Task, *, at: int) -> Learning:
    discovery = discovery_of(sigil.category)
    statement = {"title": sigil.title, "observation": sigil.text, "action": sigil.action, "category": sigil.category}
    # A file among the tags is what the learning is about.
    named = find_triggers(sigil.title, sigil.action, " ".join((sigil.text, *sigil.tags)), given=Triggers())
    kind = sigil.kind or (kind_of(discovery) if sigil.category else find_kind(sigil.title))
    return Learning(
        id=new_id("learn", at),
        **complete({**statement, "triggers": named}),
        cues=sigil.cues,
        tags=_tags(sigil.tags, find_tags(f"{task.title} {task.text} {sigil.text}")),
        domain=sigil.domain,
        kind=kind,
        origin="agent",
        goal=task.goal,
        task=task.id,
        discovery=discovery,
        confidence=confidence.start("agent"),
        author=(task.agent or "agent")[:TITLE_LIMIT],
        created_at=at,
        updated_at=at,
    )


def _tags(own: Sequence[str], detected: Sequence[str]) -> tuple[str, ...]:
    """Return the agent's own tags in normal form, and as many detected tags as the limit allows."""
    own = [tag for tag in read_fields({"tags": own})["tags"] if tag]
    return tuple(sorted(list(dict.fromkeys((*own, *detected)))[:TAG_LIMIT]))


def _report(reading: _Reading, task: Task) -> Failure | None:
    """Return the report on a failed attempt; a verification's findings override the agent's own report."""
    if task.type == "session" and reading.sigils.failure is None and reading.result != "failed":
        return None  # a turn of a conversation is not a failed attempt
    record = reading.record
    failure = make_report(
        reading.sigils, record.output, attempt=record.attempt.id, task=task.id, result=reading.result, at=record.at
    )
    verified = dict(record.verified)
    if failure and verified and not failure.tried and reading.sigils.result == "done":
        verified.setdefault("tried", reading.sigils.note)
    if reading.sigils.failure and verified.get("reason", "").startswith(AGENT_ENDED_PREFIX):
        del verified["reason"]  # the agent's own reason says more than how its process ended
    return failure and failure.replace(**verified)


def _redact_failure(failure: Failure) -> Failure:
    """Return a failure found by a verification, without secrets."""
    texts = {name: getattr(failure, name) for name in ("tried", "reason", "error", "avoid", "suggestion")}
    return failure.replace(**{name: redact(clean(text))[0] for name, text in texts.items()})


def _store_material(context: Context, before: Task, attempt: Attempt, record: DebriefRecord, *, is_new: bool) -> None:
    """Within a transaction: store the output as material to be mined, and count finished tasks."""
    database, output = context.store.database, record.output
    if record.turn is not None:
        _store_turn(database, before, attempt, record.turn)
        # Only the last message is mined: earlier messages are mostly plans or guesses.
        output = output if record.turn.last is None else record.turn.last
    if before.skip_learnings or not context.settings.learnings_enabled:
        return
    commit = head_commit(context.root) if context.root else ""
    material = mined.Material(
        attempt=attempt.id,
        task=before.id,
        text=shorten_middle(output, _MAX_MATERIAL_CHARS),
        commit=commit[:40],
        created_at=attempt.started_at,
    )
    mined.add_material(database, material)
    is_finished = before.status != "done" and tasks.get(database, before.id).status == "done"
    if (is_new and attempt.number == 1) if before.type == "session" else is_finished:
        database.count(TASKS_SINCE_UPDATE)


def _store_ignored(database: Database, attempt: str, earlier: Attempt | None, debrief: Debrief) -> None:
    """Within a transaction: store why parts of an output do not count, also those of earlier turns."""
    marks = [f"mark on {id}: {reason}" for id, reason in debrief.refusals.items() if reason not in COUNTED_BEFORE]
    before = earlier.ignored.split("\n") if earlier and earlier.ignored else []
    lines = list(dict.fromkeys((*before, *map(fold, debrief.ignored), *map(fold, marks))))
    if lines != before:
        tasks.note_ignored(database, attempt, cut_text("\n".join(lines), _MAX_SUMMARY_CHARS))


def _store_transcript(database: Database, earlier: Attempt, transcript: str) -> None:
    """Within a transaction: store the path of a conversation's transcript, and leave the rest unchanged."""
    if transcript and transcript != earlier.transcript:
        report = tasks.failures(database, earlier.task).get(earlier.id)
        tasks.replace_attempt(database, earlier.replace(transcript=transcript), report)


def _store_turn(database: Database, task: Task, attempt: Attempt, turn: Turn) -> None:
    """Within a transaction: store the facts that a turn reveals about its conversation."""
    stored = tasks.get(database, task.id)
    changed = stored.replace(
        title=(turn.asked if stored.title == stored.id else "") or stored.title,
        client=stored.client or turn.client,
        parent=stored.parent or turn.parent,
    )
    if changed != stored:
        tasks.change(database, changed)
    if attempt.transcript and turn.size is not None:
        source = debriefed_source(attempt.transcript)
        mined.note_read(database, source, size=turn.size, task=task.id, at=attempt.started_at)
    elif attempt.transcript:
        mined.forget_read(database, debriefed_source(attempt.transcript))


def _read_back(context: Context, op: str, attempt: Attempt) -> Debrief:
    """Return the outcome of a debrief that another process applied, or that is still in the spool."""
    if any(record.op == op for record in context.store.spool.pending()):
        return Debrief(task=attempt.task, attempt=attempt.id, spooled=True)
    database = context.store.database
    applied = tasks.find_attempt(database, attempt.id)
    if applied is None:
        raise LearntError("the output was stored, but could not be applied", hint="`learnt doctor` shows where it is")
    marks = activity.marked(database, attempt.id)
    return Debrief(
        task=applied.task,
        attempt=applied.id,
        result=applied.result,
        failure=tasks.failures(database, applied.task).get(applied.id),
        learnings=tuple(activity.taught(database, applied.id)),
        helpful=tuple(id for id, helpful in marks.items() if helpful),
        not_helpful=tuple(id for id, helpful in marks.items() if not helpful),
        next_model=tasks.get(database, applied.task).next_model,
    )
