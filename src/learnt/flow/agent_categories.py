"""Check whether the categories of agents in the settings match the known agents and learnings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from learnt.brief.select import categories_without_learnings, unassigned_categories
from learnt.config import Configuration
from learnt.model import Value
from learnt.settings import AGENTS
from learnt.store import learnings
from learnt.store.database import Database
from learnt.store.happened import agents as briefed_agents
from learnt.text.titles import key_of

_BRIEFS_CONSIDERED = 1_000
_ALL_BRIEFS = 1_000_000_000
_MAX_NAMES = 10
_MIN_LIKENESS = 0.8


class Remark(Value):
    """A finding and its remedy; `fine`: nothing needs to be done."""

    detail: str
    remedy: str = ""
    fine: bool = True


def check_categories(database: Database, configuration: Configuration) -> Iterator[Remark]:
    """Yield remarks on the categories of agents; only entries that a person wrote are checked for mistakes."""
    agents = configuration.settings.agents
    present = _one_spelling_each(learnings.categories(database))
    # Agents that are known to exist: those of the defaults, and those that were briefed.
    known = {*AGENTS, *map(key_of, briefed_agents(database, limit=_ALL_BRIEFS))} if configuration.agents_from else set()
    for name, where in configuration.agents_from.items():
        if name not in known:
            yield _remark_on_stranger(name, where, known)
        if not agents[name]:
            yield Remark(
                detail=f"{where} gives {name} no categories: it sees only what is general",
                remedy="name some, or leave the agent out, and it sees everything",
                fine=False,
            )
        missing = categories_without_learnings(agents[name], present)
        if missing:
            yield _remark_on_missing(missing, present, f"{where} names categories of {name} that no learning has")
    recent = briefed_agents(database, limit=_BRIEFS_CONSIDERED)
    strangers = _one_spelling_each(name for name in recent if key_of(name) not in agents)
    if strangers:
        yield Remark(
            detail=f"agents without categories of their own see everything: {_join(strangers)}",
            remedy=_ask_whether_meant(strangers, agents),
        )
    general = unassigned_categories(agents, present)
    if general:
        yield Remark(detail=f"categories that are named for no agent count as general: {_join(general)}")


def _remark_on_stranger(name: str, where: str, known: Iterable[str]) -> Remark:
    near = _find_near(name, known)
    return Remark(
        detail=f"{where} gives categories to {name}, which was never briefed",
        remedy=f"did you mean `{near}`?" if near else "",
        fine=not near,
    )


def _remark_on_missing(missing: Sequence[str], present: Sequence[str], detail: str) -> Remark:
    meant = _ask_whether_meant(missing, map(key_of, present))
    others = f"learnings have these: {_join(present)}" if present else ""
    remedy = f"{meant} ({others})" if meant else others
    return Remark(detail=f"{detail}: {_join(missing)}", remedy=remedy, fine=not present)


def _ask_whether_meant(names: Iterable[str], known: Iterable[str]) -> str:
    """Return the question whether similar known names were meant; empty if there are none."""
    known = sorted(known)
    near = {name: _find_near(key_of(name), known) for name in names}
    meant = [f"`{match}` by {name}" for name, match in near.items() if match]
    return f"did you mean {_join(meant)}?" if meant else ""


def _find_near(key: str, known: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(key, sorted(known), n=1, cutoff=_MIN_LIKENESS)), "")


def _one_spelling_each(names: Iterable[str]) -> list[str]:
    """Return each name in the first of its spellings."""
    spellings: dict[str, str] = {}
    for name in names:
        spellings.setdefault(key_of(name), name)
    return list(spellings.values())


def _join(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
