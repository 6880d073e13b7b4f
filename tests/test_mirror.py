"""Hooks beside a server: they read a mirror, write to the spool, and never wait for the network."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import apsw
import pytest

from learnt import Memory
from learnt.errors import LearntError, NoStore
from learnt.flow import background
from learnt.model import MISSED, Task
from learnt.store import MIRROR_FILE, deliveries, happened, mirror, tasks
from learnt.store.happened import ForgottenRecord
from tests.conftest import Clock, command_line
from tests.support.accumulation import until
from tests.support.doors import start_worker, work_here
from tests.support.postgres import PostgresServer
from tests.support.workers import ended


@pytest.fixture
def engine() -> str:
    return "postgres"


@pytest.fixture
def hook(memory: Memory, project: Path, clock: Clock, alone: None) -> Iterator[Memory]:
    """A memory as hooks have it, beside a server that knows one learning."""
    memory.add("Close the drawer before counting the till", action="Close it.")
    memory.worker.catch_up()
    with Memory.open_for_hook(project, clock=clock) as opened:
        yield opened


def prompted(memory: Memory, text: str, *, task: str = "task_1") -> list[str]:
    """Return the learnings that a prompt of a conversation is answered with."""
    return list(memory.brief(text, task=task, task_type="session", only_new=True).learning_ids)


def unfinished(memory: Memory) -> list[Task]:
    """Return the work that the start of a conversation tells of."""
    return [task for task, _ in tasks.unfinished(memory.context.store.database, branch="sale", since=0, limit=9)]


def titles(memory: Memory) -> list[str]:
    return sorted(one.title for one in memory.learnings(status=None, limit=1_000).learnings)


# What a hook sees and does


def test_a_hook_is_answered_from_the_mirror_and_its_brief_reaches_the_server(hook: Memory, memory: Memory) -> None:
    brief = hook.brief("count the till", task="task_1", task_type="session", only_new=True)
    (given,) = brief.learning_ids
    assert isinstance(hook.context.store, mirror.Mirror)
    assert brief.receipt["mirror_age_s"] == 0
    assert prompted(hook, "count the till") == [], "the next hook of the conversation knows it"
    assert memory.get(given).times_injected == 0, "nobody was asked to wait for the server"
    hook.hooks.end_turn("task_1", f"LEARNING_HELPFUL: {given}")

    memory.worker.catch_up()

    assert (memory.get(given).times_injected, memory.get(given).times_helpful) == (1, 1)
    assert memory.explain(brief.id).text == brief.text
    assert hook.get(given).times_helpful == 1


def test_what_did_not_arrive_is_said_again_and_what_arrived_is_not_once_the_mirror_knows(
    hook: Memory, memory: Memory, clock: Clock
) -> None:
    briefs = {}
    for task in ("task_0", "task_1", "task_2"):
        briefs[task] = hook.brief("count the till", task=task, task_type="session", only_new=True, asked_by="hook")
        clock.advance(days=40 if task == "task_0" else 0)
    memory.worker.catch_up()
    store = memory.context.store
    with store.transaction():
        for task in ("task_0", "task_1"):
            deliveries.miss(store.database, briefs[task].id)
        happened.deliver(store.database, briefs["task_2"].id)
    memory.worker.catch_up()

    (given,) = briefs["task_2"].learning_ids
    assert hook.get(given).times_injected == memory.get(given).times_injected == 1
    assert [prompted(hook, "count the till", task=task) for task in ("task_1", "task_2")] == [[given], []]
    found = {task: happened.get_brief(hook.context.store.database, brief.id) for task, brief in briefs.items()}
    assert [found[task].delivery for task in briefs] == ["", MISSED, "delivered"], "an old one is not asked for"


def test_explain_tells_how_old_the_mirror_was(hook: Memory, memory: Memory, project: Path, clock: Clock) -> None:
    clock.advance(days=1)
    brief = hook.brief("count the till", task="task_1", task_type="session", only_new=True)
    memory.worker.catch_up()
    explained = command_line(project)("explain", brief.id)
    assert "from the server's mirror, 86,400 s old" in explained.out


def test_the_mirror_follows_the_server(hook: Memory, memory: Memory) -> None:
    first = memory.add("The scanner needs a warm lamp", tags=["scanner"])
    second = memory.add("Ask Bert about the barcode reader")
    memory.worker.catch_up()
    assert prompted(hook, "the scanner stays dark: warm lamp") == [first.id]

    memory.edit(first.id, title="The barcode reader needs a warm lamp")
    memory.hide(second.id)
    memory.worker.catch_up()
    assert prompted(hook, "the barcode reader needs a warm lamp", task="task_2") == [first.id]
    assert titles(hook) == titles(memory)
    assert hook.context.store.check()[:1] == [] or "lack the event" in hook.context.store.check()[0]


def test_what_happened_here_survives_a_refresh_before_the_server_knows_it(hook: Memory, memory: Memory) -> None:
    (given,) = prompted(hook, "count the till")
    mirror.refresh(memory.context.store)
    assert prompted(hook, "count the till") == []
    hook.close()
    mirror.discard(memory.context.store.place)
    assert not memory.context.store.spool.is_empty()
    mirror.refresh(memory.context.store)
    assert prompted(hook, "count the till") == [], given


def test_what_a_conversation_forgot_stays_forgotten_until_the_server_knows_it(
    hook: Memory, memory: Memory, clock: Clock
) -> None:
    given = prompted(hook, "count the till")
    memory.worker.catch_up()
    clock.advance(days=1 / 24)
    hook.context.store.record(ForgottenRecord(task="task_1", at=clock()))
    mirror.refresh(memory.context.store)
    assert prompted(hook, "count the till") == given


@pytest.mark.parametrize("end", ["done", "cancelled", "done by another one"])
def test_work_that_is_over_on_the_server_is_not_told_as_unfinished(
    end: str, hook: Memory, memory: Memory, project: Path, clock: Clock
) -> None:
    subprocess.run(["git", "init", "-q", "-b", "sale"], cwd=project, check=True)
    task = memory.tasks.add("Mend the till").id
    memory.debrief(task, "<task-failed>it has no paper</task-failed>")
    memory.worker.catch_up()
    assert [one.id for one in unfinished(hook)] == [task]

    if end == "done":
        memory.debrief(task, "<task-done/>")
    elif end == "cancelled":
        memory.tasks.cancel(task)
    else:
        memory.brief("Mend the till", task="task_again")
        memory.debrief("task_again", "<task-done/>")
    memory.worker.catch_up()

    assert unfinished(hook) == []
    hook.close()
    mirror.discard(memory.context.store.place)
    memory.worker.catch_up()
    with Memory.open_for_hook(project, clock=clock) as other:
        assert unfinished(other) == []


def test_a_report_that_a_conversation_took_back_leaves_the_mirror(
    hook: Memory, memory: Memory, project: Path, clock: Clock
) -> None:
    subprocess.run(["git", "init", "-q", "-b", "sale"], cwd=project, check=True)
    hook.hooks.end_turn("task_1", "<task-failed>it has no paper</task-failed>")
    memory.worker.catch_up()
    assert [one.id for one in unfinished(hook)] == ["task_1"]
    clock.advance(days=3)
    hook.hooks.end_turn("task_1", "There is paper again, and I go on.")
    memory.worker.catch_up()

    assert unfinished(hook) == []
    assert hook.context.store.database.rows("select * from failure") == []


def test_a_purge_reaches_the_mirror_at_once(hook: Memory, memory: Memory, project: Path) -> None:
    leaked = memory.add("The password of the till is xyzzy-plugh-42")
    memory.worker.catch_up()
    assert leaked.title in titles(hook)
    hook.close()

    memory.purge(leaked.id)

    left = [path for path in (project / ".learnt").rglob("*") if path.is_file()]
    assert not any(b"xyzzy-plugh-42" in path.read_bytes() for path in left)
    memory.worker.catch_up()
    assert leaked.title not in titles(hook)


def test_what_was_purged_elsewhere_leaves_the_mirror_with_the_next_refresh(
    hook: Memory, memory: Memory, project: Path, tmp_path: Path, clock: Clock
) -> None:
    leaked = memory.add("The password of the till is xyzzy-plugh-42")
    memory.worker.catch_up()
    prompted(hook, "what is the password of the till?")
    memory.worker.catch_up()
    hook.close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "learnt.toml").write_text((project / "learnt.toml").read_text())
    with Memory.open(elsewhere, clock=clock) as other:
        other.purge(leaked.id)

    memory.worker.catch_up()

    left = [path for path in (project / ".learnt").glob("mirror*") if path.is_file()]
    assert left
    assert not any(b"xyzzy-plugh-42" in path.read_bytes() for path in left)


# Without a mirror, with a broken one, without a server


def test_without_a_mirror_there_is_no_store_and_the_worker_makes_one(memory: Memory, project: Path) -> None:
    memory.add("Close the drawer before counting the till")
    with pytest.raises(NoStore):
        Memory.open_for_hook(project).hooks.check_mirror()
    ended(project)
    with Memory.open_for_hook(project) as hook:
        assert prompted(hook, "count the till")


def test_a_worker_for_a_missing_mirror_is_started_once_a_minute(project: Path) -> None:
    address = "postgresql://nobody@127.0.0.1:9/none"
    (project / "learnt.toml").write_text(f'database = "{address}"\n')
    (project / ".learnt").mkdir()
    for _ in range(3):
        with pytest.raises(NoStore):
            Memory.open_for_hook(project).hooks.check_mirror()
    log = project / ".learnt" / background.WORKER_LOG
    until(lambda: log.read_text().strip(), "the worker says nothing")
    until(lambda: not background.is_at_work(str(log.parent)), "the worker does not end")
    assert len(log.read_text().splitlines()) == 1
    assert "cannot reach" in log.read_text()


@pytest.mark.parametrize("damage", ["bytes", "empty", "older", "newer", "page"])
def test_a_mirror_that_cannot_be_used_is_made_anew(damage: str, hook: Memory, memory: Memory, project: Path) -> None:
    hook.close()
    path = project / ".learnt" / MIRROR_FILE
    if damage == "bytes":
        path.write_bytes(b"garbage" * 1_000)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "page":
        content = bytearray(path.read_bytes())
        for page in range(3, len(content) // 4096):
            content[page * 4096 : page * 4096 + 200] = b"\xff" * 200
        path.write_bytes(content)
    else:
        connection = apsw.Connection(str(path))
        connection.execute(
            """
            update migration
               set number = number + :step
             where number = (select max(number) from migration)
            """
            if damage == "newer"
            else "delete from migration where number >= :step",
            {"step": 5},
        )
        connection.close()

    with suppress(LearntError), Memory.open_for_hook(project) as opened:
        prompted(opened, "count the till")
    assert memory.worker.catch_up().remarks == ()

    assert prompted(hook, "count the till", task="task_2")


def test_hooks_work_while_the_server_is_away(
    project: Path, clock: Clock, postgres: PostgresServer, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.address()
    (project / "learnt.toml").write_text('project = "shop"\n')
    monkeypatch.setenv("LEARNT_DATABASE", address)
    with Memory.open(project, clock=clock) as memory:
        given = memory.add("Close the drawer before counting the till")
        memory.worker.catch_up()
    name = address.partition("@/")[2].partition("?")[0]
    _allow(postgres, name, False)
    try:
        with Memory.open_for_hook(project, clock=clock) as hook:
            assert prompted(hook, "count the till") == [given.id]
            hook.hooks.end_turn("task_1", f"LEARNING_HELPFUL: {given.id}\n<learning>The lamp is cold.</learning>")
        with pytest.raises(LearntError), Memory.open(project, clock=clock) as memory:
            memory.worker.catch_up()
    finally:
        _allow(postgres, name, True)
    with Memory.open(project, clock=clock) as memory:
        memory.worker.catch_up()
        assert memory.get(given.id).times_helpful == 1
        assert "The lamp is cold." in titles(memory)
        assert memory.context.store.spool.is_empty()


def _allow(server: PostgresServer, name: str, allowed: bool) -> None:
    import psycopg

    with psycopg.connect(server._address("postgres"), autocommit=True) as connection:
        connection.execute(f"alter database {name} allow_connections {str(allowed).lower()}".encode())
        if not allowed:
            connection.execute(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'".encode()
            )


@pytest.mark.parametrize("listening", [True, False], ids=["accepts and never answers", "nobody listens"])
def test_a_hook_never_connects(listening: bool, project: Path, alone: None) -> None:
    """What it would reach counts who comes, and answers nobody."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listening:
            server.listen()
        port = server.getsockname()[1]
        (project / "learnt.toml").write_text(f'database = "postgresql://learnt@127.0.0.1:{port}/x"\n')
        (project / ".learnt").mkdir()
        with pytest.raises(NoStore):
            Memory.open_for_hook(project).hooks.check_mirror()
        server.setblocking(False)
        with pytest.raises(OSError, match=r"(?i)resource temporarily unavailable|invalid argument"):
            server.accept()


