"""The measurement of how overlaps are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench import overlap
from bench.workspace import Workspace


def put(path: Path, *records: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def pair(a: str, b: str, label: str, relatedness: float = 4.0) -> dict[str, Any]:
    return {"source": "sick", "a": a, "b": b, "label": label, "relatedness": relatedness}


def learning(id: str, title: str) -> dict[str, Any]:
    return {"id": id, "title": title, "tags": [], **dict.fromkeys(overlap._FIELDS[1:5], "")}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a few labelled pairs of each kind."""
    folder = tmp_path / "data"
    put(
        folder / "pairs-dev" / "pairs.jsonl",
        pair("A dog runs on the grass", "A dog is running on the grass", "entailment", 5.0),
        pair("A dog runs on the grass", "A dog does not run on the grass", "contradiction"),
        pair("A dog runs on the grass", "A cook cuts onions", "neutral", 1.0),
    )
    texts = {"1": "Orders are exported by cron at night.", "2": "Orders are exported by a queue, no longer by cron."}
    put(folder / "supersession-dev" / "docs.jsonl", *({"id": id, "text": text} for id, text in texts.items()))
    put(folder / "supersession-dev" / "pairs.jsonl", {"newer": "2", "older": "1"})
    put(
        folder / "briefs-dev" / "shop" / "learnings.jsonl",
        learning("L1", "Run `make lint` before each commit"),
        learning("L2", "Run make lint before every commit"),
        learning("L3", "Prices are integers of cents"),
    )
    put(folder / "briefs-dev" / "shop" / "pairs.jsonl", {"a": "L1", "b": "L2", "relation": "repeats"})
    monkeypatch.setattr(overlap, "DATA", str(folder))
    monkeypatch.setattr(overlap, "ENCODER", {})
    return folder


def test_every_set_has_its_figures_and_bars(data: Path, tmp_path: Path) -> None:
    (tmp_path / "projects").mkdir()
    report = overlap.measure(Workspace(tmp_path / "projects"))
    bars = {bar.text: bar.holds for bar in report.bars}
    assert bars.pop("projects: replacements proposed ≥ 0.6 (0.000)") is False
    assert all(bars.values()), bars
    assert "merged wrongly without a person" in report.table


def test_without_the_sets_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(overlap, "DATA", str(tmp_path))
    assert "Not measured: pairs-dev, supersession-dev, briefs-dev" in overlap.measure(Workspace(tmp_path)).notes
