"""A project in which a real client works with learnt: only the client's program and `learnt` change anything.

The model is ours. Tests check the requests that it receives, because text that a client does not pass on is useless.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import learnt
from learnt.flow.background import WORKER_LOCK
from learnt.system.files import Locked
from tests.conftest import Done, command_line
from tests.support import real_clients
from tests.support.model_stub import ModelStub, Reply

MODELS = {
    "claude": "claude-sonnet-4-5",
    "codex": "gpt-5-codex",
    "copilot": "claude-sonnet-4.5",
    "gemini": "gemini-2.5-flash",
    "opencode": "stub/stub-model",
}
SHELLS = {
    "claude": "Bash",
    "codex": "exec_command",
    "copilot": "bash",
    "gemini": "run_shell_command",
    "opencode": "bash",
}
# opencode alone takes 9 s of processor time to start, and more for each call: many times that on a busy machine.
PATIENCE_S = 900

# Records its arguments, and succeeds only with the right ones.
SHIP = """#!/bin/sh
echo "$*" >> shipped.txt
case "$1" in
--safe) echo "shipped" ;;
*) echo "ship: unknown option $1" >&2; exit 2 ;;
esac
"""


class Story:
    """A client in a project, and its model."""

    def __init__(self, client: str, folder: Path, stub: ModelStub) -> None:
        program = self.program(client)
        self.client = client
        self.stub = stub
        self.project, self.home = folder / "shop", folder / "home"
        for made in (self.project, self.home, folder / "tmp"):
            made.mkdir()
        self.environ = {
            "PATH": os.pathsep.join((str(_learnt(folder / "bin")), str(program), os.environ["PATH"])),
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": _source(),
            "LEARNT_HOOK_DEADLINE_MS": "5000",  # because the machine may be busy
            "LEARNT_LEARNINGS_REGENERATE_EVERY": "0",
            **real_clients.settle(client, self.home, stub.address, self.project),
        }
        self._learnt = command_line(self.project, self.environ)
        ship = self.project / "ship"
        ship.write_text(SHIP)
        ship.chmod(0o755)
        subprocess.run(["git", "init", "-q"], cwd=self.project, check=True)

    def program(self, client: str) -> Path:
        """Return the folder of the client's program."""
        found = real_clients.program(client)
        if isinstance(found, real_clients.Unavailable):
            pytest.skip(f"no {client}: {found}")
        return found.parent

    def learnt(self, *words: str, stdin: str = "", **environ: str) -> str:
        """Return the output of a learnt command."""
        done = self._learnt(*words, stdin=stdin, env=environ)
        assert done.code == 0, done.out + done.err
        return done.out

    def examined(self, *, environ: Mapping[str, str] = MappingProxyType({}), folder: str = "") -> Done:
        """Return the result of `learnt doctor`, in the project or in a folder of it."""
        return self._learnt("doctor", env=dict(environ), cwd=self.project / folder)

    def told(self, *words: str, **environ: str) -> Any:
        """Return the JSON output of a learnt command."""
        return json.loads(self.learnt(*words, "--json", **environ))

    def converse(
        self,
        prompt: str,
        *replies: Reply,
        choose: Callable[[str], Reply | None] = lambda body: None,
        words: tuple[str, ...] = (),
        environ: Mapping[str, str] = MappingProxyType({}),
        folder: str = "",
    ) -> list[str]:
        """Have a new conversation with the client, in the project or in a folder of it.

        Return all texts in each request that its model received.
        """
        self.begin(*replies, choose=choose)
        done = subprocess.run(
            [*self.start(), *words],
            cwd=self.project / folder,
            input=prompt,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.settle()
        return self.asked()

    def begin(self, *replies: Reply, choose: Callable[[str], Reply | None] = lambda body: None) -> None:
        """Let the model start again with another script."""
        # If opencode could not fetch a package for its plugins, its next start waits a minute for the previous one.
        shutil.rmtree(self.home / ".local" / "state" / "opencode" / "locks", ignore_errors=True)
        self.stub.begin(*replies, choose=choose)

    def asked(self) -> list[str]:
        """Return all texts in each request that offered tools to the model."""
        bodies = [json.loads(asked.body) for asked in self.stub.asked]
        return ["\n".join(texts(body)) for body in bodies if body.get("tools")]

    @contextmanager
    def garbled_hooks(self) -> Iterator[None]:
        """Let our hooks answer in a form that no client knows."""
        shim = self.project.parent / "bin" / "learnt"
        settings = self.home / ".gemini" / "settings.json"  # what is set up for the user has no program of the project
        kept = {path: path.read_text() for path in (shim, settings) if path.exists()}
        garbled = "sed 's/hookSpecificOutput/unknown/; s/additionalContext/text/g; s/\"[a-zA-Z]*ecision/\"what/g'"
        shim.write_text(kept[shim].replace("exec ", "").replace('"$@"', f'"$@" | {garbled}'))
        if settings in kept:
            settings.write_text(re.sub(r"[^\s\"']*/learnt(?= hook)", str(shim), kept[settings]))
        try:
            yield
        finally:
            for path, content in kept.items():
                path.write_text(content)

    def settle(self) -> None:
        """Wait until the worker has processed everything that the hooks saved."""
        lock = str(self.project / ".learnt" / WORKER_LOCK)
        with Locked(lock):
            pass
        # A worker that has not begun yet then finds nothing to do; a worker that has begun does everything.
        words = (sys.executable, "-P", "-m", "learnt.doors.worker", str(self.project))
        done = subprocess.run(words, env=self.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with Locked(lock):
            pass

    def start(self) -> tuple[str, ...]:
        """Return the command line that starts the client with one prompt on stdin and without questions."""
        return {
            "claude": ("claude", "-p", "--allowedTools", "Bash", "--model", MODELS["claude"]),
            "codex": ("codex", "exec", "--skip-git-repo-check", "--sandbox", "workspace-write"),
            "copilot": ("copilot", "--allow-all-tools", "--silent"),
            "gemini": ("gemini", "--approval-mode", "yolo", "--model", MODELS["gemini"]),
            "opencode": ("opencode", "run", "--title", "A title", "--model", MODELS["opencode"]),
        }[self.client]

    def runs(self, line: str, *, saying: str = "") -> Reply:
        """Return a reply in which the model runs a command."""
        arguments = {"cmd" if self.client == "codex" else "command": line, "description": "run"}
        return Reply(saying, tool=SHELLS[self.client], arguments=arguments)

    def recalls(self, query: str) -> Reply:
        """Return a reply in which the model calls our server."""
        names = {
            "claude": "mcp__learnt__recall",
            "codex": "recall",
            "copilot": "learnt-recall",
            "gemini": "mcp_learnt_recall",
        }
        return Reply(
            tool=names.get(self.client, "learnt_recall"),
            namespace="mcp__learnt" if self.client == "codex" else "",
            arguments={"query": query},
        )

    def shipped(self) -> list[str]:
        """Return the script's calls since the last call of this method, in order."""
        path = self.project / "shipped.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


def texts(found: object) -> Iterator[str]:
    """Yield all texts in a JSON value, as a model reads them."""
    if isinstance(found, str):
        yield html.unescape(found)
    elif isinstance(found, dict | list):
        for inner in found.values() if isinstance(found, dict) else found:
            yield from texts(inner)


def approve_hooks(story: Story) -> None:
    """Trust the project and its current hooks, as a person does in Codex."""
    config = story.home / ".codex" / "config.toml"
    config.write_text(f'{config.read_text()}\n[projects."{story.project}"]\ntrust_level = "trusted"\n')
    client = {"clientInfo": {"name": "test", "version": "1"}}
    questions: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(story.project)]}},
    ]
    with subprocess.Popen(
        ["codex", "app-server"],
        cwd=story.project,
        env=story.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(question) + "\n" for question in questions))
        server.stdin.flush()
        answer = next(told for line in server.stdout if (told := json.loads(line)).get("id") == 2)
        server.kill()
    hooks = [hook for one in answer["result"]["data"] for hook in one["hooks"]]
    trusted = [f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n' for hook in hooks]
    config.write_text("\n".join([config.read_text(), *trusted]))


def _source() -> str:
    return str(Path(learnt.__file__).parents[1])


def _learnt(folder: Path) -> Path:
    """Create a folder for PATH with this learnt, because a client may pass few variables on to its processes."""
    folder.mkdir()
    shim = folder / "learnt"
    shim.write_text(f'#!/bin/sh\nPYTHONPATH="{_source()}" exec "{sys.executable}" -P -m learnt "$@"\n')
    shim.chmod(0o755)
    return folder
