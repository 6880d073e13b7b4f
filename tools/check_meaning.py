"""Print how well the table of `learnt.text.meaning` finds documents, alone and together with words.

    LEARNT_BENCH_DATA=FOLDER python -m tools.check_meaning [SET ...]

For each set: recall@10, nDCG@10 and MRR (over the first 100) of `Memory.search` by words, of the likeness of vectors,
and of both: each score normalised over a question's documents, likeness with the weight that the column names. For the
projects of `briefs-dev`: the mean reciprocal rank of the learnings that are wanted, by likeness, for several ways to
make a learning's vector of its head (title, tags and cues) and the rest, by the whole prompt or its best sentence.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from learnt import Memory
from learnt.text.meaning import MODEL, embed, embed_in_order, likenesses
from learnt.text.sentences import read_sentences
from learnt.text.words import words

SETS = ("learnings-dev", "locomo-dev", "beam-dev", "cosqa-dev")
WEIGHTS = (0.3, 0.4, 0.5)
FIRST = 100
BY_WORDS = "words"
Scores = dict[str, float]
PARTS: dict[str, Callable[[list[str], list[str]], list[bytes | None]]] = {
    "everything": lambda head, rest: [embed(head + rest)],
    "head, rest: in order": lambda head, rest: [embed_in_order(head + rest)],
    "head, rest: two vectors": lambda head, rest: [embed(head), embed(rest)],
}


def main() -> None:
    """Print a table for the sets, and one for the briefs."""
    data = Path(os.environ.pop("LEARNT_BENCH_DATA"))  # not one of the product's settings
    wanted = sys.argv[1:] or [*SETS, "briefs-dev"]
    print(MODEL)
    for name in wanted:
        if name == "briefs-dev":
            check_briefs(data / name)
        else:
            check_set(data / name)


def check_set(folder: Path) -> None:
    """Print recall@10, nDCG@10 and MRR for words, meaning, and both."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for gold, by_words, by_meaning in ask_questions(folder):
        rankings = {"words": by_words, "meaning": by_meaning}
        for normalise in (between_extremes, by_deviation):
            for weight in WEIGHTS:
                rankings[f"{normalise.__name__} {weight}"] = fuse(by_words, by_meaning, weight, normalise)
        for name, scores in rankings.items():
            rows.setdefault(name, []).append(rate(scores, gold))
    for name, rated in rows.items():
        figures = [statistics.mean(column) for column in zip(*rated, strict=True)]
        print(f"{folder.name:14} {name:24}", *(f"{figure:.3f}" for figure in figures), flush=True)


def ask_questions(folder: Path) -> Iterator[tuple[set[str], Scores, Scores]]:
    """Yield each question's answers, and the scores of the documents by words and by meaning."""
    documents, questions = read(folder / "docs.jsonl"), read(folder / "queries.jsonl")
    for group in dict.fromkeys(document["group"] for document in documents):
        own = [document for document in documents if document["group"] == group]
        vectors = {document["id"]: embed_in_order(words(document["text"])) for document in own}
        known = {id: vector for id, vector in vectors.items() if vector}
        with tempfile.TemporaryDirectory() as home:
            os.environ.update(HOME=home, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home)
            memory = Memory.open(home)
            ids = store(memory, own)
            for question in questions:
                if question["group"] == group and question["gold"]:
                    hits = memory.search(question["text"], limit=FIRST, min_confidence=0.0, strategy=BY_WORDS)
                    by_words = dict.fromkeys(vectors, 0.0) | {ids[hit.learning.id]: hit.score for hit in hits}
                    asked = embed(words(question["text"]))
                    alike = likenesses(asked, [*known.values()]) if asked else [0.0] * len(known)
                    by_meaning = dict.fromkeys(vectors, min(alike)) | dict(zip(known, alike, strict=True))
                    yield set(question["gold"]), by_words, by_meaning
            memory.close()


