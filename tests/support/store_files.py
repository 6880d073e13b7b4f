"""Every file that learnt opens in a store's folder, found by running its doors under an audit hook.

Python reports each path that it opens, lists, creates, renames or deletes; apsw reports each database. A path's ids,
numbers and random parts are replaced with words in braces, so that the list is the same each time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from learnt.store import Place
from tests.support.doors import Done, open_doors, work_here
from tests.support.hooks import CLIENTS, event_text

SETUP_CLIENTS = ("claude-code", "codex", "copilot", "gemini", "opencode", "aider")
_EVENTS = ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime", "os.chmod")
_PARTS = (
    (r"^worktrees/task_\w+/.*", "worktrees/{task}/…"),
    (r"\.[0-9a-f]{16}\.\d+\.unfinished", ".{random}.{pid}.unfinished"),
    (r"\.[0-9a-f]{16}\.new$", ".{random}.new"),
    (r"^(running|transcripts)/attempt_[0-9a-z]+/?.*", r"\1/{attempt}…"),
    (r"(attempt|task|learn)_[0-9a-z]+", r"{\1}"),
    (r"\d{8}T\d{6}Z-\w{6}\.db", "{moment}-{random}.db"),
    (r"damaged-\d{8}T\d{6}Z", "damaged-{moment}"),
    (r"^runs/\d+\.json", "runs/{pid}.json"),
    (r"^conversations/[0-9a-f]{2}\.lock", "conversations/{number}.lock"),
    (r"^backups/clients/[0-9a-f]{12}", "backups/clients/{digest}"),
    (r"^spool\.[0-9a-f]{8}\.", "spool.{key}."),
    (r"^errands/.*", "errands/{errand}.json"),
    (r"^seen/[0-9a-f]{16}-\d+-\d+", "seen/{status}"),
)
_AIDER = f"""#!{sys.executable}
import sys
for word in sys.argv:
    if "/running/" in word and not word.endswith("prompt.md"):
        with open(word, "a") as file:
            file.write("# aider chat\\n\\n#### sell\\n\\n<task-done/>\\n")
"""
_PAGE = 4096
_DATABASE_ENDINGS = ("", "-wal", "-shm", "-journal")

_seen: list[str] | None = None
_is_listening = False


class World:
    """A project with a store, learnings, settings and an agent that any door can serve."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, address: str = "") -> None:
        self.project = folder
        self.store = folder / ".learnt"
        self.address = address
        self.learnt = open_doors(folder)
        self.done: list[Done] = []
        self.clients: tuple[str, ...] = (*CLIENTS, "copilot")
        self.learning = ""
        self.id = ""
        monkeypatch.setattr(os, "posix_spawn", _refuse_to_spawn)

    def prepare(self) -> None:
        """Create the project."""
        self.project.mkdir(parents=True)
        git = ["git", "-c", "user.name=anna", "-c", "user.email=anna@example.org"]
        subprocess.run([*git, "init", "-q"], cwd=self.project, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], cwd=self.project, check=True)
        agent = f"{sys.executable} -c \"print('<task-done/>')\" {{prompt_file}}"
        server = f"database = {json.dumps(self.address)}\nproject = 'shop'\n" if self.address else ""
        (self.project / "learnt.toml").write_text(
            f"{server}learnings.injection_strategy = 'both'\nlearnings.enabled = true\n"
            f"work.agent = 'command'\nwork.isolation = 'worktree'\nwork.command = {json.dumps(agent)}\n"
        )
        assert self.run("init").code == 0
        (self.store / "prompts").mkdir()
        (self.store / "prompts" / "task.md").write_text("$title $text $brief $sigils\n")
        assert self.run("trust", "--yes").code == 0
        self.id = (self.store / "id").read_text().strip()
        added = self.run("add", "Cache the schema of the replica", "--json")
        self.learning = json.loads(added.out)["id"]
        self.run("add", "Cache the prices of the shop", "--goal", "sale")
        self.run("task", "add", "Sell something", "--goal", "sale")

    @property
    def spools(self) -> list[str]:
        """The names of the store's spool without ending: as it is now, and as it was before stores had ids."""
        place = Place(folder=str(self.store), address=self.address, project="shop", id=self.id)
        spools = (place.spool(), place.spool_without_id())
        return [Path(spool.refused_path).name.removesuffix(".refused.jsonl") for spool in spools]

    def run(self, *words: str, stdin: str = "") -> Done:
        """Run a command or a hook, and keep what it returned."""
        done = self.learnt(*words, stdin=stdin)
        self.done.append(done)
        return done

    def hook(self, client: str, name: str, **fields: object) -> Done:
        sent = {"timestamp": "2026-02-19T10:00:00.000Z"} if client == "copilot" else {}
        return self.run("hook", "--client", client, stdin=event_text(name, **fields, **sent))


