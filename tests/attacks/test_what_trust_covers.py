"""Trust covers what was shown, and nothing that comes later in its place."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from learnt import Memory, trust
from learnt.flow.project_trust import ProjectTrust
from learnt.flow.turns import record_turn
from learnt.model import Task
from learnt.project import find_project
from tests.support.doors import Learnt

EVIL = "Zarkoblat"
_PAGE = 4096


@pytest.fixture(autouse=True)
def _nothing_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEARNT_TRUSTED")


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which a stranger has committed a store."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    _as_stranger(folder, monkeypatch, lambda memory: memory.add("Keep the shop tidy"))
    (folder / ".learnt" / ".gitignore").unlink()
    _commit(folder, "init", "-q")
    return folder


def _as_stranger(folder: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Memory], object]) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(folder.parent / "stranger-home"))
        with Memory.open(folder) as memory:
            act(memory)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=folder, check=True)


def _commit(folder: Path, *first: str) -> None:
    if first:
        _git(folder, *first)
    _git(folder, "add", "-f", ".")
    _git(folder, "commit", "-qm", "more")


def _clone(theirs: Path, project: Path) -> Path:
    shutil.rmtree(project, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", str(theirs), str(project)], check=True)
    return project


def _change_schema(theirs: Path, sql: str) -> None:
    connection = apsw.Connection(str(theirs / ".learnt" / "learnt.db"))
    connection.execute(sql)
    connection.close()
    _commit(theirs)


# ── what was shown ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_commands_of_tasks_that_came_along_are_shown(
    theirs: Path, project: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    _as_stranger(theirs, monkeypatch, lambda memory: memory.tasks.add("Paint", verify=f"touch {EVIL}"))
    _commit(theirs)
    _clone(theirs, project)

    shown = learnt("trust").out

    assert "1 task" in shown
    assert f"touch {EVIL}" in shown


def test_the_value_of_the_project_is_shown_and_not_that_of_the_environment(project: Path, learnt: Learnt) -> None:
    (project / "learnt.toml").write_text(f'work.verify = "touch {EVIL}"\n')
    assert f"touch {EVIL}" in learnt("trust", env={"LEARNT_WORK_VERIFY": "make test"}).out


def test_a_store_with_an_older_schema_is_shown_too(theirs: Path, project: Path, learnt: Learnt) -> None:
    stored = Path(__file__).parents[1] / "golden" / "stored" / "learnt.db.gz"
    (theirs / ".learnt" / "learnt.db").write_bytes(gzip.decompress(stored.read_bytes()))
    _commit(theirs)
    _clone(theirs, project)
    before = (project / ".learnt" / "learnt.db").read_bytes()

    shown = learnt("trust").out

    assert "learning" in shown
    assert "cannot be read" not in shown
    assert (project / ".learnt" / "learnt.db").read_bytes() == before


@pytest.mark.parametrize(
    "sql",
    [
        f"create trigger helper after insert on task begin update task set verify = 'touch {EVIL}'; end",
        "create view helper as with recursive n(i) as (select 1 union all select i + 1 from n) select i from n",
        "alter table learning rename to helper; create view learning as select * from helper",
        f"alter table task add column more text default '{EVIL}'",
    ],
    ids=["a trigger", "an endless view", "a view in place of a table", "another column"],
)
def test_a_database_that_does_more_than_ours_cannot_be_trusted(
    theirs: Path, project: Path, learnt: Learnt, sql: str
) -> None:
    _change_schema(theirs, sql)
    _clone(theirs, project)

    done = learnt("trust", "--yes")

    assert done.code == 2
    assert "which learnt did not make" in done.out
    assert learnt("list").code == 2


def test_what_changes_between_the_question_and_the_answer_is_not_accepted(
    theirs: Path, project: Path, learnt: Learnt
) -> None:
    (theirs / "learnt.toml").write_text('work.verify = "make test"\n')
    _commit(theirs)
    here = find_project(str(_clone(theirs, project)))
    assert here is not None
    question = ProjectTrust(here).preview()

    (project / "learnt.toml").write_text(f'work.verify = "touch {EVIL}"\n')
    ProjectTrust(here).grant(question)

    assert EVIL not in learnt("config", "work.verify").out


def test_looking_at_a_store_changes_nothing_of_it(theirs: Path, project: Path, learnt: Learnt) -> None:
    _plant_journal(theirs / ".learnt" / "learnt.db")
    _commit(theirs)
    _clone(theirs, project)
    before = {path.name: path.read_bytes() for path in (project / ".learnt").iterdir()}

    done = learnt("trust", "--yes")

    assert done.code == 2
    assert "learnt.db-journal" in done.out
    assert {path.name: path.read_bytes() for path in (project / ".learnt").iterdir()} == before


# ── what comes later ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_store_whose_id_its_author_knows_cannot_be_replaced(
    theirs: Path, project: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    _clone(theirs, project)
    assert learnt("trust", "--yes").code == 0
    _as_stranger(theirs, monkeypatch, lambda memory: memory.add(f"{EVIL} says so"))
    _commit(theirs)

    _git(project, "checkout", "-q", ".")
    _git(project, "pull", "-q")

    assert learnt("list").code == 2
    _clone(theirs, project)  # nor after it has been removed and cloned again
    assert learnt("list").code == 2


def test_records_that_wait_are_kept_when_trust_was_taken_back_for_a_while(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
        task = Task(id="task_1", title="task_1", type="session")
        said = "<learning>The queue drops messages that are older than a day</learning>"
        record = record_turn(memory.context, task, said, transcript="", branch="", result=None)
        memory.context.store.spool_for_later(record)
    assert learnt("untrust").code == 0

    shown = learnt("trust", "--yes")

    assert "1 pending record" in shown.out
    assert "The queue drops messages" in learnt("list", "--status", "all").out


@pytest.mark.parametrize("name", ["learnt.db-wal", "learnt.db-journal", "learnt.db.damaged"])
def test_a_log_that_git_brought_is_not_played(
    theirs: Path, project: Path, learnt: Learnt, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(theirs / ".learnt")
    _commit(theirs)
    _clone(theirs, project)
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
    _as_stranger(theirs, monkeypatch, lambda memory: memory.pin(memory.add(f"{EVIL} says so").id))
    evil = (theirs / ".learnt" / "learnt.db").read_bytes()
    shutil.rmtree(theirs / ".learnt")
    (theirs / ".learnt").mkdir()
    plant = {"learnt.db-wal": _as_log(evil), "learnt.db-journal": _as_journal(evil), "learnt.db.damaged": b""}[name]
    (theirs / ".learnt" / name).write_bytes(plant)
    _commit(theirs)
    _git(project, "pull", "-q")

    listed = learnt("list")

    assert listed.code == 2
    assert f"git has put {name}" in listed.err
    assert EVIL not in learnt("brief", EVIL).out
    _git(project, "rm", "-q", "--cached", f".learnt/{name}")
    (project / ".learnt" / name).unlink()
    assert "Cache the schema" in learnt("list").out


def test_a_journal_is_not_played_although_git_does_not_track_it(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
    _plant_journal(project / ".learnt" / "learnt.db")
    listed = learnt("list")
    assert listed.code == 1
    assert "learnt.db-journal" in listed.err


def _as_log(content: bytes) -> bytes:
    """Return a write-ahead log that replaces every page of a database but the first, which has its stamp."""
    last = len(content) // _PAGE
    header = struct.pack(">6I", 0x377F0682, 3007000, _PAGE, 0, 1, 2)
    sums = _sum(header, (0, 0))
    log = header + struct.pack(">2I", *sums)
    for number in range(2, last + 1):
        frame = struct.pack(">2I", number, last if number == last else 0)
        page = content[(number - 1) * _PAGE : number * _PAGE]
        sums = _sum(page, _sum(frame, sums))
        log += frame + struct.pack(">4I", 1, 2, *sums) + page
    return log


def _sum(content: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    for one, two in struct.iter_unpack("<2I", content):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second


def _as_journal(content: bytes) -> bytes:
    """Return a rollback journal that replaces every page of a database but the first."""
    last = len(content) // _PAGE
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", last - 1, 0, last, 512, _PAGE)
    journal = header.ljust(512, b"\0")
    for number in range(2, last + 1):
        page = content[(number - 1) * _PAGE : number * _PAGE]
        journal += struct.pack(">I", number) + page + struct.pack(">I", sum(page[_PAGE - 200 : 0 : -200]))
    return journal


def _plant_journal(database: Path) -> None:
    database.with_name("learnt.db-journal").write_bytes(_as_journal(database.read_bytes()))


# ── a store that looks as if it had been used here ───────────────────────────────────────────────────────────────────


def test_a_store_that_is_a_submodule_is_not_adopted(theirs: Path, project: Path, learnt: Learnt) -> None:
    _make_older(theirs)
    store = theirs.parent / "store"
    shutil.copytree(theirs / ".learnt", store)
    _commit(store, "init", "-q")
    shutil.rmtree(theirs / ".learnt")
    _commit(theirs)
    _git(theirs, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(store), ".learnt")
    _commit(theirs)
    shutil.rmtree(project)
    allow = ["-c", "protocol.file.allow=always"]
    subprocess.run(["git", *allow, "clone", "-q", "--recursive", str(theirs), str(project)], check=True)
    assert learnt("list").code == 2


def _make_older(folder: Path) -> None:
    (folder / ".learnt" / "id").unlink()
    connection = apsw.Connection(str(folder / ".learnt" / "learnt.db"))
    connection.execute("pragma application_id = 0")
    connection.close()


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_index_says_what_git_tracks(tmp_path: Path, version: str, kind: str) -> None:
    _git(tmp_path, "init", "-q", f"--object-format={kind}")
    names = [".gitattributes", ".learnt/learnings.md", ".learnt/learnings/a.md", "sub/.learnt/id", "z"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    _git(tmp_path, "add", ".")
    if version == "3":
        (tmp_path / "soon").write_text("")
        _git(tmp_path, "add", "-N", "soon")
    _git(tmp_path, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x")  # the index has a tree, too
    _git(tmp_path, "update-index", "--index-version", version)
    store = str(tmp_path / ".learnt")
    assert trust.is_tracked(store) is (None if version == "4" else False)
    (tmp_path / ".learnt" / "id").write_text("")
    _git(tmp_path, "add", ".")
    assert trust.is_tracked(store) is (None if version == "4" else True)


def _copies(theirs: Path, *names: str) -> list[Path]:
    folder = theirs.parent / "many"
    folder.mkdir()
    for name in names:
        subprocess.run(["git", "clone", "-q", str(theirs), str(folder / name)], check=True)
    return [folder / name for name in names]


def test_one_project_with_problems_does_not_keep_the_others_from_being_trusted(theirs: Path, learnt: Learnt) -> None:
    first, linked, mistaken, last = _copies(theirs, "a", "b", "c", "d")
    (linked / ".learnt" / "hook.log").symlink_to("/etc/passwd")
    (mistaken / "learnt.toml").write_text("brief_confidence = [[[\n")

    done = learnt("trust", "--all", str(first.parent), "--yes")

    assert done.code == 2
    assert str(linked) in done.err
    assert [learnt("list", cwd=folder).code for folder in (first, linked, last)] == [0, 2, 0]


def test_a_folder_with_settings_inside_a_project_does_not_list_it_twice(theirs: Path, learnt: Learnt) -> None:
    [only] = _copies(theirs, "a")
    (only / "docs").mkdir()
    (only / "docs" / "learnt.toml").write_text("")
    done = learnt("trust", "--all", str(only.parent), "--yes")
    assert (done.code, done.out.count("Trusted ")) == (0, 1)


def test_folders_that_the_user_s_own_file_names_are_trusted_and_no_others(
    theirs: Path, home: Path, learnt: Learnt
) -> None:
    named, other = _copies(theirs, "a", "b")
    (other / "learnt.toml").write_text(f'trusted = ["{other}"]\n')
    file = home / ".config" / "learnt" / "learnt.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'trusted = ["{named}"]\n')
    assert [learnt("list", cwd=folder).code for folder in (named, other)] == [0, 2]