def store(memory: Memory, documents: list[dict[str, Any]]) -> dict[str, str]:
    """Store documents as learnings, and return the document of each learning."""
    records = [{"title": " ".join(one["text"].split())[:100], "observation": one["text"][:20_000]} for one in documents]
    added = memory.add_all(records)
    return {learning.id: one["id"] for learning, one in zip(added, documents, strict=True)}


def fuse(one: Scores, other: Scores, weight: float, normalise: Callable[[Scores], Scores]) -> Scores:
    """Return both scores in one."""
    first, second = normalise(one), normalise(other)
    return {id: (1 - weight) * first[id] + weight * second[id] for id in first}


def between_extremes(scores: Scores) -> Scores:
    """Return scores from 0 to 1."""
    low, high = min(scores.values()), max(scores.values())
    return {id: (score - low) / (high - low or 1) for id, score in scores.items()}


def by_deviation(scores: Scores) -> Scores:
    """Return scores in standard deviations from their mean."""
    mean, deviation = statistics.fmean(scores.values()), statistics.pstdev(scores.values())
    return {id: (score - mean) / (deviation or 1) for id, score in scores.items()}


def rate(scores: Scores, gold: set[str]) -> tuple[float, float, float]:
    """Return recall@10, nDCG@10 and the reciprocal rank of a ranking."""
    ranked = sorted(scores, key=lambda one: -scores[one])[:FIRST]
    gain = sum(1 / math.log2(rank + 2) for rank, id in enumerate(ranked[:10]) if id in gold)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(gold))))
    first = next((1 / rank for rank, id in enumerate(ranked, 1) if id in gold), 0.0)
    return len(gold & set(ranked[:10])) / len(gold), gain / ideal, first


def check_briefs(folder: Path) -> None:
    """Print how high the wanted learnings rank by likeness, for several ways to make vectors."""
    for with_cues in (False, True):
        for parts in PARTS:
            for by_sentence in (False, True):
                ranks = [
                    rank
                    for project in sorted(folder.iterdir())
                    for rank in rank_wanted(project, with_cues=with_cues, parts=parts, by_sentence=by_sentence)
                ]
                first = sum(rank <= 3 for rank in ranks) / len(ranks)
                figure = statistics.mean(1 / rank for rank in ranks)
                print(f"briefs-dev {with_cues=} {parts:30} {by_sentence=} MRR {figure:.3f} among 3: {first:.3f}")


def rank_wanted(project: Path, *, with_cues: bool, parts: str, by_sentence: bool) -> Iterator[int]:
    """Yield, for each prompt that wants learnings, the rank of the best of them."""
    cues = {one["id"]: one["cues"] for one in read(project / "cues.jsonl")} if with_cues else {}
    vectors = {
        one["id"]: PARTS[parts](*split(one, cues.get(one["id"], []))) for one in read(project / "learnings.jsonl")
    }
    for prompt in read(project / "prompts.jsonl"):
        if prompt["wanted"]:
            texts = [sentence.text for sentence in read_sentences(prompt["prompt"])] if by_sentence else []
            asked = [vector for text in texts or [prompt["prompt"]] if (vector := embed(words(text)))]
            scores = {
                id: max((like for vector in asked for like in likenesses(vector, [*filter(None, own)])), default=-1.0)
                for id, own in vectors.items()
            }
            yield min(sum(score > scores[id] for score in scores.values()) + 1 for id in prompt["wanted"])


def split(learning: dict[str, Any], cues: list[str]) -> tuple[list[str], list[str]]:
    """Return the words of a learning's title, tags and cues, and those of the rest."""
    head = " ".join([learning["title"], *learning["tags"], *cues])
    rest = " ".join(learning[field] for field in ("context", "observation", "implication", "action"))
    return words(head), words(rest)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file that are valid."""
    lines = []
    for line in path.read_bytes().split(b"\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


if __name__ == "__main__":
    main()
