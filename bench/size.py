"""How much disk space a SQLite store takes, when it is filled through the public API and then closed."""

from __future__ import annotations

from pathlib import Path

from bench.report import Report, table
from bench.workspace import Workspace

COUNT = 100_000


def measure(workspace: Workspace) -> Report:
    """Fill a store and add up the sizes of its files."""
    filled = workspace.filled(COUNT)
    taken = sum(path.stat().st_size for path in Path(filled.folder, ".learnt").rglob("*") if path.is_file())
    row = [
        f"{COUNT:,}",
        f"{taken:,}",
        f"{taken / 2**20:.0f}",
        f"{taken / COUNT:,.0f}",
        f"{filled.seconds:.1f}",
        f"{COUNT / filled.seconds:,.0f}",
    ]
    notes = "SQLite, after closing: title of about 60 characters, observation 200, action 80, three tags, one event."
    head = ("learnings", "bytes", "MiB", "bytes each", "filled in s", "learnings/s")
    return Report("Size", notes, table(head, [row]))