def _refuse_to_spawn(*_: object, **__: object) -> int:
    raise OSError("no process must outlive a test")


def _serve_hooks(world: World) -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "make replica"}}
    for client in world.clients:
        world.hook(client, "SessionStart")
        world.hook(client, "UserPromptSubmit", prompt="cache the schema of the replica")
        world.hook(client, "PreToolUse", **call)
        world.hook(client, "PostToolUseFailure", **call, error="Exit code 2\nno replica")
        world.hook(client, "PreToolUse", tool_name="Agent", tool_input={"prompt": "cache the schema"})
        world.hook(client, "SubagentStart", agent_id="a1", agent_type="engineer")
        world.hook(client, "Stop", last_assistant_message="I cached it.")
        world.hook(client, "SessionEnd")


def _log_mistakes(world: World) -> None:
    """Let hooks report a mistake in the settings, in a log that is too long already."""
    if not os.path.lexists(world.store / "hook.log"):
        (world.store / "hook.log").write_text("x" * 200_000)
    with (world.project / "learnt.toml").open("a") as settings:
        settings.write('"a\\nb" = 1\n')
    world.hook("claude", "UserPromptSubmit", prompt="cache the schema of the replica")


def _start_worker(world: World) -> None:
    if not os.path.lexists(world.store / "worker.log"):
        (world.store / "worker.log").write_text("x" * 200_000)
    world.hook("claude", "Stop", last_assistant_message="I cached it.")


def _work_off(world: World) -> None:
    world.hook("claude", "Stop", last_assistant_message="I cached it.")
    taken = world.store / f"{world.spools[0]}.taken.jsonl"
    if not os.path.lexists(taken):
        taken.write_text("00000000 damaged\n")
    world.done.append(work_here(world.project))


def _write_files(world: World) -> None:
    world.run("update")
    if _has_plain_file(world):
        with (world.store / "learnings.md").open("a") as file:
            file.write("- Feed the replica\n")
    world.hook("claude", "UserPromptSubmit", prompt="feed the replica")
    world.run("update")
    world.run("show")
    world.run("clear")


def _has_plain_file(world: World) -> bool:
    path = world.store / "learnings.md"
    return _is_own(world.store) and path.is_file() and not path.is_symlink()


def _is_own(store: Path) -> bool:
    return not store.is_symlink() and store.stat().st_uid == os.geteuid()


def _restore(world: World) -> None:
    world.run("backup", "--output", str(world.project / "copy.db"))
    world.run("backup", "--restore", str(world.project / "copy.db"))
    path = world.store / "learnt.db"
    if _is_own(world.store) and path.is_file() and not path.is_symlink() and not world.address:
        path.write_bytes(b"x" * 5000)
    world.run("backup", "--restore", str(world.project / "copy.db"))


def _set_up_clients(world: World) -> None:
    for client in SETUP_CLIENTS:
        world.run("install", client)
    world.run("doctor")
    for client in SETUP_CLIENTS:
        world.run("uninstall", client)


def _run_agents(world: World) -> None:
    world.run("work", "--background")
    world.run("work", "--all")
    for words in (("status",), ("log",), ("stop",)):
        world.run(*words)
    _let_aider_work(world)


def _let_aider_work(world: World) -> None:
    program = world.project / "aider"
    program.write_text(_AIDER)
    program.chmod(0o755)
    environ = {"LEARNT_WORK_AGENT": "aider", "PATH": f"{world.project}:{os.environ['PATH']}"}
    world.learnt("task", "add", "Sell something else")
    world.done.append(world.learnt("work", "--all", env=environ))


def _purge(world: World) -> None:
    world.run("backup")
    world.run("update")
    world.hook("claude", "Stop", last_assistant_message=f"LEARNING_HELPFUL: {world.learning}")
    world.run("purge", world.learning, "--yes")


def _look(world: World) -> None:
    for words in (("list",), ("search", "replica"), ("brief", "cache the schema"), ("tidy",), ("doctor",), ("learn",)):
        world.run(*words)
    environ = {"LEARNT_LEARNINGS_REGENERATE_EVERY": "1"}
    world.done.append(world.learnt("debrief", "--task", "task_1", stdin="I cached it.\n<task-done/>\n", env=environ))
    world.run("export")


