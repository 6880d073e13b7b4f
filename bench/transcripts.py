"""The time and memory that reading a long transcript takes. In every format, memory must not grow with the length.

LEARNT_BENCH_TRANSCRIPT_MB sets the length. Each transcript is read in a separate process, whose peak memory is compared
with that of a process that reads a tiny transcript. (Outside Linux, the peak includes the parent process's.)
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace

MEGABYTES = int(os.environ.get("LEARNT_BENCH_TRANSCRIPT_MB") or 50)  # read before outside settings are removed
MAX_MB = 150
_OUTPUT = "a line of what a command printed, of the usual length\n"
_READ = """
import os, resource, sys
from learnt.clients.kit import transcript
from learnt.store import session_database
steps = sum(1 for _ in transcript.steps(sys.argv[1], session_database))
largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if os.path.exists("/proc/self/status"):
    largest = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(steps, largest)
"""


def measure(workspace: Workspace) -> Report:
    """Read a long transcript in each format."""
    folder = workspace.new_folder()
    rows, most = [], 0.0
    for name, write in FORMATS.items():
        say(f"  {name}")
        small = folder / f"{name}.small"
        write(small, 10_000)
        large = folder / f"{name}.large"
        write(large, MEGABYTES * 1_000_000)
        _, base_mb, _ = _read(small)
        steps, memory_mb, seconds = _read(large)
        megabytes = large.stat().st_size / 1_000_000
        large.unlink()
        rows.append([name, f"{megabytes:,.0f}", f"{steps:,}", f"{base_mb:.0f}", f"{memory_mb:.0f}", f"{seconds:.1f}"])
        most = max(most, memory_mb)
    bar = Bar(f"reading {MEGABYTES:,} MB takes at most {MAX_MB} MB of memory ({most:.0f})", most <= MAX_MB)
    head = ("format", "MB", "steps", "memory for 10 kB", "memory in MB", "seconds")
    return Report(
        "Transcripts",
        "Each transcript is generated, with results of 2 to 200 kB, and read in a separate process.",
        table(head, rows),
        (bar,),
    )


def _read(path: Path) -> tuple[int, float, float]:
    started = time.perf_counter()
    output = subprocess.run([sys.executable, "-c", _READ, path], capture_output=True, text=True, check=True).stdout
    steps, kilobytes = map(int, output.split())
    return steps, kilobytes / (1_000_000 if sys.platform == "darwin" else 1_000), time.perf_counter() - started


def _outputs() -> Iterator[tuple[str, str]]:
    """Yield the ids of calls, and their outputs, which are mostly short and sometimes long."""
    for number in itertools.count():
        yield f"call_{number:08}", _OUTPUT * (4_000 if number % 50 == 0 else 40)


def _lines(path: Path, size: int, first: Any, turn: Callable[[str, str], list[Any]]) -> None:
    with path.open("w") as file:
        file.write(json.dumps(first) + "\n")
        for id, output in _outputs():
            if file.tell() > size:
                return
            file.writelines(json.dumps(record) + "\n" for record in turn(id, output))


def _claude(path: Path, size: int) -> None:
    def message(kind: str, content: Any) -> dict[str, Any]:
        return {"type": kind, "uuid": "u", "sessionId": "s", "message": {"role": kind, "content": content}}

    def turn(id: str, output: str) -> list[Any]:
        used = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": f"make {id}"}}
        return [
            message("assistant", [used]),
            message("user", [{"type": "tool_result", "tool_use_id": id, "content": output}]),
        ]

    _lines(path, size, message("user", "Fix it"), turn)


def _codex(path: Path, size: int) -> None:
    def turn(id: str, output: str) -> list[Any]:
        call = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "make"}', "call_id": id}
        printed = f"Process exited with code 0\nOutput:\n{output}"
        result = {"type": "function_call_output", "call_id": id, "output": printed}
        return [{"type": "response_item", "payload": item} for item in (call, result)]

    _lines(path, size, {"type": "session_meta", "payload": {"id": "s", "cwd": "/"}}, turn)


def _gemini_message(id: str, output: str) -> dict[str, Any]:
    result = [{"functionResponse": {"response": {"output": output}}}]
    call = {"id": id, "name": "run_shell_command", "args": {"command": "make"}, "status": "success", "result": result}
    return {"id": id, "type": "gemini", "content": "", "toolCalls": [call]}


def _gemini(path: Path, size: int) -> None:
    first = {"sessionId": "s", "projectHash": "h"}
    _lines(
        path,
        size,
        first,
        lambda name, output: [{**_gemini_message(name, ""), "toolCalls": []}, _gemini_message(name, output)],
    )


def _gemini_document(path: Path, size: int) -> None:
    _document(path, size, {"sessionId": "s", "projectHash": "h"}, _gemini_message)


def _opencode(path: Path, size: int) -> None:
    def message(id: str, output: str) -> dict[str, Any]:
        state = {"status": "completed", "input": {"command": "make"}, "output": output}
        part = {"type": "tool", "tool": "bash", "callID": id, "state": state}
        return {"info": {"id": id, "role": "assistant"}, "parts": [part]}

    _document(path, size, {"info": {"id": "ses_1"}}, message)


def _document(path: Path, size: int, frame: dict[str, Any], message: Callable[[str, str], Any]) -> None:
    with path.open("w") as file:
        file.write(json.dumps({**frame, "messages": []}, indent=2).removesuffix("]\n}"))
        for number, (id, output) in enumerate(_outputs()):
            file.write(",\n" * bool(number) + json.dumps(message(id, output), indent=2))
            if file.tell() > size:
                break
        file.write("\n]}")


FORMATS: dict[str, Callable[[Path, int], None]] = {
    "Claude Code": _claude,
    "Codex": _codex,
    "Gemini CLI": _gemini,
    "Gemini CLI, one document": _gemini_document,
    "opencode export": _opencode,
}
