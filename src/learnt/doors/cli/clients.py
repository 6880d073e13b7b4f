"""Commands for agent clients: install, uninstall, and the doors that clients call, hook and mcp.

Plain `learnt hook` goes straight to `doors/hook.py`, without the command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches

from learnt.clients import registry
from learnt.doors.cli.arguments import Arguments, Parser, watch_calls
from learnt.doors.cli.terminal import confirm
from learnt.doors.hook import run_hook
from learnt.doors.output import note, print_error, say, show_json, use_color
from learnt.errors import WrongRequest
from learnt.flow.agent_setup import AgentSetup
from learnt.flow.git_setup import GitSetup
from learnt.flow.install import CLIENTS, ClientSetup, SetupOutcome
from learnt.system.installation import install_command

_DONE = {"made": "wrote", "changed": "changed", "removed": "removed"}
_WOULD = {"made": "would write", "changed": "would change", "removed": "would remove"}
_PORT = 8327
_PER_PROJECT = tuple(registry.setup_name(client) for client in registry.CLIENTS if client.per_project)


def install_arguments(parser: Parser) -> None:
    git = "let git merge the files that learnt writes entry by entry, in this clone"
    _add_arguments(parser, everything="all clients that are found on this machine", git=git)


def uninstall_arguments(parser: Parser) -> None:
    _add_arguments(parser, everything="all clients", git="let git merge these files by itself again")


def _add_arguments(parser: Parser, *, everything: str, git: str) -> None:
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"one or several of {', '.join(CLIENTS)}")
    parser.add_argument("--all", action="store_true", help=everything)
    parser.add_argument("--git", action="store_true", help=git)
    parser.add_argument("--agents", action="store_true", help="the agents and the skill for consolidation")
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--project", action="store_true", help="for everyone in this project; the default")
    scope.add_argument("--user", action="store_true", help="for you, in all projects")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")


def install_run(arguments: Arguments) -> int:
    setup = ClientSetup()
    clients = _read_client_names(arguments)
    parts = _list_parts(arguments)
    for part in parts:
        part.install(dry_run=True)  # what cannot be set up is found out before anything is written
    if parts and not clients and not arguments.all:
        return _report([part.install(dry_run=arguments.dry_run) for part in parts], arguments)
    if unfit := [client for client in clients if arguments.user and client in _PER_PROJECT]:
        hint = f"`learnt install {' '.join(unfit)}` in the project; nothing was written"
        raise WrongRequest(f"{', '.join(unfit)} can only be set up in a project", hint=hint)
    if not clients:
        found = setup.find_clients(user=arguments.user)
        clients = _leave_out(tuple(found), arguments, reason="it has no user-wide settings")
        if not clients:
            scope = " --user" if arguments.user else ""
            hint = f"`learnt install {CLIENTS[0]}{scope}` sets one up all the same, or another of {', '.join(CLIENTS)}"
            raise WrongRequest("no client was found on this machine", hint=hint)
        clients = clients if arguments.all else _choose(clients, found, setup, user=arguments.user)
    outcomes = setup.install(clients, user=arguments.user, dry_run=arguments.dry_run)
    outcomes += [part.install(dry_run=arguments.dry_run) for part in parts]
    if not arguments.dry_run:
        watch_calls()
    return _report(outcomes, arguments)


def uninstall_run(arguments: Arguments) -> int:
    clients = _read_client_names(arguments)
    removed = [part.uninstall(dry_run=arguments.dry_run) for part in _list_parts(arguments)]
    if removed and not clients and not arguments.all:
        return _report(removed, arguments)
    if not clients and not arguments.all:
        raise WrongRequest("the client is missing", hint=f"choose one of {', '.join(CLIENTS)}, or use --all")
    clients = clients or _leave_out(CLIENTS, arguments)
    outcomes = ClientSetup().uninstall(clients, user=arguments.user, dry_run=arguments.dry_run)
    return _report([*outcomes, *removed], arguments)


def _list_parts(arguments: Arguments) -> list[GitSetup | AgentSetup]:
    """Return what is set up besides clients."""
    git: list[GitSetup | AgentSetup] = [GitSetup()] if arguments.git else []
    return [*git, *([AgentSetup()] if arguments.agents else [])]


def _read_client_names(arguments: Arguments) -> tuple[str, ...]:
    if arguments.user and (arguments.git or arguments.agents):
        what, option = ("git", "--git") if arguments.git else ("the agents", "--agents")
        raise WrongRequest(f"{what} can only be set up in a project", hint=f"leave --user or {option} out")
    if arguments.clients and arguments.all:
        raise WrongRequest("--all cannot be combined with client names", hint="use either --all or names")
    return tuple(dict.fromkeys(map(_find_client, arguments.clients)))


def _leave_out(clients: tuple[str, ...], arguments: Arguments, *, reason: str = "") -> tuple[str, ...]:
    """Return the clients that can be set up where it is asked for; say which cannot, if there is a reason to."""
    if not arguments.user:
        return clients
    for client in filter(_PER_PROJECT.__contains__, clients if reason else ()):
        note(f"{client} is skipped: {reason}; `learnt install {client}` sets it up in a project")
    return tuple(client for client in clients if client not in _PER_PROJECT)


def _choose(clients: tuple[str, ...], found: Mapping[str, str], setup: ClientSetup, *, user: bool) -> tuple[str, ...]:
    """Return the clients that the person chooses, and those that are set up already; without a person, name them."""
    if not sys.stdin.isatty():
        scope = " --user" if user else ""
        hint = f"`learnt install {' '.join(clients)}{scope}`, or `learnt install --all{scope}` for all that were found"
        raise WrongRequest(f"the client is missing; found here: {', '.join(clients)}", hint=hint)
    present = setup.list_clients(user=user)
    chosen = tuple(
        client
        for client in clients
        if client in present or confirm(f"Set up {client}? ({found[client]})", default=True)
    )
    if not chosen:
        raise WrongRequest("no client was chosen", hint=f"choose one of {', '.join(CLIENTS)}")
    return chosen


def _find_client(name: str) -> str:
    """Return the name that this command uses for a client."""
    client = registry.find(name)
    if client is not None and "setup" in client.offers:
        return registry.setup_name(client)
    near = get_close_matches(name.lower(), CLIENTS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(CLIENTS)}"
    raise WrongRequest(f"there is no client `{name[:100]}`", hint=hint)


def _report(outcomes: list[SetupOutcome], arguments: Arguments) -> int:
    several = arguments.all or len(outcomes) > 1
    if arguments.json:
        records = [_record(outcome) for outcome in outcomes]
        show_json(records if several else records[0])
    else:
        _print_changes([outcome for outcome in outcomes if outcome.error is None], dry_run=arguments.dry_run)
    failed = {outcome.client: outcome.error for outcome in outcomes if outcome.error}
    for number, (client, error) in enumerate(failed.items()):
        if not several:
            raise error
        if number:
            print(file=sys.stderr)
        print_error(error, client)
    return max((error.exit_code for error in failed.values()), default=0)


def _print_changes(outcomes: list[SetupOutcome], *, dry_run: bool) -> None:
    verbs = _WOULD if dry_run else _DONE
    printed: set[str] = set()
    for outcome in outcomes:
        changed = [change for change in outcome.changes if change.kind != "unchanged"]
        for change in changed if dry_run else ():
            say(change.diff.rstrip("\n"))
        summary = ", ".join(f"{verbs[change.kind]} {_shorten_path(change.path)}" for change in changed)
        say(f"{outcome.client}: {summary or 'nothing to change'}")
        for step in [step for step in outcome.wants if step not in printed]:
            say(f"    {step}")
        printed.update(outcome.wants)  # several clients may need the same step


def _shorten_path(path: str) -> str:
    """Return a path, relative to the current folder if it is inside."""
    here = os.path.relpath(path)
    return path if here.startswith(os.pardir) else here


def _record(outcome: SetupOutcome) -> dict[str, object]:
    return {
        "id": outcome.client,
        "scope": "user" if outcome.user else "project",
        "files": [{"path": change.path, "change": change.kind, "diff": change.diff} for change in outcome.changes],
        "wants": list(outcome.wants),
        "error": outcome.error.message if outcome.error else "",
        "hint": outcome.error.hint if outcome.error else "",
    }


def hook_arguments(parser: Parser) -> None:
    parser.add_argument("--client", metavar="NAME", help="the client that sends the event")


def hook_run(arguments: Arguments) -> int:
    return run_hook()


def mcp_arguments(parser: Parser) -> None:
    parser.add_argument("--http", action="store_true", help="serve over HTTP on this machine instead of stdio")
    parser.add_argument(
        "--port", type=int, metavar="P", help=f"with --http: the port (default: {_PORT}; 0: a free one)"
    )


def mcp_run(arguments: Arguments) -> None:
    if arguments.port is not None and not arguments.http:
        raise WrongRequest("--port needs --http", hint="`learnt mcp --http --port P`")
    try:
        import mcp.server.mcpserver  # noqa: F401 - an older or partial package fails here
    except ImportError:
        raise WrongRequest("the Python package `mcp`, 2.0 or newer, is not installed", hint=install_command()) from None
    use_color("never")
    token = os.environ.pop("LEARNT_MCP_TOKEN", "")  # child processes must not inherit it
    from learnt.doors.mcp import http, server  # takes most of a second to load

    if arguments.http:
        http.serve_http(os.getcwd(), _PORT if arguments.port is None else arguments.port, token, as_json=arguments.json)
    else:
        server.serve_stdio(os.getcwd())
