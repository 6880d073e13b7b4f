"""The comparison with other programs: samples, scores and the report, with two peers that need no installation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.peers import measure
from bench.peers.environments import Environment
from bench.peers.peers import MEANING, WORDS, Peer
from bench.peers.sets import Corpus, read_set, read_time, score, take_sample
from bench.workspace import Workspace

LEARNT = Peer("learnt words", WORDS, "peer_learnt", "learnt", option="words")
FTS5 = Peer("FTS5", WORDS, "peer_fts5", "apsw", note="OR of the words, porter")
ABSENT = Peer("nobody", MEANING, "peer_nobody", "nobody")
DOCUMENTS = [
    {
        "id": "a1",
        "group": "a",
        "text": "Restart the worker after a migration.",
        "time": "2026-02-12T20:15:46.380Z",
    },
    {"id": "a2", "group": "a", "text": "The invoice totals are rounded per line.", "time": "2026-02-13T09:00:00Z"},
    {"id": "b1", "group": "b", "text": "Postgres needs the unaccent extension.", "time": "March-15-2024"},
    {
        "id": "b2",
        "group": "b",
        "text": "Snapshots change with the locale.",
        "time": "1:56 pm on 8 May, 2023",
    },
]
QUESTIONS = [
    {"id": "q1", "group": "a", "text": "restart worker", "gold": ["a1"]},
    {"id": "q2", "group": "a", "text": "invoice: rounded totals?", "gold": ["a2"]},
    {"id": "q3", "group": "b", "text": "a rare zebra", "gold": ["b1"]},
    {"id": "q4", "group": "b", "text": "nothing answers this", "gold": []},
]


def put_set(folder: Path, name: str = "learnings-dev", *, rubbish: str = "") -> Path:
    target = folder / name
    target.mkdir(parents=True)
    lines = [json.dumps(document) for document in DOCUMENTS]
    (target / "docs.jsonl").write_text("\n".join([*lines[:1], *filter(None, [rubbish]), *lines[1:]]) + "\n")
    (target / "queries.jsonl").write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return target


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(measure, "DATA", str(tmp_path / "data"))
    monkeypatch.setattr(measure, "CHOSEN_SETS", ["learnings-dev", "cosqa-dev"])
    (tmp_path / "projects").mkdir()
    return Workspace(tmp_path / "projects")


def test_the_report_has_scores_times_sizes_and_reasons(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_set(tmp_path / "data", rubbish='{"id": "a9", "text": broken}')
    monkeypatch.setattr(measure, "PEERS", (LEARNT, FTS5, ABSENT))

    report = measure.measure(workspace)

    rows = {line.split("|")[1].strip(): _cells(line) for line in report.table.splitlines() if line.startswith("|")}
    scores = {name.split(" (")[0]: cells for name, cells in rows.items() if "/" in cells[-1]}
    assert scores["learnt words"] == ["words", "0.667 / 0.667"]
    assert scores["FTS5"] == ["words", "0.667 / 0.667"]
    assert len(rows["FTS5"]) == 5, "search p50, p95, processor time, size, adding"
    assert float(rows["FTS5"][3]) > 0
    assert "4 documents, 3 questions; skipped, not valid JSON: line 2 of docs.jsonl." in report.table
    assert "- nobody: ModuleNotFoundError: No module named 'peer_nobody' [learnings-dev]" in report.table
    assert [bar.holds for bar in report.bars] == [True], (
        "nobody who searches by meaning ran, so only recall is compared"
    )


def test_a_peer_that_takes_too_long_is_ended_and_named(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "LIMIT_S", 0)
    corpus = read_set(put_set(tmp_path / "data"))
    result = measure.run_peer(FTS5, corpus, workspace.new_folder())
    assert result.reason == "longer than 0 s: 0 of 2 stores filled, 0 of 3 questions answered"


def test_what_cannot_be_installed_is_named_with_the_reason(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.peers.environments.CACHE", tmp_path / "cache")
    peer = Peer("future", WORDS, "peer_future", "future", Environment("future", ("future",), python=(3, 19)))
    result = measure.run_peer(peer, read_set(put_set(tmp_path / "data")), workspace.new_folder())
    assert result.reason == "it needs Python 3.19, which is not here"


def test_an_environment_that_is_there_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.peers.environments.CACHE", tmp_path)
    (tmp_path / "ready").mkdir()
    (tmp_path / "ready" / "peers.txt").write_text("one\ntwo")
    assert Environment("ready", ("one",), alone=("two",)).prepare() == str(tmp_path / "ready" / "bin" / "python")


def test_without_the_sets_the_report_says_how_to_name_them(workspace: Workspace) -> None:
    report = measure.measure(workspace)
    assert report.notes == "Not measured: learnings-dev, cosqa-dev. Set LEARNT_BENCH_DATA to a folder with the sets."


def test_recall_counts_every_answer_and_the_second_score_their_ranks(tmp_path: Path) -> None:
    questions = read_set(put_set(tmp_path)).questions
    found = {"q1": ["a2", "a1"], "q2": ["a2"], "q3": []}
    ranked = score(Corpus("learnings-dev", (), questions), found)
    assert ranked.recall == pytest.approx(2 / 3)
    assert ranked.second == pytest.approx((1 / 1.58496 + 1 + 0) / 3, abs=1e-5)
    assert score(Corpus("cosqa-dev", (), questions), found).second == pytest.approx(0.5)


def test_a_sample_keeps_whole_groups_and_every_answer(tmp_path: Path) -> None:
    whole = read_set(put_set(tmp_path))
    sample = take_sample(whole, documents=2, questions=1)
    assert sample == take_sample(whole, documents=2, questions=1)
    (group,) = {document.group for document in sample.documents}
    assert [document.id for document in sample.documents] == [f"{group}1", f"{group}2"]
    assert [question.group for question in sample.questions] == [group]
    assert sample.describe() == "learnings-dev: 2 documents, 1 questions; a sample of 4 and 3"
    one = take_sample(whole, documents=1, questions=1)
    assert {document.id for document in one.documents} == one.questions[0].gold


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2026-02-12T20:15:46.380Z", 1770927346380),
        ("1:56 pm on 8 May, 2023", 1683554160000),
        ("March-15-2024", 1710460800000),
        ("", None),
        ("some day", None),
    ],
)
def test_times_of_all_sets_are_read(text: str, time_ms: int | None) -> None:
    assert read_time(text) == time_ms


def _cells(line: str) -> list[Any]:
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_adapters_run_without_this_project() -> None:
    for path in (Path(measure.__file__).parent / "adapters").glob("*.py"):
        imports = [line.split() for line in path.read_text().splitlines() if line.startswith(("import ", "from "))]
        ours = {words[1].split(".")[0] for words in imports} & {"bench", "learnt"}
        assert ours <= ({"learnt"} if path.name == "peer_learnt.py" else set()), path
