"""How well and how fast learnings are found, through `Memory.search`.

Quality is measured on public sets that are not part of the repository: LEARNT_BENCH_DATA is their folder. Each
document is stored as a learning, whose title is the document's first 100 characters and whose observation is its text,
one day after the document before it. Each group of documents has its own store.
"""

from __future__ import annotations

import cProfile
import functools
import json
import os
import pstats
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.postgres import PostgresServer, find_binaries

from bench.processes import LEARNT, Run, peak_megabytes
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace, on_server
from learnt import Memory
from learnt.flow.vectors import measure_progress

DATA = os.environ.get("LEARNT_BENCH_DATA", "")
# For each set, the figures that a hybrid search must reach: with the embedded table, and with a sentence model.
SETS = {
    "learnings-dev": ({"recall@10": 0.58, "nDCG@10": 0.485}, {"recall@10": 0.59, "nDCG@10": 0.49}),
    "locomo-dev": ({"recall@10": 0.67, "nDCG@10": 0.515}, {"recall@10": 0.70, "nDCG@10": 0.53}),
    "beam-dev": ({"recall@10": 0.645, "nDCG@10": 0.54}, {"recall@10": 0.69, "nDCG@10": 0.57}),
    "cosqa-dev": ({"MRR": 0.42}, {"MRR": 0.50}),
}
UPDATED = "beam-dev"  # the set with questions about what was updated
MIN_NEWER_FIRST = 14
MAX_BETWEEN_ENGINES = 0.01
_FIRST_DAY_MS, _DAY_MS = 1_700_000_000_000, 86_400_000
FIGURES = ("recall@10", "nDCG@10", "MRR")
_VARIABLES = ("LEARNT_SEARCH_ENCODER", "LEARNT_SEARCH_ENCODER_DEADLINE_MS")
# Read here, because all measurements run without the settings of whoever starts them.
ENCODER = {name: os.environ[name] for name in _VARIABLES if os.environ.get(_VARIABLES[0]) and name in os.environ}
WEIGHTS = tuple(float(weight) for weight in os.environ.get("RECALL_WEIGHTS", "").split(",") if weight)
SIZES = tuple(int(size) for size in os.environ.get("RECALL_SIZES", "1000,10000,100000").split(","))
MAX_MEDIAN_MS = {10_000: 3}
MAX_MS = {10_000: 10, 100_000: 25, 1_000_000: 80}
QUERIES = 200
PROFILED = False
_SHOWN_FUNCTIONS = 25
_VOCABULARY, _FLATTER = 40_000, 2.7  # so many words, and how much flatter than 1 / rank the first are distributed

Way = tuple[str, dict[str, Any]]
WAYS: tuple[Way, ...] = (
    ("words", {"strategy": "bm25"}),
    ("hybrid", {}),
    ("meaning", {"strategy": "semantic"}),
    *((f"hybrid, {weight:g}", {"semantic_weight": weight}) for weight in WEIGHTS),
)


def measure_quality(workspace: Workspace) -> Report:
    """Search every set with its own questions, in every way: with the embedded table, and with an encoder."""
    if missing := _find_missing():
        return Report("Recall: quality", missing, "")
    rows, bars = [], []
    for name in SETS:
        say(f"  {name}")
        for with_encoder, way, figures in _search_set(workspace.new_folder, name):
            shown = [f"{figures[figure]:.3f}" for figure in FIGURES]
            rows.append([name, "encoder" if with_encoder else "embedded", way, f"{figures['questions']:.0f}", *shown])
            bars += _list_bars(name, figures, with_encoder=with_encoder) if way == "hybrid" else []
    notes = (
        f"`Memory.search`, `min_confidence=0`. Set {_VARIABLES[0]} to measure an encoder, too, and RECALL_WEIGHTS to "
        "weights such as 0.3,0.5 to measure with them."
    )
    return Report("Recall: quality", notes, table(("set", "vectors", "by", "questions", *FIGURES), rows), tuple(bars))


def _list_bars(name: str, figures: dict[str, float], *, with_encoder: bool) -> list[Bar]:
    label = f"{name}{', encoder' if with_encoder else ''}"
    bars = [
        Bar(f"{label}: {figure} ≥ {minimum} ({figures[figure]:.3f})", figures[figure] >= minimum)
        for figure, minimum in SETS[name][with_encoder].items()
    ]
    if name == UPDATED:
        first, of = figures["newer first"], figures["updated"]
        text = f"{label}: the newer statement first in ≥ {MIN_NEWER_FIRST} of {of:.0f} questions ({first:.0f})"
        bars.append(Bar(text, first >= MIN_NEWER_FIRST))
    return bars


