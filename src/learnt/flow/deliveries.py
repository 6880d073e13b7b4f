"""Decide from the clients' transcripts whether the briefs of hooks reached the agent.

A brief whose id stands in a text that the model was given is delivered; one that is only a line of ours, if the model
was given such a line. It was missed if the agent went on after it and the transcript does not contain it, although it
contains what hooks say. Everything else stays unknown.

A plugin of ours that sees the requests to the model reports at the end of a turn which briefs were in them.
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
from learnt.store import deliveries, mined, session_database
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
    undecided = [brief for brief in undecided if brief.reported != DELIVERED]
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
    others = [brief for brief in briefs if brief not in given and not brief.delivery]
    missed = _find_missed(one, others) if found.is_complete and others else []
    reached: list[str] = []
    with context.store.transaction():
        for brief in given:
            reached += confirm_delivery(context, brief.id)
        for brief in missed:
            deliveries.miss(context.store.database, brief.id)
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


def _find_missed(one: TaskTranscript, briefs: Sequence[UndecidedBrief]) -> list[UndecidedBrief]:
    """Return the briefs after which the agent went on."""
    own, aside = _AgentProgress(), _AgentProgress()
    for step in steps(one.transcript, session_database):
        (aside if step.aside else own).follow(step)
    if one.of_parent:  # it may contain other sub-agents, too, so this one must have ended
        return [brief for brief in briefs if aside.is_after(brief) and brief.created_at <= one.started_at]
    # If only a sub-agent acted, the transcript is the sub-agent's own.
    progress = own if own.acted_at else aside
    return [brief for brief in briefs if progress.is_after(brief)]


class _AgentProgress:
    """How far an agent got in a conversation."""

    def __init__(self) -> None:
        self.acted_at = 0
        self._result_at = 0
        self._read_result_at = 0

    def follow(self, step: Step) -> None:
        if step.kind == "result":
            self._result_at = max(self._result_at, step.at)
        elif step.kind in _AGENT_STEPS:
            self.acted_at = max(self.acted_at, step.at)
            self._read_result_at = self._result_at

    def is_after(self, brief: UndecidedBrief) -> bool:
        """Return whether the agent acted after a brief; one that was given before a call arrives with its result."""
        client = registry.find(brief.client)
        if brief.occasion == "tool" and client is not None and client.hears_before_call:
            return self._read_result_at >= brief.created_at
        return self.acted_at > brief.created_at
