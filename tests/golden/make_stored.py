"""Make the files in `tests/golden/stored`: a database, a spool with records of every kind, and a mirror of a server.

    python -m tests.golden.make_stored

The files stand for projects that people have on their disks. They are made once, by the version whose files are to be
read for ever, and committed; this script runs only with the code of that version (it reaches into its modules), and is
kept to tell how they came about. Run it again only to hold a newer schema as well, into a folder of its own.
"""

# mypy: ignore-errors
# ruff: noqa: I001
# The modules that it imports are those of its own time.

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw

from learnt import Memory
from learnt.clients.events import read_event
from learnt.memory.conversing import Conversing
from learnt.model import Attempt, Failure, Task, new_id
from learnt.store.happened import attempt_body
from learnt.store.spool import Record
from tests.conftest import Clock
from tests.support.postgres import PostgresServer, find_binaries

FOLDER = Path(__file__).parent / "stored"
MODEL = """
import json, re, sys
known = dict((title, id) for id, title in re.findall(r"(learn_[0-9a-z]+)\\W+(.*)", sys.stdin.read()))
revised, removed = (next((known[title] for title in known if word in title), "") for word in ("lint", "scale"))
print(json.dumps({"changes": [
    {"do": "ADD", "type": "constraint", "title": "Run migrations with `bin/migrate --safe`", "reason": "it locks"},
    {"do": "REVISE", "id": revised, "title": "Run `make lint` before each push", "reason": "pushes run it"},
    {"do": "REMOVE", "id": removed, "reason": "the scale was replaced"},
]}))
"""


