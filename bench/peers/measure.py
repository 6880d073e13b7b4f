"""Run every peer over every set, each in a process of its own, and report scores, times and sizes.

PEERS_QUESTIONS and PEERS_DOCUMENTS limit each set to a sample, PEERS_LIMIT_S is the time that a peer has for one set
(default: 10 minutes). PEERS_ONLY and PEERS_SETS name the peers and the sets to run, with commas between them.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.environments import NotInstalled
from bench.peers.peers import LEFT_OUT, OURS, PEERS, WORDS, Peer
from bench.peers.sets import NOTHING_FOUND, SETS, Corpus, Scores, read_set, score, take_sample
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace

DATA = os.environ.get("LEARNT_BENCH_DATA", "")
QUESTIONS = int(os.environ.get("PEERS_QUESTIONS") or 0)
DOCUMENTS = int(os.environ.get("PEERS_DOCUMENTS") or 0)
LIMIT_S = int(os.environ.get("PEERS_LIMIT_S") or 600)
ONLY = [name.strip() for name in os.environ.get("PEERS_ONLY", "").split(",") if name.strip()]
CHOSEN_SETS = [name.strip() for name in os.environ.get("PEERS_SETS", ",".join(SETS)).split(",")]
_THREADS = os.environ.get("OMP_NUM_THREADS", "")
_SERVE = Path(__file__).parent / "adapters" / "serve.py"
_MAX_REASON = 160
# No peer may load anything from outside, nor report what it does.
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "TELEMETRY_DISABLED": "1",
    "DO_NOT_TRACK": "1",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a peer reached on a set; if it could not run, only `reason` is set."""

    peer: Peer
    corpus: Corpus
    reason: str = ""
    version: str = ""
    scores: Scores = NOTHING_FOUND
    times_ms: tuple[float, ...] = ()
    cpu_ms: float = 0
    added_s: float = 0
    megabytes: float = 0

    @property
    def p50_ms(self) -> float:
        """Return the median time of a search."""
        return statistics.median(self.times_ms)

    @property
    def p95_ms(self) -> float:
        """Return the time that 95 of 100 searches keep."""
        return self.times_ms[int(len(self.times_ms) * 0.95)]


class NoResult(Exception):
    """A peer did not answer everything; the text is the reason."""


def measure(workspace: Workspace) -> Report:
    """Run every peer over every set that is there."""
    present = [name for name in CHOSEN_SETS if (Path(DATA) / name / "docs.jsonl").exists()] if DATA else []
    if not present:
        notes = f"Not measured: {', '.join(CHOSEN_SETS)}. Set LEARNT_BENCH_DATA to a folder with the sets."
        return Report("Peers", notes, "")
    peers = [peer for peer in PEERS if not ONLY or peer.name in ONLY]
    results = []
    for name in present:
        corpus = take_sample(read_set(Path(DATA) / name), documents=DOCUMENTS, questions=QUESTIONS)
        results += [_run_and_say(peer, corpus, workspace.new_folder()) for peer in peers]
    return report(results)


def report(results: Sequence[Result]) -> Report:
    """Return the tables: one of all scores, one of the times and sizes for each set, and the reasons of the others."""
    corpora = {result.corpus.name: result.corpus for result in results}
    pieces = [_score_table(results, list(corpora.values()))]
    for name, corpus in corpora.items():
        pieces.append(f"{corpus.describe()}.\n\n{_time_table([one for one in results if one.corpus.name == name])}")
    pieces.append(_reasons(results))
    return Report("Peers", _notes(), "\n\n".join(piece for piece in pieces if piece), tuple(_bars(results)))


def run_peer(peer: Peer, corpus: Corpus, folder: Path) -> Result:
    """Run one peer over one set; `folder` is empty and holds everything that the peer stores."""
    try:
        python = peer.environment.prepare() if peer.environment else sys.executable
        return _result(peer, corpus, folder, _ask(peer, python, corpus, folder))
    except (NotInstalled, NoResult) as reason:
        return Result(peer, corpus, reason=_shorten(str(reason)))


def _run_and_say(peer: Peer, corpus: Corpus, folder: Path) -> Result:
    result = run_peer(peer, corpus, folder)
    outcome = result.reason or f"recall@10 {result.scores.recall:.3f}, {result.p50_ms:.1f} ms"
    say(f"  {corpus.name}, {peer.name}: {outcome}")
    return result


def _ask(peer: Peer, python: str, corpus: Corpus, folder: Path) -> list[dict[str, Any]]:
    """Return all answers of the peer's process."""
    stores = folder / "stores"
    stores.mkdir()
    words = [python, str(_SERVE), peer.adapter, peer.option, peer.distribution, str(stores)]
    with (
        tempfile.TemporaryFile("w+") as requests,
        tempfile.TemporaryFile("w+") as answers,
        tempfile.TemporaryFile("w+") as errors,
    ):
        requests.write("".join(json.dumps(request) + "\n" for request in corpus.requests()))
        requests.seek(0)
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **_OFFLINE, **dict(peer.variables), "HOME": str(folder)},
            stdin=requests,
            stdout=answers,
            stderr=errors,
            start_new_session=True,
        )
        late = not _ends_in_time(process)
        records = _read_back(answers)
        _check(records, corpus, late=late, errors=errors)
        return records


def _ends_in_time(process: subprocess.Popen[bytes]) -> bool:
    """Wait for a process; end it and what it started if that takes too long."""
    try:
        process.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


