"""Decide from the clients' transcripts whether the briefs of hooks reached the agent.

A brief whose id stands in a text that the model was given is delivered; one that is only a line of ours, if the model
was given such a line. It was missed if the agent went on after it and the transcript does not contain it, although it
contains what hooks say. Everything else stays unknown.

A plugin of ours that sees the requests to the model reports at the end of a turn which briefs were in them.

The transcript shows, too, whether an agent went on after a warning: it said or called something once it had the result
of the call. A call that began before the warning may return after it, so hooks cannot tell.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from learnt.clients import registry
from learnt.clients.kit.transcript import GivenBriefs, Step, find_briefs, steps
from learnt.errors import LearntError, TryAgain
from learnt.flow.context import Context
from learnt.flow.history import size_or_0
from learnt.flow.injections import confirm_delivery
from learnt.model import DELIVERED
from learnt.store import deliveries, mined, missteps, session_database
from learnt.store.deliveries import TaskTranscript, UndecidedBrief
from learnt.text.times import MONTH_MS

_AGENT_STEPS = ("said", "call")


def decide_deliveries(context: Context, *, deadline: float = float("inf")) -> tuple[list[str], list[str]]:
    """Read the transcripts of undecided briefs that have grown.

    Return the learnings that are now known to have reached an agent, and what could not be read yet.
    """
    database = context.store.database
    undecided = deliveries.list_undecided(database, since=context.clock() - MONTH_MS)
    reached = _accept_reports(context, [brief for brief in undecided if brief.reported not in ("", brief.delivery)])
    undecided = [brief for brief in undecided if brief.reported != DELIVERED or brief.warns]
    transcripts = deliveries.list_transcripts(database, sorted({brief.task for brief in undecided}))
    sizes_read = mined.sizes_read(database, [name_for_briefs(one) for one in transcripts])
    remarks: list[str] = []
    for one in transcripts:
        size = size_or_0(one.transcript)
        if not size or sizes_read.get(name_for_briefs(one)) == size:
            continue
        if time.monotonic() > deadline:
            break
        briefs = [brief for brief in undecided if _belongs(brief, one, transcripts)]
        try:
            reached += _decide(context, one, size, briefs)
        except LearntError as error:
            remarks.append(error.message)
    return reached, remarks


def _accept_reports(context: Context, briefs: Sequence[UndecidedBrief]) -> list[str]:
    reached: list[str] = []
    if not briefs:
        return reached
    with context.store.transaction():
        for brief in briefs:
            if brief.reported == DELIVERED:
                reached += confirm_delivery(context, brief.id)
            else:
                deliveries.miss(context.store.database, brief.id)
    return reached


def name_for_briefs(one: TaskTranscript) -> str:
    """Return the name under which it is recorded how much of a transcript has been searched for a task's briefs."""
    return f"given {f'{one.task} ' if one.of_parent else ''}{one.transcript}"


def _belongs(brief: UndecidedBrief, transcript: TaskTranscript, transcripts: Sequence[TaskTranscript]) -> bool:
    """Return whether a brief was given in an attempt; a conversation has one, which restarts with each turn."""
    if brief.task != transcript.task:
        return False
    own = [one for one in transcripts if one.task == brief.task]
    begun = [one for one in own if one.started_at <= brief.created_at]
    return transcript == (begun or own)[-1 if begun else 0]


def _decide(context: Context, one: TaskTranscript, size: int, briefs: Sequence[UndecidedBrief]) -> list[str]:
    found = _find_briefs(one.transcript)
    given = [brief for brief in briefs if (brief.id in found.ids if brief.has_id else found.has_notice)]
    others = [brief for brief in briefs if brief not in given and not brief.delivery and not brief.reported]
    others = others if found.is_complete else []
    warnings = [brief for brief in briefs if brief.warns and (brief in given or brief.reported == DELIVERED)]
    warnings = [] if one.of_parent else warnings  # its transcript does not tell which sub-agent went on
    progress = _read_progress(one) if others or warnings else _AgentProgress()
    reached: list[str] = []
    with context.store.transaction():
        for brief in given:
            reached += confirm_delivery(context, brief.id)
        for brief in others:
            # A parent's transcript may contain other sub-agents, too, so this one must have ended.
            if progress.is_after(brief) and (not one.of_parent or brief.created_at <= one.started_at):
                deliveries.miss(context.store.database, brief.id)
        for brief in warnings:
            if at := progress.find_reaction(brief):
                missteps.note_seen(context.store.database, brief.task, at, brief=brief.id)
        source, at = name_for_briefs(one), context.clock()
        mined.note_read(context.store.database, source, size=size, task=one.task, at=at)
    return reached


def _find_briefs(transcript: str) -> GivenBriefs:
    try:
        return find_briefs(transcript, session_database)
    except TryAgain:
        raise  # the client is writing to the transcript
    except (LearntError, OSError):
        return GivenBriefs()  # it is no transcript that we can read


def _read_progress(one: TaskTranscript) -> _AgentProgress:
    own, aside = _AgentProgress(), _AgentProgress()
    for step in steps(one.transcript, session_database):
        (aside if step.aside else own).follow(step)
    # If only a sub-agent acted, the transcript is the sub-agent's own.
    return aside if one.of_parent or not own.acted_at else own


class _AgentProgress:
    """How far an agent got in a conversation."""

    def __init__(self) -> None:
        self.acted_at = 0
        self._result_at = 0
        self._reactions: dict[int, int] = {}
        """When the agent first acted after each result that it had last, in the order of the transcript; 0 if a person
        wrote before that."""
        self._read_result_at = 0
        self._message = ""

    def follow(self, step: Step) -> None:
        if step.kind == "result":
            self._result_at = max(self._result_at, step.at)
        elif step.kind in _AGENT_STEPS and (not step.message or step.message != self._message):
            # The rest of a message was written before the results of its calls.
            self._message = step.message
            self.acted_at = max(self.acted_at, step.at)
            self._reactions.setdefault(self._result_at, step.at)
            self._read_result_at = self._result_at
        elif step.kind == "prompt":
            self._reactions.setdefault(self._result_at, 0)

    def is_after(self, brief: UndecidedBrief) -> bool:
        """Return whether the agent acted after a brief; one that was given before a call arrives with its result."""
        client = registry.find(brief.client)
        if brief.occasion == "tool" and client is not None and client.hears_before_call:
            return self._read_result_at >= brief.created_at
        return self.acted_at > brief.created_at

    def find_reaction(self, brief: UndecidedBrief) -> int:
        """Return when the agent first acted after a result that came after a brief; 0 if it did not, or was told to."""
        acted = (acted_at for result_at, acted_at in self._reactions.items() if result_at >= brief.created_at)
        return next(acted, 0)
