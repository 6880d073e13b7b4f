"""Commands that change one learning: archive, restore, hide, like, pin, supersede, undo, purge."""

from __future__ import annotations

import sys
from collections.abc import Callable

from learnt.doors.cli.arguments import (
    Arguments,
    Parser,
    add_id,
    add_reason,
    add_user,
    open_memory,
    print_result,
    refuse_agent,
    report_redactions,
)
from learnt.doors.cli.terminal import confirm
from learnt.doors.output import format_field, is_terminal, note, say, show_json
from learnt.errors import InvalidValue, NotFound, WrongRequest
from learnt.memory import Memory
from learnt.model import Learning, is_id
from learnt.text.records import as_record

_OR_BRIEF = "the id of a learning, or of a brief that warned about a command (`learnt activity --ids`)"


def _describe_change(parser: Parser, id: str = "the learning's id") -> None:
    add_id(parser, id)
    add_reason(parser)
    add_user(parser)


archive_arguments = restore_arguments = like_arguments = _describe_change


def archive_run(arguments: Arguments) -> None:
    _change(arguments, "Archived", lambda memory: memory.archive(arguments.id, reason=arguments.reason))


def restore_run(arguments: Arguments) -> None:
    _change(arguments, "Restored", lambda memory: memory.restore(arguments.id, reason=arguments.reason))


def like_run(arguments: Arguments) -> None:
    refuse_agent("like")
    _change(arguments, "Liked", lambda memory: memory.like(arguments.id, reason=arguments.reason))


def hide_arguments(parser: Parser) -> None:
    _describe_change(parser, _OR_BRIEF)


def hide_run(arguments: Arguments) -> None:
    if is_id("brief", arguments.id):
        _dismiss_warning(arguments)
    else:
        _change(arguments, "Hid", lambda memory: memory.hide(arguments.id, reason=arguments.reason))


def pin_arguments(parser: Parser) -> None:
    _describe_change(parser)
    parser.add_argument("--off", action="store_true", help="unpin it")


def pin_run(arguments: Arguments) -> None:
    refuse_agent("pin")
    done = "Unpinned" if arguments.off else "Pinned"
    _change(arguments, done, lambda memory: memory.pin(arguments.id, pinned=not arguments.off, reason=arguments.reason))


def supersede_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="OLD", help="the learning to replace")
    parser.add_argument("new", metavar="NEW", help="its replacement")
    add_reason(parser)
    add_user(parser)


def supersede_run(arguments: Arguments) -> None:
    done = f"Superseded by {arguments.new}:"
    _change(arguments, done, lambda memory: memory.supersede(arguments.id, arguments.new, reason=arguments.reason))


def undo_arguments(parser: Parser) -> None:
    help = (
        "a learning, to undo its last change, or an event, or an import, to take it all back; without it, what was "
        "confirmed or kept last of what you said to an agent"
    )
    parser.add_argument("id", metavar="ID", nargs="?", help=help)
    add_reason(parser)
    add_user(parser)


def undo_run(arguments: Arguments) -> None:
    if arguments.id is None:
        refuse_agent("undo")
    elif not arguments.id:
        raise WrongRequest("the id is empty", hint="`learnt undo` alone takes back what you said last")
    elif is_id("import", arguments.id):
        _undo_import(arguments)
        return
    with open_memory(arguments) as memory:
        learning = memory.undo(arguments.id or "", reason=arguments.reason)
        event = memory.history(learning.id)[-1]
    report_redactions(memory)
    done = f"Undid {event.undoes} of" if arguments.id else "Took back"
    lines = [f"{done} {learning.id}: {learning.title}"]
    lines += [f"  {name}: {format_field(name, value)}" for name, value in event.new.items()]
    print_result(arguments, as_record(learning), "\n".join(lines))


def _undo_import(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        undone = memory.transfer.undo_import(arguments.id, reason=arguments.reason)
    report_redactions(memory)
    counts = {
        "archived": len(undone.archived),
        "as they were before": len(undone.restored),
        "left, because they were changed since": len(undone.left),
    }
    line = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    print_result(arguments, undone.as_dict(), f"Undid {undone.id}: {line}")


def purge_arguments(parser: Parser) -> None:
    add_id(parser, _OR_BRIEF)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation; necessary without a terminal")
    add_user(parser)


def purge_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        if not arguments.yes and not is_terminal(sys.stdin):
            raise WrongRequest(
                "a purge cannot be undone, and nobody can be asked here",
                hint=f"`learnt purge {arguments.id} --yes` does it",
            )
        if not arguments.yes and not confirm(_describe_purge(memory, arguments.id)):
            note("Nothing was deleted.")
            return
        printed = len(memory.remarks)
        backups = (memory.warnings.purge if is_id("brief", arguments.id) else memory.purge)(arguments.id)
        for remark in memory.remarks[printed:]:
            note(remark)
        on_server = bool(memory.server_project)
    if arguments.json:
        show_json({"id": arguments.id, "backups": backups})
    else:
        _report_purge(arguments.id, backups, on_server=on_server)


def _report_purge(id: str, backups: int, *, on_server: bool) -> None:
    log = ", the server's own log" if on_server else ""
    if is_id("brief", id):
        say(f"Purged the command that {id} warned about, with its error and what worked instead")
        elsewhere = f"tasks and reports with its error, transcripts of clients, learnings, other backups{log}"
    else:
        say(f"Purged {id} from the store, its history and the learnings files of this worktree")
        elsewhere = (
            f"exports, commits, other worktrees and backups{log}; learnt does not import it from a learnings file"
        )
    say(f"Backups of the store that contained it: {backups}")
    say(f"Check for other copies yourself: {elsewhere}")


def _describe_purge(memory: Memory, id: str) -> str:
    if is_id("brief", id):
        return f"Delete everything about the command that {id} warned about: {memory.warnings.command_of(id)}?"
    try:
        return f"Delete {id} permanently: {memory.get(id).title}?"
    except InvalidValue:
        return f"Delete {id} permanently, which cannot be read?"
    except NotFound:
        return f"{id} no longer exists. Look for traces of it?"  # an earlier purge may have been interrupted


def _dismiss_warning(arguments: Arguments) -> None:
    if arguments.reason:
        raise WrongRequest("a reason cannot be stored, because a warning has no history", hint="omit `--reason`")
    with open_memory(arguments) as memory:
        dismissed = memory.warnings.dismiss(arguments.id)
    command = dismissed.command if dismissed else None
    gone = f"Nothing to change, already done: the warning in {arguments.id} no longer exists"
    line = gone if command is None else f"Dismissed the warning about: {command}"
    print_result(arguments, {"id": arguments.id, "command": command}, line)


def _change(arguments: Arguments, done: str, act: Callable[[Memory], Learning]) -> None:
    with open_memory(arguments) as memory:
        before = memory.get(arguments.id)
        after = act(memory)
    report_redactions(memory)
    what = "Nothing to change, already done:" if before.version == after.version else done
    print_result(arguments, as_record(after), f"{what} {after.id}: {after.title}")
