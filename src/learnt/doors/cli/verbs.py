"""Commands that do one thing to one learning."""

from __future__ import annotations

import sys

from learnt.doors.cli.arguments import add_id, add_reason, add_user, open_memory, tell_redactions
from learnt.doors.cli.screen import is_terminal, note, say, show_json, shown
from learnt.errors import NotFound, WrongRequest
from learnt.model import is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from learnt.memory import Memory
    from learnt.model import Learning

_OR_BRIEF = "the learning's id; or that of a brief that warned of a command (`learnt activity --ids`)"


def archive_arguments(parser: argparse.ArgumentParser) -> None:
    _one_learning(parser)


def archive_run(arguments: argparse.Namespace) -> None:
    _change(arguments, "Archived", lambda memory: memory.archive(arguments.id, reason=arguments.reason))


def restore_arguments(parser: argparse.ArgumentParser) -> None:
    _one_learning(parser)


def restore_run(arguments: argparse.Namespace) -> None:
    _change(arguments, "Restored", lambda memory: memory.restore(arguments.id, reason=arguments.reason))


def hide_arguments(parser: argparse.ArgumentParser) -> None:
    _one_learning(parser, _OR_BRIEF)


def hide_run(arguments: argparse.Namespace) -> None:
    if is_id("brief", arguments.id):
        _forget(arguments)
        return
    _change(arguments, "Hid", lambda memory: memory.hide(arguments.id, reason=arguments.reason))


def like_arguments(parser: argparse.ArgumentParser) -> None:
    _one_learning(parser)


def like_run(arguments: argparse.Namespace) -> None:
    _change(arguments, "Liked", lambda memory: memory.like(arguments.id, reason=arguments.reason))


def pin_arguments(parser: argparse.ArgumentParser) -> None:
    _one_learning(parser)
    parser.add_argument("--off", action="store_true", help="unpin it again")


def pin_run(arguments: argparse.Namespace) -> None:
    done = "Unpinned" if arguments.off else "Pinned"
    _change(arguments, done, lambda memory: memory.pin(arguments.id, pinned=not arguments.off, reason=arguments.reason))


def supersede_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="OLD", help="the learning that no longer holds")
    parser.add_argument("new", metavar="NEW", help="the learning that replaces it")
    add_reason(parser)
    add_user(parser)


def supersede_run(arguments: argparse.Namespace) -> None:
    done = f"Superseded by {arguments.new}"
    _change(arguments, done, lambda memory: memory.supersede(arguments.id, arguments.new, reason=arguments.reason))


def undo_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser, "a learning's id, for its last change, or the id of an event")
    add_reason(parser)
    add_user(parser)


def undo_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        learning = memory.undo(arguments.id, reason=arguments.reason)
        event = memory.history(learning.id)[-1]
    tell_redactions(memory)
    if arguments.json:
        _show_json(learning)
    else:
        say(f"Undid {event.undoes} of {learning.id}: {learning.title}")
        for name, value in event.new.items():
            say(f"  {name}: {shown(name, value)}")


def purge_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser, _OR_BRIEF)
    parser.add_argument("--yes", action="store_true", help="do not ask; only a terminal is asked")
    add_user(parser)


def purge_run(arguments: argparse.Namespace) -> int:
    with open_memory(arguments) as memory:
        if not arguments.yes and is_terminal(sys.stdin) and not _agrees(_what_goes(memory, arguments.id)):
            note("Nothing was deleted.")
            return 0
        told = len(memory.remarks)
        backups = (memory.warnings.purge if is_id("brief", arguments.id) else memory.purge)(arguments.id)
        for remark in memory.remarks[told:]:
            note(remark)
        on_server = bool(memory.server_project)
    if arguments.json:
        show_json({"id": arguments.id, "backups": backups})
    elif is_id("brief", arguments.id):
        say(f"Purged the command that {arguments.id} warned of, with its error and what worked then")
        say(f"Backups beside the store that held it: {backups}")
        log = on_server * ", the server's own log"
        elsewhere = "tasks and reports with its error, transcripts of clients, learnings, other backups"
        say(f"Copies elsewhere are yours to find: {elsewhere}{log}")
    else:
        say(f"Purged {arguments.id} from the store, its history and the learnings files of this worktree")
        say(f"Backups beside the store that held it: {backups}")
        elsewhere = "exports, commits, other worktrees and backups" + on_server * ", the server's own log"
        say(f"Copies elsewhere are yours to find: {elsewhere}; from none of them does a learnings file bring it back")
    return 0


def _what_goes(memory: Memory, id: str) -> str:
    if is_id("brief", id):
        return f"Delete all that is kept of the command that {id} warned of: {memory.warnings.command_of(id)}?"
    try:
        return f"Delete {id} for good: {memory.get(id).title}?"
    except NotFound:
        return f"There is no {id} any more. Look for traces of it?"  # an earlier purge may have been interrupted


def _agrees(question: str) -> bool:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _forget(arguments: argparse.Namespace) -> None:
    """Forget what a brief warned of."""
    if arguments.reason:
        raise WrongRequest("a warning has no history to keep a reason in", hint="leave `--reason` out")
    with open_memory(arguments) as memory:
        forgotten = memory.warnings.dismiss(arguments.id)
    if arguments.json:
        show_json({"id": arguments.id, "command": forgotten.command if forgotten else None})
    elif forgotten is None:
        say(f"Nothing to change, already done: what {arguments.id} warned of is not known any more")
    else:
        say(f"Forgot that this failed here: {forgotten.command}")


def _one_learning(parser: argparse.ArgumentParser, id: str = "the learning's id") -> None:
    add_id(parser, id)
    add_reason(parser)
    add_user(parser)


def _change(arguments: argparse.Namespace, done: str, act: Callable[[Memory], Learning]) -> None:
    with open_memory(arguments) as memory:
        before = memory.get(arguments.id)
        after = act(memory)
    tell_redactions(memory)
    if arguments.json:
        _show_json(after)
    elif before.version == after.version:
        say(f"Nothing to change, already done: {after.id}: {after.title}")
    else:
        say(f"{done} {after.id}: {after.title}" if " " not in done else f"{done}: {after.id}: {after.title}")


def _show_json(learning: Learning) -> None:
    from learnt.text.records import as_record

    show_json(as_record(learning))
