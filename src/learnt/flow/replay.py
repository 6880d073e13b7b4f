"""The store's own receipts as a regression gate: the latest briefs are put together again, before and after a change.

What helped in a brief must be in it afterwards, or the learning that stands for it. Otherwise the replay names the
entries of the plan that are the cause: the one that goes itself, and if another learning is pushed out, those that
enter the brief or grow in it.

What people have written in the staging file counts from the start: it holds whatever becomes of its entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from learnt.brief.render import LOADED_FROM
from learnt.consolidate.questions import Regression
from learnt.flow.briefs import BriefRequest, brief
from learnt.flow.context import Context
from learnt.flow.standing import standing
from learnt.model import Value
from learnt.store import receipts
from learnt.store.receipts import GivenBrief
from learnt.text.times import DAY_MS
from learnt.text.words import estimate_tokens

MAX_BRIEFS = 2_000
PAST_DAYS = 90


class Replay(Value):
    """How briefs of the past change with a consolidation."""

    briefs: int = 0
    changed: int = 0
    """How many of them give other learnings."""
    tokens_before: int = 0
    tokens_after: int = 0
    left: Mapping[str, int] = {}
    """The learnings that are missing afterwards, and in how many briefs."""
    entered: Mapping[str, int] = {}
    """The learnings that are given in addition, and in how many briefs."""
    lost: Mapping[str, int] = {}
    """Of those that are missing, the ones that had helped, and in how many briefs."""


class ReplayedChange(Value):
    """A change of learnings, as it is tried on the briefs of the past."""

    going: tuple[str, ...]
    """The learnings of the entries that leave the staging file."""
    successors: Mapping[str, str]
    """The learnings that stand for others afterwards."""
    has_written: bool = False
    """Whether people have written something in the staging file that the store does not know."""


class GivenAgain(Value):
    """What a brief gives when it is put together again."""

    ids: frozenset[str]
    tokens: int


class _RollBack(Exception):
    """Takes the changes back that were made to see their effect."""


class PastBriefs:
    """The briefs of the past that a change may alter, to be put together before it and after it."""

    def __init__(self, context: Context, change: ReplayedChange, *, others_too: bool = False) -> None:
        """`others_too` takes all briefs instead of those that gave one of the learnings."""
        self._context = context
        self._change = change
        concerned = sorted({*change.going, *change.successors.values()})
        since = context.clock() - PAST_DAYS * DAY_MS
        how: dict[str, Any] = {"since": since, "limit": MAX_BRIEFS, "others_too": others_too}
        self._given = receipts.list_briefs(context.store.database, concerned, **how) if change.going else []

    def __bool__(self) -> bool:
        return bool(self._given)

    def give_again(self) -> list[GivenAgain]:
        """Return what each of the briefs would give now; nothing is recorded."""
        return [_give_again(self._context, one) for one in self._given]

    def compare(
        self, before: Sequence[GivenAgain], after: Sequence[GivenAgain]
    ) -> tuple[Replay, dict[str, Regression]]:
        """Return what the change does to the briefs, and which entries of the plan make them lose what has helped."""
        each = zip(self._given, before, after, strict=True)
        lost = [_find_lost(*briefs, self._change.successors) for briefs in each]
        return _summarize(before, after, lost), _find_causes(self._context, before, after, lost, self._change)


def replay(
    context: Context, change: ReplayedChange, *, take_over: Callable[[], None], make_changes: Callable[[], None]
) -> tuple[Replay, dict[str, Regression]]:
    """Return what a change does to the briefs of the past, and what each entry would make them lose.

    Nothing is changed. Both functions run within a transaction: `take_over` stores what people have written in the
    staging file, and `make_changes` all the rest.
    """
    past = PastBriefs(context, change, others_too=bool(change.successors or change.has_written))
    if not past:
        return Replay(), {}
    before = [] if change.has_written else past.give_again()
    after: list[GivenAgain] = []
    try:
        with context.store.transaction():
            if change.has_written:
                take_over()
                before += past.give_again()
            make_changes()
            after += past.give_again()
            raise _RollBack
    except _RollBack:
        pass
    return past.compare(before, after)


def _find_lost(
    given: GivenBrief, before: GivenAgain, after: GivenAgain, successors: Mapping[str, str]
) -> frozenset[str]:
    """Return the learnings that helped in a brief and would be missing in it.

    One that the brief does not give any more even without the change is lost only if it goes for good.
    """
    missing = (id for id in given.helpful if id not in after.ids and (id in before.ids or id in successors))
    return frozenset(id for id in missing if successors.get(id) not in after.ids)


def _summarize(before: Sequence[GivenAgain], after: Sequence[GivenAgain], lost: Sequence[frozenset[str]]) -> Replay:
    pairs = list(zip(before, after, strict=True))
    return Replay(
        briefs=len(pairs),
        changed=sum(old.ids != new.ids for old, new in pairs),
        tokens_before=sum(one.tokens for one in before),
        tokens_after=sum(one.tokens for one in after),
        left=_count(old.ids - new.ids for old, new in pairs),
        entered=_count(new.ids - old.ids for old, new in pairs),
        lost=_count(lost),
    )


def _count(sets: Iterable[Collection[str]]) -> dict[str, int]:
    return dict(Counter(id for ids in sets for id in ids))


def _find_causes(
    context: Context,
    before: Sequence[GivenAgain],
    after: Sequence[GivenAgain],
    lost: Sequence[frozenset[str]],
    change: ReplayedChange,
) -> dict[str, Regression]:
    """Return the learnings of the plan's entries that make a brief lose one, with the one that most briefs lose."""
    counts: dict[str, Counter[str]] = {}
    for old, new, gone in zip(before, after, lost, strict=True):
        for id in gone:
            for cause in _list_causes(id, old.ids, new.ids, change):
                counts.setdefault(cause, Counter())[id] += 1
    found = {cause: counter.most_common(1)[0] for cause, counter in counts.items()}
    titles = context.titles([id for id, _ in found.values()]) if found else {}
    return {cause: Regression(id=id, title=titles.get(id, id), briefs=briefs) for cause, (id, briefs) in found.items()}


