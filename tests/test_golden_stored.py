"""Files that people have on their disks are read as they are: a database, a spool and a mirror of an earlier version.

`tests/golden/make_stored.py` tells how they came about.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.store import migrate
from learnt.store.sqlite import SqliteDatabase
from tests.support.golden import FOLDER, Golden, Outside, masked, with_numbered_ids

STORED = FOLDER / "stored"
BRIEFS: dict[str, str] = json.loads((STORED / "briefs.json").read_text())
# The briefs that wait in the spool come last.
SPOOLED = list(BRIEFS)[-3:]
NOBODY = "postgresql://learnt@/shop?host=/nowhere"
TABLES = "task attempt failure brief injection mark misstep warning learning event material".split()


@pytest.fixture
def stored(outside: Outside) -> Outside:
    """A project with a database of an earlier version, and nothing waiting."""
    put(outside, "learnt.db")
    return outside


def put_spool(outside: Outside) -> Path:
    """Copy the stored spool into a store that has an id, under the name that depends on it; return its path."""
    with Memory.open(outside.project) as memory:
        path = Path(memory.context.store.spool._path)
    return put(outside, "spool.jsonl").rename(path)


def put(outside: Outside, name: str) -> Path:
    """Copy a stored file into the project; return its path."""
    folder = outside.project / ".learnt"
    folder.mkdir(exist_ok=True)
    path = folder / name
    if (STORED / name).exists():
        shutil.copy(STORED / name, path)
    else:
        path.write_bytes(gzip.decompress((STORED / f"{name}.gz").read_bytes()))
    path.chmod(0o600)
    return path


def rows(outside: Outside) -> str:
    """Return what the tables of the database hold, without the moments at which records were taken up."""
    connection = sqlite3.connect(f"file:{outside.project / '.learnt/learnt.db'}?mode=ro", uri=True)
    parts = []
    for table in TABLES:
        columns = [column[1] for column in connection.execute(f"pragma table_info({table})")]
        found = connection.execute(f"select * from {table} order by 1, 2, 3").fetchall()
        lines = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=repr) for row in found]
        parts.append("\n".join([f"=== {table}", *lines, ""]))
    operations = connection.execute("select id from operation order by id").fetchall()
    parts.append("\n".join(["=== operation", *(id for (id,) in operations), ""]))
    connection.close()
    return "\n".join(parts)


# The database


def test_learnings_and_their_history_are_read_as_they_were_written(stored: Outside, golden: Golden) -> None:
    learnings = stored.json("list", "--status", "all")["learnings"]
    assert len(learnings) >= 8
    for learning in learnings:
        stored.json("show", learning["id"])
        stored.json("history", learning["id"])
    stored.text("export")
    stored.json("review", "--list")
    stored.json("escalations", "--all")
    stored.json("history", "--internal")
    golden.check("stored/learnings.txt", stored.transcript(unmasked=True))


def test_tasks_and_attempts_are_read_as_they_were_written(stored: Outside, golden: Golden) -> None:
    for task in stored.json("task", "list", "--all"):
        shown = stored.json("task", "show", task["id"], "--all")
        for attempt in shown["attempts"]:
            stored.json("explain", attempt["id"])
    stored.json("task", "graph", "--all")
    stored.json("strategy")
    stored.json("activity", "--limit", "100")
    golden.check("stored/tasks.txt", stored.transcript(unmasked=True))


def test_receipts_are_read_as_they_were_written(stored: Outside, golden: Golden) -> None:
    for id in BRIEFS:
        if id not in SPOOLED:
            stored.json("explain", id)
    golden.check("stored/receipts.txt", stored.transcript(unmasked=True))


def test_every_brief_is_rendered_again_byte_for_byte(stored: Outside) -> None:
    for id, said in BRIEFS.items():
        if id not in SPOOLED:
            assert replayed(stored, id) == said


def replayed(outside: Outside, id: str) -> str:
    """Return a brief as it is rendered now; the command says that it is what was said."""
    answer = json.loads(outside.quietly("explain", id, "--replay", "--json").out)
    assert answer["as_said"] is True
    return str(answer["text"])


def test_a_stored_database_finds_briefs_and_takes_changes(stored: Outside) -> None:
    with Memory.open(stored.project) as memory:
        (best, *_) = memory.search("count the till with the drawer closed")
        assert best.learning.title == "Count the till with the drawer closed"
        given = memory.brief("count the till with the drawer closed", task="task_new")
        assert best.learning.id in given.learning_ids
        memory.debrief("task_new", f"LEARNING_HELPFUL: {best.learning.id}\n<task-done/>")
        after = memory.get(best.learning.id)
        assert after.times_helpful == best.learning.times_helpful + 1
        (lint, *_) = memory.search("run make lint before each commit")
        (edit,) = [event.id for event in memory.history(lint.learning.id) if event.what == "edit"]
        assert memory.undo(edit).title == "Run make lint before each commit"
    findings = json.loads(stored.quietly("doctor", "--json", code=1).out)["findings"]
    assert [one["detail"] for one in findings if one["subject"].startswith("store") and not one["fine"]] == []


def test_a_database_is_restored_from_a_copy_of_an_earlier_version(stored: Outside) -> None:
    before = stored.quietly("export").out
    backup = stored.project / "saved.db"
    shutil.copy(stored.project / ".learnt/learnt.db", backup)
    for learning in json.loads(stored.quietly("list", "--json").out)["learnings"]:
        stored.quietly("archive", learning["id"])
    assert stored.quietly("export").out != before

    stored.quietly("backup", "--restore", str(backup))

    assert stored.quietly("export").out == before


def test_the_rendering_that_a_learnings_file_names_is_what_edits_are_compared_with(stored: Outside) -> None:
    path = put(stored, "learnings.md")
    lines = path.read_text().splitlines(keepends=True)
    (removed,) = [line for line in lines if "The drawer needs a push" in line]
    text = "".join(line for line in lines if line != removed)
    path.write_text(text.replace("Count the till with the drawer closed", "Count the till at noon"))
    stored.quietly("add", "Sweep the floor")

    stored.quietly("update")

    found = {
        one["title"]: one for one in json.loads(stored.quietly("list", "--status", "all", "--json").out)["learnings"]
    }
    assert found["The drawer needs a push."]["status"] == "hidden"
    assert found["Count the till at noon"]["id"] in text
    assert found["Run `make lint` before each commit"]["status"] == "active"
    assert "Sweep the floor" in path.read_text()


# The spool


def test_a_stored_spool_is_taken_up_exactly_once(stored: Outside, golden: Golden) -> None:
    waiting = put(stored, "spool.jsonl")
    kinds = [json.loads(line.partition(" ")[2])["kind"] for line in waiting.read_text().splitlines()]
    assert set(kinds) == {"forgotten", "brief", "warning", "misstep", "success", "debrief", "attempt"}

    stored.quietly("list")

    assert not waiting.exists()
    taken_up = rows(stored)
    waiting = put_spool(stored)
    stored.quietly("list")
    assert not waiting.exists()
    assert rows(stored) == taken_up
    assert not list(waiting.parent.glob("*refused*"))
    golden.check("stored/after-spool.txt", with_numbered_ids(taken_up))


def test_what_waited_in_a_spool_is_seen_afterwards(stored: Outside) -> None:
    before = json.loads(stored.quietly("list", "--json").out)["learnings"]
    put_spool(stored)

    after = json.loads(stored.quietly("list", "--json").out)["learnings"]

    assert {one["title"] for one in after} - {one["title"] for one in before} == {"Load the van twice."}
    for id in SPOOLED:
        assert replayed(stored, id) == BRIEFS[id]
    washed = json.loads(stored.quietly("task", "show", "task_kept", "--json").out)
    assert [(one["result"], one["failure"]["reason"]) for one in washed["attempts"]] == [("failed", "no water")]
    spooled = json.loads(stored.quietly("task", "show", "task_spooled", "--json").out)
    assert (spooled["status"], spooled["attempts"][0]["model"]) == ("failed", "small")
    warned = json.loads(stored.quietly("activity", "--what", "warnings", "--json").out)["activity"]
    assert SPOOLED[-1] in [one["id"] for one in warned]


WRONG, RIGHT = "./ship --fast", "./ship --safe"


def test_what_is_spooled_keeps_its_form(outside: Outside, golden: Golden) -> None:
    """Somebody else writes into the database for so long that nothing else can be written."""
    outside.quietly("init")
    outside.quietly("add", "Count the till with the drawer closed")
    outside.quietly("add", "Run make lint before each commit", "--pin")
    outside.hook("SessionStart", source="startup")
    for command in ("./pack --big", "./pack --small", WRONG):
        ran(outside, "s1", command)
    # Where a worker is at work, no hook starts another one, which would wait for the database.
    worker = (outside.project / ".learnt/worker.lock").open("w")
    fcntl.flock(worker, fcntl.LOCK_EX)
    database = sqlite3.connect(outside.project / ".learnt/learnt.db", isolation_level=None)
    database.execute("begin immediate")

    assert outside.hook("SessionStart", source="compact")
    assert outside.hook("UserPromptSubmit", session="s2", prompt="count the till with the drawer closed")
    assert outside.hook("PreToolUse", session="s2", **called("./pack --big"))
    ran(outside, "s2", "./load --all")
    ran(outside, "s1", RIGHT)
    outside.hook("Stop", session="s2", last_assistant_message="<learning>Load twice.</learning>\n<task-done/>")
    outside.wait_for_workers()

    records = spooled(outside)
    database.execute("rollback")
    database.close()
    worker.close()
    assert [record["kind"] for record in records] == [
        *("forgotten", "brief", "brief", "warning", "misstep", "run", "success", "debrief")
    ]
    text = "\n".join(json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) for record in records)
    golden.check("stored/spooled.txt", masked(f"{text}\n", outside.places))
    taught = json.loads(outside.quietly("list", "--json").out)["learnings"]
    assert "Load twice." in [one["title"] for one in taught]
    assert spooled(outside) == []


def called(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "call_1"}


def ran(outside: Outside, session: str, command: str) -> None:
    """Tell how a command ended: only careful ones succeed."""
    if command.endswith(("--safe", "--small")):
        outside.hook("PostToolUse", session=session, **called(command), tool_response={"stdout": "ok", "stderr": ""})
        return
    program, option = command.split()
    error = f"Exit code 2\n{program.removeprefix('./')}: unknown option {option}"
    outside.hook("PostToolUseFailure", session=session, **called(command), error=error)


def spooled(outside: Outside) -> list[dict[str, Any]]:
    """Return what waits, oldest first; each line begins with the checksum of the rest."""
    found = []
    # A replay that could not write has set the older ones aside.
    for path in sorted((outside.project / ".learnt").glob("spool*.jsonl"), key=lambda path: "taken" not in path.name):
        for line in path.read_text().splitlines():
            assert re.match(r"[0-9a-f]{8} \{", line)
            found.append(json.loads(line[9:]))
    return found


# The mirror


def test_a_stored_mirror_answers_hooks_without_its_server(outside: Outside, golden: Golden) -> None:
    (outside.project / "learnt.toml").write_text(f'database = "{NOBODY}"\nproject = "shop"\n')
    # Hooks leave a mirror of an older schema to the worker, which builds it anew from the server.
    database = SqliteDatabase(str(put(outside, "mirror.db")), wait_ms=1_000)
    migrate.bring_up_to_date(database, version="1", now_ms=1)
    database.close()

    told = outside.hook("UserPromptSubmit", session="s2", prompt="count the till with the drawer closed")
    again = outside.hook("UserPromptSubmit", session="s2", prompt="count the till with the drawer closed")
    known = outside.hook("UserPromptSubmit", session="s1", prompt="count the till with the drawer closed")
    start = outside.hook("SessionStart", session="s4", source="startup")

    assert "Count the till with the drawer closed" in told
    assert again == ""
    assert known == "", "a conversation that the mirror knows was told before"
    assert "Run make lint before each commit" in start
    assert not (outside.project / ".learnt/hook.log").exists()
    records = spooled(outside)
    assert [record["kind"] for record in records] == ["brief", "brief"]
    assert all(record["body"]["brief"]["receipt"]["mirror_age_s"] > 0 for record in records)
    golden.check("stored/mirror.txt", outside.transcript())
