"""Show learnt at work: real commands and a small scripted agent, in a temporary project."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile

from learnt.doors.cli.arguments import Arguments
from learnt.doors.output import paint, say, show_json
from learnt.errors import LearntError

_BUILD = """import os, sys
if not os.path.exists("settings.ini"):
    sys.exit("error: settings.ini is missing; make_settings.py writes it")
open("shop.html", "w").write("<h1>Shop</h1>")
print("built")
"""
_MAKE_SETTINGS = 'open("settings.ini", "w").write("[shop]\\n")\n'
_CHECK = """import os, sys
sys.exit(0 if os.path.exists("shop.html") else "error: there is no shop.html")
"""
_SETTINGS = """[work]
agent = "command"
command = %s
isolation = "worktree"
jobs = 2

[[models]]
name = "small"
price = 0.05

[[models]]
name = "large"
price = 0.50
"""
_AGENT = [sys.executable, "-m", "learnt.doors.cli.demo_agent"]


def demo_run(arguments: Arguments) -> None:
    with tempfile.TemporaryDirectory(prefix="learnt-demo-") as folder:
        stage = _Stage(folder, quiet=arguments.json)
        _fail_learn_succeed(stage)
        _drop_bad_advice(stage)
        _change_by_hand(stage)
        _edit_the_file(stage)
        stage.say("Done. The project was temporary; nothing is left of it.")
    if arguments.json:
        show_json({"id": "demo", "commands": stage.commands})


def _fail_learn_succeed(stage: _Stage) -> None:
    stage.say("A git project. Its build has a catch that no agent knows: settings.ini must be created first.")
    for name, text in {"build.py": _BUILD, "make_settings.py": _MAKE_SETTINGS, "check.py": _CHECK}.items():
        stage.write(name, text)
    stage.write(".gitignore", "settings.ini\n.learnt/\n")
    stage.write("learnt.toml", _SETTINGS % json.dumps(shlex.join([*_AGENT, "{model}"])))
    stage.run("git init -q")
    stage.run("git add -A")
    stage.run("git -c user.name=demo -c user.email=demo@localhost commit -q -m 'The shop'")
    stage.run("learnt init")
    stage.say("Four tasks; two of them wait for others.")
    python = shlex.quote(sys.executable)
    check = f"--verify {shlex.quote(f'{python} check.py')}"
    build = stage.task("Build the shop", f"--goal release {check}")
    prices = stage.task("Write the price list", "--goal release")
    stage.task("Run build.py for the trade fair", f"--goal fair {check} --after {build} --after {prices}")
    stage.task("Run build.py for the web", f"--goal web {check} --after {build}")
    stage.run("learnt task graph")
    stage.say("Two agents work at once, each in a git worktree. The first build fails, and leaves a report and a")
    stage.more("learning; its retry is briefed and succeeds; the later builds, for other goals, succeed at once.")
    stage.run("learnt work --all")
    stage.say("What was learnt, what the attempts cost, and the brief that made the difference:")
    stage.run("learnt list")
    stage.run(f"learnt task show {build}")
    stage.run("learnt brief 'Build the shop once more'")


def _drop_bad_advice(stage: _Stage) -> None:
    stage.say("Someone adds bad advice. Agents get it, mark it as not helpful, and it disappears:")
    bad = stage.add("Paint the shop green before the sale", "--action 'Use green paint'")
    for number in (1, 2, 3):
        stage.work("Paint the shop for the sale", task=f"task_paint{number}", goal="fair", quietly=number > 1)
    stage.run(f"learnt show {bad}")
    stage.run("learnt brief 'Paint the shop for the sale' --task task_paint4")


def _change_by_hand(stage: _Stage) -> None:
    stage.say("People can see, change and undo everything:")
    lint = stage.add("Run `make lint` before each commit", "--tag git --kind gotcha --on-command 'git commit'")
    stage.run("learnt search 'git commit is rejected'")
    stage.run(f"learnt edit {lint} --title 'Run `make check` before each commit' --reason 'lint was renamed'")
    stage.run(f"learnt undo {lint} --reason 'it was not'")
    stage.run(f"learnt history {lint}")
    stage.run("learnt export --output learnings-export.md")
    stage.run("learnt import learnings-export.md")
    stage.run("learnt doctor")


def _edit_the_file(stage: _Stage) -> None:
    stage.say(
        "Everything is also in a file that people can edit. learnt updates it after every fifth task, or on demand:"
    )
    stage.run("learnt update")
    stage.say("Someone adds a line to it:")
    stage.append(".learnt/learnings.md", "- Never put prices into shop.html by hand\n")
    stage.run("learnt update")
    stage.run("learnt show")


class _Stage:
    """Runs commands in the temporary folder, as a person would, and shows them."""

    def __init__(self, folder: str, *, quiet: bool) -> None:
        self._folder = os.path.join(folder, "shop")
        os.mkdir(self._folder)
        settings = ("LEARNT_", "XDG_")
        self._environ = {name: text for name, text in os.environ.items() if not name.startswith(settings)}
        self._environ["HOME"] = folder
        self._environ["LEARNT_TRUSTED"] = folder  # the demo writes its settings itself
        # No background process must be running when the folder is deleted.
        self._environ["LEARNT_LEARNINGS_REGENERATE_EVERY"] = "0"
        self._quiet = quiet
        self.commands: list[str] = []

    def say(self, text: str) -> None:
        if not self._quiet:
            say(f"\n{paint('# ' + text, 'bold')}")

    def more(self, text: str) -> None:
        if not self._quiet:
            say(paint("# " + text, "bold"))

    def write(self, name: str, text: str) -> None:
        with open(os.path.join(self._folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def append(self, name: str, text: str) -> None:
        with open(os.path.join(self._folder, name), "a", encoding="utf-8") as file:
            file.write(text)
        if not self._quiet:
            say(paint(f"$ echo {shlex.quote(text.strip())} >> {name}", "cyan"))

    def add(self, title: str, options: str, *, command: str = "add") -> str:
        """Add a learning or a task, and return its id."""
        added = json.loads(self.run(f"learnt {command} {shlex.quote(title)} {options} --json", shows=False))
        if not self._quiet:
            say(f"Added {added['id']}: {added['title']}")
        return str(added["id"])

    def task(self, title: str, options: str) -> str:
        return self.add(title, options, command="task add")

    def work(self, text: str, *, task: str, goal: str, quietly: bool = False) -> None:
        """Brief the agent, let it work, and debrief it."""
        shows = not quietly
        prompt = self.run(f"learnt brief {shlex.quote(text)} --task {task} --goal {goal}", shows=shows)
        output = self._execute(_AGENT, f"{prompt}\nYour task: {text}\n")
        if shows and not self._quiet:
            say(paint("  the agent says:", "dim"))
            say("\n".join(f"  | {line}" for line in output.strip().splitlines()))
        self.run(f"learnt debrief --task {task} --agent engineer", stdin=output, shows=shows)

    def run(self, command: str, *, stdin: str = "", shows: bool = True) -> str:
        self.commands.append(command)
        if not self._quiet:
            say(paint(f"$ {command.removesuffix(' --json')}", "cyan"))
        words = shlex.split(command)
        program = [sys.executable, "-m", "learnt"] if words[0] == "learnt" else words[:1]
        output = self._execute([*program, *words[1:]], stdin, shows=shows)
        if shows and not self._quiet and output:
            say(output.rstrip())
        return output

    def _execute(self, words: list[str], stdin: str, *, shows: bool = False) -> str:
        done = subprocess.run(
            words, cwd=self._folder, env=self._environ, input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LearntError(
                f"`{shlex.join(words)}` failed: {done.stdout.strip()} {done.stderr.strip()}",
                hint="`learnt doctor` may show the reason",
            )
        if shows and not self._quiet and done.stderr:
            say(paint(done.stderr.rstrip(), "dim"))
        return done.stdout
