"""How fast `learnt import` reads learnings of sixty words, and how much memory and disk space it takes for them.

`IMPORT_SIZES` sets other sizes, up to a million learnings.
"""

from __future__ import annotations

import os
from pathlib import Path

from bench.recall import import_many
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace

SIZES = tuple(int(size) for size in os.environ.get("IMPORT_SIZES", "10000,100000").split(","))
MIN_PER_SECOND = 4_000
MAX_MB = 300
MAX_BYTES_EACH = 1_536


def measure(workspace: Workspace) -> Report:
    """Import files of several sizes, each into a new project."""
    rows, bars = [], []
    for size in SIZES:
        folder = workspace.new_folder()
        say(f"  importing {size:,} learnings")
        seconds, megabytes = import_many(folder, size)
        per_second = size / seconds
        bytes_each = sum(path.stat().st_size for path in Path(folder, ".learnt").rglob("*") if path.is_file()) / size
        rows.append([f"{size:,}", f"{seconds:.1f}", f"{per_second:,.0f}", f"{megabytes:.0f}", f"{bytes_each:,.0f}"])
        bars += [
            Bar(f"{size:,}: ≥ {MIN_PER_SECOND:,} learnings/s ({per_second:,.0f})", per_second >= MIN_PER_SECOND),
            Bar(f"{size:,}: ≤ {MAX_MB} MB ({megabytes:.0f})", megabytes <= MAX_MB),
            Bar(f"{size:,}: ≤ {MAX_BYTES_EACH:,} bytes each ({bytes_each:,.0f})", bytes_each <= MAX_BYTES_EACH),
        ]
    notes = "`learnt import FILE` into an empty SQLite store. The disk space includes everything."
    head = ("learnings", "s", "learnings/s", "MB of memory", "bytes each")
    return Report("Import", notes, table(head, rows), tuple(bars))
