"""How long each command takes as a cold process, compared with starting Python without any work.

Commands run in a project that `learnt init` has just created, with a hundred learnings. A command that changes a
learning gets a new learning for each run, so that there is always something to change.
"""

from __future__ import annotations

import functools
import json
import random
import subprocess
from pathlib import Path

from bench.cold import prompt_event
from bench.processes import BARE, LEARNT, Run, time_side_by_side
from bench.report import Bar, Report, say, table
from bench.workspace import Workspace, record
from learnt import Memory
from learnt.doors.cli import COMMANDS

ROUNDS = 21
MAX_RATIO = 8
WITH_BAR = ("--help", "add")
_LIKE_EDIT = "like `task add`"
LEFT_OUT = {
    "demo": "runs many other commands",
    "work": "takes as long as its agents",
    "stop": "takes as long as a run takes to end",
    "log": "prints a file",
    "mcp": "`python -m bench mcp` measures it",
    "resolve": _LIKE_EDIT,
    **{f"task {verb}": _LIKE_EDIT for verb in ("edit", "cancel", "retry", "split")},
}
# `{…}` is replaced by a new value in each run; see _Supply.
LINES = {
    "--version": ("--version",),
    "--help": ("--help",),
    "add --help": ("add", "--help"),
    "hook": ("hook",),
    "brief": ("brief", "Retry the migration of the session schema"),
    "debrief": ("debrief",),
    "explain": ("explain", "{brief}"),
    "feedback": ("feedback", "{given}", "--task", "task_1", "--helpful"),
    "task add": ("task", "add", "Retry the migration"),
    "task list": ("task", "list"),
    "task show": ("task", "show", "{task}"),
    "task graph": ("task", "graph"),
    "task prompt": ("task", "prompt", "{task}"),
    "status": ("status",),
    "strategy": ("strategy",),
    "escalations": ("escalations",),
    "search": ("search", "retry the migration"),
    "tidy": ("tidy",),
    "init": ("init", "-C", "{folder}"),
    "add": ("add", "Run `make lint` before each commit", "--tag", "git"),
    "list": ("list",),
    "list --json": ("list", "--json"),
    "show": ("show", "{fresh}"),
    "history": ("history", "{edited}"),
    "edit": ("edit", "{fresh}", "--title", "Run `make check` before each commit"),
    "archive": ("archive", "{fresh}"),
    "restore": ("restore", "{archived}"),
    "hide": ("hide", "{fresh}"),
    "like": ("like", "{fresh}"),
    "pin": ("pin", "{fresh}"),
    "supersede": ("supersede", "{fresh}", "{fresh}"),
    "undo": ("undo", "{edited}"),
    "purge": ("purge", "{fresh}", "--yes"),
    "export": ("export",),
    "import": ("import", "{export}"),
    "backup": ("backup", "--output", "{file}"),
    "config": ("config",),
    "doctor": ("doctor",),
}


def measure(workspace: Workspace) -> Report:
    """Run every command line, and bare Python for comparison."""
    folder = workspace.new_folder()
    subprocess.run([LEARNT, "init"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    with Memory.open(folder) as memory:
        memory.add_all([record(random.Random(number)) for number in range(100)])
    supply = _Supply(workspace, folder)
    say(f"  {ROUNDS} rounds of {len(LINES)} commands")
    starts = {name: functools.partial(_run, folder, words, supply) for name, words in LINES.items()}
    times = time_side_by_side(starts, rounds=ROUNDS)
    ratios = {name: timing.wall_ms / times[BARE].wall_ms for name, timing in times.items()}
    rows = [[name, f"{times[name].wall_ms:.1f}", f"{ratios[name]:.1f}", _verdict(name, ratios[name])] for name in times]
    bars = [
        Bar(f"`learnt {name}` ≤ {MAX_RATIO} × bare Python ({ratios[name]:.1f})", ratios[name] <= MAX_RATIO)
        for name in WITH_BAR
    ]
    head = ("command", "ms", "× bare Python", f"≤ {MAX_RATIO}")
    return Report("Start-up", _notes(), table(head, rows), tuple(bars))


def _notes() -> str:
    measured = {words[0] for words in LINES.values()} | {" ".join(words[:2]) for words in LINES.values()}
    missing = [command.name for command in COMMANDS if command.name not in measured]
    left_out = ", ".join(f"`{name}` ({LEFT_OUT.get(name, 'no line for it yet')})" for name in missing)
    return f"Cold processes, medians of {ROUNDS} rounds. Not measured: {left_out or 'none'}."


def _verdict(name: str, ratio: float) -> str:
    verdict = "holds" if ratio <= MAX_RATIO else "fails"
    return verdict if name in WITH_BAR else f"({verdict})"


def _run(folder: Path, words: tuple[str, ...], supply: _Supply) -> Run:
    stdin = prompt_event(supply["prompt"], session=supply["folder"]) if words[0] == "hook" else b""
    return Run((LEARNT, *(word.format_map(supply) for word in words)), folder, stdin=stdin)


class _Supply(dict[str, str]):
    """Returns a new value at each access: the id of a learning in some state, a file or a folder."""

    def __init__(self, workspace: Workspace, project: Path) -> None:
        super().__init__()
        self._workspace = workspace
        self._project = project
        self._chance = random.Random(1)

    def __getitem__(self, name: str) -> str:
        if name == "prompt":
            with Memory.open(self._project) as memory:
                return memory.add_all([{**record(self._chance), "confidence": 0.9}])[0].title
        if name == "folder":
            return str(self._workspace.new_folder())
        if name in ("file", "export"):
            return self._file(json.dumps(record(self._chance)) if name == "export" else "")
        if name == "task":
            with Memory.open(self._project) as memory:
                return memory.tasks.add("Retry the migration of the session schema").id
        if name == "brief":
            with Memory.open(self._project) as memory:
                return memory.brief("Retry the migration of the session schema").id
        return self._learning(name)

    def _file(self, content: str) -> str:
        path = self._workspace.new_folder() / "learnings.jsonl"
        if content:
            path.write_text(content)
        return str(path)

    def _learning(self, state: str) -> str:
        # The store is closed before the command starts, so that the command is the only process and also tidies up the
        # log, as it does for users.
        with Memory.open(self._project) as memory:
            id = memory.add_all([record(self._chance)])[0].id
            if state == "given":
                memory.pin(id)
                assert id in memory.brief(memory.get(id).title, task="task_1").learning_ids
            if state == "archived":
                memory.archive(id)
            if state == "edited":
                memory.edit(id, title="Run `make check` before each commit")
        return id
