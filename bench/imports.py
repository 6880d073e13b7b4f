"""How long importing each dependency takes, compared with starting Python without any work."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

from bench.processes import BARE, Run, time_side_by_side
from bench.report import Report, table
from bench.workspace import Workspace

ROUNDS = 15
# For each import: its package, and the commands that need it.
MODULES = {
    "apsw": ("apsw", "every command"),
    "json": ("", "every command"),
    "argparse": ("", "help pages, and command lines that are not plain"),
    "tomllib": ("", "the first command after a change to a settings file"),
    "rich.console, rich.table": ("rich", "`list` on a terminal"),
    "rich.progress": ("rich", "`import` on a terminal"),
    "jinja2.sandbox": ("jinja2", "`Memory.render_agent`"),
    "psycopg": ("psycopg", "every command on PostgreSQL"),
    "anthropic": ("anthropic", "model calls through Anthropic"),
    "openai": ("openai", "model calls through OpenAI and compatible services"),
    "mcp.server.mcpserver": ("mcp", "`learnt mcp`"),
}


def measure(workspace: Workspace) -> Report:
    """Import each module in a separate process, and start bare Python for comparison."""
    installed = {
        name: users for name, users in MODULES.items() if importlib.util.find_spec(name.split(",")[0].split(".")[0])
    }
    starts = {name: functools.partial(_run, name) for name in installed}
    times = {name: timing.wall_ms for name, timing in time_side_by_side(starts, rounds=ROUNDS).items()}
    rows = [
        [name, _version(package), f"{times[name] - times[BARE]:.1f}", users]
        for name, (package, users) in installed.items()
    ]
    notes = f"Milliseconds over bare Python ({times[BARE]:.1f} ms), medians of {ROUNDS} cold processes."
    return Report("Imports", notes, table(("import", "version", "ms", "needed by"), rows))


def _run(name: str) -> Run:
    return Run((sys.executable, "-c", f"import {name}"), Path.cwd())


def _version(package: str) -> str:
    return importlib.metadata.version(package) if package else "standard library"
