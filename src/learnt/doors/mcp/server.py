"""The server: our tools, resources and prompts as the SDK offers them, and our errors as texts that tell what to do.

An agent is told what went wrong and what to do about it, never where in the code. Unknown arguments are not an error,
because clients add some of their own, but they are named.
"""

from __future__ import annotations

import signal
from functools import wraps
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from learnt import __version__
from learnt.doors.mcp.tools import CALLER, Tools
from learnt.doors.mcp.words import prompt, told_error
from learnt.errors import LearntError
from learnt.text.clean import fold

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.mcpserver.context import Context
    from mcp_types import GetPromptResult, InputRequiredResult

_MARKDOWN = "text/markdown"
_LONGEST_NAME = 60
# A client may offer these to its model with every tool, and pass them on.
_OF_CLIENTS = ("wait_for_previous",)
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


def make_server(folder: str) -> Server:
    """Return the server of the project around a folder; whether there is one shows when a tool is called."""
    server = Server("learnt", instructions=prompt("instructions"), version=__version__, log_level="ERROR")
    tools = Tools(folder)
    offered: dict[Callable[..., str], ToolAnnotations] = {
        tools.brief: _ADDS,
        tools.recall: _READS,
        tools.learn: _ADDS,
        tools.debrief: _ADDS,
        tools.mark: _ADDS,
        tools.explain: _READS,
    }
    for tool, hints in offered.items():
        server.add_tool(tool, annotations=hints, structured_output=False)
    for address, name, read in (
        ("learnt://learnings.md", "learnings.md", tools.learnings_file),
        ("learnt://learnings/{goal}.md", "learnings of a goal", tools.learnings_of_goal),
        ("learnt://learning/{id}", "learning", tools.learning),
        ("learnt://standing/{agent}", "standing learnings of an agent", tools.standing),
    ):
        server.resource(address, name=name, description=read.__doc__, mime_type=_MARKDOWN)(_told_when_wrong(read))
    for name, ask in (("brief", tools.brief_prompt), ("debrief", tools.debrief_prompt)):
        server.prompt(name, description=ask.__doc__)(ask)
    return server


def serve_stdio(folder: str) -> None:
    """Serve the client that started this process, until it closes our stdin."""
    # A thread waits for input and cannot be called off: on Ctrl-C the process ends as a plain one does.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        make_server(folder).run("stdio")
    except* OSError:
        pass  # the client has gone without a word


class Server(MCPServer[Any]):
    """The SDK's server, with our way of telling errors."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; what goes wrong is told in the result."""
        known = {tool.name: list(tool.input_schema.get("properties", {})) for tool in await self.list_tools()}
        unmarked = CALLER.set(_caller(context))
        try:
            result = await super().call_tool(name, arguments, context)
        except ToolError as error:
            told = _told(error, f"`{name}` takes {', '.join(known.get(name, []))}")
            if not told:
                raise
            result = CallToolResult(content=[TextContent(type="text", text=told)], is_error=True)
        finally:
            CALLER.reset(unmarked)
        expected = (*known.get(name, arguments), *_OF_CLIENTS)
        ignored = [fold(one)[:_LONGEST_NAME] for one in arguments if one not in expected]
        if ignored and isinstance(result, CallToolResult):
            result.content.append(
                TextContent(type="text", text=f"ignored, as it is no parameter: {', '.join(ignored)}")
            )
        return result

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt; what goes wrong is told in the error."""
        unmarked = CALLER.set(_caller(context))
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(code=INVALID_PARAMS, message=_told(error) or str(error)) from None
        finally:
            CALLER.reset(unmarked)


def _told_when_wrong(read: Callable[..., str]) -> Callable[..., str]:
    """Return a function that reads the same, and whose errors reach the client in our words."""

    @wraps(read)
    def reads(*arguments: str, **named: str) -> str:
        try:
            return read(*arguments, **named)
        except (LearntError, OSError) as error:
            raise MCPError(code=INVALID_PARAMS, message=_told(error)) from None

    return reads


def _caller(context: Context[Any, Any] | None) -> str:
    """Return who calls, as the history names it: the client, where it says its name."""
    params = context.request_context.session.client_params if context is not None else None
    name = fold(params.client_info.name)[:_LONGEST_NAME] if params is not None else ""
    return f"mcp: {name}" if name else "mcp"


def _told(error: BaseException, usage: str = "") -> str:
    """Return what an agent should read of an error; empty when it is none that anybody foresaw."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LearntError):
            return told_error(cause)
        if isinstance(cause, ValidationError):
            wrong = [f"`{'.'.join(map(str, one['loc']))}`: {one['msg']}" for one in cause.errors()]
            return told_error(LearntError("; ".join(wrong), hint=usage))
        if isinstance(cause, OSError):
            return told_error(LearntError(cause.strerror or str(cause), hint="`learnt doctor` looks for the reason"))
        cause = cause.__cause__
    return ""
