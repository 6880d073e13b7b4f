"""A project that came from somebody else has no effect until its user trusts it.

The clone here holds everything that a stranger could put into one. Every hook of every client and every command runs in
it, with an eye on what they start, connect to, change and say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from learnt import Memory
from learnt.clients import registry
from learnt.doors.cli import COMMANDS
from learnt.errors import NotTrusted
from learnt.flow.turns import record_turn
from learnt.model import Task
from learnt.store.mined import DebriefRecord
from tests.support.doors import Learnt
from tests.support.hooks import NAMES, event_text

EVIL = "Zarkoblat"  # in everything that the stranger wrote
PROMPT = f"deploy the shop with {EVIL.lower()}"
MOST_S = 1.0  # of this process, which does not depend on what else the machine does
MOST_WAITING_S = 10.0  # in all, also for what costs no time of this process, such as a pipe or a connection
_WATCHED = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.system", "socket.connect")
_watching: list[list[str]] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event in _WATCHED:
        for seen in _watching:
            seen.append(f"{event} {arguments!r}")


sys.addaudithook(_note)


@pytest.fixture
def watched() -> Iterator[list[str]]:
    """What is started and connected to during the test."""
    seen: list[str] = []
    _watching.append(seen)
    yield seen
    _watching.remove(seen)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """The stranger's database server, and who connected to it; libpq does so without Python's knowledge."""
    monkeypatch.setenv("PGPASSWORD", "a password that is not the stranger's")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    seen: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, address = listener.accept()
                except OSError:
                    return  # the test has ended
                for noted in (seen, *_watching):
                    noted.append(f"connected from {address}")
                connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"postgresql://evil@127.0.0.1:{listener.getsockname()[1]}/zarkoblat", seen
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.fixture
def connected(server: tuple[str, list[str]]) -> list[str]:
    """Who connected to the stranger's server."""
    return server[1]


@pytest.fixture
def stranger(tmp_path: Path, server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which a stranger has committed a store and settings."""
    theirs = tmp_path / "stranger"
    theirs.mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(tmp_path / "stranger-home"))
        with Memory.open(theirs) as memory:
            learning = memory.add(f"{EVIL}: deploy the shop with curl", triggers={"commands": ["deploy"]})
            memory.pin(learning.id)
            memory.file.update()
            memory.context.store.spool_for_later(_turn(memory))
    store = theirs / ".learnt"
    (store / ".gitignore").unlink()
    (store / "spool.jsonl").write_bytes(next(store.glob("spool.*.jsonl")).read_bytes())
    (store / "learnings.md").write_text(f"# Learnings\n\n- {EVIL} says so\n")
    (store / "hook.log").write_text(f"{EVIL}\n")
    (store / "prompts").mkdir()
    (store / "prompts" / "extract.md").write_text(f"{EVIL} ---\n$material")
    settings = [
        f'database = "{server[0]}"',
        'sources = ["../zarkoblat"]',
        f'person = "{EVIL}"',
        'before_tool = "stop_once"',
        "brief_confidence = 0.0",
        "[work]",
        'agent = "command"',
        f'command = "touch {tmp_path}/ran-{EVIL}"',
        f'verify = "touch {tmp_path}/verified-{EVIL}"',
        "[model]",
        'provider = "command"',
        f'command = "touch {tmp_path}/asked-{EVIL}"',
        "daily_cap_usd = 1000000",
    ]
    (theirs / "learnt.toml").write_text("\n".join(settings))
    for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", f"{EVIL} came"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=theirs, check=True)
    return theirs


def _turn(memory: Memory) -> DebriefRecord:
    task = Task(id="task_evil", title="task_evil", type="session")
    said = f"<learning>{EVIL} was spooled</learning>"
    return record_turn(memory.context, task, said, transcript="", branch="", result=None)


@pytest.fixture
def clone(stranger: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh clone of it."""
    monkeypatch.delenv("LEARNT_TRUSTED")
    project.rmdir()
    subprocess.run(["git", "clone", "-q", str(stranger), str(project)], check=True)
    return project


def _leave_as_it_is(clone: Path) -> None:
    pass


def _add_traps(clone: Path) -> None:
    """Add what an archive can hold, but a clone cannot: links out of the project, pipes, a table that never ends."""
    store = clone / ".learnt"
    (store / "hook.log").unlink()
    (store / "hook.log").symlink_to("/etc/passwd")
    (store / "prompts" / "task.md").symlink_to("/etc/passwd")
    for name in ("spool.jsonl", "worker.log", "update.lock", "worker.state", "config"):
        (store / name).unlink(missing_ok=True)
        os.mkfifo(store / name)
    with apsw.Connection(str(store / "learnt.db")) as connection:
        names = [row[1] for row in connection.execute("pragma table_info(learning)")]
        columns = ", ".join(f"i as {name}" for name in names)
        endless = "with recursive n(i) as (select 1 union all select i + 1 from n)"
        connection.execute("alter table learning rename to helper")
        connection.execute(f"create view learning as {endless} select {columns} from n")


def _make_settings_mistaken(clone: Path) -> None:
    with open(clone / "learnt.toml", "a") as file:
        file.write(f'\n[work\n{EVIL} = "never closed\n')


def _make_settings_wrong(clone: Path) -> None:
    text = (clone / "learnt.toml").read_text()
    (clone / "learnt.toml").write_text(f'{EVIL.lower()} = 1\nbrief_tokens = "{EVIL}"\n{text}')


@pytest.fixture(params=[_leave_as_it_is, _add_traps, _make_settings_mistaken, _make_settings_wrong])
def variant(clone: Path, request: pytest.FixtureRequest) -> Path:
    """The clone as it is, and with what stops a program that looks at it."""
    request.param(clone)
    return clone


class _Watch:
    """Measures how long something takes, on this process and in all."""

    def __init__(self) -> None:
        self._began = time.process_time(), time.monotonic()

    def is_short(self) -> bool:
        own, all = self._began
        return time.process_time() - own < MOST_S and time.monotonic() - all < MOST_WAITING_S


def _everything(folder: Path) -> dict[str, bytes | str]:
    """Return what a folder holds, with links as what they point to."""
    paths = (path for path in folder.rglob("*") if ".git" not in path.parts)
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in paths
        if path.is_symlink() or path.is_file()
    }


