"""Commands that serve agent clients: hook and mcp.

Plain `learnt hook` goes straight to `doors/hook.py`, without the command line.
"""

from __future__ import annotations

import os
import sys

from learnt.doors.cli.screen import note, show_json, use_color
from learnt.doors.hook import run_hook
from learnt.errors import WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_TOKEN = "LEARNT_MCP_TOKEN"  # noqa: S105 - the name of the variable
_PORT = 8327


def hook_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--client", metavar="NAME", help="the client that sends the event")


def hook_run(arguments: argparse.Namespace) -> int:
    return run_hook()


def mcp_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", action="store_true", help="serve over HTTP on this machine instead of stdio")
    parser.add_argument(
        "--port", type=int, metavar="P", help=f"with --http: the port (default: {_PORT}; 0: a free one)"
    )


def mcp_run(arguments: argparse.Namespace) -> None:
    if arguments.port is not None and not arguments.http:
        raise WrongRequest("--port needs --http", hint="`learnt mcp --http --port P`")
    try:
        import mcp.server.mcpserver  # noqa: F401 - an older or partial package fails here
    except ImportError:
        raise WrongRequest(
            "the Python package `mcp`, 2.0 or newer, is not installed", hint="pip install 'learnt[mcp]'"
        ) from None
    use_color("never")
    token = os.environ.pop(_TOKEN, "")  # child processes must not inherit it
    if arguments.http:
        _serve_http(_PORT if arguments.port is None else arguments.port, token, as_json=arguments.json)
        return
    from learnt.doors.mcp.server import serve_stdio  # needs the optional package

    serve_stdio(os.getcwd())


def _serve_http(port: int, own_token: str, *, as_json: bool) -> None:
    from learnt.doors.mcp import http  # needs the optional package

    token = http.choose_token(own_token)
    with http.listen(port) as listening:
        address = f"http://{http.ADDRESS}:{listening.getsockname()[1]}{http.PATH}"
        if as_json:
            show_json({"id": "mcp", "url": address, "token": "" if own_token else token})
            sys.stdout.flush()
        else:
            note(f"learnt listens at {address}; Ctrl-C ends it")
            note(f"token: {f'as in {_TOKEN}' if own_token else token}")
        http.serve(os.getcwd(), listening, token)
