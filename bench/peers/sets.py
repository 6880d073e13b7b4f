"""The sets of documents and questions, their samples, and the scores.

LEARNT_BENCH_DATA is the folder with the sets. A sample is the same for every peer and chosen by a fixed seed: whole
groups, so that a store is as large as in the whole set; only a single group that is too large keeps the documents that
answer its questions and as many others as there is room for. Fewer documents make every search easier, so results of
samples are comparable with each other only.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SETS = ("learnings-dev", "locomo-dev", "beam-dev", "cosqa-dev")
DEPTH = 10
_RANKED_BY_MRR = {"cosqa-dev"}
_TIMES = ("%I:%M %p on %d %B, %Y", "%B-%d-%Y")


@dataclass(frozen=True, slots=True)
class Document:
    """A text to store; `time_ms` is when it was said, if that is known."""

    id: str
    group: str
    text: str
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """A text to search for, and the documents that answer it."""

    id: str
    group: str
    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents and questions; each group of documents is a store of its own."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    unreadable: tuple[int, ...] = ()
    whole: tuple[int, int] = (0, 0)
    """How many documents and questions the set has that this is a sample of."""

    @property
    def second_score(self) -> str:
        """Return the name of the score beside recall@10."""
        return "MRR" if self.name in _RANKED_BY_MRR else "nDCG@10"

    def describe(self) -> str:
        """Return its size in words, what it is a sample of, and which lines could not be read."""
        documents, questions = self.whole
        parts = [f"{self.name}: {len(self.documents):,} documents, {len(self.questions):,} questions"]
        if (len(self.documents), len(self.questions)) != self.whole:
            parts.append(f"a sample of {documents:,} and {questions:,}")
        if self.unreadable:
            parts.append(f"skipped, not valid JSON: line {', '.join(map(str, self.unreadable))} of docs.jsonl")
        return "; ".join(parts)

    def requests(self) -> list[dict[str, Any]]:
        """Return what an adapter is sent: one request per store."""
        return [self._request(group) for group in dict.fromkeys(document.group for document in self.documents)]

    def _request(self, group: str) -> dict[str, Any]:
        documents = [one for one in self.documents if one.group == group]
        return {
            "store": group,
            "documents": [{"id": one.id, "text": one.text, "time_ms": one.time_ms} for one in documents],
            "queries": [{"id": one.id, "text": one.text} for one in self.questions if one.group == group],
        }


@dataclass(frozen=True, slots=True)
class Scores:
    """The mean over all questions; `second` is nDCG@10 or MRR, see `Corpus.second_score`."""

    recall: float
    second: float


NOTHING_FOUND = Scores(0, 0)


def read_set(folder: Path) -> Corpus:
    """Return a whole set; questions without an answer are left out."""
    documents, unreadable = _read(folder / "docs.jsonl")
    questions, _ = _read(folder / "queries.jsonl")
    wanted = tuple(_question(record) for record in questions if record["gold"])
    stored = tuple(_document(record) for record in documents)
    return Corpus(folder.name, stored, wanted, tuple(unreadable), (len(stored), len(wanted)))


def take_sample(whole: Corpus, *, documents: int, questions: int) -> Corpus:
    """Return about so many documents in whole groups, and at most so many of their questions; 0 is no limit."""
    chance = random.Random(f"{whole.name} {documents} {questions}")
    groups = _sample_groups(whole.documents, documents, chance)
    asked = tuple(question for question in whole.questions if question.group in groups)
    if 0 < questions < len(asked):
        asked = tuple(chance.sample(asked, questions))
    stored = tuple(document for document in whole.documents if document.group in groups)
    if len(groups) == 1 and 0 < documents < len(stored):
        stored = _thin_out(stored, asked, documents, chance)
    return Corpus(whole.name, stored, asked, whole.unreadable, whole.whole)


def score(corpus: Corpus, found: Mapping[str, Sequence[str]]) -> Scores:
    """Compare the documents found for each question with those that answer it."""
    second = _reciprocal_rank if corpus.second_score == "MRR" else _ndcg
    pairs = [(list(found[question.id])[:DEPTH], question.gold) for question in corpus.questions]
    return Scores(
        recall=statistics.mean(len(set(ids) & gold) / len(gold) for ids, gold in pairs),
        second=statistics.mean(second(ids, gold) for ids, gold in pairs),
    )


def _ndcg(ids: list[str], gold: frozenset[str]) -> float:
    gain = sum(1 / math.log2(rank + 2) for rank, id in enumerate(ids) if id in gold)
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(gold))))


def _reciprocal_rank(ids: list[str], gold: frozenset[str]) -> float:
    return next((1 / rank for rank, id in enumerate(ids, start=1) if id in gold), 0.0)


def _sample_groups(documents: Sequence[Document], limit: int, chance: random.Random) -> set[str]:
    """Return groups that have no more documents together than the limit, but at least one group."""
    sizes = Counter(document.group for document in documents)
    chosen: set[str] = set()
    for group in chance.sample(sorted(sizes), len(sizes)):
        if not limit or not chosen or sum(sizes[one] for one in (*chosen, group)) <= limit:
            chosen.add(group)
    return chosen


def _thin_out(
    documents: Sequence[Document], questions: Sequence[Question], limit: int, chance: random.Random
) -> tuple[Document, ...]:
    kept = {id for question in questions for id in question.gold}
    others = [document.id for document in documents if document.id not in kept]
    kept |= set(chance.sample(others, max(0, min(len(others), limit - len(kept)))))
    return tuple(document for document in documents if document.id in kept)


def _read(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the records of a file, and the numbers of the lines that are not valid JSON."""
    records, unreadable = [], []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except ValueError:
                unreadable.append(number)
    return records, unreadable


def _document(record: dict[str, Any]) -> Document:
    return Document(str(record["id"]), str(record["group"]), record["text"], read_time(record.get("time") or ""))


def _question(record: dict[str, Any]) -> Question:
    return Question(str(record["id"]), str(record["group"]), record["text"], frozenset(map(str, record["gold"])))


def read_time(text: str) -> int | None:
    """Return a time in milliseconds, if it has one of the formats of the sets."""
    for form in _TIMES:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None
