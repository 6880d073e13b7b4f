"""How far a learning is believed: who vouches for it, and its confidence, impact and stage. This file states all rules.

A person vouches by adding, accepting, liking, pinning, restoring or editing a learning. What a person vouches for has a
confidence of at least 0.8, unless the person chose another one. It does not fade, and agents' marks do not lower it:
they can only propose to retire it.

Evidence vouches for an agent's own conclusion if it comes from at least two conversations other than the one that
taught it: what it recommends succeeded after it was given, or the agent marked it as helpful. Only conversations count
that were given it without asking for it. Repetitions in two or more conversations that had not been given it count
together as one conversation, and only beside such a conversation, because whoever repeats a statement may have read it
in the same place. Text that was copied from a tool's output, a commit or a file is vouched for by a person only.

Marks are a vote, and a vote needs a turnout: they vouch only while at least a third of the conversations that are given
anything mark anything. Where agents rarely mark, the few that do are not a sample of all, and may be exactly those
that somebody has talked into it. What was observed counts without a turnout.

Nobody vouches for anything else, whatever its author, category, kind or confidence. It is on trial.

Confidence is between 0.1 and 1.0. Marks change it, and an unused learning loses a little every month, unless a person
vouches for it. A month starts at the creation, the last use or the last decay, whichever is latest, so decaying twice
changes nothing.
"""

from __future__ import annotations

from learnt.model import CONTENT, LEAST_CONFIDENCE
from learnt.text.times import MONTH_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from learnt.model import Learning
    from learnt.store.evidence import Evidence, Runs

PERSON, EVIDENCE, NOBODY = "person", "evidence", ""
PERSON_CONFIDENCE = 0.8
# A learning with enough evidence has at least this confidence.
_EVIDENCE_CONFIDENCE = 0.6
_CONVERSATIONS = 2
_MIN_REPETITIONS = 2
_MIN_TURNOUT = 1 / 3
# After this many conversations in which it did not help, a person is asked whether a learning should go.
_CONVERSATIONS_TO_RETIRE = 3
# An agent's learning that was copied has one of these authors.
TOOL_OUTPUT, COMMIT_MESSAGE = "tool output", "commit message"
_COPYING_RULES = ("command", "edit", "call", "verification")
# A success proves something only if few of the conversations that were not given the learning ran the same command.
_MIN_OTHERS = 5
_MAX_OTHERS_SHARE = 0.2
# How often a learning on trial is shown at most, and if nothing speaks for it.
_MAX_SHOWINGS = 10
_SHOWINGS_UNSUPPORTED = 3
_SHOWINGS_UNSUPPORTED_IF_OBSERVED = 1
# Where agents' work is observed: how many more for each time that an agent marked it as helpful or taught it again.
_SHOWINGS_FOR_WORDS = 2
STATEMENT_FIELDS = CONTENT[: CONTENT.index("origin")]
"""What a learning says and where it applies; whoever vouched for the old text has not vouched for another one."""
_START = 0.5
# What a discovery of this type becomes: an order among those on trial. Only who vouches lifts a learning over the gate.
_START_BY_DISCOVERY = {"blocker": 0.7, "constraint": 0.6}
_LIKE = 0.05
_HELPFUL = 0.05
_NOT_HELPFUL = -0.1
DECAY_PERIOD_MS = MONTH_MS
_LOSS = 0.02
_PROVEN_AFTER = 3
_RETIRED = ("archived", "superseded")


