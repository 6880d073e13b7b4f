"""Commands that set up agent clients: install, uninstall."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches

from learnt.clients import registry
from learnt.doors.cli.screen import note, print_error, say, show_json
from learnt.errors import WrongRequest
from learnt.flow.install import CLIENTS, install, uninstall

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from learnt.flow.install import SetupOutcome

_DONE = {"made": "wrote", "changed": "changed", "removed": "removed"}
_WOULD = {"made": "would write", "changed": "would change", "removed": "would remove"}


def install_arguments(parser: argparse.ArgumentParser) -> None:
    _describe(parser)


def install_run(arguments: argparse.Namespace) -> int:
    return _report(install(_clients(arguments), user=arguments.user, dry_run=arguments.dry_run), arguments)


def uninstall_arguments(parser: argparse.ArgumentParser) -> None:
    _describe(parser)


def uninstall_run(arguments: argparse.Namespace) -> int:
    return _report(uninstall(_clients(arguments), user=arguments.user, dry_run=arguments.dry_run), arguments)


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"one or several of {', '.join(CLIENTS)}")
    parser.add_argument("--all", action="store_true", help="all clients")
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--project", action="store_true", help="for everyone in this project; the default")
    scope.add_argument("--user", action="store_true", help="for you, in all projects")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")


def _clients(arguments: argparse.Namespace) -> tuple[str, ...]:
    if arguments.clients and arguments.all:
        raise WrongRequest("--all means every client, but some are named, too", hint="give either --all or names")
    if arguments.clients:
        return tuple(dict.fromkeys(map(_find_client, arguments.clients)))
    if not arguments.all:
        raise WrongRequest("no client is named", hint=f"name one of {', '.join(CLIENTS)}, or use --all")
    if not arguments.user:
        return CLIENTS
    per_project = [registry.setup_name(client) for client in registry.CLIENTS if client.per_project]
    for client in per_project:
        note(f"{client} is left out: it has no user-wide settings; `learnt install {client}` sets it up in a project")
    return tuple(client for client in CLIENTS if client not in per_project)


def _find_client(name: str) -> str:
    """Return the name that this command uses for a client."""
    client = registry.find(name)
    if client is not None and "setup" in client.offers:
        return registry.setup_name(client)
    near = get_close_matches(name.lower(), CLIENTS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"name one of {', '.join(CLIENTS)}"
    raise WrongRequest(f"there is no client `{name[:100]}`", hint=hint)


def _report(outcomes: list[SetupOutcome], arguments: argparse.Namespace) -> int:
    several = arguments.all or len(arguments.clients) > 1
    if arguments.json:
        records = [_record(outcome) for outcome in outcomes]
        show_json(records if several else records[0])
    printed: set[str] = set()
    for outcome in outcomes if not arguments.json else ():
        if outcome.error is None:
            _print_changes(outcome, dry_run=arguments.dry_run)
            for step in [step for step in outcome.wants if step not in printed]:
                say(f"    {step}")
            printed.update(outcome.wants)  # several clients may need the same step
    failed = [outcome.error for outcome in outcomes if outcome.error]
    if failed and not several:
        raise failed[0]
    for outcome in outcomes:
        if outcome.error:
            print_error(outcome.error, outcome.client)
            print(file=sys.stderr)
    return max((error.exit_code for error in failed), default=0)


def _print_changes(outcome: SetupOutcome, *, dry_run: bool) -> None:
    changed = [change for change in outcome.changes if change.kind != "unchanged"]
    if dry_run:
        for change in changed:
            say(change.diff.rstrip("\n"))
    verbs = _WOULD if dry_run else _DONE
    summary = ", ".join(f"{verbs[change.kind]} {_shorten_path(change.path)}" for change in changed)
    say(f"{outcome.client}: {summary or 'nothing to change'}")


def _shorten_path(path: str) -> str:
    """Return a path relative to the current folder, if it is inside."""
    here = os.path.relpath(path)
    return path if here.startswith(os.pardir) else here


def _record(outcome: SetupOutcome) -> dict[str, Any]:
    return {
        "id": outcome.client,
        "scope": "user" if outcome.user else "project",
        "files": [{"path": change.path, "change": change.kind, "diff": change.diff} for change in outcome.changes],
        "wants": list(outcome.wants),
        "error": outcome.error.message if outcome.error else "",
        "hint": outcome.error.hint if outcome.error else "",
    }
