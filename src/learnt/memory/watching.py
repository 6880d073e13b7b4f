"""What a person sees of learnt at work: what it did lately, how much today, and who asks it.

All of it is of the project's own store.
"""

from __future__ import annotations

import time

from learnt.errors import LearntError, WrongRequest
from learnt.memory.stores import check_rows
from learnt.model import Value
from learnt.store import PATIENCE_MS, activity, counters
from learnt.text.client_names import client_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from learnt.memory.accumulating import Accumulating
    from learnt.store import Store
    from learnt.store.activity import Entry, Today

_MONTH_MS = 30 * 24 * 60 * 60 * 1000


class Watched(Value):
    """What was done last, and what it comes to."""

    entries: tuple[Entry, ...]
    used: Mapping[str, int]
    """By who asked (ASKERS): how often learnings were asked for in the last 30 days."""
    prevented: Mapping[str, int]
    """By agent: of how many missteps it was kept by a warning."""
    clients: tuple[str, ...] = ()
    """Those that there are, where nothing was found; likewise the agents."""
    agents: tuple[str, ...] = ()


def watch(memory: Accumulating, *, limit: int, what: str, client: str, agent: str) -> Watched:
    """Return the last briefs, warnings and debriefs, who asked for learnings, and what was prevented."""
    check_rows(limit=limit)
    if what and what not in activity.KINDS:
        raise WrongRequest(f"there is no activity `{what}`", hint=f"choose one of: {', '.join(activity.KINDS)}")
    database, now = memory.store.database, memory._clock()
    entries = activity.latest(database, limit=limit, what=what, client=client_name(client), agent=agent)
    clients, agents = ([], []) if entries else activity.names(database)
    return Watched(
        entries=tuple(entries),
        used=activity.used(database, since=now - _MONTH_MS),
        prevented=memory.prevented(),
        clients=tuple(clients),
        agents=tuple(agents),
    )


def today(memory: Accumulating) -> Today:
    """Return how much was done since midnight, as the clock on the wall shows it."""
    date = time.localtime(memory._clock() / 1000)
    midnight = time.mktime((date.tm_year, date.tm_mon, date.tm_mday, 0, 0, 0, 0, 0, -1))
    return activity.today(memory.store.database, since=int(midnight * 1000))


def count_search(store: Store, asker: str, *, now: int) -> None:
    """Count a search; whoever searches neither waits for it nor fails with it."""
    if asker not in ("person", "tool"):
        raise WrongRequest(f"`{asker}` does not search", hint="searches are by a `person` or by a `tool`")
    if store.place.read_only or store.database.read_only:
        return
    wait_ms = store.database.wait_at_most(PATIENCE_MS)
    try:
        with store.transaction():
            counters.add(store.database, activity.searches_by(asker, now))
    except LearntError:
        return
    finally:
        store.database.wait_at_most(wait_ms)
