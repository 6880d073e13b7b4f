"""The command that serves agent clients over the Model Context Protocol."""

from __future__ import annotations

import os
import sys

from learnt.doors.cli.screen import note, show_json, use_color
from learnt.errors import WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_TOKEN = "LEARNT_MCP_TOKEN"  # noqa: S105 - the name of the variable
_PORT = 8327


def mcp_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http", action="store_true", help="serve over HTTP on this machine; without it, the client that started us"
    )
    parser.add_argument(
        "--port", type=int, metavar="P", help=f"with --http: the port (default: {_PORT}; 0: a free one)"
    )


def mcp_run(arguments: argparse.Namespace) -> None:
    if arguments.port is not None and not arguments.http:
        raise WrongRequest("--port goes with --http", hint="`learnt mcp --http --port P`")
    try:
        import mcp.server.mcpserver  # noqa: F401 - all of it or none
    except ImportError:
        raise WrongRequest(
            "the Python package `mcp`, 2.0 or newer, is not installed", hint="pip install 'learnt[mcp]'"
        ) from None
    use_color("never")
    # Taken out of what other processes inherit from us.
    token = os.environ.pop(_TOKEN, "")
    if arguments.http:
        _serve_http(_PORT if arguments.port is None else arguments.port, token, as_json=arguments.json)
        return
    from learnt.doors.mcp.server import serve_stdio

    serve_stdio(os.getcwd())


def _serve_http(port: int, given: str, *, as_json: bool) -> None:
    from learnt.doors.mcp import http

    token = http.checked_token(given)
    with http.listen(port) as listening:
        address = f"http://{http.ADDRESS}:{listening.getsockname()[1]}{http.PATH}"
        if as_json:
            show_json({"id": "mcp", "url": address, "token": "" if given else token})
            sys.stdout.flush()
        else:
            note(f"learnt listens at {address}; Ctrl-C ends it")
            note(f"token: {f'as in {_TOKEN}' if given else token}")
        http.serve(os.getcwd(), listening, token)