def vouch_by_person(learning: Learning, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a person's changes to a learning, with the person's word for it.

    A confidence among the changes is the person's own choice, and so is one that the person chose before.
    """
    least = learning.confidence if is_persons(learning) else PERSON_CONFIDENCE
    return {"vouched": PERSON, "confidence": max(least, learning.confidence), **(changes or {})}


def vouch_by_evidence(learning: Learning, evidence: Evidence) -> dict[str, Any]:
    """Return the changes to a learning that its evidence causes; empty if it causes none."""
    if learning.vouched == NOBODY and is_enough(evidence) and not is_copied(learning):
        return {"vouched": EVIDENCE, "confidence": max(_EVIDENCE_CONFIDENCE, learning.confidence)}
    if learning.vouched == EVIDENCE and not _suffices(evidence, evidence.worked + evidence.marked):
        return {"vouched": NOBODY}
    return {}


def is_enough(evidence: Evidence) -> bool:
    """Return whether evidence vouches for an agent's own conclusion."""
    has_turnout = evidence.turnout >= _MIN_TURNOUT
    return _suffices(evidence, evidence.worked + (evidence.marked if has_turnout else 0))


def _suffices(evidence: Evidence, supporting: int) -> bool:
    repeated = 1 if evidence.repeating >= _MIN_REPETITIONS and supporting else 0
    return supporting + repeated >= _CONVERSATIONS and supporting > evidence.rejecting


def speaks_against(evidence: Evidence) -> bool:
    """Return whether a person should decide on the learning's retirement."""
    return evidence.rejecting >= max(_CONVERSATIONS_TO_RETIRE, evidence.worked + evidence.marked + 1)


def are_due_to_learning(runs: Runs) -> bool:
    """Return whether a command that succeeded is not one that conversations run anyway."""
    return runs.all_others >= _MIN_OTHERS and not are_run_anyway(runs)


def are_run_anyway(runs: Runs) -> bool:
    """Return whether many conversations that were not given a learning run its commands, too."""
    return runs.others > _MAX_OTHERS_SHARE * runs.all_others


def after_agents_edit(learning: Learning, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's changes to a learning: another text has to prove itself again."""
    says_else = any(name in STATEMENT_FIELDS and getattr(learning, name) != value for name, value in changes.items())
    return {**changes, "vouched": NOBODY} if says_else else dict(changes)


def is_copied(learning: Learning) -> bool:
    """Return whether only a person can vouch for a text, because it was copied from a tool, a commit or a file."""
    return learning.origin not in ("agent", "model") or learning.author in (TOOL_OUTPUT, COMMIT_MESSAGE)


def author_of(rule: str, *, agent: str, is_commit: bool) -> str:
    """Return the author of what a mining rule found: the agent only if the words are the agent's own."""
    if is_commit:
        return COMMIT_MESSAGE
    return TOOL_OUTPUT if rule in _COPYING_RULES else agent


def is_persons(learning: Learning) -> bool:
    """Return whether a person vouches for a learning, so that no agent may change, hide or outrank it."""
    return learning.vouched == PERSON


def is_trusted(learning: Learning, min_confidence: float) -> bool:
    """Return whether a learning belongs to the trusted part of a brief; `store.index.Filter` selects the same ones."""
    return bool(learning.vouched) and (learning.pinned or learning.confidence >= min_confidence)


def count_trial_showings(learning: Learning, *, is_observed: bool) -> int:
    """Return in how many tasks a learning on trial may be shown.

    Where the agents' work is observed (`is_observed`), it can prove itself fast: it is shown once, and a few times more
    whenever an agent marks it as helpful or teaches it again; but as often as possible if what it recommends has
    worked, if only in the conversation that taught it.
    """
    if not is_observed:
        return _MAX_SHOWINGS if has_support(learning) else _SHOWINGS_UNSUPPORTED
    if learning.last_helpful_at is not None and not learning.times_helpful:
        return _MAX_SHOWINGS
    words = learning.times_helpful + learning.recurrences if has_support(learning) else 0
    return min(_MAX_SHOWINGS, _SHOWINGS_UNSUPPORTED_IF_OBSERVED + _SHOWINGS_FOR_WORDS * words)


def has_support(learning: Learning) -> bool:
    """Return whether anything besides the words of its own conversation speaks for a learning on trial."""
    has_helped = learning.last_helpful_at is not None and learning.times_helpful >= learning.times_not_helpful
    return has_helped or learning.recurrences > 0


def start(origin: str, discovery: str = "") -> float:
    """Return the confidence of a new learning with this origin, and made from this type of discovery."""
    return PERSON_CONFIDENCE if origin == "person" else _START_BY_DISCOVERY.get(discovery, _START)


def after_mark(confidence: float, *, helpful: bool) -> float:
    """Return the confidence after one mark."""
    return _within_bounds(confidence + (_HELPFUL if helpful else _NOT_HELPFUL))


def before_helpful_mark(confidence: float) -> float:
    """Return the confidence without one helpful mark."""
    return _within_bounds(confidence - _HELPFUL)


def after_like(confidence: float) -> float:
    """Return the confidence after one like."""
    return _within_bounds(confidence + _LIKE)


def decay(learning: Learning, now_ms: int) -> dict[str, Any]:
    """Return the changes that a learning's age causes; empty if a whole period has not passed yet."""
    since = max(learning.created_at, learning.last_injected_at or 0, learning.last_decayed_at or 0)
    periods = max(0, now_ms - since) // DECAY_PERIOD_MS
    if not periods or learning.confidence <= LEAST_CONFIDENCE or is_persons(learning):
        return {}
    return {
        "confidence": _within_bounds(learning.confidence - _LOSS * periods),
        "last_decayed_at": since + periods * DECAY_PERIOD_MS,
    }


def _within_bounds(confidence: float) -> float:
    """Return the confidence within its bounds, rounded to six digits."""
    return round(min(1.0, max(LEAST_CONFIDENCE, confidence)), 6)


def impact(learning: Learning) -> float:
    """Return the number of helpful marks minus the number of other marks, plus a fraction below 1 for recurrences.

    So one mark always weighs more than any number of recurrences.
    """
    recurrence_share = min(0.99, learning.recurrences / (learning.recurrences + 1))
    return round(learning.times_helpful - learning.times_not_helpful + recurrence_share, 2)


def stage(learning: Learning) -> str:
    """Return a learning's stage: `trial`, `proven` (by marks) or `retired`."""
    if learning.status in _RETIRED:
        return "retired"
    return "proven" if is_proven(learning) else "trial"


def is_proven(learning: Learning) -> bool:
    """Return whether a learning is not retired and has enough helpful marks."""
    helpful = learning.times_helpful
    return learning.status not in _RETIRED and helpful >= _PROVEN_AFTER and helpful > learning.times_not_helpful