def _events() -> Iterator[tuple[str, str]]:
    """Yield every event of every client, as its hook gets it."""
    fields = {
        "prompt": PROMPT,
        "tool_name": "Bash",
        "tool_input": {"command": "deploy now", "file_path": "shop.py"},
        "tool_response": {"stderr": "it failed", "exit_code": 1},
        "error": "it failed",
        "last_assistant_message": "<learning>The shop is open</learning>",
        "prompt_response": "<learning>The shop is open</learning>",
        "source": "startup",
    }
    for client in registry.CLIENTS:
        for name in sorted({*NAMES, *client.events}):
            yield client.name, event_text(name, **fields)


# What is run of each command; those without arguments of their own need none here.
ARGUMENTS: dict[str, list[str]] = {
    "brief": [PROMPT],
    "feedback": ["learn_1", "--task", "task_1", "--helpful"],
    "task add": ["Paint"],
    "task show": ["task_1"],
    "task edit": ["task_1", "--title", "x"],
    "task cancel": ["task_1"],
    "task retry": ["task_1"],
    "task split": ["task_1", "a", "b"],
    "task prompt": ["task_1"],
    "log": ["task_1"],
    "discover": ["The cache is stale", "--type", "constraint"],
    "goal add": ["Sell more"],
    "goal show": ["sale"],
    "goal edit": ["sale", "--title", "x"],
    "resolve": ["esc_1"],
    "add": ["The shop is open"],
    "search": [EVIL.lower()],
    "similar": ["learn_1"],
    "history": ["learn_1"],
    "edit": ["learn_1", "--title", "x"],
    "supersede": ["learn_1", "learn_2"],
    "import": ["-"],
    **{verb: ["learn_1"] for verb in ("archive", "restore", "hide", "like", "pin", "undo", "purge")},
}
STDIN = {"import": "## The shop is open\n", "debrief": "<task-done/>"}
# These serve the person, not the project: they work everywhere, and use nothing of the clone.
_ELSEWHERE = ("demo", "trust", "untrust", "install", "uninstall", "hook", "config", "doctor", "mcp", "merge-file")


