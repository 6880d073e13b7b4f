"""A project whose tasks are worked on, for the loop's tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import Done

PATIENCE_S = 60


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


class Shop:
    """A project with tasks, worked on by the real command line."""

    def __init__(self, project: Path, learnt: Callable[..., Done]) -> None:
        self.folder = project
        self.learnt = learnt

    def agent(self, program: str, **settings: object) -> None:
        """Use a small Python program, which has its prompt in `prompt`, as the agent, and write the loop's settings."""
        script = self.folder / "agent.py"
        script.write_text(f"import os, sys, time\nprompt = sys.stdin.read()\n{program}\n")
        command = f"{sys.executable} {script} {{model}}"
        self.settle(**{"agent": "command", "command": command, **settings})

    def settle(self, **settings: object) -> None:
        """Write settings under `[work]`, and create the project's store."""
        lines = [f"work.{name} = {json.dumps(value)}" for name, value in settings.items()]
        file = self.folder / "learnt.toml"
        present = file.read_text() if file.exists() else ""
        file.write_text("\n".join([*lines, present]))
        done = self.learnt("init")
        assert done.code == 0, done.err

    def models(self, *names: str) -> None:
        """Configure the models to choose from, each more expensive than the one before."""
        for place, name in enumerate(names):
            self.model(name, price=place + 1)

    def model(self, name: str, **prices: float) -> None:
        """Configure one more model to choose from."""
        entry = [f'[[models]]\nname = "{name}"', *(f"{kind} = {price}" for kind, price in prices.items())]
        with (self.folder / "learnt.toml").open("a") as file:
            file.write("\n".join(["", *entry, ""]))

    def learn(self, title: str) -> dict[str, Any]:
        """Add a learning as a person does."""
        added: dict[str, Any] = json.loads(self.learnt("add", title, "--json").out)
        return added

    def learnings(self) -> list[dict[str, Any]]:
        """Return all learnings."""
        listed: list[dict[str, Any]] = json.loads(self.learnt("list", "--json").out)["learnings"]
        return listed

    def add(self, title: str, *words: str) -> str:
        done = self.learnt("task", "add", title, *words, "--json")
        assert done.code == 0, done.err
        return str(json.loads(done.out)["id"])

    def work(self, *words: str, code: int = 0) -> dict[str, Any]:
        done = self.learnt("work", *words, "--json")
        assert done.code == code, done.out + done.err
        summary: dict[str, Any] = json.loads(done.out)
        return summary

    def show(self, task: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.learnt("task", "show", task, "--json").out)
        return shown

    def repository(self) -> None:
        """Make the project a git repository with one commit."""
        self.git("init", "-q")
        (self.folder / ".gitignore").write_text("agent.py\nlearnt.toml\n.learnt\n")
        self.git("add", ".gitignore")
        self.git("commit", "-q", "-m", "start")

    def git(self, *words: str) -> str:
        names = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env={**os.environ, **names}, capture_output=True, text=True, check=True
        )
        return done.stdout
