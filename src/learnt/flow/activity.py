"""What a person sees of learnt at work: what it did lately, how much today, who asks it, and what came of an attempt.

All of it is of the project's own store.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from learnt.clients.registry import client_name
from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.flow.context import Context, check_rows
from learnt.model import Attempt, Failure, Value
from learnt.store import PATIENCE_MS, Store, activity, fired, tasks
from learnt.store.activity import Entry, Today
from learnt.store.fired import Fired
from learnt.store.missteps import prevented
from learnt.text.times import MONTH_MS, ago


class Activity(Value):
    """What was done last, and what it comes to."""

    entries: tuple[Entry, ...]
    used: Mapping[str, int]
    """By who asked (ASKERS): how often learnings were asked for in the last 30 days."""
    prevented: Mapping[str, int]
    """By agent: how many errors were prevented: not repeated after a warning."""
    fired: Mapping[str, Fired] = {}
    """By client: the last event of its hooks that was served, whether or not there was something to say."""
    clients: tuple[str, ...] = ()
    """If nothing was found, the clients that there are; likewise the agents."""
    agents: tuple[str, ...] = ()


class AttemptReport(Value):
    """An attempt and what came of it, as far as the store knows."""

    attempt: Attempt
    title: str
    """Of its task."""
    client: str
    agent: str
    learnings: Mapping[str, str]
    """Those that it taught, with their titles; likewise those that it marked."""
    helpful: Mapping[str, str]
    not_helpful: Mapping[str, str]
    failure: Failure | None


def read_activity(context: Context, *, limit: int, what: str, client: str, agent: str) -> Activity:
    """Return the last briefs, warnings and debriefs, who asked for learnings, and which errors were prevented."""
    check_rows(limit=limit)
    if what and what not in activity.KINDS:
        raise WrongRequest(f"there is no activity `{what}`", hint=f"choose one of: {', '.join(activity.KINDS)}")
    database, now = context.store.database, context.clock()
    entries = activity.latest(database, limit=limit, what=what, client=client_name(client), agent=agent)
    clients, agents = ([], []) if entries else activity.names(database)
    return Activity(
        entries=tuple(entries),
        used=activity.used(database, since=now - MONTH_MS),
        prevented=prevented(database),
        fired=fired.read(context.store.place.folder),
        clients=tuple(clients),
        agents=tuple(agents),
    )


def report_attempt(context: Context, id: str) -> AttemptReport:
    """Return what came of an attempt, by its id."""
    database = context.store.database
    attempt = tasks.find_attempt(database, id)
    if attempt is None:
        raise NotFound(f"no debrief `{id[:100]}`", hint="`learnt activity --ids` shows the ids")
    task = tasks.get(database, attempt.task)
    marks = activity.marked(database, id)
    titles = context.titles(list(marks))
    return AttemptReport(
        attempt=attempt,
        title=task.title,
        client=activity.client_of(database, task.id),
        agent=task.agent,
        learnings=activity.taught(database, id),
        helpful={learning: titles.get(learning, "") for learning, helped in marks.items() if helped},
        not_helpful={learning: titles.get(learning, "") for learning, helped in marks.items() if not helped},
        failure=tasks.failures(database, task.id).get(id),
    )


def latest_brief(context: Context, task: str) -> str:
    """Return the id of the latest brief, of a task if one is named; if there is none, raise with the reason."""
    id = activity.latest_brief(context.store.database, task)
    if id:
        return id
    if task:
        tasks.get(context.store.database, task)
        raise NotFound(f"`{task}` was never briefed", hint=f'`learnt brief "…" --task {task}` does that')
    last = fired.read(context.store.place.folder)
    why = f"{describe_fired(last, context.clock())}, and nothing fitted so far; " if last else ""
    raise NotFound("there is no brief yet", hint=f'{why}`learnt brief "what is to be done"` gives one')


def describe_fired(last: Mapping[str, Fired], now: int) -> str:
    """Return in words when hooks of which client last fired."""
    return ", ".join(f"hooks of {client} fired {ago(event.at, now)} ({event.event})" for client, event in last.items())


def count_today(context: Context) -> Today:
    """Return how much was done since midnight, local time."""
    date = time.localtime(context.clock() / 1000)
    midnight = time.mktime((date.tm_year, date.tm_mon, date.tm_mday, 0, 0, 0, 0, 0, -1))
    return activity.today(context.store.database, since=int(midnight * 1000))


def count_search(store: Store, asker: str, *, now: int) -> None:
    """Count a search; the search neither waits for this nor fails with it."""
    if asker not in ("person", "tool"):
        raise WrongRequest(f"`{asker}` does not search", hint="searches are by a `person` or by a `tool`")
    if store.place.read_only or store.database.read_only:
        return
    wait_ms = store.database.wait_at_most(PATIENCE_MS)
    try:
        with store.transaction():
            store.database.count(activity.searches_by(asker, now))
    except LearntError:
        return
    finally:
        store.database.wait_at_most(wait_ms)
