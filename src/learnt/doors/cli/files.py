"""The commands `update` and `clear` for learnings.md, and the output of `show`, `history` and `status` about it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result, report_redactions
from learnt.doors.output import format_count, format_time, is_terminal, note, paint, printable, say, show_json
from learnt.errors import LearntError, WrongRequest
from learnt.memory import Memory
from learnt.system.files import Deadline

if TYPE_CHECKING:  # `list` and `add` load this module, but do not update the file
    from learnt.flow.background import State
    from learnt.flow.learnings_file import FileUpdate, Update
    from learnt.store.regenerations import Regeneration

_MAX_EDITS = 20
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def update_arguments(parser: Parser) -> None:
    parser.add_argument("--window", type=int, metavar="N", help="how many recent tasks to use; default: `window_size`")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change, as a diff")


def update_run(arguments: Arguments) -> None:
    in_background = bool(os.environ.get("LEARNT_INTERNAL"))
    with open_memory(arguments, tidies=not in_background) as memory:
        if in_background:
            _update_in_background(memory)
            return
        update = memory.file.update(window=arguments.window, dry_run=arguments.dry_run)
        if not arguments.dry_run:
            memory.file.update_when_due()  # for tasks that ended meanwhile and could not update while we had the lock
    report_redactions(memory)
    for remark in update.remarks:
        note(remark)
    if arguments.json:
        show_json(_record(update))
    elif arguments.dry_run:
        _preview(update)
    else:
        _print_update(update)


def _update_in_background(memory: Memory) -> None:
    """Update the file in the background; if that fails, record the reason in the history."""
    limit_s = memory.settings.learnings_time_limit_s
    try:
        with Deadline((limit_s + 60) * 1000):  # 60 s more, for steps that do not check the limit themselves
            while memory.file.state().is_due:  # more tasks may end meanwhile
                memory.file.update(cause="count", limit_s=limit_s)
    except LearntError as error:
        note(f"{error.message}; {error.hint}")


def _record(update: Update) -> dict[str, Any]:
    return {
        "id": update.id,
        "files": [_file_record(file) for file in update.files],
        "mined": [mined.as_dict() for mined in update.mined],
        "taken": [edit.as_dict() for edit in update.taken],
        "waiting": update.waiting,
        "cost_usd": update.cost_usd,
        "remarks": list(update.remarks),
    }


def _file_record(file: FileUpdate) -> dict[str, Any]:
    return {
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


def _print_edits(update: Update, what: str) -> None:
    """Print which of people's edits were imported."""
    if update.taken:
        say(f"{what}:")
    for edit in update.taken[:_MAX_EDITS]:
        say(f"  {edit.what:<8} {edit.id}  {edit.text}")
    if len(update.taken) > _MAX_EDITS:
        say(f"  … and {len(update.taken) - _MAX_EDITS} more; `learnt history ID` shows each")


def _preview(update: Update) -> None:
    _print_edits(update, "Would be imported from the file")
    for line in "".join(file.diff for file in update.files).splitlines():
        say(paint(line, _STYLES[line[0]]) if line[:1] in _STYLES else line)
    if not any(file.is_new for file in update.files):
        say("Nothing would change.")
    if update.waiting:
        note(f"the model would also read {format_count(update.waiting, 'task')}")


def _print_update(update: Update) -> None:
    learnt = [id for mined in update.mined for id in mined.learnings]
    proposed = sum(len(mined.proposed) + len(mined.escalated) for mined in update.mined)
    if update.mined:
        skipped = sum(len(mined.skipped) for mined in update.mined)
        counts = f"{format_count(len(learnt), 'new learning')}, {format_count(skipped, 'finding')} skipped"
        say(f"Mined {format_count(len(update.mined), 'task')}: {counts}.")
        for reason in sorted({reason for mined in update.mined for reason in mined.skipped})[:3]:
            say(paint(f"  skipped: {reason}", "dim"))
    if proposed:
        say(f"{format_count(proposed, 'proposal')} to decide on: `learnt review`")
    _print_edits(update, "Imported from the file")
    for file in update.files:
        say(_describe_file(file))
    if update.cost_usd is not None:
        say(f"The model calls cost about ${update.cost_usd:.4f}.")


