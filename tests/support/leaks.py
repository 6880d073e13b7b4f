"""Send texts through every door that leads to a store, and search everything in the store for secrets."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest

from learnt import Memory
from learnt.doors import cli
from learnt.doors.hook import run_hook
from learnt.model import TITLE_LIMIT, Learning
from learnt.store.database import Database
from learnt.text.records import PLACE, as_record
from tests.support.secrets import Secret

# Shorter pieces of a secret also occur by chance in hashes and ids.
_ROW = 12
_SHORTEST_ROW = 10
_DAMAGED = 5
TRIGGER, ANSWER = "the replica is asleep", "Wake it up first"

OUTPUT = """\
I tried it: {text}
LEARNING_HELPFUL: {text}
LEARNING_NOT_HELPFUL: {text}
<learning category="pitfall" tags="{text}">{text}</learning>
<learning title='{text}'>
{text}
</learning>
<failure-report>
what_tried: {text}
why_failed:
{text}
error_category: build
relevant_files: {text}
stack_trace: {text}
avoid: {text}
</failure-report>
<retry-suggestion>{text}</retry-suggestion>
<next-model>{text}</next-model>
<task-failed>{text}</task-failed>
"""


class Search:
    """Searches for pieces of secrets that must not be found, in upper or lower case."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._rows: dict[bytes, set[int]] = {}
        for number, secret in enumerate(secrets):
            for piece in secret.pieces:
                lower, width = piece.lower().encode(), min(len(piece), _ROW)
                for start in range(len(lower) - width + 1) if width >= _SHORTEST_ROW else ():
                    self._rows.setdefault(lower[start : start + width], set()).add(number)
        self._widths = sorted({len(row) for row in self._rows})

    def found(self, content: bytes) -> set[int]:
        """Return the numbers of the secrets of which the content has a piece."""
        words = set(re.findall(rb"[!-~]{%d,}" % _SHORTEST_ROW, content.lower()))
        rows = {
            word[at : at + width] for word in words for width in self._widths for at in range(len(word) - width + 1)
        }
        return set().union(*(self._rows[row] for row in rows & self._rows.keys()))

    def found_in_files(self, paths: Iterable[Path]) -> dict[str, set[int]]:
        """Return the files that contain a piece of a secret, with the secrets' numbers."""
        found = {path.name: self.found(path.read_bytes()) for path in paths if path.is_file()}
        return {name: numbers for name, numbers in found.items() if numbers}


def dump(database: Database) -> bytes:
    """Return every value in every table."""
    if database.engine == "sqlite":
        names = "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"
    else:
        names = "select tablename as name from pg_tables where schemaname = any (current_schemas(false))"
    tables = [row["name"] for row in database.rows(names)]
    values = (value for table in tables for row in database.rows(f'select * from "{table}"') for value in row.values())
    return "\n".join(map(str, values)).encode()


def tell_memory(memory: Memory, number: int, text: str) -> None:
    """Pass a text to every façade method that stores text."""
    task, name = f"task_{number}", text if len(text) <= TITLE_LIMIT else ""
    memory.brief(text, task=task, agent=name, task_type=name)
    memory.debrief(task, OUTPUT.format(text=text), agent=name, model=name)
    memory.debrief(task, text, result="failed")
    memory.tasks.add(f"Look at {text}", text=text, agent=name, type=name)
    learning = memory.add(
        name or f"Number {number}",
        context=text,
        observation=text,
        implication=text,
        tags=[name, "kept"] if name else [],
        domain=name,
        category=name,
        task=name,
        commit=name,
        triggers={"errors": [name or "missing"], "commands": [name or "make"]},
    )
    memory.edit(learning.id, action=text, add_tags=[name or "more"], reason=text)
    memory.archive(learning.id, reason=text)
    memory.transfer.import_all(
        [{"title": f"Imported {number}", "observation": text, "tags": [name or "some"], "category": name}]
    )


def tell_commands(number: int, text: str) -> None:
    """Pass a text to the commands and to the hook, in the current folder."""
    assert run("task", "add", f"Look at {text}", "--text", f"See {text}") == 0
    assert run("add", f"Typed {number}", "--observation", f"See {text}", "--json") == 0
    tell_hook(number, text)


def tell_hook(number: int, text: str) -> None:
    """Pass a text to the hook: as a prompt, as a turn, as a name, and in events that it cannot parse."""
    event = {"session_id": f"session {number}", "cwd": os.getcwd()}
    asked = {**event, "hook_event_name": "UserPromptSubmit", "prompt": f"{TRIGGER}\n{text}"}
    assert ANSWER in run_with(json.dumps(asked)), "the prompt is kept only with an answer"
    run_with(json.dumps({**asked, "agent_type": text, "agent_id": text}))
    said = OUTPUT.format(text=text)
    for message in (text, said):
        run_with(json.dumps({**event, "hook_event_name": "Stop", "last_assistant_message": message}))
    run_with(json.dumps({**event, "hook_event_name": "SubagentStop", "last_assistant_message": {"content": [text]}}))
    run_with(json.dumps(asked)[:-1])
    run_with(f"{text} is no event")