def measure_engines(workspace: Workspace) -> Report:
    """Search every set in SQLite and in PostgreSQL: what they find must be as good."""
    title, binaries = "Recall: SQLite and PostgreSQL", find_binaries()
    if missing := _find_missing() or ("" if binaries else "Not measured: there is no PostgreSQL server."):
        return Report(title, missing, "")
    assert binaries is not None
    rows, bars = [], []
    with PostgresServer(binaries) as server:
        for name in SETS:
            say(f"  {name}")
            new_folders = {
                "SQLite": workspace.new_folder,
                "PostgreSQL": lambda: on_server(server, workspace.new_folder()),
            }
            found = {engine: _search_set(new, name, WAYS[1:2])[0][2] for engine, new in new_folders.items()}
            for engine, figures in found.items():
                rows.append([name, engine, *(f"{figures[figure]:.3f}" for figure in FIGURES)])
            difference = max(abs(found["SQLite"][figure] - found["PostgreSQL"][figure]) for figure in FIGURES)
            bars.append(
                Bar(f"{name}: both within {MAX_BETWEEN_ENGINES} ({difference:.3f})", difference <= MAX_BETWEEN_ENGINES)
            )
    return Report(title, "`Memory.search`, hybrid.", table(("set", "store", *FIGURES), rows), tuple(bars))


def _find_missing() -> str:
    """Return what to do if the sets are not there."""
    missing = [name for name in SETS if not (Path(DATA) / name / "docs.jsonl").exists()] if DATA else list(SETS)
    if not missing:
        return ""
    return (
        f"Not measured: {', '.join(missing)}. Set LEARNT_BENCH_DATA to a folder with the sets; they are derived "
        "from the public LoCoMo, BEAM, CoSQA and overstory/mulch data."
    )


def measure_speed(workspace: Workspace) -> Report:
    """Search stores of growing size with tasks of forty words."""
    rows, bars = [], []
    for size in SIZES:
        times, used = _search_many(workspace, size)
        median, p95 = statistics.median(times), times[int(len(times) * 0.95)]
        of_processor = (statistics.median(used), used[int(len(used) * 0.95)])
        rows.append([f"{size:,}", *(f"{ms:.1f}" for ms in (median, p95, times[-1], *of_processor))])
        for name, value, most in (("p50", median, MAX_MEDIAN_MS.get(size)), ("p95", p95, MAX_MS.get(size))):
            if most is not None:
                bars.append(Bar(f"{size:,} learnings: {name} ≤ {most} ms ({value:.1f})", value <= most))
    notes = f"SQLite, one open `Memory`, {QUERIES} tasks of 40 words, ms. RECALL_SIZES sets other sizes."
    head = ("learnings", "p50", "p95", "longest", "CPU p50", "CPU p95")
    return Report("Recall: speed", notes, table(head, rows), tuple(bars))


def _search_set(
    new_folder: Callable[[], Path], name: str, ways: Sequence[Way] = WAYS
) -> list[tuple[bool, str, dict[str, float]]]:
    """Return the figures for each way to search a set, and whether an encoder was used."""
    documents, questions = (_lines(Path(DATA) / name / file) for file in ("docs.jsonl", "queries.jsonl"))
    found: dict[tuple[bool, str], list[dict[str, float]]] = {}
    for group in dict.fromkeys(document["group"] for document in documents):
        folder = new_folder()
        asked = [one for one in questions if one["group"] == group and one["gold"]]
        with Memory.open(folder) as memory:
            ids = _store(memory, [document for document in documents if document["group"] == group])
            for way in ways:
                found.setdefault((False, way[0]), []).extend(_ask(memory, asked, ids, way))
        for label, figures in (_ask_with_encoder(folder, asked, ids) if ENCODER and ways is WAYS else {}).items():
            found.setdefault((True, label), []).extend(figures)
    return [(with_encoder, label, _average(figures)) for (with_encoder, label), figures in found.items() if figures]


def _ask_with_encoder(
    folder: Path, asked: list[dict[str, Any]], ids: dict[str, str]
) -> dict[str, list[dict[str, float]]]:
    os.environ.update(ENCODER)
    try:
        with Memory.open(folder) as memory:
            while (lacking := _count_lacking(memory)) and not (report := memory.worker.catch_up()).remarks:
                assert _count_lacking(memory) < lacking, "the worker makes no vectors"
            assert not lacking, report.remarks
            found = {way[0]: _ask(memory, asked, ids, way) for way in WAYS if way[0] != "words"}
            assert not memory.remarks, memory.remarks  # otherwise the embedded table was measured
    finally:
        for name in ENCODER:
            del os.environ[name]
    return found


def _count_lacking(memory: Memory) -> int:
    progress = measure_progress(memory.context.store, memory.settings)
    return progress.total - progress.done if progress else 0


