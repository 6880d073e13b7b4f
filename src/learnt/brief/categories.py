"""Which categories of learnings an agent sees.

A learning without a category is `general`, and so is one whose category is named for no agent: otherwise it would reach
nobody. Every agent sees what is general. An agent that is not named, and whoever is no agent, see everything.
"""

from __future__ import annotations

from learnt.model import EVERYTHING, GENERAL
from learnt.text.titles import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    Mapped = Mapping[str, tuple[str, ...]]


def named(agents: Mapped) -> set[str]:
    """Return the categories that are named for an agent, beside the general one."""
    return {one for categories in agents.values() for one in categories} - {GENERAL, EVERYTHING}


def seen_by(agent: str, agents: Mapped) -> tuple[str, ...]:
    """Return the categories that an agent sees, in the order of its entry, the general one last unless it is named."""
    categories = agents.get(key_of(agent), (EVERYTHING,))
    if EVERYTHING in categories:
        return (*sorted(named(agents)), GENERAL)
    return tuple(dict.fromkeys((*categories, GENERAL)))


def hidden_from(agent: str, agents: Mapped, categories: Iterable[str]) -> tuple[str, ...]:
    """Return those of some categories, as learnings spell them, that an agent does not see."""
    hidden = named(agents) - set(seen_by(agent, agents))
    return tuple(one for one in categories if key_of(one) in hidden)


def is_restricted(agent: str, agents: Mapped) -> bool:
    """Say whether there is something that an agent does not see."""
    return bool(named(agents) - set(seen_by(agent, agents)))


def spellings(category: str, agents: Mapped, categories: Iterable[str]) -> tuple[str, ...]:
    """Return how learnings spell a category, given all categories that they have; some have an empty one."""
    if category == GENERAL:
        others = named(agents)
        return ("", *(one for one in categories if key_of(one) not in others))
    return tuple(one for one in categories if key_of(one) == category)


def unnamed(agents: Mapped, categories: Iterable[str]) -> list[str]:
    """Return those of some categories that count as general because they are named for no agent."""
    return [one for one in categories if key_of(one) not in named(agents) | {GENERAL}]


def without_learnings(wanted: Iterable[str], categories: Collection[str]) -> list[str]:
    """Return the wanted categories that no learning has."""
    present = {*map(key_of, categories), GENERAL, EVERYTHING}
    return [one for one in wanted if one not in present]
