"""The list of commands: names, groups, one line each, and the module where each lives.

Help pages and the command reference come from this list. A module is imported only when its command runs.
"""

from __future__ import annotations

from learnt.model import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUPS = (
    "Start",
    "Around an agent's work",
    "Tasks",
    "The loop",
    "Learnings",
    "Change a learning",
    "In and out",
    "Upkeep",
)


_WORK = GROUPS[1]


class Command(Value):
    """One command: `learnt NAME`; a name of two words is a verb on a noun."""

    name: str
    group: str
    summary: str
    module: str

    def load(self, part: str) -> Any:
        """Return the command's `arguments` or `run` function from its module."""
        # Not by `importlib`: importing that costs more than the module.
        module = __import__(f"learnt.doors.cli.{self.module}", fromlist=[self.module])
        return getattr(module, f"{self.name.replace(' ', '_')}_{part}")


COMMANDS = (
    Command(name="init", group="Start", summary="Make this folder a project that keeps learnings", module="setup"),
    Command(name="demo", group="Start", summary="Show learnt at work in a throw-away project", module="demo"),
    Command(name="install", group="Start", summary="Let an agent client use learnt by itself", module="install"),
    Command(name="uninstall", group="Start", summary="Take learnt out of a client's settings", module="install"),
    Command(name="activity", group="Start", summary="Show what learnt did inside clients", module="activity"),
    Command(name="brief", group=_WORK, summary="Say what an agent should know before a task", module="loop"),
    Command(name="debrief", group=_WORK, summary="Read an agent's output (on stdin) after a task", module="loop"),
    Command(name="feedback", group=_WORK, summary="Say whether a learning helped with a task", module="loop"),
    Command(
        name="explain",
        group=_WORK,
        summary="Show why a brief says what it says, or what came of an attempt",
        module="explain",
    ),
    Command(name="hook", group=_WORK, summary="Serve an agent client: its event on stdin, a brief back", module="hook"),
    Command(name="mcp", group=_WORK, summary="Serve agent clients over the Model Context Protocol", module="mcp"),
    Command(name="task add", group="Tasks", summary="Queue a piece of work for an agent", module="tasks"),
    Command(name="task list", group="Tasks", summary="List what is open", module="tasks"),
    Command(name="task show", group="Tasks", summary="Show a task and the attempts at it", module="tasks"),
    Command(name="task edit", group="Tasks", summary="Change a task, or what it waits for", module="tasks"),
    Command(name="task cancel", group="Tasks", summary="Give a task up, and stop who works on it", module="tasks"),
    Command(name="task retry", group="Tasks", summary="Let a task be worked on again", module="tasks"),
    Command(name="task split", group="Tasks", summary="Cut a task into smaller ones", module="tasks"),
    Command(name="task graph", group="Tasks", summary="Show what waits for what", module="tasks"),
    Command(name="task prompt", group="Tasks", summary="Show what an agent would be sent", module="tasks"),
    Command(name="work", group="The loop", summary="Let agents work through the tasks", module="work"),
    Command(name="status", group="The loop", summary="Show who works on what", module="work"),
    Command(name="stop", group="The loop", summary="End the runs on this machine", module="work"),
    Command(name="log", group="The loop", summary="Show what happened in an attempt", module="work"),
    Command(name="strategy", group="The loop", summary="Show what each model did, and what is chosen", module="work"),
    Command(name="escalations", group="The loop", summary="Show what waits for a person", module="tasks"),
    Command(name="resolve", group="The loop", summary="Answer what waits for a person", module="tasks"),
    Command(name="add", group="Learnings", summary="Keep a new learning", module="learnings"),
    Command(name="list", group="Learnings", summary="List learnings, newest first", module="learnings"),
    Command(name="show", group="Learnings", summary="Show learnings.md, or one learning in full", module="learnings"),
    Command(name="search", group="Learnings", summary="Find learnings by their words and triggers", module="search"),
    Command(name="learn", group="Learnings", summary="Learn from past conversations and commits", module="learn"),
    Command(name="update", group="Learnings", summary="Learn from finished tasks, write learnings.md", module="files"),
    Command(name="clear", group="Learnings", summary="Delete learnings.md; the learnings stay", module="files"),
    Command(name="history", group="Learnings", summary="Show every change of a learning", module="learnings"),
    Command(name="review", group="Learnings", summary="Decide on what waits for you, one key each", module="review"),
    Command(name="stats", group="Learnings", summary="Show what the learnings did", module="stats"),
    Command(name="edit", group="Change a learning", summary="Change a learning's text or fields", module="learnings"),
    Command(name="archive", group="Change a learning", summary="Put a learning away", module="verbs"),
    Command(name="restore", group="Change a learning", summary="Make a learning active again", module="verbs"),
    Command(
        name="hide",
        group="Change a learning",
        summary="Keep a learning, or a warning, out of every brief",
        module="verbs",
    ),
    Command(name="like", group="Change a learning", summary="Say that a learning is good, once", module="verbs"),
    Command(name="pin", group="Change a learning", summary="Let a learning come first", module="verbs"),
    Command(name="supersede", group="Change a learning", summary="Replace a learning by another", module="verbs"),
    Command(name="undo", group="Change a learning", summary="Take back a change", module="verbs"),
    Command(
        name="purge",
        group="Change a learning",
        summary="Really delete a learning, or a warning, everywhere",
        module="verbs",
    ),
    Command(name="export", group="In and out", summary="Write all learnings as JSONL or Markdown", module="transfer"),
    Command(name="import", group="In and out", summary="Read exported learnings", module="transfer"),
    Command(name="backup", group="In and out", summary="Copy the whole store into one file", module="transfer"),
    Command(name="tidy", group="Upkeep", summary="Let unused learnings fade, and put old ones away", module="tidy"),
    Command(name="config", group="Upkeep", summary="Show every setting, its origin and its meaning", module="setup"),
    Command(name="usage", group="Upkeep", summary="Show what calls to models cost", module="stats"),
    Command(name="doctor", group="Upkeep", summary="Check the store and say what to do", module="doctor"),
)
