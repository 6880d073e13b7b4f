"""MCP over HTTP: on this machine only, and only with the token.

A web page can also reach a local server, through a host name that resolves to this machine (DNS rebinding). So `Host`
and `Origin` must be this machine, and every request must contain the token as `Bearer`. The token is printed once, at
the start, and never logged.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
from collections.abc import Iterable
from urllib.parse import urlsplit

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from learnt.doors.mcp.server import make_server
from learnt.doors.output import note, show_json
from learnt.errors import WrongRequest

_ADDRESS = "127.0.0.1"
_PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MIN_TOKEN_CHARS = 16
_PATIENCE_S = 2


def serve_http(folder: str, port: int, own_token: str, *, as_json: bool) -> None:
    """Print the address and serve the project until the process is stopped; `own_token` is the user's token, if any."""
    token = _choose_token(own_token)
    with _listen(port) as listening:
        address = f"http://{_ADDRESS}:{listening.getsockname()[1]}{_PATH}"
        if as_json:
            show_json({"id": "mcp", "url": address, "token": "" if own_token else token})
            sys.stdout.flush()
        else:
            note(f"learnt is listening at {address}; Ctrl-C stops it")
            note(f"token: {'as in LEARNT_MCP_TOKEN' if own_token else token}")
        _serve(folder, listening, token)


def _choose_token(own: str) -> str:
    """Return the user's own token, or a new one; raise if the user's token is too short or cannot be sent."""
    if not own:
        return secrets.token_urlsafe(32)
    if len(own) < _MIN_TOKEN_CHARS or not own.isascii() or not own.isprintable() or " " in own:
        raise WrongRequest(
            f"LEARNT_MCP_TOKEN must be at least {_MIN_TOKEN_CHARS} printable ASCII characters, without spaces",
            hint="unset it to let learnt generate and print a token",
        )
    return own


def _listen(port: int) -> socket.socket:
    """Return a listening socket on the loopback address; port 0 means any free port."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_ADDRESS, port))
        listening.listen()  # before the address is printed, because clients may connect immediately
    except (OSError, OverflowError) as error:
        listening.close()
        raise WrongRequest(f"cannot listen on port {port}: {error}", hint="`--port 0` chooses a free port") from None
    return listening


def _serve(folder: str, listening: socket.socket, token: str) -> None:
    # The server is stateless: no answer depends on an earlier request, and nothing accumulates. The SDK's own check is
    # off, because it compares host names literally and rejects some that the guard accepts.
    app = make_server(folder).streamable_http_app(
        streamable_http_path=_PATH,
        json_response=True,
        stateless_http=True,
        host=_ADDRESS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    config = uvicorn.Config(
        Guard(app, token),
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    uvicorn.Server(config).run(sockets=[listening])


class Guard:
    """Passes a request on if its host, origin and token are valid."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject the request, or pass it on."""
        if scope["type"] == "http":
            status, reason = self._check(scope["headers"])
            if status:
                headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
                await PlainTextResponse(reason, status_code=status, headers=headers)(scope, receive, send)
                return
        if scope["type"] in ("http", "lifespan"):
            await self._app(scope, receive, send)

    def _check(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str]:
        values: dict[bytes, list[bytes]] = {b"host": [], b"origin": [], b"authorization": []}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        if not values[b"host"] or not all(_is_here(b"//" + host) for host in values[b"host"]):
            return 421, "the Host header must be this machine's address\n"
        if not all(map(_is_here, values[b"origin"])):
            return 403, "the Origin header must be this machine's address\n"
        if not any(map(self._is_authorized, values[b"authorization"])):
            return 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`\n"
        return 0, ""

    def _is_authorized(self, authorization: bytes) -> bool:
        scheme, _, token = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token.encode())


def _is_here(address: bytes) -> bool:
    """Return whether an address is this machine's, on any port."""
    try:
        split = urlsplit(address.decode("ascii"))
        _ = split.port  # raises if it is not a number
        return split.hostname in _LOOPBACK and split.username is None
    except ValueError:
        return False