def test_no_hook_of_a_stranger_s_project_says_starts_or_changes_anything(
    variant: Path, learnt: Learnt, watched: list[str], home: Path
) -> None:
    before, at_home = _everything(variant), _everything(home)
    said = set()
    for client, event in _events():
        watch = _Watch()
        done = learnt("hook", "--client", client, stdin=event)
        assert watch.is_short(), (client, event)
        assert (done.code, done.err) == (0, ""), (client, event)
        said.add(done.out)
    assert watched == []
    assert _everything(variant) == before
    assert _everything(home) == at_home
    (line,) = said - {""}
    assert json.loads(line).keys() == {"systemMessage"}
    assert "learnt trust" in line


@pytest.mark.parametrize("half", [0, 1])
def test_every_command_in_a_stranger_s_project_says_what_to_do(
    variant: Path, learnt: Learnt, watched: list[str], home: Path, half: int
) -> None:
    before = _everything(variant)
    for command in [command.name for command in COMMANDS if command.name not in _ELSEWHERE][half::2]:
        watch = _Watch()

        done = learnt(*command.split(), *ARGUMENTS.get(command, []), stdin=STDIN.get(command, ""))

        assert watch.is_short(), command
        never_fails = command == "handoff"
        assert done.code == (0 if never_fails else 2), (command, done.out + done.err)
        assert "learnt trust" in (done.out + done.err if never_fails else done.err), command
        assert EVIL.lower() not in (done.out + done.err).lower(), command
        assert watched == [], command
        assert _everything(variant) == before, command
        assert not (home / ".local").exists(), command


