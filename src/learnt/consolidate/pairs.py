"""What has to be compared in a consolidation: each entry of a batch with what is nearest to it.

That are other entries of the staging file, and what the topic files say: their entries, which have learnings, and the
list items and paragraphs that people wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from learnt.consolidate.ages import AgedEntry
from learnt.consolidate.topics import Topic, list_entries
from learnt.model import TITLE_LIMIT, Learning, Value, text_id
from learnt.text.meaning import embed, likenesses
from learnt.text.outline import Outline, item_mark
from learnt.text.titles import cut_title, first_sentence
from learnt.text.words import words

_NEIGHBOURS = 8
_MAX_PASSAGE_LENGTH = 1_500
_MARKUP = re.compile(r"<!--.*?-->|^#+\s+|[*_]{2}")
Pair = tuple[str, str]
"""The ids of the older and of the newer learning."""


class StagedEntry(Value):
    """An entry of the staging file with its learning."""

    entry: AgedEntry
    learning: Learning
    """As the entry says it now; if it is new, with the id that it will have."""
    is_in_batch: bool = False
    flaw: str = ""
    """Why it is no lasting learning."""

    @property
    def order(self) -> tuple[object, ...]:
        """What tells the older of two entries from the newer one."""
        return (self.entry.day or "9", self.learning.created_at, self.entry.line)


class DocumentPassage(Value):
    """Something that a topic file says."""

    file: str
    text: str
    learning: Learning
    """The learning behind it; if there is none, one with this text."""
    is_stored: bool = False


class Overlaps:
    """The pairs of learnings that have to be compared: each entry of a batch with what is nearest to it."""

    def __init__(self, staged: Sequence[StagedEntry], topics: Sequence[Topic], stored: Mapping[str, Learning]) -> None:
        """`stored` are the learnings of the entries in the topic files, by id."""
        self.staged = staged
        self.passages = [passage for topic in topics for passage in _list_passages(topic, stored)]
        self._contents: dict[str, tuple[frozenset[str], bytes | None]] = {}

    def with_batch(self, staged: Sequence[StagedEntry]) -> Overlaps:
        """Return the same for the same entries, of which others belong to the batch."""
        other = Overlaps(staged, (), {})
        other.passages, other._contents = self.passages, self._contents
        return other

    @cached_property
    def pairs(self) -> list[tuple[Learning, Learning]]:
        """The older and the newer learning of each pair; what a topic file says is older than any entry."""
        found: dict[Pair, tuple[Learning, Learning]] = {}
        by_id = {staged.learning.id: staged for staged in self.staged}
        for one in (staged for staged in self.staged if staged.is_in_batch and staged.learning.status == "active"):
            for other in self.neighbours(one):
                if other.id not in by_id:
                    found[other.id, one.learning.id] = (other, one.learning)
                    continue
                pair = sorted((one, by_id[other.id]), key=lambda staged: staged.order)
                older, newer = (staged.learning for staged in pair)
                found[older.id, newer.id] = (older, newer)
        return list(found.values())

    def neighbours(self, one: StagedEntry) -> list[Learning]:
        """Return what is nearest to an entry: other entries, and what topic files say."""
        known = self._neighbours.get(one.learning.id)
        if known is None:
            active = (other.learning for other in self.staged if other.learning.status == "active")
            known = [
                *self._find_nearest(one.learning, [other for other in active if other.id != one.learning.id]),
                *self._find_nearest(one.learning, [passage.learning for passage in self.passages]),
            ]
            self._neighbours[one.learning.id] = known
        return known

    @cached_property
    def _neighbours(self) -> dict[str, list[Learning]]:
        return {}

    def _find_nearest(self, learning: Learning, others: Sequence[Learning]) -> list[Learning]:
        """Return the learnings that are most alike, and those that have most of its words."""
        own, vector = self._read(learning)
        by_words = sorted(others, key=lambda other: -len(own & self._read(other)[0]))[:_NEIGHBOURS]
        known = [(other, found) for other in others if (found := self._read(other)[1])]
        alike = likenesses(vector, [found for _, found in known]) if vector and known else []
        ranked = sorted(range(len(alike)), key=lambda number: -alike[number])[:_NEIGHBOURS]
        nearest = (known[number][0] for number in ranked)
        return list({other.id: other for other in (*nearest, *by_words) if other.id != learning.id}.values())

    def _read(self, learning: Learning) -> tuple[frozenset[str], bytes | None]:
        """Return the words of a learning, and their vector."""
        if learning.id not in self._contents:
            found = frozenset(words(" ".join((learning.title, learning.observation, learning.action))))
            self._contents[learning.id] = found, embed(sorted(found))
        return self._contents[learning.id]


def _list_passages(topic: Topic, stored: Mapping[str, Learning]) -> Iterator[DocumentPassage]:
    """Yield what a topic file says: its entries that have learnings, and otherwise each list item and paragraph."""
    own_lines: set[int] = set()
    for entry in list_entries(topic.text):
        if entry.id:
            own_lines.update(range(entry.line - 1, entry.line + entry.text.count("\n")))
            learning = stored.get(entry.id) or make_learning(topic.path, f"{entry.title}. {entry.text}", id=entry.id)
            yield DocumentPassage(file=topic.path, text=entry.text, learning=learning, is_stored=entry.id in stored)
    for text in _split_prose(topic.text, own_lines):
        yield DocumentPassage(file=topic.path, text=text, learning=make_learning(topic.path, text))


def _split_prose(text: str, own_lines: set[int]) -> Iterator[str]:
    """Yield the list items and paragraphs of a document, without headings, code and what is ours."""
    outline = Outline(text)
    headings = {heading.line for heading in outline.headings}
    lines: list[str] = []
    for number, line in enumerate((*outline.lines, "")):
        is_left_out = number in own_lines or number in headings or number in outline.hidden or line.startswith("<!--")
        if (is_left_out or not line.strip() or item_mark(line)) and lines:
            yield "\n".join(lines)
            lines = []
        if line.strip() and not is_left_out:
            lines.append(line)


def make_learning(file: str, text: str, *, id: str = "") -> Learning:
    """Return a passage of a document as a learning, so that it can be compared."""
    plain = " ".join(_MARKUP.sub(" ", line)[len(item_mark(line)) :] for line in text.split("\n"))
    plain = " ".join(plain.split())[:_MAX_PASSAGE_LENGTH]
    title = cut_title(first_sentence(plain))[:TITLE_LIMIT] or "-"
    return Learning(
        id=id or text_id("learn", f"{file} {text}"), title=title, observation="" if title == plain else plain
    )
