"""Commands for learnings.md: update, clear; and what `show` and `history` tell of it."""

from __future__ import annotations

import os
import sys

from learnt.doors.cli.arguments import open_memory, tell_redactions
from learnt.doors.cli.screen import counted, is_terminal, moment, note, paint, say, show_json
from learnt.errors import LearntError, WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from learnt.flow.background import State
    from learnt.flow.learnings_file import FileUpdate, Update
    from learnt.memory import Memory
    from learnt.store.regenerations import Regeneration

_MOST_TOLD = 20
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def update_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--window", type=int, metavar="N", help="from how many recent tasks; default: `window_size`")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change, as a diff")


def update_run(arguments: argparse.Namespace) -> None:
    by_itself = bool(os.environ.get("LEARNT_INTERNAL"))
    with open_memory(arguments, in_a_hurry=by_itself) as memory:
        if by_itself:
            _update_in_background(memory)
            return
        update = memory.file.update(window=arguments.window, dry_run=arguments.dry_run)
        if not arguments.dry_run:
            memory.file.update_when_due()  # for tasks that were finished meanwhile: whoever did found us at it
    tell_redactions(memory)
    for remark in update.remarks:
        note(remark)
    if arguments.json:
        show_json(_record(update))
    elif arguments.dry_run:
        _preview(update)
    else:
        _tell(update)


def _update_in_background(memory: Memory) -> None:
    """Make the files on behalf of nobody: the reason for a failure stands in the history."""
    from learnt.doors.deadline import Deadline

    limit_s = memory.settings.learnings_time_limit_s
    try:
        with Deadline((limit_s + 60) * 1000):  # for whatever does not heed the limit by itself
            while memory.file.state().is_due:  # others may finish as many tasks meanwhile
                memory.file.update(cause="count", limit_s=limit_s)
    except LearntError as error:
        note(f"{error.message}; {error.hint}")


def _record(update: Update) -> dict[str, Any]:
    return {
        "id": update.id,
        "files": [
            {
                "path": file.path,
                "goal": file.goal,
                "changed": file.is_new,
                "added": list(file.delta.added),
                "removed": list(file.delta.removed),
                "kept": len(file.delta.kept),
                "churn": round(file.delta.churn, 4),
                "left_out": list(file.left_out),
                "diff": file.diff,
            }
            for file in update.files
        ],
        "mined": [one.as_dict() for one in update.mined],
        "taken": [one.as_dict() for one in update.taken],
        "waiting": update.waiting,
        "cost_usd": update.cost_usd,
        "remarks": list(update.remarks),
    }


def _tell_taken(update: Update, what: str) -> None:
    """Say which edits of people were taken over."""
    if update.taken:
        say(f"{what}:")
    for one in update.taken[:_MOST_TOLD]:
        say(f"  {one.what:<8} {one.id}  {one.text}")
    if len(update.taken) > _MOST_TOLD:
        say(f"  … and {len(update.taken) - _MOST_TOLD} more; `learnt history ID` tells of each")


def _preview(update: Update) -> None:
    _tell_taken(update, "Would be taken over from the file")
    for line in "".join(file.diff for file in update.files).splitlines():
        say(paint(line, _STYLES[line[0]]) if line[:1] in _STYLES else line)
    if not any(file.is_new for file in update.files):
        say("Nothing would change.")
    if update.waiting:
        note(f"the model would also read {counted(update.waiting, 'task')}")


def _tell(update: Update) -> None:
    learnt = [id for one in update.mined for id in one.learnings]
    proposed = sum(len(one.proposed) + len(one.escalated) for one in update.mined)
    if update.mined:
        skipped = sum(len(one.skipped) for one in update.mined)
        figures = f"{counted(len(learnt), 'new learning')}, {counted(skipped, 'finding')} skipped"
        say(f"Mined {counted(len(update.mined), 'task')}: {figures}.")
        for reason in sorted({reason for one in update.mined for reason in one.skipped})[:3]:
            say(paint(f"  skipped: {reason}", "dim"))
    if proposed:
        say(f"{counted(proposed, 'proposal')} for you to decide on: `learnt review`")
    _tell_taken(update, "Took over from the file")
    for file in update.files:
        say(_outcome(file))
    if update.cost_usd is not None:
        say(f"The model calls cost about ${update.cost_usd:.4f}.")


