"""How many secrets redaction finds, how often it takes something else for one, and how long it takes.

The secrets are drawn from the templates of the tests. Code is the standard library and the installed packages, without
their tests; logs are drawn. Every alarm in them counts as false, also the example of a password in a docstring.
If `LEARNT_BENCH_OTHER=/path/to/python` is the interpreter of another checkout, both are timed in turns.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.ordinary import MOST_FALSE_ALARMS, code_files, code_lines, log_line
from tests.support.secret_cases import LEAST_FOUND, cases, is_missed

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt.text.redact import redact

SEEDS = range(5)
LOG_LINES = 200_000
ROUNDS = 15
LENGTH, PIECE = 100_000, 4_000  # characters of each kind of text, and of what is redacted at once
MAX_RATIO = 1.3
OTHER = os.environ.get("LEARNT_BENCH_OTHER", "")
_ROOT = Path(__file__).parents[1]
# Redacts each kind of text on request and prints the seconds of CPU time.
_WORKER = """
import json, sys, time
from learnt.text.redact import redact
kinds = json.load(open(sys.argv[1], encoding="utf-8"))
for _ in sys.stdin:
    seconds = {}
    for kind, pieces in kinds.items():
        start = time.process_time()
        for piece in pieces:
            redact(piece)
        seconds[kind] = time.process_time() - start
    print(json.dumps(seconds), flush=True)
"""


def measure(workspace: Workspace) -> Report:
    """Redact secrets, lines without any, and texts against the clock."""
    found, tables = _find()
    alarms, lines = _alarm()
    times = _time(workspace.new_folder())
    rows = [[kind, *(f"{1e6 * seconds / LENGTH * 1000:.0f}" for seconds in times[kind])] for kind in times]
    head = ("text", "µs for 1,000 characters", "the other's")
    tables += f"\n\n{table(head[: 2 + bool(OTHER)], rows)}"
    bars = [
        Bar(f"at least {LEAST_FOUND:.0%} of the secrets are found: {found:.1%}", found >= LEAST_FOUND),
        Bar(f"at most 1 alarm in 100,000 lines: {alarms} in {lines:,}", alarms <= lines * MOST_FALSE_ALARMS),
    ]
    if OTHER:
        worst = max(ours / theirs for ours, theirs in times.values())
        bars.append(Bar(f"at most {MAX_RATIO} × the other's time: {worst:.2f} ×", worst <= MAX_RATIO))
    return Report(
        "Redaction", f"Seeds 0 to {len(SEEDS) - 1}, texts in pieces of {PIECE:,} characters.", tables, tuple(bars)
    )


def _find() -> tuple[float, str]:
    total, missed = Counter[str](), Counter[str]()
    for seed in SEEDS:
        for case in cases(seed):
            family = case.family.partition(":")[0] if case.family.startswith(("token", "name")) else case.family
            total[family] += 1
            missed[family] += is_missed(case)
    rows = [[family, f"{count:,}", f"{1 - missed[family] / count:.1%}"] for family, count in total.items()]
    found = 1 - missed.total() / total.total()
    return found, table(("family", "secrets", "found"), [*rows, ["all", f"{total.total():,}", f"{found:.1%}"]])


def _alarm() -> tuple[int, int]:
    chance = random.Random(len(SEEDS))
    lines = [*code_lines(code_files()), *(log_line(chance) for _ in range(LOG_LINES))]
    alarms = [line for line in lines if redact(line)[1]]
    for line in alarms:
        say(f"  alarm: {line.strip()[:160]}")
    return len(alarms), len(lines)


def _time(folder: Path) -> dict[str, list[float]]:
    """Return the least seconds for each kind of text, ours and the other checkout's."""
    texts = folder / "texts.json"
    texts.write_text(json.dumps({kind: list(_cut(text)) for kind, text in _texts().items()}), encoding="utf-8")
    workers = [
        subprocess.Popen((python, "-c", _WORKER, texts), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for python in (sys.executable, OTHER)
        if python
    ]
    rounds = [[_ask(worker) for worker in workers] for _ in range(ROUNDS)]
    for worker in workers:
        worker.communicate()
    return {
        kind: [min(answers[number][kind] for answers in rounds) for number in range(len(workers))]
        for kind in rounds[0][0]
    }


def _ask(worker: subprocess.Popen[str]) -> dict[str, float]:
    assert worker.stdin
    assert worker.stdout
    print(file=worker.stdin, flush=True)
    seconds: dict[str, float] = json.loads(worker.stdout.readline())
    return seconds


def _texts() -> dict[str, str]:
    chance = random.Random(len(SEEDS))
    files = chance.sample(code_files(), 60)
    code = "\n".join(path.read_text(encoding="utf-8", errors="replace")[:10_000] for path in files)
    logs = "\n".join(log_line(chance) for _ in range(4_000))
    results = [code[start : start + 1_500] + logs[start : start + 500] for start in range(0, LENGTH, 1_500)]
    transcript = "\n".join(json.dumps({"type": "tool_result", "content": result}) for result in results)
    prose = "\n".join(path.read_text(encoding="utf-8") for path in sorted((_ROOT / "docs").glob("*.md")))
    return {"code": code, "logs": logs, "transcripts": transcript, "prose": prose}


def _cut(text: str) -> Iterator[str]:
    for start in range(0, LENGTH, PIECE):
        yield text[start : start + PIECE]
