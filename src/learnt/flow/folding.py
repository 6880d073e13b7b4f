"""Fold what agents learn into what is known: before a learning is stored, the nearest known ones are compared with it.

What says the same and nothing else recurs. What says more, be it only a reason, revises a learning that nobody has been
shown yet and nothing speaks for; its history keeps the old text. Anything else is stored, and its first event names the
one that it resembles. The verdict is `weigh.compare`'s, never similarity alone. What the gate (`mine.quality`) refuses
is kept as a discovery.

An agent's learning changes nothing that a person or evidence vouches for. It does not count as a repetition of a
learning on trial that says more than itself either: it would speak for what it does not say.
"""

from __future__ import annotations

from learnt.consolidate.overlap import LearningContent, judge
from learnt.flow.marks import note_repetition, source_of
from learnt.mine.quality import can_heal
from learnt.model import CUE_LIMIT, TAG_LIMIT, Learning, Triggers, Value
from learnt.recall.find import find_nearest
from learnt.store import evidence, learnings, mined
from learnt.store.index import Filter
from learnt.store.learnings import SIMILAR_TO, Change
from learnt.weigh.compare import REPEATS, SUPERSEDES, UNRELATED, Verdict, compare_meanings
from learnt.weigh.confidence import STATEMENT_FIELDS, is_copied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from learnt.consolidate.overlap import Likeness
    from learnt.flow.context import Context, Talk
    from learnt.model import Discovery, Hit
    from learnt.store.database import Database

_MAX_COMPARED = 10
_MAX_NAMES = 60
_SAID = ("title", "action", "context", "observation", "implication")
_MAX_READ = 300  # characters of a learning, in which it says what it is about
_RANK_SCALE = 3  # the higher, the more it counts that a learning is near to both
_TASKS_TO_PROPOSE = 2
_MAX_REASON_LENGTH = 200
_LISTS = {"tags": TAG_LIMIT, "cues": CUE_LIMIT}


class Similar(Value):
    """A known learning that resembles another, and how the newer of the two relates to the older."""

    learning: Learning
    verdict: Verdict
    relevance: float = 0.0
    """How well it was found by what the other says, from 0 to 1."""

    @property
    def score(self) -> float:
        """How much of what the two say is shared, from 0 to 1."""
        return self.verdict.score

    @property
    def says_it_all(self) -> bool:
        """Whether the older of the two says everything that the newer one says, which therefore only repeats it."""
        return self.verdict == REPEATS and not self.verdict.explains


def find_similar(
    database: Database,
    learning: Learning,
    *,
    limit: int = _MAX_COMPARED,
    is_stored: bool = False,
    near_too: bool = False,
    measure: Likeness | None = None,
) -> list[Similar]:
    """Return the known learnings that resemble a learning, whatever their status: repeated ones first, then by score.

    Learnings that are near and say something else are left out, or with `near_too` come last. A learning that is not
    stored is the newest. With `measure`, verdicts are also estimated by likeness, for people to decide on.
    """
    content = LearningContent(learning)
    compared = []
    for hit in _find_candidates(database, content, limit=max(limit, _MAX_COMPARED)):
        pair = (LearningContent(hit.learning), content)
        is_newer = is_stored and _order(hit.learning) > _order(learning)
        older, newer = pair[::-1] if is_newer else pair
        verdict = judge(older, newer, measure=measure) if measure else compare_meanings(older.meaning, newer.meaning)
        if near_too or verdict != UNRELATED:
            compared.append(Similar(learning=hit.learning, verdict=verdict, relevance=hit.relevance))
    related = sorted((similar for similar in compared if similar.verdict != UNRELATED), key=_rank)
    return [*related, *(similar for similar in compared if similar.verdict == UNRELATED)][:limit]


def _find_candidates(database: Database, content: LearningContent, *, limit: int) -> list[Hit]:
    """Return the learnings nearest to what a learning says or to what it names; first those that are near to both."""
    learning, named = content.learning, content.meaning.specifics
    said = " ".join(filter(None, (getattr(learning, name) for name in _SAID)))[:_MAX_READ]
    texts = [said, *([" ".join(sorted(named)[:_MAX_NAMES])] if named else [])]
    hits: dict[str, Hit] = {}
    nearness: dict[str, float] = {}
    for text in texts:
        found = find_nearest(database, text, Filter(status=None), limit=limit + 1)
        others = [hit for hit in found if hit.learning.id != learning.id]
        for rank, hit in enumerate(others):
            hits.setdefault(hit.learning.id, hit)
            nearness[hit.learning.id] = nearness.get(hit.learning.id, 0.0) + 1 / (rank + _RANK_SCALE)
    return sorted(hits.values(), key=lambda hit: -nearness[hit.learning.id])


def _order(learning: Learning) -> tuple[int, str]:
    return learning.created_at, learning.id


def _rank(similar: Similar) -> tuple[object, ...]:
    learning, verdict = similar.learning, similar.verdict
    return (verdict != REPEATS, learning.status != "active", -verdict.score, learning.created_at, learning.id)