def _list_causes(lost: str, before: Collection[str], after: Collection[str], change: ReplayedChange) -> list[str]:
    """Return the entries of the plan because of which a brief loses a learning."""
    if lost in change.going:
        return [lost]
    stands_for = {id: change.successors.get(id, id) for id in change.going}
    entering = [id for id, given in stands_for.items() if given in after and given not in before]
    growing = [id for id, given in stands_for.items() if given in after]
    return entering or growing or list(change.going)


def _give_again(context: Context, given: GivenBrief) -> GivenAgain:
    """Return what the request of a brief would be given now; nothing is recorded."""
    receipt = given.receipt
    command, paths = str(receipt.get("command", "")), tuple(receipt.get("paths", ()))
    # A hook at a call has no words but those of the call itself.
    text = str(receipt.get("query", "")).strip() or "\n".join(filter(None, (command, *paths)))
    if not text:
        found = standing(context, agent=given.agent, client=given.client, proven_only=True)
        tokens = sum(estimate_tokens(learning.title) for learning in found)
        return GivenAgain(ids=frozenset(learning.id for learning in found), tokens=tokens)
    request = BriefRequest(
        text=text,
        id=given.id,
        agent=given.agent,
        client=given.client,
        goal=str(receipt.get("goal", "")),
        paths=paths,
        command=command,
        tools=tuple(receipt.get("tools", ())),
        task_type=str(receipt.get("task_type", "")),
        budget_tokens=_read_budget(receipt.get("settings")),
        occasion=given.occasion,
        keep=False,
        asked_by=given.asked_by,
    )
    again = brief(context, request)
    loaded = (entry["id"] for entry in again.receipt["considered"] if _is_loaded(entry))
    return GivenAgain(ids=frozenset((*again.learning_ids, *loaded)), tokens=again.tokens)


def _read_budget(settings: Any) -> int | None:
    tokens = settings.get("budget_tokens") if isinstance(settings, Mapping) else None
    return tokens if type(tokens) is int and tokens >= 0 else None


def _is_loaded(entry: Mapping[str, Any]) -> bool:
    """Return whether a learning is only left out because the client has it from a file."""
    return str(entry.get("left_out", "")).startswith(LOADED_FROM)
