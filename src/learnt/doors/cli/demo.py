"""Show the product at work: real commands, run one after the other in a throw-away project."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from learnt.doors.cli.screen import paint, say, show_json
from learnt.errors import LearntError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments of its own."""


def demo_run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="learnt-demo-") as folder:
        stage = _Stage(folder, quiet=arguments.json)
        _tell(stage)
    if arguments.json:
        show_json({"id": "demo", "commands": stage.commands})


def _tell(stage: _Stage) -> None:
    stage.say("A new project. Its learnings live in one SQLite file, out of git's sight.")
    if shutil.which("git"):
        stage.run("git init -q")
    stage.run("learnt init")
    stage.say("Somebody found out the hard way, and keeps it:")
    lint = stage.add(
        "Run `make lint` before each commit",
        "--action 'make lint && git commit' --tag git --kind gotcha --on-command 'git commit'",
    )
    stage.add("Integration tests need the fake mail server", "--action 'make mail-up first' --tag testing")
    stage.run("learnt list")
    stage.say("The rule changes, and then turns out not to have changed:")
    stage.run(f"learnt edit {lint} --title 'Run `make check` before each commit' --reason 'lint was renamed'")
    stage.run(f"learnt history {lint}")
    stage.run(f"learnt undo {lint} --reason 'it was not'")
    stage.run(f"learnt show {lint}")
    stage.say("Everything comes out as text, and a second import adds nothing:")
    stage.run("learnt export --format markdown --output learnings-export.md")
    stage.run("learnt import learnings-export.md")
    stage.run("learnt doctor")
    stage.say("Done. The project was a throw-away; nothing is left of it.")


class _Stage:
    """Runs commands in the throw-away folder, as a person would, and shows them."""

    def __init__(self, folder: str, *, quiet: bool) -> None:
        self._folder = os.path.join(folder, "shop")
        os.mkdir(self._folder)
        settings = ("LEARNT_", "XDG_")
        self._environ = {name: text for name, text in os.environ.items() if not name.startswith(settings)}
        self._environ["HOME"] = folder
        self._quiet = quiet
        self.commands: list[str] = []

    def say(self, text: str) -> None:
        if not self._quiet:
            say(f"\n{paint('# ' + text, 'bold')}")

    def add(self, title: str, options: str) -> str:
        shown = self.run(f"learnt add {shlex.quote(title)} {options} --json", show_output=False)
        learning = json.loads(shown)
        if not self._quiet:
            say(f"Added {learning['id']}: {learning['title']}")
        return str(learning["id"])

    def run(self, command: str, *, show_output: bool = True) -> str:
        self.commands.append(command)
        if not self._quiet:
            say(paint(f"$ {command.removesuffix(' --json')}", "cyan"))
        words = shlex.split(command)
        program = [sys.executable, "-m", "learnt"] if words[0] == "learnt" else words[:1]
        done = subprocess.run(
            [*program, *words[1:]], cwd=self._folder, env=self._environ, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LearntError(f"`{command}` failed: {done.stderr.strip()}", hint="`learnt doctor` may tell why")
        if show_output and not self._quiet and done.stdout:
            say(done.stdout.rstrip())
        return done.stdout