class Making:
    """A project whose events happen one after the other, at times of a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.said: dict[str, str] = {}
        """The texts of all briefs, by their ids."""

    def open(self) -> Memory:
        return Memory.open(self.folder, clock=self.clock)

    def brief(self, text: str, **about: Any) -> str:
        """Brief an agent; return the id of the task."""
        self.clock.advance(days=0.01)
        with self.open() as memory:
            brief = memory.brief(text, **about)
        self.said[brief.id] = brief.text
        return brief.task

    def debrief(self, task: str, output: str, **about: Any) -> None:
        self.clock.advance(days=0.01)
        with self.open() as memory:
            memory.debrief(task, output, **about)

    def hook(self, name: str, session: str, **fields: Any) -> str:
        """Serve an event of Claude Code; return what it is told."""
        self.clock.advance(days=0.01)
        told = {"hook_event_name": name, "session_id": session, "cwd": str(self.folder), **fields}
        event = read_event(told, "claude")
        assert event is not None
        with Memory.open_for_hook(self.folder, clock=self.clock) as memory:
            text = Conversing(memory, event, of_task="", began_ns=time.perf_counter_ns()).serve().text
        if text.startswith("<learnt-brief"):
            self.said[text.partition('id="')[2].partition('"')[0]] = text
        return text

    def run(self, session: str, command: str, error: str = "") -> None:
        """Let an agent run a command that fails or succeeds."""
        call: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "call_1"}
        if error:
            self.hook("PostToolUseFailure", session, **call, error=f"Exit code 2\n{error}")
        else:
            self.hook("PostToolUse", session, **call, tool_response={"stdout": "done", "stderr": ""})


def make_project(making: Making) -> None:
    """Let a project have some of everything."""
    with making.open() as memory:
        lint = memory.add("Run make lint before each commit", action="make lint", tags=["git"], category="git")
        till = memory.add("Count the till with the drawer closed", observation="It jams.", context="counting")
        scale = memory.add("The old scale weighs too much", origin="agent")
        lamp = memory.add("The scanner needs a warm lamp", kind="gotcha", polarity="avoid")
        bert = memory.add("Ask Bert about the barcode reader")
        memory.add("Grüße im Laden immer zuerst – 日本語もどうぞ", tags=["ünï"])
        making.clock.advance(days=1)
        memory.edit(lint.id, title="Run `make lint` before each commit", reason="ticks")
        memory.pin(lint.id)
        memory.like(till.id)
        memory.supersede(bert.id, lamp.id)
        memory.hide(scale.id)
        memory.undo(scale.id)
        base = memory.add_task("Close the shop", goal="sale", agent="engineer", verify="true").id
        memory.add_task("Sweep the floor", after=[base])
    count_till(making, till.id)
    os.environ["LEARNT_MODEL_PROVIDER"] = "command"
    (making.folder / "model.py").write_text(MODEL)
    os.environ["LEARNT_MODEL_COMMAND"] = f"{sys.executable} {making.folder / 'model.py'}"
    with making.open() as memory:
        memory.update()
    (making.folder / "model.py").unlink()
    converse(making)


def count_till(making: Making, learning: str) -> None:
    """Let two agents count the till: one fails first, the other one is lucky."""
    task = making.brief("count the till with the drawer closed", agent="engineer", goal="sale")
    figures = {"model": "small", "cost_usd": 0.5, "tokens_in": 900, "tokens_out": 80, "duration_ms": 1200}
    said = "TillError: drawer open\n<learning>The drawer needs a push. Use both hands.</learning>\n"
    making.debrief(task, f"{said}<task-failed>the drawer stays open</task-failed>", **figures)
    making.brief("count the till with the drawer closed", agent="engineer", task=task)
    making.debrief(task, f"LEARNING_HELPFUL: {learning}\n<task-done>counted</task-done>", model="large", cost_usd=1.5)
    other = making.brief("run make lint before the commit on the old scale", task="task_other")
    making.debrief(
        other, "Never run `bin/count` with `STAGE=prod`: lint deletes the data of the old scale.\n<task-done/>"
    )


def converse(making: Making) -> None:
    """Hold a conversation in which commands fail, with a warning in another one."""
    making.hook("SessionStart", "s1", source="startup")
    making.hook("UserPromptSubmit", "s1", prompt="is the scanner lamp warm?")
    making.run("s1", "./pack --big", "pack: unknown option --big")
    making.run("s1", "./pack --small")
    making.run("s1", "./ship --fast", "ship: unknown option --fast")
    assert making.hook("PreToolUse", "s2", tool_name="Bash", tool_input={"command": "./pack --big"})


def fill_spool(making: Making) -> None:
    """Let everything that can be spooled happen while somebody else writes into the database."""
    os.environ["LEARNT_WAIT_MS"] = "20"
    database = apsw.Connection(str(making.folder / ".learnt/learnt.db"))
    database.execute("begin immediate")
    making.hook("SessionStart", "s1", source="compact")  # forgotten, and a brief
    making.hook("UserPromptSubmit", "s3", prompt="count the till with the drawer closed")  # a brief
    making.hook("PreToolUse", "s3", tool_name="Bash", tool_input={"command": "./pack --big"})  # a warning
    making.run("s3", "./load --all", "load: unknown option --all")  # a misstep
    making.run("s1", "./ship --safe")  # a success
    making.hook("Stop", "s3", last_assistant_message="<learning>Load the van twice.</learning>\n<task-done/>")
    making.debrief("task_spooled", "VanError: too full\n<task-failed>the van is full</task-failed>", model="small")
    with making.open() as memory:
        now = making.clock()
        task = Task(id="task_kept", title="Wash the van", created_at=now, updated_at=now)
        attempt = Attempt(id=new_id("attempt", now), task=task.id, number=1, result="failed", started_at=now)
        failure = Failure(attempt=attempt.id, task=task.id, reason="no water", files=("van.py",), created_at=now)
        memory.store.spool.append(Record(new_id("op", now), "attempt", now, attempt_body(task, attempt, failure)))
        kinds = {record.kind for record in memory.store.spool.waiting()}
    assert kinds == {"forgotten", "brief", "warning", "misstep", "success", "debrief", "attempt"}, kinds
    database.execute("rollback")
    database.close()


def make_mirror(making: Making) -> None:
    """Let a project beside a server have a mirror, and a conversation that was told something."""
    with making.open() as memory:
        memory.add("Count the till with the drawer closed", observation="It jams.")
        memory.add("Run make lint before each commit", action="make lint", pinned=True)
        memory.catch_up()
    making.hook("UserPromptSubmit", "s1", prompt="count the till with the drawer closed")
    with making.open() as memory:
        memory.catch_up()


def keep(path: Path) -> None:
    """Compress a database, with all that it holds in one file."""
    connection = apsw.Connection(str(path))
    connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    connection.close()
    assert not path.with_name(f"{path.name}-wal").exists()
    (FOLDER / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    binaries = find_binaries()
    assert binaries is not None, "the mirror is made with a PostgreSQL server"
    with tempfile.TemporaryDirectory() as name, PostgresServer(binaries) as server:
        root = Path(name)
        os.environ.update(HOME=name, LOGNAME="anna", LEARNT_INTERNAL="1", LEARNT_LEARNINGS_REGENERATE_EVERY="0")
        shop = Making(root / "shop")
        shop.folder.mkdir()
        make_project(shop)
        fill_spool(shop)
        keep(shop.folder / ".learnt/learnt.db")
        shutil.copy(shop.folder / ".learnt/learnings.md", FOLDER)
        # A replay that found the database taken has set the first ones aside.
        files = [shop.folder / ".learnt" / name for name in ("spool.taken.jsonl", "spool.jsonl")]
        (FOLDER / "spool.jsonl").write_bytes(b"".join(file.read_bytes() for file in files))
        (FOLDER / "briefs.json").write_text(json.dumps(shop.said, ensure_ascii=False, indent=2) + "\n")
        team = Making(root / "team")
        team.folder.mkdir()
        (team.folder / "learnt.toml").write_text(f'database = "{server.address()}"\nproject = "shop"\n')
        make_mirror(team)
        keep(team.folder / ".learnt/mirror.db")


if __name__ == "__main__":
    main()
