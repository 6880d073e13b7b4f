"""How well overlaps between learnings are judged, through `Memory.compare`, `Memory.similar` and `Memory.merges`.

The labelled pairs are not part of the repository: LEARNT_BENCH_DATA is their folder. Sentence pairs come from SICK and
MSRP, replaced documents are Python's PEPs, and the pairs of learnings were labelled by hand.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from bench.recall import ENCODER
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Memory

DATA = os.environ.get("LEARNT_BENCH_DATA", "")
PAIRS, REPLACED, PROJECTS = "pairs-dev", "supersession-dev", "briefs-dev"
MIN_RELATEDNESS = 4.5
MIN_CONTRADICTION_F1, MIN_CONTRADICTION_PRECISION = 0.80, 0.90
MIN_REPETITION_F1, MIN_REPETITION_F1_WITH_ENCODER = 0.66, 0.74
MAX_CONTRADICTIONS_REPEATED = 0.02
MIN_CANDIDATES = 0.90
MIN_PROPOSED = 0.60
_VERDICTS = ("repeats", "supersedes", "contradicts", "unsure", "unrelated")
_FIELDS = ("title", "context", "observation", "implication", "action", "tags")
_DAY_MS = 86_400_000
# Labels of pairs that do not say the same.
_OTHERS = ("contradiction", "neutral", "different")

Labels = Counter[tuple[str, str]]


def measure(workspace: Workspace) -> Report:
    """Compare every labelled pair and count the verdicts."""
    missing = [name for name in (PAIRS, REPLACED, PROJECTS) if not DATA or not (Path(DATA) / name).is_dir()]
    if missing:
        notes = (
            f"Not measured: {', '.join(missing)}. Set LEARNT_BENCH_DATA to a folder with the sets; they are derived "
            "from the public SICK, MSRP and Python's PEPs, and from projects that were labelled by hand."
        )
        return Report("Overlap", notes, "")
    rows: list[list[str]] = []
    bars: list[Bar] = []
    for with_encoder in (False, True) if ENCODER else (False,):
        os.environ.update(ENCODER if with_encoder else {})
        try:
            _measure_sentences(workspace, rows, bars, with_encoder=with_encoder)
        finally:
            for name in ENCODER if with_encoder else ():
                del os.environ[name]
    _measure_replaced(workspace, rows, bars)
    _measure_projects(workspace, rows, bars)
    notes = (
        "`Memory.compare`, no model. A merge without a person needs a repetition that words prove, and a text that "
        "loses nothing; it is wrong if the label is another one. Set LEARNT_SEARCH_ENCODER to measure an encoder, too."
    )
    return Report("Overlap", notes, table(("set", "figure", "value", "detail"), rows), tuple(bars))


def _measure_sentences(workspace: Workspace, rows: list[list[str]], bars: list[Bar], *, with_encoder: bool) -> None:
    pairs = _lines(Path(DATA) / PAIRS / "pairs.jsonl")
    name = "encoder" if with_encoder else "embedded"
    say(f"  comparing {len(pairs)} pairs of sentences, {name}")
    counts: dict[str, Labels] = {"sick": Counter(), "msrp": Counter()}
    merged: Counter[str] = Counter()
    with Memory.open(workspace.new_folder()) as memory:
        for pair in pairs:
            verdict = memory.compare(pair["a"], pair["b"])
            counts[pair["source"]][_label(pair), verdict.relation] += 1
            if verdict == "repeats" and not verdict.is_estimate:
                is_merged = _can_absorb(memory, pair["a"], pair["b"])
                merged.update({"proven": 1, "merged": is_merged, "wrong": is_merged and _label(pair) in _OTHERS})
        assert not memory.remarks, memory.remarks  # otherwise the embedded table was measured
    sick = counts["sick"]
    contradiction = _score(sick, "contradiction", "contradicts")
    repetition = _score(sick, "repetition", "repeats")
    total = sum(count for (label, _), count in sick.items() if label == "contradiction")
    swapped = sick["contradiction", "repeats"] / total if total else 0.0
    rows += [
        [f"SICK, {name}", "contradiction", *_show(contradiction)],
        [f"SICK, {name}", "repetition", *_show(repetition)],
        [f"SICK, {name}", "contradictions taken for repetitions", f"{swapped:.3f}", f"of {total}"],
        [
            f"both, {name}",
            "merged wrongly without a person",
            f"{merged['wrong'] / max(1, merged['merged']):.3f}",
            f"{merged['wrong']} of {merged['merged']} merges; {merged['proven']} repetitions proven by words",
        ],
        [f"MSRP, {name}", "repetition", *_show(_score(counts["msrp"], "paraphrase", "repeats"))],
        *([f"{source}, {name}", f"verdicts on {label}", "", shown] for source, label, shown in _list_verdicts(counts)),
    ]
    least = MIN_REPETITION_F1_WITH_ENCODER if with_encoder else MIN_REPETITION_F1
    bars += [
        Bar(f"{name}: contradiction F1 ≥ {MIN_CONTRADICTION_F1}", contradiction[2] >= MIN_CONTRADICTION_F1),
        Bar(
            f"{name}: contradiction precision ≥ {MIN_CONTRADICTION_PRECISION}",
            contradiction[0] >= MIN_CONTRADICTION_PRECISION,
        ),
        Bar(f"{name}: repetition F1 ≥ {least}", repetition[2] >= least),
        Bar(f"{name}: contradictions as repetitions ≤ 2 %", swapped <= MAX_CONTRADICTIONS_REPEATED),
    ]


def _measure_replaced(workspace: Workspace, rows: list[list[str]], bars: list[Bar]) -> None:
    """Look for the document that a newer one replaces among the ten most similar ones."""
    documents, pairs = (_lines(Path(DATA) / REPLACED / file) for file in ("docs.jsonl", "pairs.jsonl"))
    say(f"  comparing {len(documents)} documents")
    with Memory.open(workspace.new_folder()) as memory:
        records = [{"title": _cut(one["text"]), "observation": one["text"][:20_000]} for one in documents]
        ids = {
            document["id"]: learning.id for document, learning in zip(documents, memory.add_all(records), strict=True)
        }
        found = sum(
            ids[pair["older"]] in [one.learning.id for one in memory.similar(ids[pair["newer"]], near_too=True)]
            for pair in pairs
        )
        verdicts = Counter(memory.compare(ids[pair["older"]], ids[pair["newer"]]).relation for pair in pairs)
    recall = found / len(pairs)
    rows.append(["PEPs", "replaced one among 10 candidates", f"{recall:.3f}", f"of {len(pairs)}; {_join(verdicts)}"])
    bars.append(Bar(f"PEPs: candidates ≥ {MIN_CANDIDATES} ({recall:.3f})", recall >= MIN_CANDIDATES))


def _measure_projects(workspace: Workspace, rows: list[list[str]], bars: list[Bar]) -> None:
    """Compare all learnings of each project with each other, and try to merge what is proposed."""
    counts: Counter[str] = Counter()
    for folder in sorted((Path(DATA) / PROJECTS).iterdir()):
        say(f"  comparing the learnings of {folder.name}")
        counts.update(_count_project(workspace, folder))
    for relation, verdict in (("repetitions", "repeats"), ("replacements", "supersedes")):
        share = counts[f"found {verdict}"] / max(1, counts[verdict])
        rows.append(["projects", f"{relation} proposed", f"{share:.3f}", f"of {counts[verdict]}"])
        bars.append(Bar(f"projects: {relation} proposed ≥ {MIN_PROPOSED} ({share:.3f})", share >= MIN_PROPOSED))
    true = counts["found repeats"] + counts["found supersedes"]
    detail = f"{true} true; of {counts['pairs']} pairs"
    rows += [
        ["projects", "false proposals", str(counts["false"]), detail],
        ["projects", "wrong merges", str(counts["merged wrongly"]), f"of {counts['merged']} that need no person"],
    ]
    bars.append(Bar(f"projects: false proposals ≤ true ones ({counts['false']} of {true})", counts["false"] <= true))
    bars.append(Bar("projects: no wrong merge", not counts["merged wrongly"]))


def _count_project(workspace: Workspace, folder: Path) -> Counter[str]:
    known, pairs = (_lines(folder / file) for file in ("learnings.jsonl", "pairs.jsonl"))
    labels = {frozenset((pair.get("a", pair.get("newer")), pair.get("b", pair.get("older")))): pair for pair in pairs}
    counts = Counter(pair["relation"] for pair in pairs)
    ids: dict[str, str] = {}
    with Memory.open(workspace.new_folder()) as memory:
        for day, record in enumerate(known):
            fields = {name: record[name] for name in _FIELDS if name != "title"}
            added = memory.add(record["title"], **fields, created_at=day * _DAY_MS, by="agent")
            ids[record["id"]] = added.id
        for pair in combinations(ids, 2):
            label = labels.get(frozenset(pair), {})
            older, newer = pair[::-1] if label.get("newer") == pair[0] else pair
            verdict = memory.compare(ids[older], ids[newer])
            counts["pairs"] += 1
            if verdict in ("repeats", "supersedes"):
                is_right = label.get("relation") == verdict.relation
                counts[f"found {verdict}" if is_right else "false" if not label else "other relation"] += 1
            if verdict == "repeats" and not verdict.is_estimate:
                counts["merged"] += 1
                counts["merged wrongly"] += label.get("relation") != "repeats"
    return counts


def _can_absorb(memory: Memory, older: str, newer: str) -> bool:
    """Return whether the older of two texts takes in the newer one unchanged, so that nothing is lost."""
    ids = [memory.add(_cut(text), observation=text, by="agent", origin="agent").id for text in (older, newer)]
    kept = {"title": _cut(older), "observation": older}
    return not memory.merges.propose(ids, into=ids[0], texts=kept).is_refused


def _label(pair: dict[str, Any]) -> str:
    if pair["label"] != "entailment":
        return str(pair["label"])
    return "repetition" if pair["relatedness"] >= MIN_RELATEDNESS else "entailment"


def _score(counts: Labels, label: str, verdict: str) -> tuple[float, float, float]:
    """Return precision, recall and F1 of a verdict for a label."""
    true = counts[label, verdict]
    given = sum(count for (_, other), count in counts.items() if other == verdict)
    wanted = sum(count for (other, _), count in counts.items() if other == label)
    precision, recall = true / given if given else 0.0, true / wanted if wanted else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if true else 0.0


def _show(score: tuple[float, float, float]) -> tuple[str, str]:
    return f"F1 {score[2]:.3f}", f"precision {score[0]:.3f}, recall {score[1]:.3f}"


def _list_verdicts(counts: dict[str, Labels]) -> Iterator[tuple[str, str, str]]:
    for source, labels in counts.items():
        for label in sorted({label for label, _ in labels}):
            yield source.upper(), label, _join(Counter({verdict: labels[label, verdict] for verdict in _VERDICTS}))


def _join(verdicts: Counter[str]) -> str:
    return ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in _VERDICTS if verdicts[verdict])


def _cut(text: str) -> str:
    return " ".join(text.split())[:100]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