def _damage(world: World) -> None:
    """Damage the tables of a database whose schema is sound, so that it is noticed after opening."""
    path = world.store / "learnt.db"
    if path.is_file() and not path.is_symlink() and path.stat().st_uid == os.geteuid():
        content = path.read_bytes()
        pages = [content[start : start + _PAGE] for start in range(0, len(content), _PAGE)]
        path.write_bytes(b"".join(b"\xff" * 64 + page[64:] if b"Cache the " in page else page for page in pages))
    for words in (("list",), ("add", "Feed the replica"), ("doctor",)):
        world.run(*words)
    world.hook("claude", "Stop", last_assistant_message="I cached it.")


def _trust(world: World) -> None:
    """Take trust back and give it again, without the setting that trusts all projects of the tests."""
    for words in (("untrust",), ("list",), ("trust", "--yes"), ("list",), ("trust", "--json")):
        world.done.append(world.learnt(*words, env={"LEARNT_TRUSTED": "/nowhere"}))


def _adopt(world: World) -> None:
    """Let a store be one of an earlier version, whose files have no id."""
    path = world.store / "id"
    if path.is_file() and not path.is_symlink():
        path.unlink()
    for ending in ("jsonl", "taken.jsonl", "refused.jsonl"):
        spool = world.store / f"{world.spools[1]}.{ending}"
        if not os.path.lexists(spool):
            spool.write_text("00000000 damaged\n")
    world.run("list")
    world.done.append(work_here(world.project))


STEPS: dict[str, Callable[[World], None]] = {
    "look": _look,
    "hooks": _serve_hooks,
    "mistakes": _log_mistakes,
    "worker log": _start_worker,
    "worker": _work_off,
    "files": _write_files,
    "restore": _restore,
    "clients": _set_up_clients,
    "agents": _run_agents,
    "purge": _purge,
    "damage": _damage,
    "trust": _trust,
    "older": _adopt,
}


@contextmanager
def watch() -> Iterator[list[str]]:
    """Collect the paths that are opened, listed, created, renamed or deleted meanwhile."""
    global _seen, _is_listening  # noqa: PLW0603 - an audit hook can never be removed
    if not _is_listening:
        sys.addaudithook(_note)
        apsw.connection_hooks.append(_note_database)
        _is_listening = True
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _seen is not None and event in _EVENTS:
        paths = arguments[:2] if event == "os.rename" else arguments[:1]
        _seen.extend(os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike))


def _note_database(connection: apsw.Connection) -> None:
    if _seen is not None and connection.filename:
        _seen.extend(connection.filename + ending for ending in _DATABASE_ENDINGS)


def in_store(world: World, paths: list[str]) -> dict[str, str]:
    """Return the paths in a project's store by their general name."""
    root = os.path.join(str(world.store), "")
    own = {path.removeprefix(root) for path in map(os.path.normpath, paths) if path.startswith(root)}
    return {generalize(path): path for path in sorted(own)}


def generalize(path: str) -> str:
    """Return a path with its ids, numbers and random parts replaced."""
    for pattern, part in _PARTS:
        path = re.sub(pattern, part, path)
    return path


def new_world(folder: Path, monkeypatch: pytest.MonkeyPatch, address: str = "") -> World:
    """Return a prepared project."""
    world = World(folder, monkeypatch, address)
    world.prepare()
    world.done.clear()
    return world


def observe(folder: Path, monkeypatch: pytest.MonkeyPatch, address: Callable[[], str]) -> dict[str, set[str]]:
    """Run each step in a project of its own; return each file's general name with the steps that use it."""
    found: dict[str, set[str]] = {}
    for step in STEPS:
        for engine in ("", "server "):
            place = folder / f"{engine}{step}".replace(" ", "-")
            with watch() as paths:
                world = new_world(place, monkeypatch, address() if engine else "")
                take(engine + step, world)
            for name in in_store(world, paths):
                found.setdefault(name, set()).add(engine + step)
            shutil.rmtree(place)
    return found


def take(step: str, world: World) -> None:
    """Take a step; beside a server, the worker and hooks follow it."""
    STEPS[step.removeprefix("server ")](world)
    if step.startswith("server "):
        world.done.append(work_here(world.project))
        _serve_hooks(world)
