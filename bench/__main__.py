"""Run all measurements, or the chosen ones, and print Markdown to stdout and progress to stderr.

Nothing is read from or written to the user's home. If a bar fails, the exit code is 1 after everything is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import (
    agents,
    ages,
    cold,
    hooks,
    imports,
    lessons,
    listing,
    mcp,
    overlap,
    recall,
    redaction,
    size,
    startup,
    strategy,
    transcripts,
    transfer,
    updates,
    writes,
)
from bench.machine import describe_machine
from bench.peers import measure as peers
from bench.report import Report, say
from bench.workspace import Workspace

PARTS: dict[str, Callable[[Workspace], Report]] = {
    "writes": writes.measure,
    "size": size.measure,
    "import": transfer.measure,
    "list": listing.measure,
    "startup": startup.measure,
    "cold": cold.measure,
    "hooks": hooks.measure,
    "imports": imports.measure,
    "recall": recall.measure_quality,
    "recall-engines": recall.measure_engines,
    "recall-speed": recall.measure_speed,
    "lessons": lessons.measure,
    "overlap": overlap.measure,
    "redaction": redaction.measure,
    "strategy": strategy.measure,
    "transcripts": transcripts.measure,
    "update-start": updates.measure,
    "mcp": mcp.measure,
    "agents": agents.measure,
    "ages": ages.measure,
    "peers": peers.measure,
}
# It installs other programs and takes long, so it runs only when it is asked for.
ONLY_WHEN_NAMED = {"peers"}


def main() -> int:
    """Run the parts that the command line selects and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure, and print the results as Markdown.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PARTS)}; default: all but peers")
    parser.add_argument("--profile", action="store_true", help="show where the time of recall-speed goes, on stderr")
    arguments = parser.parse_args()
    recall.PROFILED = arguments.profile
    names = arguments.names or [name for name in PARTS if name not in ONLY_WHEN_NAMED]
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part `{unknown[0]}`; choose from: {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="learnt-bench-") as folder:
        _isolate(Path(folder))
        print(describe_machine(folder), flush=True)
        return _run([name for name in PARTS if name in names], Workspace(Path(folder)))


def _run(names: list[str], workspace: Workspace) -> int:
    failed = []
    started = time.monotonic()
    for name in names:
        say(f"{name} ...")
        report = PARTS[name](workspace)
        print(report.render(), flush=True)
        failed += [bar for bar in report.bars if not bar.holds]
    say(f"took {time.monotonic() - started:.0f} s")
    for bar in failed:
        say(f"fails: {bar.text}")
    return 1 if failed else 0


def _isolate(folder: Path) -> None:
    """Set an empty home, remove outside settings, and enable Python's bytecode cache, also for child processes."""
    for name in list(os.environ):
        if name.startswith(("LEARNT_", "XDG_")) or name == "PYTHONDONTWRITEBYTECODE":
            del os.environ[name]
    home = folder / "home"
    home.mkdir()
    os.environ["HOME"] = str(home)
    os.environ["LEARNT_TRUSTED"] = str(folder)  # the settings below it are the bench's own


if __name__ == "__main__":
    sys.exit(main())
