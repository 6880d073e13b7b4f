"""The learnings behind the entries of the topic files: what they say now and said before, and what replaced them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from learnt.consolidate.plan import StaleEntries
from learnt.consolidate.stale_entries import StoredVersions, find_doubled, find_stale, is_current
from learnt.consolidate.topics import Topic, TopicEntry
from learnt.flow.context import Context
from learnt.model import PARAGRAPHS, PROGRAM, Event, Learning
from learnt.store import learnings

_SHOWN = ("title", *PARAGRAPHS, "polarity")
_MAX_SUCCESSORS = 20
MOVED_BY = "consolidate"
"""What the event says by which a learning got its topic file."""


def find_stale_entries(
    context: Context, topics: Sequence[Topic], stored: Mapping[str, Learning], staged: Mapping[str, Learning]
) -> StaleEntries:
    """Return the entries that do not say what their learnings say.

    `stored` are the learnings of the entries, `staged` those in the staging file as they read there.
    """
    versions: dict[str, StoredVersions] = {}

    def find(entry: TopicEntry) -> StoredVersions | None:
        present = stored.get(entry.id)
        learning = staged.get(entry.id) or present
        if present is None or learning is None or is_current(entry, learning):
            return None
        known = _read_versions(context, learning, present)
        if known is not None:
            versions[entry.id] = known
        return known

    found = find_stale(topics, find, staged=_list_active(staged))
    return StaleEntries(entries=tuple(found), versions=versions, doubled=tuple(find_doubled(topics, stored)))


def _list_active(staged: Mapping[str, Learning]) -> Collection[str]:
    return {id for id, learning in staged.items() if learning.status == "active"}


def _read_versions(context: Context, learning: Learning, stored: Learning) -> StoredVersions | None:
    """Return what is known about a learning; None if the program itself has retired it, which says nothing about it."""
    events = learnings.history(context.store.database, stored.id)
    if stored.status != "active" and _who_retired(events) == PROGRAM:
        return None
    former = [stored] if learning != stored else []
    written = None
    version = stored
    for event in reversed(events):
        if written is None and event.what == MOVED_BY and event.new.get("topic_file"):
            written = version
        older = {name: event.old[name] for name in _SHOWN if name in event.old}
        if older:
            version = version.replace(**older)
            former.append(version)
    return StoredVersions(
        learning=learning, former=tuple(former), written=written, successor=_find_successor(context, stored)
    )


def _who_retired(events: Sequence[Event]) -> str:
    return next((event.who for event in reversed(events) if "status" in event.new), "")


def _find_successor(context: Context, learning: Learning) -> Learning | None:
    """Return the active learning that has replaced another one, perhaps through others."""
    successor = learning
    for _ in range(_MAX_SUCCESSORS):
        following = learnings.find(context.store.database, successor.superseded_by) if successor.superseded_by else None
        if following is None:
            break
        successor = following
    return successor if successor.id != learning.id and successor.status == "active" else None
