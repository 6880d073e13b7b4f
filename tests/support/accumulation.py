"""A project whose learnings accumulate: tasks that teach, and a learnings file that people edit."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from learnt import Memory
from learnt.flow.background import State
from learnt.learnings_file.read import parse
from learnt.model import Learning
from learnt.store.regenerations import Regeneration
from tests.support.service_stub import Reply, ServiceStub
from tests.support.shop import Shop

PATIENCE_S = 60
# An agent that reports one lesson, about the number in its task's title.
AGENT = """
number = prompt.split("# Task: Check ")[1].split("\\n")[0]
with open(f"prompt-{number}.txt", "w") as file: file.write(prompt)
print(f"Never run `bin/check{number}` with `STAGE=prod`: it deletes the data of till {number}.")
print(f"<task-done>checked {number}</task-done>")
"""


def lesson(number: int) -> str:
    """Return the lesson of the agent that worked on the task with this number, as it is in the file."""
    return f"Never run `bin/check{number}` with `STAGE=prod`: it deletes the data of till {number}"


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition that another process affects is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Workshop(Shop):
    """A project with tasks that teach, and a learnings file."""

    @property
    def path(self) -> Path:
        return self.folder / ".learnt" / "learnings.md"

    @property
    def text(self) -> str:
        """The learnings file's text; empty if there is no file."""
        return self.path.read_text() if self.path.exists() else ""

    @property
    def bullets(self) -> list[str]:
        return [bullet.text for bullet in parse(self.text).bullets]

    def queue(self, numbers: Sequence[int], **fields: Any) -> list[str]:
        """Add a task for each number; return their ids."""
        with self.open() as memory:
            return [memory.tasks.add(f"Check {number}", **fields).id for number in numbers]

    def done(self, numbers: Sequence[int], **fields: Any) -> list[str]:
        """Let the agent do a task for each number; return their ids."""
        ids = self.queue(numbers, **fields)
        assert self.work("--all")["done"] == len(ids)
        return ids

    def open(self) -> Memory:
        return Memory.open(self.folder)

    def state(self) -> State:
        with self.open() as memory:
            return memory.file.state()

    def made(self) -> list[Regeneration]:
        """Return the updates to the project's own file, oldest first."""
        with self.open() as memory:
            return [one for one in memory.file.regenerations()[::-1] if not one.goal and one.cause != "edit"]

    def wait(self, number: int) -> list[Regeneration]:
        """Wait until this many updates have ended."""

        def ended() -> bool:
            made = self.made()
            return len(made) >= number and all(one.result != "running" for one in made)

        until(ended, f"learnings.md was not made {number} times: {self.log()}")
        with self.open() as memory:
            until(lambda: not memory.file.is_updating(), "the last worker does not end")
        return self.made()

    def log(self) -> str:
        """Return the last worker's output."""
        log = self.folder / ".learnt" / "update.log"
        return log.read_text() if log.exists() else ""

    def update(self, *words: str, cwd: Path | None = None, code: int = 0) -> str:
        """Run `learnt update`; return its output."""
        done = self.learnt("update", *words, cwd=cwd)
        assert done.code == code, done.out + done.err
        return done.out + done.err

    def all(self) -> dict[str, Learning]:
        """Return all of the project's learnings by their titles."""
        with self.open() as memory:
            found = memory.learnings(status=None, limit=1000, scope="project").learnings
        return {learning.title: learning for learning in found}

    def everything(self) -> dict[str, object]:
        """Return everything that a failure must not change: the file, learnings with their events, pending material."""
        with self.open() as memory:
            found = memory.learnings(status=None, limit=1000, scope="project").learnings
            events = {one.id: memory.history(one.id) for one in found}
            rows = memory.context.store.database.rows(
                "select attempt, text from material where project = :project order by 1"
            )
            waiting = [(row["attempt"], row["text"]) for row in rows]
            return {
                "file": self.text,
                "all": found,
                "events": events,
                "asked": memory.tasks.escalations(),
                "left": waiting,
            }

    def settings(self, **settings: object) -> None:
        """Write settings; in a name, the first `_` stands for the dot after its section."""
        lines = [f"{name.replace('_', '.', 1)} = {_toml(value)}" for name, value in settings.items()]
        file = self.folder / "learnt.toml"
        present = file.read_text() if file.exists() else ""
        file.write_text("\n".join([*lines, present]))

    # Edits that a person makes to the file.

    def append(self, text: str) -> None:
        """Do what `echo "- …" >> learnings.md` does."""
        with self.path.open("a") as file:
            file.write(f"- {text}\n")

    def rewrite(self, old: str, new: str, path: Path | None = None) -> None:
        path = path or self.path
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new, 1))

    def delete(self, words: str, path: Path | None = None) -> None:
        """Delete the line with these words."""
        self.cut(words, path)

    def move(self, words: str, heading: str, path: Path | None = None) -> None:
        """Move the line with these words under a new heading at the end."""
        path = path or self.path
        line = self.cut(words, path)
        path.write_text(re.sub(r"(?m)^(?=<!-- learnt: )", f"## {heading}\n{line}\n\n", path.read_text(), count=1))

    def cut(self, words: str, path: Path | None = None) -> str:
        path = path or self.path
        lines = path.read_text().split("\n")
        (line,) = [line for line in lines if words in line]
        lines.remove(line)
        path.write_text("\n".join(lines))
        return line

    def versioned(self) -> None:
        """Make the project a git repository in which the learnings file is committed."""
        self.git("init", "-q", "-b", "main")
        (self.folder / ".gitignore").write_text("agent.py\nlearnt.toml\nprompt-*\n")
        self.git("add", ".gitignore")
        self.git("commit", "-q", "-m", "start")

    def commit(self, message: str, folder: Path | None = None) -> None:
        words = ["-C", str(folder)] if folder else []
        self.git(*words, "add", "-A")
        self.git(*words, "commit", "-q", "-m", message)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int | float) else f"'{value}'"


