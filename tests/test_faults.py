"""Whatever breaks, an acknowledged write stays, the store stays sound, and the message says what to do."""

from __future__ import annotations

import itertools
import json
import os
import random
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from learnt import Memory
from learnt.errors import InvalidValue, NewerDatabase, TryAgain
from learnt.store import happened
from learnt.store.database import newest_schema
from learnt.store.spool import Spool, SpoolRecord
from tests.conftest import Done
from tests.support import faults
from tests.support.disk import Disk
from tests.support.words import tells

FLOWS = ("create", "add", "edit", "supersede", "import", "undo", "purge")
MOST_STEPS = 200
EACH = 4
SOME = 8
PAGE = 4096
Learnt = Callable[..., Done]


# Killed between two statements


@pytest.mark.parametrize("flow", FLOWS)
def test_a_process_killed_between_some_two_statements_leaves_a_sound_store(
    flow: str, engine: str, empty_database: str, project: Path, chance: random.Random
) -> None:
    _kill_at_each(range(chance.randint(1, SOME), MOST_STEPS, SOME), flow, engine, project)


@pytest.mark.soak
@pytest.mark.parametrize("flow", FLOWS)
def test_a_process_killed_between_any_two_statements_leaves_a_sound_store(
    flow: str, engine: str, empty_database: str, project: Path, share: Callable[[int], int]
) -> None:
    _kill_at_each(range(1, MOST_STEPS, EACH // min(EACH, share(EACH))), flow, engine, project)


def _kill_at_each(numbers: range, flow: str, engine: str, project: Path) -> None:
    """Let a process die at each of these statements of its work, until it has fewer."""
    arguments = [] if flow == "create" else _ground(flow, project)

    for number in numbers:
        code, lines = faults.run("change_and_die", flow, engine, number, *arguments, cwd=project)
        with Memory.open(project) as memory:
            faults.wait_for_others(memory.context.store.database)
            if flow != "create":  # opening has just created what the child could not
                assert faults.contradictions(memory) == []
            imported = sum(learning.origin == "import" for learning in memory.transfer.export())
        assert imported in (0, 3)
        if code == 0:
            assert lines == ["done"]
            assert number > 5
            break
        if flow == "create":
            _forget_store(project, memory)
    else:
        pytest.fail(f"{flow} has more than {MOST_STEPS} statements")

    with Memory.open(project) as memory:
        assert _effect(flow, memory, arguments)


def _ground(flow: str, project: Path) -> list[str]:
    with Memory.open(project) as memory:
        old, new = memory.add("Test by hand"), memory.add("Test with `make test`")
    records = [{"title": f"Learning {number} from elsewhere", "origin": "import"} for number in range(3)]
    one = {"edit": [old.id], "undo": [old.id], "purge": [old.id]}
    return {**one, "supersede": [old.id, new.id], "import": [json.dumps(records)]}.get(flow, [])


def _effect(flow: str, memory: Memory, arguments: list[str]) -> bool:
    history = memory.history(arguments[0]) if flow in ("edit", "supersede") else []
    return {
        "create": lambda: memory.learnings().total == 0,
        "add": lambda: memory.learnings().total == 3,
        "edit": lambda: [event.what for event in history] == ["add", "edit"],
        "undo": lambda: memory.get(arguments[0]).status == "archived",
        "purge": lambda: (
            memory.learnings(status=None).total == 1 and not memory.context.store.may_hold_traces(arguments[0])
        ),
        "supersede": lambda: [event.what for event in history] == ["add", "supersede"],
        "import": lambda: memory.learnings().total == 5,
    }[flow]()


def _forget_store(project: Path, memory: Memory) -> None:
    """Make the project new again, so that the next child has to create everything."""
    if memory.context.store.place.address:
        memory.context.store.database.script("drop schema public cascade; create schema public")
        memory.close()
    for path in (project / ".learnt").glob("*"):
        path.unlink()


# The spool


def test_a_process_killed_while_it_spools_loses_no_acknowledged_record(project: Path) -> None:
    folder = project / ".learnt"
    folder.mkdir()
    acknowledged: list[str] = []
    kills = 0

    for number in range(1, MOST_STEPS):
        code, lines = faults.run("append_and_die", folder, number, cwd=project)
        acknowledged += lines
        if code == 0:
            break
        kills += 1
    waiting = [record.op for record in Spool(str(folder)).pending()]

    assert kills > 5
    assert [op for op in waiting if op in acknowledged] == acknowledged
    # A record that was written whole but not yet acknowledged may show up, and no other.
    assert len(set(waiting)) == len(waiting) <= len(acknowledged) + kills


def test_a_torn_tail_is_ignored_and_the_next_record_stands_on_a_line_of_its_own(project: Path) -> None:
    (project / ".learnt").mkdir()
    spool = Spool(str(project / ".learnt"))
    spool.append(SpoolRecord("op_1", "count", 1, {}))
    whole = (project / ".learnt" / "spool.jsonl").read_bytes()

    for cut in range(1, len(whole)):
        (project / ".learnt" / "spool.jsonl").write_bytes(whole + whole[:cut])
        assert [record.op for record in spool.pending()] == ["op_1"]

    spool.append(SpoolRecord("op_2", "count", 1, {}))
    assert "op_2" in [record.op for record in spool.pending()]


def test_a_process_killed_at_any_step_of_a_replay_applies_every_record_exactly_once(
    engine: str, database: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(happened.APPLY, "count", faults.count_up)
    with Memory.open(project) as memory:
        id = memory.add("Count what happens").id
        spool = memory.context.store.spool

    refused = set()
    for number in range(1, MOST_STEPS):
        for part, kind in enumerate(("count", "unheard-of", "count")):
            spool.append(SpoolRecord(f"op_{number}x{part}", kind, 1, {"learning": id}))
        refused.add(f"op_{number}x1")
        code, _ = faults.run("take_up_and_die", engine, number, cwd=project)
        with Memory.open(project) as memory:  # takes up what the child could not
            faults.wait_for_others(memory.context.store.database)
            assert spool.is_empty()
            assert memory.get(id).times_injected == 2 * number
            assert memory.context.store.check() == []
        if code == 0:
            break
    else:
        pytest.fail(f"a replay has more than {MOST_STEPS} steps")

    assert number > 20
    # A kill right after it was set aside lets a record be set aside again; none is missing.
    assert set(_whole_records(Path(spool.refused_path))) == refused


def _whole_records(path: Path) -> list[str]:
    """Return the operation ids of the records with a true checksum."""
    parts = [line.rstrip(b"\n").partition(b" ") for line in path.read_bytes().splitlines(keepends=True)]
    return [json.loads(content)["op"] for checksum, _, content in parts if checksum == b"%08x" % zlib.crc32(content)]


def test_what_happened_waits_in_the_spool_while_another_process_holds_the_database(
    database: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(happened.APPLY, "count", faults.count_up)
    monkeypatch.setenv("LEARNT_WAIT_MS", "50")
    with Memory.open(project) as memory:
        id = memory.add("Count what happens").id
        assert memory.context.store.record(faults.Raw("count", {"learning": id}))
        with _held(memory):
            assert not memory.context.store.record(faults.Raw("count", {"learning": id}))
            assert not memory.context.store.record(faults.Raw("count", {"learning": id}))
        assert memory.get(id).times_injected == 1

    with Memory.open(project) as memory:
        assert memory.get(id).times_injected == 3
        assert memory.context.store.spool.is_empty()


def test_a_change_by_hand_under_a_held_database_says_try_again_and_writes_nothing(
    database: str, project: Path, monkeypatch: pytest.MonkeyPatch, learnt: Learnt
) -> None:
    monkeypatch.setenv("LEARNT_WAIT_MS", "50")
    with Memory.open(project) as memory:
        id = memory.add("Test by hand").id
        with _held(memory):
            with pytest.raises(TryAgain):
                memory.add("Test with `make test`")
            with pytest.raises(TryAgain):
                memory.edit(id, action="make test")
            done = learnt("add", "Test with `make test`")

        assert done.code == 3
        assert _is_clear(done)
        assert memory.learnings().total == 1
        assert len(memory.history(id)) == 1
        assert memory.context.store.spool.is_empty()


@pytest.mark.parametrize("fault", ["damaged", "out of reach"])
def test_an_output_is_kept_while_there_is_no_database_to_take_it(fault: str, project: Path, learnt: Learnt) -> None:
    learnt("init")
    if fault == "damaged":
        (project / ".learnt" / "learnt.db").write_bytes(b"x" * 5000)
    else:
        (project / "learnt.toml").write_text(f'database = "postgresql://nobody@/x?host={project}/nowhere"\n')

    done = learnt("debrief", "--task", "task_1", stdin="<learning>Close the cursor first</learning>")

    assert (done.code, tells(done.out, "task_1", "database")) == (0, True), done.err
    assert "1 record pending" in learnt("doctor").out
    (project / "learnt.toml").write_text("")
    if fault == "out of reach":
        assert learnt("list", "--json").out.count("Close") == 0
        assert "1 record pending for a database that is not the configured one" in learnt("doctor").out


@contextmanager
def _held(memory: Memory) -> Iterator[None]:
    """Hold the write lock in another connection."""
    if memory.context.store.place.address:
        import psycopg

        with psycopg.connect(memory.context.store.place.address) as connection:
            connection.execute("lock table learning, event, operation in exclusive mode")
            yield
        return
    connection_to_file = apsw.Connection(memory.context.store.place.path)
    connection_to_file.execute("begin immediate")
    try:
        yield
    finally:
        connection_to_file.close()


# Full and read-only disks


def test_on_a_full_disk_acknowledged_writes_stay_and_writing_works_again_once_there_is_space(
    disk: Disk, learnt: Learnt
) -> None:
    project = disk.folder
    disk.fill(keep_free=1_700_000)
    acknowledged: list[str] = []
    with Memory.open(project) as memory:
        with pytest.raises(TryAgain, match="cannot write") as failure:
            _add_for_ever(memory, acknowledged)
        assert "disk space" in failure.value.hint
        assert sorted(learning.id for learning in memory.transfer.export()) == acknowledged

    done = learnt("add", "One more", "--observation", "x" * 15_000, cwd=project)
    assert done.code == 3
    assert _is_clear(done)

    disk.free()
    assert learnt("add", "One more", "--observation", "x" * 15_000, cwd=project).code == 0
    with Memory.open(project) as memory:
        assert len(acknowledged) > 3
        assert set(acknowledged) < {learning.id for learning in memory.transfer.export()}
        assert memory.learnings().total == len(acknowledged) + 1
        assert faults.contradictions(memory) == []


def _add_for_ever(memory: Memory, acknowledged: list[str]) -> None:
    for number in itertools.count():
        acknowledged.append(memory.add(f"Number {number}", observation="x" * 15_000).id)


def test_where_neither_database_nor_spool_can_be_written_nothing_is_acknowledged(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(happened.APPLY, "count", faults.count_up)
    with Memory.open(disk.folder) as memory:
        id = memory.add("Count what happens").id
        disk.fill(keep_free=0)
        with pytest.raises(TryAgain, match="cannot write to the database, nor to"):
            memory.context.store.record(faults.Raw("count", {"learning": id}))
        counted = memory.get(id).times_injected
    disk.free()
    with Memory.open(disk.folder) as memory:
        assert memory.get(id).times_injected == counted
        assert memory.context.store.record(faults.Raw("count", {"learning": id}))
        assert faults.contradictions(memory) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_file_that_may_not_grow_keeps_its_acknowledged_writes(project: Path) -> None:
    _, lines = faults.run("fill_up_to", 1_800_000, cwd=project)

    assert lines[-1] == "TryAgain: free some disk space and try again"
    with Memory.open(project) as memory:
        assert len(lines) > 5
        assert set(lines[:-1]) <= {learning.id for learning in memory.transfer.export()}
        memory.add("There is room again")
        assert faults.contradictions(memory) == []


def test_a_full_disk_is_named_as_the_cause_and_a_good_export_stays(disk: Disk, learnt: Learnt) -> None:
    learnt("init", cwd=disk.folder)
    learnt("add", "Test by hand", cwd=disk.folder)
    assert learnt("export", "--output", "all.jsonl", cwd=disk.folder).code == 0
    good = (disk.folder / "all.jsonl").read_bytes()
    disk.fill(keep_free=0)

    for words in (["add", "X"], ["backup"], ["export", "--output", "all.jsonl"], ["debrief"], ["init"]):
        done = learnt(*words, cwd=disk.folder)
        if words != ["init"]:
            assert done.code == 3, (words, done.err)
            assert "o space " in done.err, (words, done.err)
            assert _is_clear(done)
    assert learnt("list", cwd=disk.folder).out.count("Test by hand") == 1
    assert (disk.folder / "all.jsonl").read_bytes() == good
    assert not list(disk.folder.rglob("*.unfinished*"))


@pytest.mark.parametrize("damage", ["head", "middle"])
def test_a_damaged_file_is_set_aside_when_a_backup_is_restored(damage: str, project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        for number in range(200):
            memory.add(f"Number {number}", observation="x" * 500)
        backup = memory.transfer.backup()
    file = project / ".learnt" / "learnt.db"
    content = bytearray(file.read_bytes())
    start = 0 if damage == "head" else 8192
    content[start : start + 200_000] = b"x" * 200_000
    file.write_bytes(content)
    assert "backup --restore FILE" in learnt("doctor").out

    done = learnt("backup", "--restore", backup, "--json")

    assert done.code == 0, done.err
    aside = Path(json.loads(done.out)["before"])
    assert ".damaged-" in aside.name
    assert aside.read_bytes()[start : start + 100] == b"x" * 100
    with Memory.open(project) as memory:
        assert memory.learnings().total == 200
        assert memory.context.store.check() == []


def test_a_backup_that_cannot_be_restored_leaves_a_damaged_file_in_its_place(project: Path, learnt: Learnt) -> None:
    learnt("init")
    file = project / ".learnt" / "learnt.db"
    file.write_bytes(b"x" * 5000)
    (project / "bad.db").write_bytes(b"y" * 5000)
    refused = learnt("backup", "--restore", "bad.db")
    assert (refused.code, "hint: use another backup" in refused.err) == (1, True)
    assert file.read_bytes() == b"x" * 5000


def test_a_file_that_is_no_backup_is_not_called_an_old_one(project: Path, learnt: Learnt) -> None:
    learnt("init")
    (project / "empty.db").write_bytes(b"")
    refused = learnt("backup", "--restore", "empty.db")
    assert (refused.code, "empty.db is not a backup" in refused.err) == (2, True)


def test_a_store_that_nobody_can_look_at_is_not_called_missing(project: Path, learnt: Learnt) -> None:
    folder = project / ".learnt"
    folder.mkdir(mode=0o755)
    (folder / "learnt.db").symlink_to("learnt.db")
    done = learnt("list")
    assert done.code == 1
    assert "there is no store" not in done.err


def test_an_existing_folder_keeps_its_mode(project: Path, learnt: Learnt) -> None:
    (project / ".learnt").mkdir(mode=0o755)
    learnt("init")
    learnt("debrief", stdin="x")
    assert stat.S_IMODE((project / ".learnt").stat().st_mode) == 0o755
    assert learnt("doctor").code == 0


def test_a_read_only_folder_can_be_read_and_refuses_writing_with_a_hint(disk: Disk, learnt: Learnt) -> None:
    with Memory.open(disk.folder) as memory:
        memory.add("Test by hand")
    disk.forbid_writing()
    before = _files(disk.folder)

    listed = learnt("list", "--json", cwd=disk.folder)
    added = learnt("add", "Test with `make test`", cwd=disk.folder)
    others = [learnt(*words, cwd=disk.folder) for words in (["brief", "test by hand"], ["debrief"])]

    assert [done.code for done in others] == [1, 1]
    assert all(map(_is_clear, others))
    assert [learning["title"] for learning in json.loads(listed.out)["learnings"]] == ["Test by hand"]
    assert added.code == 1
    assert _is_clear(added)
    assert _files(disk.folder) == before


# Many at once


@pytest.mark.parametrize("round_", range(3))
def test_four_processes_that_create_the_same_store_at_once_all_succeed(
    round_: int, empty_database: str, project: Path
) -> None:
    children = [
        faults.start("open_together", writer, cwd=project, stdin=-1, stdout=-1, stderr=-1) for writer in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    ended = [(*child.communicate(timeout=60), child.returncode) for child in children]

    complaints = "".join(err.decode() for _, err, _ in ended)
    assert not complaints, complaints
    assert [code for _, _, code in ended] == [0] * 4
    with Memory.open(project) as memory:
        assert {learning.id for learning in memory.transfer.export()} == {out.decode().strip() for out, _, _ in ended}
        numbers = memory.context.store.database.rows("select number from migration order by number")
        assert [row["number"] for row in numbers] == list(range(1, newest_schema() + 1))
        assert faults.contradictions(memory) == []


# Damaged and foreign files


def test_a_file_of_random_bytes_is_reported_and_never_touched(project: Path, learnt: Learnt) -> None:
    path = _filled(project)
    path.write_bytes(os.urandom(20 * PAGE))
    before = path.read_bytes()

    for words in (["list"], ["add", "Test with `make test`"], ["doctor"], ["export"], ["backup"]):
        done = learnt(*words)
        assert done.code == 1
        assert words == ["doctor"] or _is_clear(done)
        assert "damaged" in done.out + done.err
        assert "Traceback" not in done.out + done.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("part", ["half", "all but the last page", "half a page"])
def test_a_truncated_database_gives_a_clear_error_or_a_correct_answer(part: str, project: Path, learnt: Learnt) -> None:
    path = _filled(project)
    whole = path.read_bytes()
    length = {"half": len(whole) // 2, "all but the last page": -PAGE, "half a page": PAGE // 2}[part]
    path.write_bytes(whole[:length])

    _expect_clear_or_correct(learnt)


@pytest.mark.parametrize("where", [0.2, 0.5, 0.8])
def test_an_overwritten_page_gives_a_clear_error_or_a_correct_answer(
    where: float, project: Path, learnt: Learnt
) -> None:
    path = _filled(project)
    start = int(path.stat().st_size / PAGE * where) * PAGE
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * PAGE)

    _expect_clear_or_correct(learnt)


def _filled(project: Path) -> Path:
    with Memory.open(project) as memory:
        memory.add_all([{"title": f"Learning {number}", "observation": "x" * 300} for number in range(100)])
        return Path(memory.context.store.place.path)


def _expect_clear_or_correct(learnt: Learnt) -> None:
    examined = learnt("doctor")
    assert examined.code == 1
    assert "!!" in examined.out
    assert "Traceback" not in examined.out + examined.err
    listed = learnt("list", "--limit", "1000", "--json")
    assert _is_clear(listed) if listed.code else json.loads(listed.out)["total"] == 100
    added = learnt("add", "Test with `make test`")
    assert not added.code or _is_clear(added)
    assert {listed.code, added.code} <= {0, 1}


def test_a_newer_database_is_refused_with_a_hint_and_left_alone(database: str, project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.add("Test by hand")
        memory.context.store.database.execute(
            "insert into migration (number, name, learnt, applied_at) values (999, 'later', '9.9', 1)"
        )
    path = project / ".learnt" / "learnt.db"
    before = "" if database else path.read_bytes()

    for words in (["list"], ["add", "Test with `make test`"], ["export"], ["backup"]):
        done = learnt(*words)
        assert done.code == 2
        assert _is_clear(done)
        assert "9.9" in done.err
        assert "upgrade" in done.err
    assert learnt("doctor").code == 1
    with pytest.raises(NewerDatabase), Memory.open(project) as memory:
        memory.learnings()
    assert before == ("" if database else path.read_bytes())


# Far too much


@pytest.mark.parametrize("unit", ["x", "é\ud800\x00\x1b\u202e"], ids=["plain", "odd"])
def test_a_title_of_fifty_megabytes_is_refused_and_nothing_is_written(unit: str, project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        with pytest.raises(InvalidValue, match="title has"):
            memory.add(unit * (50_000_000 // len(unit)))
        assert memory.learnings(status=None).total == 0

    unit_in_json = json.dumps(unit)[1:-1].replace("\\u00e9", "é")
    record = '{"title": "' + unit_in_json * (50_000_000 // len(unit_in_json)) + '"}'
    done = learnt("add", "-", stdin=record)

    assert done.code == 2
    assert _is_clear(done)
    assert len(done.err) < 500
    assert json.loads(learnt("list", "--json").out)["total"] == 0


def _is_clear(done: Done) -> bool:
    """Say whether a failed command told one error with a way out, and nothing else."""
    lines = done.err.splitlines()
    one_error = sum(line.startswith("error: ") for line in lines) == 1
    return one_error and any(line.startswith("hint: ") for line in lines) and not done.out and "Trace" not in done.err


def _files(folder: Path) -> dict[str, Any]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