def _read_back(file: Any) -> list[dict[str, Any]]:
    file.seek(0)
    return [json.loads(line) for line in file if line.endswith("\n")]


def _check(records: list[dict[str, Any]], corpus: Corpus, *, late: bool, errors: Any) -> None:
    answered = sum("query" in record for record in records)
    for record in records:
        if "error" in record:
            raise NoResult(record["error"])
    if late:
        added = sum("added_s" in record for record in records)
        stores = len(corpus.requests())
        raise NoResult(
            f"longer than {LIMIT_S} s: {added} of {stores} stores filled, "
            f"{answered} of {len(corpus.questions)} questions answered"
        )
    if answered != len(corpus.questions):
        errors.seek(0)
        raise NoResult((errors.read().strip().splitlines() or ["it ended without a word"])[-1])


def _result(peer: Peer, corpus: Corpus, folder: Path, records: list[dict[str, Any]]) -> Result:
    answers = [record for record in records if "query" in record]
    return Result(
        peer,
        corpus,
        version=next(record["version"] for record in records if "version" in record),
        scores=score(corpus, {answer["query"]: answer["ids"] for answer in answers}),
        times_ms=tuple(sorted(answer["ms"] for answer in answers)),
        cpu_ms=statistics.median(answer["cpu_ms"] for answer in answers),
        added_s=sum(record["added_s"] for record in records if "added_s" in record),
        megabytes=_megabytes(folder / "stores"),
    )


def _megabytes(folder: Path) -> float:
    """Return the space that a folder takes on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1e6


def _score_table(results: Sequence[Result], corpora: Sequence[Corpus]) -> str:
    heads = [f"{corpus.name}: recall@10 / {corpus.second_score}" for corpus in corpora]
    rows = []
    for peer in dict.fromkeys(result.peer for result in results):
        own = {result.corpus.name: result for result in results if result.peer == peer}
        if any(not result.reason for result in own.values()):
            cells = [_scores(own[corpus.name]) for corpus in corpora]
            rows.append([_name(peer, own.values()), peer.by, *cells])
    return table(["peer", "searches by", *heads], rows)


def _name(peer: Peer, results: Any) -> str:
    version = next(result.version for result in results if result.version)
    named = f"apsw {version}" if peer.name == "FTS5" else version
    return f"{peer.name} ({named}{'; ' * bool(peer.note)}{peer.note})"


def _scores(result: Result) -> str:
    return "-" if result.reason else f"{result.scores.recall:.3f} / {result.scores.second:.3f}"


def _time_table(results: Sequence[Result]) -> str:
    head = ("peer", "search p50 ms", "p95 ms", "CPU p50 ms", "on disk MB", "adding s")
    rows = [
        [result.peer.name, *(f"{number:.2f}" for number in _times(result)), f"{result.added_s:.2f}"]
        for result in results
        if not result.reason
    ]
    return table(head, rows)


def _times(result: Result) -> tuple[float, float, float, float]:
    return result.p50_ms, result.p95_ms, result.cpu_ms, result.megabytes


def _reasons(results: Sequence[Result]) -> str:
    """Return the list of peers that could not run; a reason stands once for all sets where it is the same."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.reason:
            name = f"{result.peer.name} ({result.peer.note})" if result.peer.note else result.peer.name
            reasons.setdefault((name, result.reason), []).append(result.corpus.name)
    lines = [f"- {name}: {reason} [{', '.join(names)}]" for (name, reason), names in reasons.items()]
    lines += [f"- {name}: {reason}" for name, reason in LEFT_OUT.items()]
    return "\n".join(["Could not run:", "", *lines])


def _bars(results: Sequence[Result]) -> Iterator[Bar]:
    """Yield for each set whether we find the most, and whether we are faster than all that search by meaning."""
    for name in dict.fromkeys(result.corpus.name for result in results):
        ran = [result for result in results if result.corpus.name == name and not result.reason]
        others = [result for result in ran if not result.peer.name.startswith(OURS)]
        ours = next((result for result in ran if result not in others), None)
        if ours and others:
            yield _recall_bar(name, ours, max(others, key=lambda result: result.scores.recall))
        slow = [result for result in others if result.peer.by != WORDS]
        if ours and slow:
            fastest = min(slow, key=lambda result: result.p50_ms)
            text = f"{name}: {ours.peer.name} is faster ({ours.p50_ms:.1f} ms) than {fastest.peer.name}"
            yield Bar(f"{text} ({fastest.p50_ms:.1f} ms)", ours.p50_ms < fastest.p50_ms)


def _recall_bar(name: str, ours: Result, best: Result) -> Bar:
    text = f"{name}: recall@10 of {ours.peer.name} ({ours.scores.recall:.3f}) is not below that of {best.peer.name}"
    return Bar(f"{text} ({best.scores.recall:.3f})", ours.scores.recall >= best.scores.recall)


def _notes() -> str:
    threads = f"OMP_NUM_THREADS={_THREADS}" if _THREADS else "as many threads as each peer takes by default"
    return (
        "Each peer runs offline, in its own process, with its default settings, and gets the same texts; those that "
        "search by meaning share the model all-MiniLM-L6-v2. Times are measured inside that process, in a warm store, "
        f"with {threads}; `CPU` is processor time, which other load on the machine affects less. Size on disk is that "
        f"of everything stored, without models. A peer has {LIMIT_S} s for a set."
    )


def _shorten(reason: str) -> str:
    folded = " ".join(reason.split())
    return folded if len(folded) <= _MAX_REASON else f"{folded[:_MAX_REASON]} …"