def _ask(memory: Memory, asked: list[dict[str, Any]], ids: dict[str, str], way: Way) -> list[dict[str, float]]:
    """Return the figures of each question."""
    figures = []
    for question in asked:
        hits = memory.search(question["text"], limit=10, min_confidence=0.0, **way[1])
        ranked, gold = [ids[hit.learning.id] for hit in hits], set(question["gold"])
        first = next((rank for rank, id in enumerate(ranked, start=1) if id in gold), 0)
        recall = len(gold & set(ranked)) / len(gold)
        figures.append(
            {"recall@10": recall, "nDCG@10": _ndcg(ranked, gold), "MRR": 1 / first if first else 0.0}
            | _compare_times(question, ranked)
        )
    return figures


def _compare_times(question: dict[str, Any], ranked: list[str]) -> dict[str, float]:
    """Return, for a question about what was updated, whether the newer statement is above the older one."""
    if not (question.get("older") and question.get("newer")):
        return {}
    newer, older = (min(map(ranked.index, set(question[side]) & {*ranked}), default=10) for side in ("newer", "older"))
    return {"updated": 1, "newer first": newer < older}


def _average(figures: list[dict[str, float]]) -> dict[str, float]:
    means = {figure: statistics.mean(one[figure] for one in figures) for figure in FIGURES}
    counts = {name: sum(one.get(name, 0) for one in figures) for name in ("updated", "newer first")}
    return {**means, **counts, "questions": len(figures)}


def _store(memory: Memory, documents: list[dict[str, Any]]) -> dict[str, str]:
    ids = {}
    for number, document in enumerate(documents):
        title, day = " ".join(document["text"].split())[:100], document.get("order", number)
        time_ms = _FIRST_DAY_MS + day * _DAY_MS
        added = memory.add(title, observation=document["text"][:20_000], created_at=time_ms)
        ids[added.id] = document["id"]
    return ids


def _ndcg(ranked: list[str], gold: set[str]) -> float:
    import math

    gain = sum(1 / math.log2(rank + 2) for rank, id in enumerate(ranked) if id in gold)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(gold))))
    return gain / ideal


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, without lines that cannot be read."""
    records = []
    for line in path.read_bytes().split(b"\n"):
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def _search_many(workspace: Workspace, size: int) -> tuple[list[float], list[float]]:
    """Return how long each search takes, in order, and how much of the processor's time it takes."""
    folder = workspace.new_folder()
    chance = random.Random(size)
    say(f"  importing {size:,} learnings")
    import_many(folder, size)
    with Memory.open(folder) as memory:
        texts = [" ".join(natural_word(chance) for _ in range(40)) for _ in range(QUERIES)]
        memory.search(texts[0], min_confidence=0.0)  # what it keeps, it reads at the first search
        times, used = [], []
        for text in texts:
            started, started_using = time.perf_counter(), time.process_time()
            memory.search(text, min_confidence=0.0)
            times.append((time.perf_counter() - started) * 1000)
            used.append((time.process_time() - started_using) * 1000)
        if PROFILED:
            _show_profile(memory, texts)
    return sorted(times), sorted(used)


def import_many(folder: Path, size: int) -> tuple[float, float]:
    """Import learnings of sixty words into a new project; return the seconds and the peak of memory in MB."""
    Memory.open(folder).close()
    path, chance = folder / "learnings.jsonl", random.Random(size)
    with path.open("w") as file:
        file.writelines(json.dumps(natural_learning(chance)) + "\n" for _ in range(size))
    began = time.perf_counter()
    megabytes = peak_megabytes(Run((LEARNT, "import", str(path), "--json"), folder))
    seconds = time.perf_counter() - began
    with Memory.open(folder) as memory:
        stored = memory.learnings(limit=1).total
    if stored != size:
        raise RuntimeError(f"{stored:,} of {size:,} learnings were imported, so the time is meaningless")
    return seconds, megabytes


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
        "observation": " ".join(natural_word(chance) for _ in range(36)),
        "action": " ".join(natural_word(chance) for _ in range(16)),
    }


def natural_word(chance: random.Random) -> str:
    """Return a random word, by Zipf's law: a few words are very frequent, and most are rare."""
    rank = int(_FLATTER * ((1 + _VOCABULARY / _FLATTER) ** chance.random() - 1))
    known = _list_words()
    return known[rank] if rank < len(known) else _make_word(rank)


@functools.cache
def _list_words() -> list[str]:
    """Return the words of the texts in `training`, the most frequent first."""
    texts = [path.read_text() for path in sorted(Path("training").glob("*.txt"))]
    counted = Counter(re.findall(r"[a-z]{2,}(?:[-_/.][a-z]+)*", " ".join(texts).lower()))
    return sorted(counted, key=lambda word: (-counted[word], word))


def _make_word(number: int) -> str:
    """Return a word that nobody has used, always the same for a number."""
    syllables = []
    while number:
        number, rest = divmod(number, 60)
        syllables.append("bdfgklmnprst"[rest // 5] + "aeiou"[rest % 5])
    return "".join(syllables)