def test_a_hook_does_not_connect_for_sources_either(project: Path, tmp_path: Path, alone: None) -> None:
    source = tmp_path / "source"
    (source / ".learnt").mkdir(parents=True)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"postgresql://learnt@127.0.0.1:{server.getsockname()[1]}/x"
        (source / "learnt.toml").write_text(f'database = "{address}"\n')
        (project / "learnt.toml").write_text(f"sources = [{json.dumps(str(source))}]\n")
        with Memory.open(project) as memory:
            memory.context.store.database.check()
        with Memory.open_for_hook(project) as hook:
            hook.brief("count the till", task="task_1", task_type="session", only_new=True)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_project_with_a_file_is_opened_as_ever(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "file"
    folder.mkdir()
    with Memory.open(folder, clock=clock) as memory:
        memory.add("Close the drawer before counting the till")
    with Memory.open_for_hook(folder, clock=clock) as hook:
        brief = hook.brief("count the till", task="task_1", task_type="session", only_new=True)
        assert brief.learning_ids
        assert "mirror_age_s" not in brief.receipt
    assert not (folder / ".learnt" / MIRROR_FILE).exists()


# Many at once


def test_twenty_conversations_at_once_lose_nothing_and_are_given_nothing_twice(memory: Memory, project: Path) -> None:
    for number in range(10):
        memory.add(f"Close drawer {number} before counting till {number}")
    with pytest.raises(NoStore):
        Memory.open_for_hook(project).hooks.check_mirror()
    ended(project)

    with ThreadPoolExecutor(20) as pool:
        given = list(pool.map(lambda number: _conversation(project, number), range(20)))

    assert all(len(ids) == len(set(ids)) for ids in given)
    assert any(given)
    ended(project)
    until(memory.context.store.spool.is_empty, "records are left")
    for number in range(20):
        assert len(memory.tasks.attempts(f"task_{number}")) == 1
        assert f"Drawer {number} sticks on rainy days." in titles(memory)
        counted = memory.context.store.database.rows(
            "select learning from injection where project = :project and task = :task", task=f"task_{number}"
        )
        assert {row["learning"] for row in counted} == set(given[number])


def _conversation(project: Path, number: int) -> list[str]:
    """Hold a conversation of three turns through hooks; return what it was given."""
    given: list[str] = []
    for turn in range(3):
        with Memory.open_for_hook(project) as hook:
            given += prompted(hook, f"count till {turn} and close drawer {number % 10}", task=f"task_{number}")
        with Memory.open_for_hook(project) as hook:
            lesson = f"<learning>Drawer {number} sticks on rainy days.</learning>"
            hook.hooks.end_turn(f"task_{number}", lesson if turn == 1 else "Counted.")
    return given


def test_a_worker_that_is_killed_anywhere_leaves_a_mirror_that_is_whole_or_none(
    memory: Memory, project: Path, chance: Random
) -> None:
    given = [memory.add(f"Close drawer {number} before counting till {number}") for number in range(50)]
    for number in range(8):
        if number % 3 == 0:
            mirror.discard(memory.context.store.place)
        memory.add(f"Mend scanner {number} when its lamp is cold")
        worker = start_worker(project)
        with suppress(subprocess.TimeoutExpired):
            worker.wait(0.2 + chance.random() * 0.8)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        with suppress(NoStore), Memory.open_for_hook(project) as hook:
            assert len(titles(hook)) >= len(given)
            prompted(hook, f"count till {number}", task=f"task_{number}")
        if background.worker_state(str(project / ".learnt"))[0] == "started":
            ended(project)
    assert work_here(project).code == 0
    with Memory.open_for_hook(project) as hook:
        assert titles(hook) == titles(memory)
        assert len(titles(hook)) == 58


def test_the_end_of_a_turn_is_kept_although_there_is_no_mirror_yet(memory: Memory, project: Path) -> None:
    memory.add("Words that make the store")
    said = "<learning>Count the till before the drawer is closed</learning>"
    event = json.dumps({"hook_event_name": "Stop", "session_id": "s1", "last_assistant_message": said})

    done = subprocess.run(
        [sys.executable, "-m", "learnt", "hook", "--client", "claude"],
        cwd=project,
        input=event,
        text=True,
        capture_output=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == ("", "")
    ended(project)
    assert memory.search("count the till")[0].learning.origin == "agent"