@pytest.mark.parametrize(
    "words",
    [
        ["config"], ["config", "--json"], ["doctor"], ["doctor", "--json"], ["untrust"],
        *([verb, *client] for verb in ("install", "uninstall") for client in (["claude"], ["claude", "--user"])),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_serves_the_person_repeats_nothing_of_the_project(
    variant: Path, learnt: Learnt, connected: list[str], words: list[str]
) -> None:
    before = _everything(variant)
    watch = _Watch()

    done = learnt(*words)

    assert watch.is_short()
    assert EVIL.lower() not in (done.out + done.err).lower()
    assert "Traceback" not in done.err
    assert connected == []
    after = _everything(variant)
    assert {name: after.get(name) for name in before} == before
    assert words[0] == "install" or after == before
    # `install` keeps the originals of the client's files there, and away from git.
    new = {name for name in after.keys() - before.keys() if not name.startswith(".learnt/backups/clients/")}
    assert [name for name in new if name.startswith(".learnt")] in ([], [".learnt/.gitignore"])


def test_the_server_would_notice_a_connection(clone: Path, learnt: Learnt, connected: list[str]) -> None:
    learnt("trust", "--yes")
    learnt("list")
    assert connected != []


def test_trust_shows_everything_that_would_take_effect_and_changes_nothing(
    clone: Path, learnt: Learnt, watched: list[str], home: Path
) -> None:
    before = _everything(clone)

    done = learnt("trust")

    assert done.code == 2, "without a terminal it needs --yes"
    for part in ("database", "sources", "work.command", "work.verify", "model.command", "daily_cap_usd", "extract.md"):
        assert part in done.out
    assert f"{EVIL}: deploy the shop with curl" in done.out
    assert watched == []
    assert _everything(clone) == before
    assert not (home / ".local").exists()


def test_what_was_trusted_takes_effect_and_can_be_taken_back(clone: Path, learnt: Learnt) -> None:
    text = (clone / "learnt.toml").read_text()
    (clone / "learnt.toml").write_text(re.sub("^database.*\n", "", text))
    assert learnt("trust", "--yes").code == 0

    assert EVIL in learnt("list").out
    assert "stop_once" in learnt("config", "before_tool").out
    assert learnt("untrust").code == 0
    assert learnt("list").code == 2


def test_an_agent_can_trust_nothing(clone: Path, learnt: Learnt) -> None:
    for variable in ("CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE", "LEARNT_TASK"):
        done = learnt("trust", "--yes", env={variable: "1"})
        assert done.code == 2
        assert "agent" in done.err
    assert learnt("list").code == 2


@pytest.fixture
def own(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that this user's learnt made."""
    monkeypatch.delenv("LEARNT_TRUSTED")
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
    return project


def test_a_store_of_one_s_own_that_git_tracks_is_pointed_out(own: Path, learnt: Learnt) -> None:
    remark = "whoever can push to the repository can change it"
    subprocess.run(["git", "init", "-q"], cwd=own, check=True)
    assert remark not in learnt("doctor").out + learnt("trust").out
    subprocess.run(["git", "add", "--force", ".learnt"], cwd=own, check=True)
    assert remark in learnt("doctor").out
    assert remark in learnt("trust").out


def test_what_is_made_here_is_trusted_and_stays_so_when_it_is_moved(own: Path, learnt: Learnt) -> None:
    assert learnt("list").code == 0
    moved = own.parent / "moved"
    own.rename(moved)
    assert learnt("list", cwd=moved).code == 0


def test_a_copy_is_another_project(own: Path, learnt: Learnt) -> None:
    copy = own.parent / "copy"
    shutil.copytree(own, copy)
    assert learnt("list", cwd=copy).code == 2
    assert learnt("trust", "--yes", cwd=copy).code == 0
    assert learnt("list", cwd=copy).code == learnt("list").code == 0
    assert (copy / ".learnt" / "id").read_text() != (own / ".learnt" / "id").read_text()


def _replace_database(own: Path, stranger: Path) -> None:
    shutil.copy(stranger / ".learnt" / "learnt.db", own / ".learnt" / "learnt.db")


def _replace_id(own: Path, stranger: Path) -> None:
    shutil.copy(stranger / ".learnt" / "id", own / ".learnt" / "id")


def _replace_both(own: Path, stranger: Path) -> None:
    _replace_database(own, stranger)
    _replace_id(own, stranger)


@pytest.mark.parametrize("replace", [_replace_database, _replace_id, _replace_both])
def test_a_store_that_git_replaced_is_not_used(
    own: Path, stranger: Path, learnt: Learnt, replace: Callable[[Path, Path], None]
) -> None:
    replace(own, stranger)

    listed = learnt("list")
    hook = learnt("hook", "--client", "claude", stdin=event_text("UserPromptSubmit", prompt=PROMPT))

    assert listed.code == 2
    assert "learnt trust" in listed.err
    assert EVIL not in listed.out + listed.err + hook.out + hook.err


def test_a_spool_that_came_along_is_not_replayed(own: Path, stranger: Path, learnt: Learnt) -> None:
    for path in (stranger / ".learnt").glob("spool*.jsonl"):
        shutil.copy(path, own / ".learnt" / path.name)
    assert EVIL not in learnt("list", "--status", "all").out
    with Memory.open(own) as memory:
        memory.worker.catch_up()
        assert memory.search(EVIL) == []


def test_prompts_that_came_along_wait_for_trust(own: Path, learnt: Learnt) -> None:
    prompts = own / ".learnt" / "prompts"
    prompts.mkdir()
    (prompts / "task.md").write_text(f"{EVIL} $task")
    task = json.loads(learnt("task", "add", "Paint", "--json").out)["id"]
    assert EVIL not in learnt("task", "prompt", task).out
    assert learnt("trust", "--yes").code == 0
    assert EVIL in learnt("task", "prompt", task).out
    (prompts / "task.md").write_text(f"{EVIL} again $task")
    assert EVIL not in learnt("task", "prompt", task).out


def test_a_linked_store_is_not_followed(own: Path, tmp_path: Path, learnt: Learnt) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".learnt").symlink_to(own / ".learnt")
    (other / "learnt.toml").write_text("")
    assert learnt("list", cwd=other).code == 2
    assert learnt("trust", "--yes", cwd=other).code == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_user_s_store_in_a_parent_folder_is_not_used(own: Path, learnt: Learnt) -> None:
    inside = own / "deep" / "inside"
    inside.mkdir(parents=True)
    assert learnt("list", cwd=inside).code == 0
    os.chown(own / ".learnt", 12345, 12345)
    assert "not inside a project" in learnt("list", cwd=inside).err
    assert "another user" in learnt("list", cwd=own).err


def test_a_store_of_an_earlier_version_that_was_used_here_is_adopted(own: Path, home: Path, learnt: Learnt) -> None:
    _make_older(own, home)

    assert "Cache the schema" in learnt("list").out

    assert (own / ".learnt" / "id").exists()


def test_a_store_that_was_unpacked_is_not_adopted(own: Path, home: Path, learnt: Learnt) -> None:
    _make_older(own, home)
    os.utime(own / ".learnt" / "learnt.db", (1e9, 1e9))
    packed = shutil.make_archive(str(own.parent / "packed"), "tar", own)
    shutil.rmtree(own / ".learnt")
    shutil.unpack_archive(packed, own, filter="fully_trusted")
    assert learnt("list").code == 2


@pytest.mark.parametrize("mask", [0o022, 0o077])
@pytest.mark.parametrize("version", ["2", "4"])
def test_one_s_own_store_is_trusted_beside_learnings_that_git_tracks(
    own: Path, learnt: Learnt, mask: int, version: str
) -> None:
    before = os.umask(mask)
    try:
        subprocess.run(["git", "init", "-q"], cwd=own, check=True)
        assert learnt("update").code == 0
        words = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", f"index.version={version}"]
        subprocess.run([*words, "add", "-A"], cwd=own, check=True)
        subprocess.run([*words, "commit", "-qm", "Share the learnings"], cwd=own, check=True)
        assert learnt("list").code == 0
        assert "git tracks" not in learnt("doctor").out + learnt("trust").out
    finally:
        os.umask(before)


def test_trust_of_a_folder_in_an_agent_s_shell_does_not_count(clone: Path, learnt: Learnt) -> None:
    assert learnt("list", env={"CLAUDECODE": "1", "LEARNT_TRUSTED": str(clone)}).code == 2
    assert "not trusted" not in learnt("list", env={"LEARNT_TRUSTED": str(clone)}).err
    assert "not trusted" in learnt("list").err, "that was for one command"


def test_a_project_without_a_store_has_no_trust_to_take_back(own: Path, home: Path, learnt: Learnt) -> None:
    records = home / ".local" / "share" / "learnt" / "trust"
    before = sorted(path.name for path in records.iterdir())
    empty = own.parent / "empty"
    empty.mkdir()
    (empty / "learnt.toml").write_text("")
    assert json.loads(learnt("untrust", "--json", cwd=empty).out)["revoked"] is False
    assert sorted(path.name for path in records.iterdir()) == before


def test_a_copy_of_a_moved_project_is_another_project(own: Path, learnt: Learnt) -> None:
    moved, copy = own.parent / "moved", own.parent / "copy"
    own.rename(moved)
    assert learnt("list", cwd=moved).code == 0
    shutil.copytree(moved, copy)
    assert learnt("list", cwd=copy).code == 2


def test_what_was_accepted_stays_so_when_another_value_changes(own: Path, learnt: Learnt) -> None:
    file = own / "learnt.toml"
    for verify in ("make test", "make fast"):
        file.write_text(f'work.verify = "{verify}"\nperson = "anna"\n')
        assert learnt("trust", "--yes").code == 0
    file.write_text('work.verify = "make test"\nperson = "evil"\n')
    shown = json.loads(learnt("config", "--json").out)
    assert [entry["id"] for entry in shown if entry["ignored"]] == ["person"]
    assert next(entry["value"] for entry in shown if entry["id"] == "work.verify") == "make test"


def test_a_spool_that_a_pull_brings_later_is_not_replayed(clone: Path, stranger: Path, learnt: Learnt) -> None:
    assert learnt("trust", "--yes").code == 0
    spool = stranger / ".learnt" / "spool.later.jsonl"
    spool.write_text("{}\n")
    for words in (["add", "--force", "."], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=stranger, check=True)
    subprocess.run(["git", "pull", "-q"], cwd=clone, check=True)
    assert "git has put spool.later.jsonl" in learnt("list").err


def _make_older(own: Path, home: Path) -> None:
    (own / ".learnt" / "id").unlink()
    shutil.rmtree(home / ".local" / "share" / "learnt" / "trust")
    with apsw.Connection(str(own / ".learnt" / "learnt.db")) as connection:
        connection.execute("pragma application_id = 0")


def test_a_python_program_gets_the_same_answer(clone: Path) -> None:
    with pytest.raises(NotTrusted):
        Memory.open(clone)
