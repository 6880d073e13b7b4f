"""Look whether what agents see fits what there is: the agents that are briefed, and the categories of learnings."""

from __future__ import annotations

from learnt.brief.categories import unnamed, without_learnings
from learnt.model import Value
from learnt.settings import AGENTS
from learnt.store import learnings
from learnt.store.happened import agents as briefed
from learnt.text.names import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from learnt.config import Configuration
    from learnt.store.database import Database

_BRIEFS_LOOKED_AT = 1_000
_EVER = 1_000_000_000
_MOST_NAMED = 10
_ALIKE = 0.8


class Remark(Value):
    """What was found, and what to do about it; where it is `fine`, nothing need be done."""

    detail: str
    remedy: str = ""
    fine: bool = True


def remarks(database: Database, configuration: Configuration) -> Iterator[Remark]:
    """Yield what is to be said on the entries of agents; mistakes are looked for where somebody wrote one."""
    agents = configuration.settings.agents
    present = _once(learnings.categories(database))
    known = _known_agents(database) if configuration.agents_from else set()
    for name, where in configuration.agents_from.items():
        if name not in known:
            yield _of_a_stranger(name, where, known)
        if not agents[name]:
            yield Remark(
                detail=f"{where} gives {name} no categories: it sees only what is general",
                remedy="name some, or leave the agent out, and it sees everything",
                fine=False,
            )
        missing = without_learnings(agents[name], present)
        if missing:
            yield _of_missing(missing, present, f"{where} names categories of {name} that no learning has")
    strangers = _once(one for one in briefed(database, limit=_BRIEFS_LOOKED_AT) if key_of(one) not in agents)
    if strangers:
        yield Remark(
            detail=f"agents without categories of their own see everything: {_named(strangers)}",
            remedy=_meant(strangers, agents),
        )
    general = unnamed(agents, present)
    if general:
        yield Remark(detail=f"categories that are named for no agent count as general: {_named(general)}")


def _known_agents(database: Database) -> set[str]:
    """Return the names of agents that there are for sure: the defaults', and whoever was ever briefed."""
    return {*AGENTS, *map(key_of, briefed(database, limit=_EVER))}


def _of_a_stranger(name: str, where: str, known: Iterable[str]) -> Remark:
    near = _near(name, known)
    return Remark(
        detail=f"{where} gives categories to {name}, which was never briefed",
        remedy=f"did you mean `{near}`?" if near else "",
        fine=not near,
    )


def _of_missing(missing: Sequence[str], present: Sequence[str], detail: str) -> Remark:
    meant = _meant(missing, map(key_of, present))
    others = f"learnings have these: {_named(present)}" if present else ""
    remedy = f"{meant} ({others})" if meant else others
    return Remark(detail=f"{detail}: {_named(missing)}", remedy=remedy, fine=not present)


def _meant(names: Iterable[str], known: Iterable[str]) -> str:
    """Ask, of names that are close to known ones, whether those were meant; return nothing where none is."""
    known = sorted(known)
    near = {name: _near(key_of(name), known) for name in names}
    meant = [f"`{one}` by {name}" for name, one in near.items() if one]
    return f"did you mean {_named(meant)}?" if meant else ""


def _near(key: str, known: Iterable[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(key, sorted(known), n=1, cutoff=_ALIKE)), "")


def _once(names: Iterable[str]) -> list[str]:
    """Return each name in one of its spellings."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(key_of(name), name)
    return list(found.values())


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
