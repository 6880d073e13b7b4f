"""The door over HTTP: on this machine only, and for nobody without the token.

A page in a browser can reach a server on this machine too, under a name of its own that leads here. So the `Host` must
be a name of this machine, the `Origin` of a page must be, too, and every request carries the token as `Bearer`. It is
told once, at the start, and stands in no log.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse

from learnt.doors.mcp.server import make_server
from learnt.errors import WrongRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

ADDRESS = "127.0.0.1"
PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_LENGTH = 16
_PATIENCE_S = 2


def checked_token(given: str) -> str:
    """Return the token that was given, or a new one; raise when it is too easy to guess, or cannot be sent."""
    if not given:
        return secrets.token_urlsafe(32)
    if len(given) < _LEAST_LENGTH or not given.isascii() or not given.isprintable() or " " in given:
        raise WrongRequest(
            f"LEARNT_MCP_TOKEN must be at least {_LEAST_LENGTH} letters, digits and signs, without spaces",
            hint="leave it out, and one is made and told",
        )
    return given


def listen(port: int) -> socket.socket:
    """Return a socket on this machine alone; port 0 means any that is free."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((ADDRESS, port))
        made.listen()  # whoever is told the address may come at once
    except (OSError, OverflowError) as error:
        made.close()
        raise WrongRequest(f"cannot listen on port {port}: {error}", hint="`--port 0` takes one that is free") from None
    return made


def serve(folder: str, listening: socket.socket, token: str) -> None:
    """Serve until the process is told to end."""
    # Without sessions of its own: no answer depends on an earlier request, and nothing piles up. Who may come in is
    # for the guard alone to say: the SDK compares names letter by letter, and refuses some that the guard knows.
    app = make_server(folder).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        host=ADDRESS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    guarded = Guard(app, token)
    config = uvicorn.Config(
        guarded,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    uvicorn.Server(config).run(sockets=[listening])


class Guard:
    """Lets a request in when its host, its origin and its token are right."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "http":
            status, reason = self._refusal(scope["headers"])
            if status:
                headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
                await PlainTextResponse(reason, status_code=status, headers=headers)(scope, receive, send)
                return
        if scope["type"] in ("http", "lifespan"):
            await self._app(scope, receive, send)

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str]:
        sent: dict[bytes, list[bytes]] = {b"host": [], b"origin": [], b"authorization": []}
        for name, value in headers:
            sent.setdefault(name.lower(), []).append(value)
        if not sent[b"host"] or not all(_is_here(b"//" + host) for host in sent[b"host"]):
            return 421, "the Host is no name of this machine\n"
        if not all(map(_is_here, sent[b"origin"])):
            return 403, "the Origin is not on this machine\n"
        if not any(map(self._opens, sent[b"authorization"])):
            return 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`\n"
        return 0, ""

    def _opens(self, authorization: bytes) -> bool:
        scheme, _, token = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token.encode())


def _is_here(address: bytes) -> bool:
    """Say whether an address names this machine, on whatever port."""
    try:
        split = urlsplit(address.decode("ascii"))
        _ = split.port  # raises when it is none
        return split.hostname in _LOOPBACK and split.username is None
    except ValueError:
        return False