def _outcome(file: FileUpdate) -> str:
    path = os.path.relpath(file.path)
    if not file.is_new:
        missing = f"There is nothing to show in {path} yet: finish some tasks, or `learnt add` something."
        return f"{path} is as it should be." if file.content is not None else missing
    delta = file.delta
    crowd = f"; no room for {len(file.left_out)}" if file.left_out else ""
    return f"Wrote {path}: {len(delta.added)} added, {len(delta.removed)} removed, {len(delta.kept)} kept{crowd}."


def clear_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments of its own."""


def clear_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        gone = memory.file.clear()
    tell_redactions(memory)
    if arguments.json:
        show_json({"id": "clear", "files": gone})
    elif gone:
        say(f"Deleted {', '.join(os.path.relpath(path) for path in gone)}. The learnings stay: `learnt list`")
    else:
        say("There is no learnings.md to delete.")


def show_file(arguments: argparse.Namespace) -> None:
    """Show the file of the project, or of a goal."""
    with open_memory(arguments) as memory:
        text = memory.file.read(arguments.goal or "")
        path = memory.file.path(arguments.goal or "")
    if text is None:
        raise WrongRequest(f"there is no {os.path.relpath(path)} yet", hint="`learnt update` writes it")
    if arguments.json:
        show_json({"id": os.path.basename(path), "path": path, "text": text})
    elif arguments.pager and is_terminal():
        import pydoc

        pydoc.pager(text)
    else:
        sys.stdout.write(text)


def show_regenerations(arguments: argparse.Namespace) -> None:
    """Show how the learnings files came about."""
    with open_memory(arguments) as memory:
        made = memory.file.regenerations()
    if arguments.json:
        show_json([regeneration_record(one) for one in made])
        return
    for one in made:
        say(f"{paint(one.id, 'yellow')}  {moment(one.started_at)}  {_told(one)}")
    if not made:
        say("No learnings.md was made yet.")


def regeneration_record(one: Regeneration) -> dict[str, Any]:
    """Return a regeneration for a program; the text itself is in the file."""
    return {name: value for name, value in one.as_dict().items() if name not in ("text", "bullets", "loose")}


def _told(one: Regeneration) -> str:
    cause = {"count": "by itself", "edit": "edits taken over"}.get(one.cause, "asked for")
    goal = f" for {one.goal}" if one.goal else ""
    cost = f", ${one.cost_usd:.4f}" if one.cost_usd is not None else ""
    if one.result == "failed":
        return f"{cause}{goal}: failed{cost}: {one.reason}"
    if one.result == "running":
        return f"{cause}{goal}: running"
    figures = f"{one.added} added, {one.removed} removed, {one.kept} kept, churn {one.churn:.0%}"
    figures += f", {counted(one.skipped, 'finding')} skipped" if one.skipped else ""
    return f"{cause}{goal}: {one.result} from {counted(one.tasks, 'task')}, {figures}{cost}"


def state_record(state: State) -> dict[str, Any]:
    """Return how the files stand, for a program."""
    return {**state.as_dict(), "last": regeneration_record(state.last) if state.last else None}


def state_line(state: dict[str, Any]) -> str:
    """Return how the files stand, for a person; empty where nothing was ever made nor is going to be."""
    last = state["last"]
    since = f"{state['tasks_since']} of {state['every']} tasks since" if state["every"] else ""
    if state["running_since"]:
        return f"learnings.md: being made since {moment(state['running_since'])}"
    if last is None:
        return f"learnings.md: none yet, {since}" if since and state["tasks_since"] else ""
    how = f"failed: {last['reason']}" if last["result"] == "failed" else f"{last['added']} added, {last['kept']} kept"
    return f"learnings.md: {moment(last['started_at'])}, {how}{f'; {since}' if since else ''}"
