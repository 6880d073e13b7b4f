"""Check whether the agents' categories in the settings match the existing agents and learnings."""

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
    """A finding and its remedy; `fine` means that nothing needs to be done."""

    detail: str
    remedy: str = ""
    fine: bool = True


def check_categories(database: Database, configuration: Configuration) -> Iterator[Remark]:
    """Yield remarks on the agents' categories; only entries written by a person are checked for mistakes."""
    agents = configuration.settings.agents
    learning_categories = _unique_by_key(learnings.categories(database))
    # An agent is known to exist if it is in the defaults or has been briefed.
    existing_agents: set[str] = set()
    if configuration.agents_from:
        existing_agents = {*AGENTS, *map(key_of, briefed_agents(database, limit=_ALL_BRIEFS))}
    for name, origin in configuration.agents_from.items():
        if name not in existing_agents:
            yield _remark_on_never_briefed(name, origin, existing_agents)
        if not agents[name]:
            yield Remark(
                detail=f"{origin} lists no categories for {name}, so it sees only general learnings",
                remedy="list some categories, or remove the agent's entry so that it sees everything",
                fine=False,
            )
        missing = categories_without_learnings(agents[name], learning_categories)
        if missing:
            yield _remark_on_missing(
                missing, learning_categories, f"{origin} lists categories for {name} that no learning has"
            )
    recent = briefed_agents(database, limit=_BRIEFS_CONSIDERED)
    unconfigured = _unique_by_key(name for name in recent if key_of(name) not in agents)
    if unconfigured:
        yield Remark(
            detail=f"agents without configured categories see everything: {_join(unconfigured)}",
            remedy=_ask_whether_meant(unconfigured, agents),
        )
    general = unassigned_categories(agents, learning_categories)
    if general:
        yield Remark(detail=f"categories that are not assigned to any agent are treated as general: {_join(general)}")


def _remark_on_never_briefed(name: str, origin: str, existing_agents: Iterable[str]) -> Remark:
    near = _find_near(name, existing_agents)
    return Remark(
        detail=f"{origin} lists categories for {name}, which has never been briefed",
        remedy=f"did you mean `{near}`?" if near else "",
        fine=not near,
    )


def _remark_on_missing(missing: Sequence[str], learning_categories: Sequence[str], detail: str) -> Remark:
    question = _ask_whether_meant(missing, map(key_of, learning_categories))
    existing = f"learnings have these categories: {_join(learning_categories)}" if learning_categories else ""
    remedy = f"{question} ({existing})" if question else existing
    return Remark(detail=f"{detail}: {_join(missing)}", remedy=remedy, fine=not learning_categories)


def _ask_whether_meant(names: Iterable[str], candidates: Iterable[str]) -> str:
    """Return a question asking whether a similar name was meant; empty if no candidate is similar."""
    candidates = sorted(candidates)
    near = {name: _find_near(key_of(name), candidates) for name in names}
    meant = [f"`{match}` instead of {name}" for name, match in near.items() if match]
    return f"did you mean {_join(meant)}?" if meant else ""


def _find_near(key: str, candidates: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(key, sorted(candidates), n=1, cutoff=_MIN_LIKENESS)), "")


def _unique_by_key(names: Iterable[str]) -> list[str]:
    """Return the names without repetitions; of several spellings, the first is returned."""
    spellings: dict[str, str] = {}
    for name in names:
        spellings.setdefault(key_of(name), name)
    return list(spellings.values())


def _join(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
