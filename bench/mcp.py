"""How long `learnt mcp` takes to answer `initialize`, compared with its SDK's import, and what a new connection costs.

A client waits for its servers before the first prompt, and most of that time is the SDK's import.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.processes import LEARNT
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace, record
from learnt import Memory

ROUNDS = 21
CALLS = 200
MAX_RATIO = 1.3
QUERY = "retry the migration"
_SDK = (sys.executable, "-c", "import mcp.server.mcpserver; print(flush=True)")
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def measure(workspace: Workspace) -> Report:
    """Start both side by side until each prints a line; then search with an open and with a new connection."""
    folder = workspace.new_folder()
    with Memory.open(folder) as memory:
        memory.add_all([record(random.Random(number)) for number in range(100)])
    say(f"  {ROUNDS} rounds")
    starts = {"import the SDK": _SDK, "`learnt mcp`, answered": (LEARNT, "mcp")}
    times: dict[str, list[float]] = {name: [] for name in starts}
    chance = random.Random(ROUNDS)
    for number in range(ROUNDS + 1):
        for name in chance.sample(list(starts), len(starts)):
            taken_ms = _until_first_line(starts[name], folder)
            times[name] += [taken_ms] if number else []  # the first round fills the file caches
    sdk, answered = (statistics.median(measured) for measured in times.values())
    rows = [[name, f"{statistics.median(measured):.0f}"] for name, measured in times.items()]
    rows += [[name, f"{ms:.1f}"] for name, ms in _calls(folder).items()]
    ratio = answered / sdk
    bar = Bar(f"`learnt mcp` answers within {MAX_RATIO} × the import of its SDK ({ratio:.2f})", ratio <= MAX_RATIO)
    notes = f"Medians of {ROUNDS} cold processes until their first line, and of {CALLS} searches."
    return Report("MCP", notes, table(("what", "ms"), rows), (bar,))


def _until_first_line(words: tuple[str, ...], folder: Path) -> float:
    started = time.perf_counter()
    with subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # the process that only imports does not read its input
        line = process.stdout.readline()
        taken_ms = (time.perf_counter() - started) * 1000
        assert line
    return taken_ms


def _calls(folder: Path) -> dict[str, float]:
    """Return how long a search takes with an open connection, and with a new connection."""

    def search_with_new_connection() -> None:
        with Memory.open(folder, create=False) as memory:
            memory.search(QUERY)

    with Memory.open(folder, create=False) as memory:
        open_ms = _median_ms(lambda: memory.search(QUERY))
    return {"a search, open connection": open_ms, "a search, new connection": _median_ms(search_with_new_connection)}


def _median_ms(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)
