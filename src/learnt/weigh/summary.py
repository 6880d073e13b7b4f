"""Merge similar learnings into one proposed learning that can replace them.

Learnings are similar if they have the same category, domain and polarity and share at least half of their tags. The
proposal's text lists the title and the action (or the observation) of each member; nothing is added. Tags and triggers
are combined up to their limits. A person decides whether the proposal replaces its members.
"""

from __future__ import annotations

from learnt.model import CUE_LIMIT, TAG_LIMIT, TEXT_LIMIT, TITLE_LIMIT, Learning, Triggers, text_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MIN_SHARED_TAGS = 0.5
_MIN_MEMBERS = 3
_MAX_MEMBERS = 12


def groups(learnings: Iterable[Learning]) -> list[list[Learning]]:
    """Return groups of similar learnings, largest first; learnings without a group are left out."""
    formed: list[list[Learning]] = []
    by_tag: dict[tuple[str, ...], list[list[Learning]]] = {}
    for learning in learnings:
        keys = [(learning.category, learning.domain, learning.polarity, tag) for tag in learning.tags]
        near = [group for key in keys for group in by_tag.get(key, ())]
        group = next(
            (group for group in near if len(group) < _MAX_MEMBERS and _shares_enough_tags(group[0], learning)), None
        )
        if group is None:
            group = []
            formed.append(group)
            for key in keys:
                by_tag.setdefault(key, []).append(group)
        group.append(learning)
    return sorted(
        (group for group in formed if len(group) >= _MIN_MEMBERS), key=lambda group: (-len(group), group[0].id)
    )


def summarise(members: Sequence[Learning], *, now_ms: int) -> Learning | None:
    """Return a proposed learning that would replace its members, or None if their combined text is too long."""
    first = members[0]
    best = max(members, key=lambda member: (member.confidence, member.recurrences, member.id))
    more = f" (and {len(members) - 1} more)"
    lines = "\n".join(f"- {_in_one_line(member)}" for member in members)
    if len(lines) > TEXT_LIMIT:
        return None
    return Learning(
        id=text_id("learn", " ".join(sorted(member.id for member in members))),
        title=best.title[: TITLE_LIMIT - len(more)].rstrip() + more,
        observation=lines,
        tags=tuple(sorted(dict.fromkeys(tag for member in members for tag in member.tags))[:TAG_LIMIT]),
        cues=tuple(dict.fromkeys(cue for member in members for cue in member.cues))[:CUE_LIMIT],
        domain=first.domain,
        category=first.category,
        kind=_common(members, "kind") or "best-practice",
        polarity=first.polarity,
        triggers=_all_triggers(members),
        origin=_common(members, "origin") or "agent",
        goal=_common(members, "goal"),
        confidence=round(sum(member.confidence for member in members) / len(members), 4),
        status="proposed",
        replaces=tuple(member.id for member in members),
        created_at=now_ms,
        updated_at=now_ms,
    )


def _shares_enough_tags(learning: Learning, other: Learning) -> bool:
    mine, theirs = set(learning.tags), set(other.tags)
    return len(mine & theirs) >= _MIN_SHARED_TAGS * len(mine | theirs)


def _common(members: Sequence[Learning], field: str) -> str:
    values = {str(getattr(member, field)) for member in members}
    return values.pop() if len(values) == 1 else ""


def _in_one_line(learning: Learning) -> str:
    parts = [learning.title]
    parts += [" ".join(text.split()) for text in (learning.action or learning.observation,) if text]
    return ": ".join(part for part in dict.fromkeys(parts) if part)


def _all_triggers(members: Sequence[Learning]) -> Triggers:
    return Triggers(
        **{
            field: tuple(dict.fromkeys(word for member in members for word in getattr(member.triggers, field)))[
                :TAG_LIMIT
            ]
            for field in Triggers.fields
        }
    )
