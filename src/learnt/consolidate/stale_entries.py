"""Find the entries of topic files whose learnings have changed since they were written.

    removed  a person has retired the learning, or replaced it by one that stands elsewhere: its entry is taken out
    revised  the learning was edited, or replaced by one that stands nowhere yet: the entry is written anew in its place
    edited   a person has edited the entry in the file: it stays as it is

An entry that two branches have moved into two files is removed from one of them, if both say what the learning says.

Only the lines that learnt wrote are touched: they must be, letter by letter, what the learning says or once said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from learnt.consolidate.topics import Topic, TopicEntry, list_entries, render_like
from learnt.model import Learning, Value

REMOVED, REVISED, EDITED = "removed", "revised", "edited"


class StoredVersions(Value):
    """What the store knows about the learning of an entry."""

    learning: Learning
    former: tuple[Learning, ...] = ()
    """What it said before, latest first."""
    written: Learning | None = None
    """What it said when it was moved into its topic file; None if that is not known."""
    successor: Learning | None = None
    """The active learning that has replaced it."""

    @property
    def is_active(self) -> bool:
        """Whether it is in force."""
        return self.learning.status == "active"


class StaleEntry(Value):
    """An entry of a topic file that does not say what its learning says."""

    id: str
    """The id of the learning that the entry names."""
    file: str
    verdict: str
    """`removed`, `revised` or `edited`."""
    reason: str
    text: str
    """What the file says."""
    learning: Learning
    """The learning that the entry is to be for afterwards."""


def find_stale(
    topics: Sequence[Topic], known: Callable[[TopicEntry], StoredVersions | None], staged: Collection[str]
) -> list[StaleEntry]:
    """Return the entries that are not as their learnings.

    `known` returns what is stored about an entry's learning; None if there is none, or if the entry says what it says.
    `staged` are the ids of the learnings that stand in the staging file.
    """
    homes = {entry.id for topic in topics for entry in list_entries(topic.text) if entry.id}
    return [
        _judge(topic.path, entry, versions, elsewhere={*homes, *staged})
        for topic in topics
        for entry in list_entries(topic.text)
        if entry.id and (versions := known(entry)) is not None
    ]


def find_doubled(topics: Sequence[Topic], stored: Mapping[str, Learning]) -> list[StaleEntry]:
    """Return the entries that stand in another topic file, too, in the same words; that file keeps them.

    `stored` are their learnings: the file that they name keeps them, otherwise the first one.
    """
    places: dict[str, dict[str, TopicEntry]] = {}
    for topic in topics:
        for entry in list_entries(topic.text):
            learning = stored.get(entry.id)
            if learning is not None and is_current(entry, learning):
                places.setdefault(entry.id, {}).setdefault(topic.path, entry)
    doubled = []
    for id, entries in places.items():
        learning = stored[id]
        home = learning.topic_file if learning.topic_file in entries else next(iter(entries))
        doubled += [
            StaleEntry(
                id=id,
                file=file,
                verdict=REMOVED,
                reason=f"it stands in {home}, too",
                text=entry.text,
                learning=learning,
            )
            for file, entry in entries.items()
            if file != home
        ]
    return doubled


def remove_doubled(topic: Topic, doubled: Sequence[StaleEntry]) -> Topic:
    """Return a topic file without the entries that another one keeps."""
    here = {stale.id: stale.learning for stale in doubled if stale.file == topic.path}
    for entry in reversed(list_entries(topic.text)) if here else ():
        count = _count_written(entry, (here[entry.id],)) if entry.id in here else 0
        if count:
            topic = topic.replace(text=_replace_lines(topic.text, entry.line - 1, count, ()))
    return topic


def is_current(entry: TopicEntry, learning: Learning) -> bool:
    """Return whether an entry says what its active learning says."""
    return learning.status == "active" and bool(_count_written(entry, (learning,)))


def _judge(file: str, entry: TopicEntry, versions: StoredVersions, elsewhere: Collection[str]) -> StaleEntry:
    learning, successor = versions.learning, versions.successor
    stale = StaleEntry(
        id=entry.id,
        file=file,
        verdict=EDITED,
        reason="somebody has edited it there",
        text=entry.text,
        learning=learning,
    )
    if not _count_written(entry, (learning, *versions.former)):
        return stale
    if versions.is_active:
        return stale.replace(verdict=REVISED, reason="its learning was edited")
    if successor is not None and successor.id not in elsewhere:
        reason = f"{learning.title} ({learning.id}) was replaced by it"
        return stale.replace(verdict=REVISED, reason=reason, learning=successor)
    return stale.replace(verdict=REMOVED, reason=f"its learning is {learning.status}")


def renew(text: str, stale: Mapping[str, StaleEntry], versions: Mapping[str, StoredVersions]) -> str:
    """Return a topic file with the entries that are removed or revised; `versions` are by the ids of the entries."""
    for entry in reversed(list_entries(text)):
        change = stale.get(entry.id)
        if change is None or change.verdict == EDITED:
            continue
        known = versions[entry.id]
        count = _count_written(entry, (known.learning, *known.former)) or len(entry.text.split("\n"))
        lines = render_like(entry.text.split("\n", 1)[0], change.learning) if change.verdict == REVISED else []
        text = _replace_lines(text, entry.line - 1, count, lines)
    return text


def _count_written(entry: TopicEntry, versions: Sequence[Learning]) -> int:
    """Return how many lines at the start of an entry are what learnt wrote; 0 if somebody has edited them."""
    lines = [line.rstrip("\r") for line in entry.text.split("\n")]
    for version in versions:
        written = render_like(lines[0], version)
        following = lines[len(written) : len(written) + 1]
        if lines[: len(written)] == written and not any(line.strip() for line in following):
            return len(written)
    return 0


def _replace_lines(text: str, start: int, count: int, new: Sequence[str]) -> str:
    """Return a text with other lines; without any, the blank lines around the old ones become one."""
    lines = text.split("\n")
    end = "\r" if lines[start].endswith("\r") else ""
    before, after = lines[:start], lines[start + count :]
    if not new:
        while after[1:] and not after[0].strip() and (not before or not before[-1].strip()):
            after.pop(0)
        while before and not before[-1].strip() and not any(line.strip() for line in after):
            before.pop()
    return "\n".join((*before, *(line + end for line in new), *(after or [""])))