# Returns the replies in order, repeats the last one, and records each request with its sign.
PROGRAM = """
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
asked = os.path.join(here, "asked.jsonl")
with open(asked, "a") as file:
    file.write(json.dumps({"prompt": sys.stdin.read(), "internal": os.environ.get("LEARNT_INTERNAL")}) + "\\n")
replies = json.load(open(os.path.join(here, "replies.json")))
reply = replies[min(sum(1 for _ in open(asked)), len(replies)) - 1]
if reply["silent"]: time.sleep(600)
print(reply["text"], file=sys.stderr if reply["status"] != 200 else sys.stdout)
sys.exit(reply["status"] != 200)
"""


class Model:
    """The configured model inside the `with` block: a service that its real package calls, or a program."""

    def __init__(
        self, provider: str, folder: Path, patch: pytest.MonkeyPatch, *replies: Reply | str, **settings: object
    ) -> None:
        self._replies = [Reply(reply) if isinstance(reply, str) else reply for reply in replies]
        self._stub = ServiceStub(*self._replies) if provider != "command" else None
        self._provider = provider
        self._folder = folder / "model"
        self._patch = patch
        self._settings = {"input_price": 1.0, "output_price": 5.0, **settings}

    def __enter__(self) -> Self:
        if self._stub:
            self._stub.__enter__()
            address = self._stub.address + ("/v1" if self._provider == "openai" else "")
            settings = {"base_url": address, "name": "small", **self._settings}
            self._patch.setenv(f"{self._provider.upper()}_API_KEY", "key-of-a-test")
        else:
            self._folder.mkdir(exist_ok=True)
            (self._folder / "model.py").write_text(PROGRAM)
            (self._folder / "asked.jsonl").write_text("")
            replies = [{"text": one.text, "status": one.status, "silent": one.silent} for one in self._replies]
            (self._folder / "replies.json").write_text(json.dumps(replies))
            settings = {"command": f"{sys.executable} {self._folder / 'model.py'}", **self._settings}
        for name, value in {"provider": self._provider, **settings}.items():
            self._patch.setenv(f"LEARNT_MODEL_{name.upper()}", str(value))
        return self

    def __exit__(self, *error: object) -> None:
        if self._stub:
            self._stub.__exit__(*error)

    @property
    def asked(self) -> list[str]:
        """The complete requests."""
        if self._stub:
            return [_said(one.body) for one in self._stub.asked]
        return [json.loads(line)["prompt"] for line in (self._folder / "asked.jsonl").read_text().splitlines()]

    @property
    def signs(self) -> list[str]:
        """For a program: the value, in each call, of the variable that marks calls from learnt."""
        return [json.loads(line)["internal"] for line in (self._folder / "asked.jsonl").read_text().splitlines()]


def _said(body: dict[str, Any]) -> str:
    texts = [body.get("system", ""), *(message["content"] for message in body["messages"])]
    return "\n".join(text if isinstance(text, str) else json.dumps(text) for text in texts)
