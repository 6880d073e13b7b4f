"""How well and how fast learnings are found, through `Memory.search`.

Quality is measured on public sets that are not part of the repository: LEARNT_BENCH_DATA is their folder. Each
document is stored as a learning, whose title is the document's first 100 characters and whose observation is its text.
Each group of documents has its own store.
"""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Memory

DATA = os.environ.get("LEARNT_BENCH_DATA", "")
# For each set: the recall among the first ten hits that must be reached.
SETS = {"learnings-dev": 0.545, "locomo-dev": 0.64, "beam-dev": 0.58}
SIZES = tuple(int(size) for size in os.environ.get("RECALL_SIZES", "1000,10000,100000").split(","))
MAX_MS = {100_000: 15, 1_000_000: 50}
QUERIES = 200
PROFILED = False
_SHOWN_FUNCTIONS = 25


def measure_quality(workspace: Workspace) -> Report:
    """Search every set with its own questions."""
    missing = [name for name in SETS if not (Path(DATA) / name / "docs.jsonl").exists()] if DATA else list(SETS)
    if missing:
        notes = (
            f"Not measured: {', '.join(missing)}. Set LEARNT_BENCH_DATA to a folder with the sets; they are derived "
            "from the public LoCoMo, BEAM, and overstory/mulch data."
        )
        return Report("Recall: quality", notes, "")
    rows, bars = [], []
    for name, minimum in SETS.items():
        say(f"  {name}")
        recall, ndcg, count = _search_set(workspace, name)
        rows.append([name, str(count), f"{recall:.3f}", f"{ndcg:.3f}", f"{minimum:.3f}"])
        bars.append(Bar(f"{name}: recall@10 ≥ {minimum} ({recall:.3f})", recall >= minimum))
    head = ("set", "questions", "recall@10", "nDCG@10", "bar")
    return Report("Recall: quality", "By words alone, `min_confidence=0`.", table(head, rows), tuple(bars))


def measure_speed(workspace: Workspace) -> Report:
    """Search stores of growing size with tasks of forty words."""
    rows, bars = [], []
    for size in SIZES:
        times = _search_many(workspace, size)
        p95 = times[int(len(times) * 0.95)]
        rows.append([f"{size:,}", f"{statistics.median(times):.1f}", f"{p95:.1f}", f"{times[-1]:.1f}"])
        if size in MAX_MS:
            bars.append(Bar(f"{size:,} learnings: p95 ≤ {MAX_MS[size]} ms ({p95:.1f})", p95 <= MAX_MS[size]))
    notes = f"SQLite, one open `Memory`, {QUERIES} tasks of 40 words, ms. RECALL_SIZES sets other sizes."
    return Report("Recall: speed", notes, table(("learnings", "p50", "p95", "longest"), rows), tuple(bars))


def _search_set(workspace: Workspace, name: str) -> tuple[float, float, int]:
    documents, questions = (_lines(Path(DATA) / name / file) for file in ("docs.jsonl", "queries.jsonl"))
    recalls, gains = [], []
    for group in dict.fromkeys(document["group"] for document in documents):
        with Memory.open(workspace.new_folder()) as memory:
            ids = _store(memory, [document for document in documents if document["group"] == group])
            for question in questions:
                if question["group"] == group and question["gold"]:
                    hits = memory.search(question["text"], limit=10, min_confidence=0.0)
                    documents_found = [ids[hit.learning.id] for hit in hits]
                    recalls.append(len(set(documents_found) & set(question["gold"])) / len(question["gold"]))
                    gains.append(_ndcg(documents_found, set(question["gold"])))
    return statistics.mean(recalls), statistics.mean(gains), len(recalls)


def _store(memory: Memory, documents: list[dict[str, Any]]) -> dict[str, str]:
    records = [
        {"title": " ".join(document["text"].split())[:100], "observation": document["text"][:20_000]}
        for document in documents
    ]
    added = memory.add_all(records)
    return {learning.id: document["id"] for learning, document in zip(added, documents, strict=True)}


def _ndcg(ranked: list[str], gold: set[str]) -> float:
    import math

    gain = sum(1 / math.log2(rank + 2) for rank, id in enumerate(ranked) if id in gold)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(gold))))
    return gain / ideal


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def _search_many(workspace: Workspace, size: int) -> list[float]:
    folder = workspace.new_folder()
    chance = random.Random(size)
    say(f"  storing {size:,} learnings")
    with Memory.open(folder) as memory:
        for start in range(0, size, 2_000):
            memory.add_all([natural_learning(chance) for _ in range(min(2_000, size - start))])
        texts = [" ".join(natural_word(chance) for _ in range(40)) for _ in range(QUERIES)]
        times = []
        for text in texts:
            started = time.perf_counter()
            memory.search(text, min_confidence=0.0)
            times.append((time.perf_counter() - started) * 1000)
        if PROFILED:
            _show_profile(memory, texts)
    return sorted(times)


def _show_profile(memory: Memory, texts: list[str]) -> None:
    """Print where the processor's time goes; functions take longer under the profiler than they do otherwise."""
    profile = cProfile.Profile(time.process_time)
    with profile:
        for text in texts:
            memory.search(text, min_confidence=0.0)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(_SHOWN_FUNCTIONS)


def natural_learning(chance: random.Random) -> dict[str, Any]:
    """Return a learning whose words are distributed as unevenly as in natural language."""
    return {
        "title": " ".join(natural_word(chance) for _ in range(8))[:100],
        "observation": " ".join(natural_word(chance) for _ in range(30)),
        "action": " ".join(natural_word(chance) for _ in range(12)),
    }


def natural_word(chance: random.Random) -> str:
    """Return a random word; a few words are very frequent, and most are rare."""
    return f"term{min(int(chance.paretovariate(0.55)), 80_000)}x"
