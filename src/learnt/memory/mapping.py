"""Look whether what agents see fits what there is: the agents that are briefed, and the categories of learnings."""

from __future__ import annotations

from learnt.brief.categories import unnamed, without_learnings
from learnt.config import AGENTS
from learnt.model import Value
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
    present = learnings.categories(database)
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
            yield Remark(
                detail=f"{where} names categories of {name} that no learning has: {_named(missing)}",
                remedy=f"learnings have these: {_named(present)}" if present else "",
                fine=not present,
            )
    strangers = [one for one in briefed(database, limit=_BRIEFS_LOOKED_AT) if key_of(one) not in agents]
    if strangers:
        yield Remark(detail=f"agents without categories of their own see everything: {_named(strangers)}")
    general = unnamed(agents, present)
    if general:
        yield Remark(detail=f"categories that are named for no agent count as general: {_named(general)}")


def _known_agents(database: Database) -> set[str]:
    """Return the names of agents that there are for sure: the defaults', and whoever was ever briefed."""
    return {*AGENTS, *map(key_of, briefed(database, limit=_EVER))}


def _of_a_stranger(name: str, where: str, known: Iterable[str]) -> Remark:
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=_ALIKE)
    return Remark(
        detail=f"{where} gives categories to {name}, which was never briefed",
        remedy=f"did you mean `{near[0]}`?" if near else "",
        fine=not near,
    )


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