def run(*words: str) -> int:
    """Run a command in this process, without its output."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return cli.run(list(words))


def run_with(event: str) -> str:
    """Run the hook in this process; return its answer. It reads and writes past Python's own files."""
    kept = os.dup(0), os.dup(1)
    sys.stdout.flush()
    with tempfile.TemporaryFile() as sent, tempfile.TemporaryFile() as answer:
        sent.write(event.encode())
        sent.seek(0)
        os.dup2(sent.fileno(), 0)
        os.dup2(answer.fileno(), 1)
        try:
            assert run_hook() == 0
        finally:
            for number, file in enumerate(kept):
                os.dup2(file, number)
                os.close(file)
        answer.seek(0)
        return answer.read().decode()


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Keep other connections from writing to a database."""
    connection = apsw.Connection(path)
    connection.execute("begin immediate")
    try:
        yield
    finally:
        connection.close()


def damage(folder: Path) -> int:
    """Damage some lines of the spool; return how many."""
    count = 0
    for path in (folder / "spool.jsonl", folder / "spool.taken.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        count += len(lines[::_DAMAGED])
        lines[::_DAMAGED] = [b"damaged " + line for line in lines[::_DAMAGED]]
        path.write_bytes(b"".join(lines))
    return count


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable waiting for a locked database, hook deadlines, and workers."""
    monkeypatch.setenv("LEARNT_WAIT_MS", "1")
    monkeypatch.setenv("LEARNT_HOOK_DEADLINE_MS", "60000")
    for name in ("PATIENCE_MS", "_REPLAY_PATIENCE_MS"):
        monkeypatch.setattr(f"learnt.store.{name}", 1)
    # No other process must use the database, because reading its files here releases this process's locks on them.
    monkeypatch.setattr("learnt.system.detached.start", lambda *_, **__: None)


def walk(secrets: Sequence[Secret], monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """Send the secrets to a new project in every way; return which files ever contained a piece of which secret."""
    # In memory if possible, because thousands of commits would wait for the disk, which is not tested here.
    in_memory = "/dev/shm"  # noqa: S108 - the folder in it is private
    with (
        TemporaryDirectory(dir=in_memory if os.access(in_memory, os.W_OK) else None) as folder,
        monkeypatch.context() as patch,
    ):
        hurry(patch)
        patch.chdir(folder)
        return _walk(Path(folder), secrets, Search(secrets))


def _walk(project: Path, secrets: Sequence[Secret], search: Search) -> dict[str, set[int]]:
    folder = project / ".learnt"
    found: dict[str, set[int]] = {}

    def look(pattern: str = "*") -> None:
        for name, numbers in search.found_in_files(folder.rglob(pattern)).items():
            found.setdefault(name, set()).update(numbers)

    with Memory.open(project) as memory:
        memory.add(ANSWER, triggers={"errors": [TRIGGER]}, pinned=True)
        for number, secret in enumerate(secrets):
            tell_memory(memory, number, secret.text)
            tell_commands(number, secret.text)
        assert (folder / "learnt.db-wal").stat().st_size
        assert (folder / "hook.log").stat().st_size
        look()  # while the log has not been merged into the file
        with locked(memory.context.store.place.path):
            for number, secret in enumerate(secrets):
                memory.brief(secret.text, task=f"task_busy{number}")
                assert memory.debrief(f"task_busy{number}", OUTPUT.format(text=secret.text)).spooled
                run_with(
                    json.dumps({"hook_event_name": "Stop", "session_id": "busy", "last_assistant_message": secret.text})
                )
            look("spool*")
        assert len(memory.context.store.spool.pending()) >= 3 * len(secrets)
        damaged = damage(folder)
    with Memory.open(project) as memory:
        memory.context.store.replay_spool()
        assert memory.context.store.spool.is_empty()
        assert memory.context.store.spool.refused() >= damaged
        look()
        memory.transfer.backup()
        exported = list(memory.transfer.export())
        before = memory.redactions
        again = memory.transfer.import_all([_record(learning) for learning in exported])
        assert (again.unchanged, memory.redactions) == (len(exported), before), "what was redacted comes back as it is"
    look()
    return found


def _record(learning: Learning) -> dict[str, Any]:
    return {name: value for name, value in as_record(learning).items() if name not in PLACE}