def _describe_file(file: FileUpdate) -> str:
    path = os.path.relpath(file.path)
    if not file.is_new:
        missing = f"There is nothing to write to {path} yet: finish some tasks, or `learnt add` something."
        return f"{path} is up to date." if file.content is not None else missing
    delta = file.delta
    omitted = f"; no room for {len(file.left_out)}" if file.left_out else ""
    return f"Wrote {path}: {len(delta.added)} added, {len(delta.removed)} removed, {len(delta.kept)} kept{omitted}."


def clear_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        deleted = memory.file.clear()
    report_redactions(memory)
    line = "There is no learnings.md to delete."
    if deleted:
        line = f"Deleted {', '.join(map(os.path.relpath, deleted))}. The learnings are kept: `learnt list`"
    print_result(arguments, {"id": "clear", "files": deleted}, line)


def show_file(arguments: Arguments) -> None:
    """Show the project's file, or a goal's."""
    with open_memory(arguments) as memory:
        text = memory.file.read(arguments.goal or "")
        path = memory.file.path(arguments.goal or "")
    if text is None:
        raise WrongRequest(f"there is no {os.path.relpath(path)} yet", hint="`learnt update` writes it")
    if arguments.json:
        show_json({"id": os.path.basename(path), "path": path, "text": text})
    elif arguments.pager and is_terminal():
        import pydoc

        pydoc.pager(printable(text))
    else:
        sys.stdout.write(printable(text))


def show_regenerations(arguments: Arguments) -> None:
    """Show the updates to the learnings files."""
    with open_memory(arguments) as memory:
        regenerations = memory.file.regenerations()
    if arguments.json:
        show_json([regeneration_record(regeneration) for regeneration in regenerations])
        return
    for update in regenerations:
        say(f"{paint(update.id, 'yellow')}  {format_time(update.started_at)}  {_describe_regeneration(update)}")
    if not regenerations:
        say("No learnings.md has been written yet.")


def regeneration_record(regeneration: Regeneration) -> dict[str, Any]:
    """Return a regeneration for JSON, without the text, which is in the file."""
    return {name: value for name, value in regeneration.as_dict().items() if name not in ("text", "bullets", "loose")}


def _describe_regeneration(update: Regeneration) -> str:
    cause = {"count": "automatic", "edit": "edits imported"}.get(update.cause, "requested")
    goal = f" for {update.goal}" if update.goal else ""
    cost = f", ${update.cost_usd:.4f}" if update.cost_usd is not None else ""
    if update.result == "failed":
        return f"{cause}{goal}: failed{cost}: {update.reason}"
    if update.result == "running":
        return f"{cause}{goal}: running"
    counts = f"{update.added} added, {update.removed} removed, {update.kept} kept, churn {update.churn:.0%}"
    counts += f", {format_count(update.skipped, 'finding')} skipped" if update.skipped else ""
    remark = f": {update.reason}" if update.reason else ""
    return f"{cause}{goal}: {update.result} from {format_count(update.tasks, 'task')}, {counts}{cost}{remark}"


def state_record(state: State) -> dict[str, Any]:
    """Return the learnings files' state for JSON."""
    return {**state.as_dict(), "last": regeneration_record(state.last) if state.last else None}


def format_state(state: dict[str, Any]) -> str:
    """Return the learnings files' state on one line; empty if there is nothing to report."""
    last = state["last"]
    since = f"{state['tasks_since']} of {state['every']} tasks since" if state["every"] else ""
    if state["running_since"]:
        return f"learnings.md: being updated since {format_time(state['running_since'])}"
    if last is None:
        return f"learnings.md: none yet, {since}" if since and state["tasks_since"] else ""
    counts = f"{last['added']} added, {last['kept']} kept" + (f"; {last['reason']}" if last["reason"] else "")
    how = f"failed: {last['reason']}" if last["result"] == "failed" else counts
    return f"learnings.md: {format_time(last['started_at'])}, {how}{f'; {since}' if since else ''}"