def add_or_repeat(
    context: Context, known: Learning | None, make: Callable[[], Learning], *, task: str, who: str, at: int, talk: Talk
) -> tuple[Learning, bool]:
    """Within a transaction: store what a task taught, or count that it was taught again; return whether it is new.

    `known` is the learning with exactly these words, if there is one; otherwise the nearest ones are compared.
    """
    database, conversation = context.store.database, talk.of(context, task)
    if known is None:
        learning = make()
        similar = find_similar(database, learning)
        # What waits for a person's decision takes in only what waits as well.
        similar = [one for one in similar if one.learning.status != "proposed" or learning.status == "proposed"]
        known = next((one.learning for one in similar if _recurs(context, one, conversation)), None)
        if known is None:
            return _add(database, learning, similar, who=who, at=at)
    repeated = learnings.recur(database, known, task=task, who=who, at=at)
    return note_repetition(context, repeated, conversation, at=at), False


def _add(
    database: Database, learning: Learning, similar: Sequence[Similar], *, who: str, at: int
) -> tuple[Learning, bool]:
    """Within a transaction: revise a known learning that says less, or add one that is linked to the nearest one."""
    revised = next((one for one in similar if _may_revise(database, one, learning)), None)
    if revised is not None:
        return _revise(database, revised, learning, who=who, at=at), False
    what = "propose" if learning.status == "proposed" else "add"
    learnings.add(database, learning, Change(what=what, who=who, at=at, reason=_describe(similar)))
    return learning, True


def _recurs(context: Context, similar: Similar, conversation: str) -> bool:
    """Return whether a new learning only repeats a known one, and may speak for it."""
    known, verdict = similar.learning, similar.verdict
    if not similar.says_it_all:
        return False
    is_own = bool(conversation) and conversation in (known.task, source_of(context, known))
    return not verdict.lacks or bool(known.vouched) or is_own


def _may_revise(database: Database, similar: Similar, newer: Learning) -> bool:
    """Return whether a learning that says more may take the place of a known one: nobody has a stake in it yet."""
    known, verdict = similar.learning, similar.verdict
    is_unused = not (known.vouched or known.pinned or known.times_injected or known.recurrences)
    is_unmarked = not (known.times_helpful or known.times_not_helpful)
    explains = verdict == REPEATS and bool(verdict.explains) and _lacks_nothing(known, newer)
    says_more = not verdict.lacks and (verdict == SUPERSEDES or explains)
    is_agents = known.status == newer.status == "active" and known.origin in ("agent", "model")
    return says_more and is_agents and is_unused and is_unmarked and not evidence.exists(database, known.id)


def _lacks_nothing(known: Learning, newer: Learning) -> bool:
    """Return whether a learning has all words of a known one, also those of its reasons."""
    return LearningContent(known).meaning.words <= LearningContent(newer).meaning.words


def _revise(database: Database, revised: Similar, learning: Learning, *, who: str, at: int) -> Learning:
    """Within a transaction: give a known learning the text of one that says more; its history keeps the old text."""
    change = Change(what="revise", who=who, at=at, reason=revised.verdict.reason[:_MAX_REASON_LENGTH])
    return learnings.change(database, revised.learning.id, lambda known: _merge(known, learning), change)[1]


def _merge(known: Learning, newer: Learning) -> dict[str, Any]:
    """Return the changes to a known learning that add what a newer one says.

    If one of them was copied from elsewhere, the result counts as copied. It is taught by the newer one's task, whose
    marks must not count for it.
    """
    changes = {name: getattr(newer, name) or getattr(known, name) for name in STATEMENT_FIELDS}
    for name, limit in _LISTS.items():
        changes[name] = tuple(dict.fromkeys((*getattr(newer, name), *getattr(known, name))))[:limit]
    kinds = Triggers.fields
    union = {kind: (*getattr(newer.triggers, kind), *getattr(known.triggers, kind)) for kind in kinds}
    changes["triggers"] = Triggers(**{kind: tuple(dict.fromkeys(words))[:TAG_LIMIT] for kind, words in union.items()})
    source = known if is_copied(known) else newer
    return changes | {"origin": source.origin, "author": source.author, "task": newer.task, "commit": newer.commit}


def _describe(similar: Sequence[Similar]) -> str:
    """Return for the history what a new learning resembles; empty if it resembles nothing."""
    # Without the words of the other learning: if it is purged, its words must not be left here.
    return f"{SIMILAR_TO}{similar[0].learning.id} ({similar[0].verdict})" if similar else ""


def refuse(
    context: Context, make: Callable[[], Learning] | None, discovery: Discovery, reason: str, *, who: str, at: int
) -> str:
    """Within a transaction: keep what is no learning as a discovery, with the reason.

    An incident that several tasks report is perhaps none: it is proposed, and a person decides. Return the proposal's
    id, or an empty text.
    """
    database = context.store.database
    times = mined.add(database, discovery, at=at, skipped=reason)
    if times < _TASKS_TO_PROPOSE or make is None or not can_heal(reason):
        return ""
    proposal = make().replace(status="proposed")
    why = f"found in {times} tasks, though {reason}"
    learnings.add(database, proposal, Change(what="propose", who=who, at=at, reason=why))
    mined.add(database, discovery, at=at, learning=proposal.id, skipped=reason)
    return proposal.id
