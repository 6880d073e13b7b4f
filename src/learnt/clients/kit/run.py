"""Run a client unattended: the request, the command line, and the report from its output.

A client's `run` module provides the functions `build_call`, `read_report` and `format_progress`. Nothing here starts a
process or reads the clock or the environment; `loop/agents` runs the `Call`. Output is untrusted: broken, huge or
binary lines are skipped and never raise an error.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from learnt.clients import registry
from learnt.model import Value
from learnt.system.files import open_to_read
from learnt.text.clean import fold
from learnt.text.templates import split_command_line

# A longer line in a client's stream is skipped, because it is a tool's output and never an answer.
LINE_LIMIT = 8_000_000
# Only this much of a plain text output is read, from the end, because an agent reports its result last.
TEXT_LIMIT = 4_000_000
ERROR_LIMIT = 20_000
PROGRESS_LIMIT = 160
# The most informative tool arguments, the best first.
_INFORMATIVE_ARGUMENTS = "command cmd file_path filePath absolute_path path pattern query url prompt".split()


class RunRequest(Value):
    """The prompt and the options of a run. `folder` and `scratch` are absolute. Only this run uses `scratch`."""

    prompt: str
    folder: str
    scratch: str
    model: str = ""
    arguments: tuple[str, ...] = ()
    command: str = ""
    """The words that start the client, if they are not its name. For the client `command`, this is the command line."""


class Call(Value):
    """How a client is started.

    Before the start, `files` are written, the variables in `without` are removed from the environment, and the
    variables in `environment` are added to it.
    """

    client: str
    argv: tuple[str, ...]
    stdin: str = ""
    environment: Mapping[str, str] = {}
    without: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    model: str = ""
    scratch: str = ""


class Output(Value):
    """The output of a run. `variables` has the `registry.FOLDER_VARIABLES` that were set for the agent."""

    call: Call
    folder: str
    stdout: str
    stderr: str
    exit_code: int | None
    variables: Mapping[str, str] = {}


class RunReport(Value):
    """A client's report about its run. `text` is the agent's last message, and `said` has all its messages in order.

    Cost and tokens are None if the client does not report them. `tokens_in` counts all tokens that the model read, and
    `tokens_cached` counts the part that came from a cache. `denied` lists calls that the agent was not allowed to make,
    if the client reports them. `error` is empty if the run succeeded.
    """

    text: str = ""
    said: str = ""
    model: str = ""
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    transcript: str = ""
    denied: tuple[str, ...] = ()
    error: str = ""


class Runner(Protocol):
    """A client's `run` module."""

    def build_call(self, request: RunRequest) -> Call:
        """Return how the client is started."""

    def read_report(self, output: Output) -> RunReport:
        """Return the client's report about its run."""

    def format_progress(self, line: str) -> str:
        """Return a short progress message for a line of output; empty if the line shows no progress."""


def build_call(name: str, request: RunRequest) -> Call:
    """Return how a client is started."""
    return _runner(name).build_call(request)


def read_report(output: Output) -> RunReport:
    """Return the client's report about its run."""
    return _runner(output.call.client).read_report(output)


def format_progress(call: Call, line: str) -> str:
    """Return a short progress message for a line of output; empty if the line shows no progress."""
    return _runner(call.client).format_progress(line)


def _runner(name: str) -> Runner:
    runner: Runner = registry.load(registry.get(name, "run"), "run")
    return runner


def find_folder(variables: Mapping[str, str], variable: str, *below_home: str) -> str:
    """Return the folder in a variable, or the default below the home folder; empty if both are unknown."""
    home = variables.get("HOME") or variables.get("USERPROFILE") or ""
    return variables.get(variable) or (os.path.join(home, *below_home) if home else "")


def program(request: RunRequest, name: str) -> tuple[str, ...]:
    """Return the words that start the client: the configured command, or its name."""
    return split(request.command) or (name,)


def split(command: str) -> tuple[str, ...]:
    """Return the words of a command line, as a shell would split them."""
    return split_command_line(command, setting="`command` under [work] in learnt.toml")


def option(request: RunRequest, *words: str, unless: Sequence[str] = ()) -> tuple[str, ...]:
    """Return an option with its values; empty if the user's arguments have this option or one in `unless`."""
    names = {argument.partition("=")[0] for argument in request.arguments}
    return () if names.intersection((words[0], *unless)) else words


def model_option(request: RunRequest, *short: str) -> tuple[str, ...]:
    """Return the option that selects the requested model, if any. `short` lists other names for the option."""
    return option(request, "--model", request.model, unless=short) if request.model else ()


def records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a file that has one per line or is a single object; skip other lines."""
    is_empty = True
    for line in lines(path):
        for record in _objects(line.decode("utf-8", "replace")):
            is_empty = False
            yield record
    if is_empty:
        yield from _objects(plain_text(path, LINE_LIMIT))


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON object in a text, or the objects in a JSON list."""
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]


def lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file without overlong lines, and nothing if the file cannot be read."""
    try:
        with open(path, "rb", opener=open_to_read) as file:
            while line := file.readline(LINE_LIMIT):
                if line.endswith(b"\n") or len(line) < LINE_LIMIT:
                    yield line
                else:
                    while (rest := file.readline(LINE_LIMIT)) and not rest.endswith(b"\n"):
                        pass
    except OSError:
        return


def plain_text(path: str, limit: int = TEXT_LIMIT) -> str:
    """Return the end of a file as text, with the size of the omitted part."""
    try:
        with open(path, "rb", opener=open_to_read) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - limit))
            text = file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
    return f"[{size - limit} bytes left out]\n{text}" if size > limit else text


def failure(output: Output, reported: str = "") -> str:
    """Return why the client failed, from its report or the end of its stderr; empty if it did not fail."""
    if reported:
        return shorten(reported, ERROR_LIMIT)
    if output.exit_code == 0:
        return ""
    ending = "it did not end by itself" if output.exit_code is None else f"exit code {output.exit_code}"
    complaint = plain_text(output.stderr, ERROR_LIMIT).strip()
    return f"{ending}: {complaint}" if complaint else ending


def shorten(text: str, limit: int) -> str:
    """Return the text, truncated to the limit."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: object) -> str:
    """Return the text as one short line without control characters."""
    return shorten(fold(str(text)[: 4 * PROGRESS_LIMIT]), PROGRESS_LIMIT)


def tool_line(name: object, arguments: object) -> str:
    """Return one line about a tool call, with the tool's name and most informative argument."""
    if isinstance(arguments, Mapping):
        arguments = next((arguments[key] for key in _INFORMATIVE_ARGUMENTS if arguments.get(key)), "")
    return one_line(f"{name} {arguments or ''}")


def newest(folder: str, ending: str, *, depth: int) -> str:
    """Return the file below the folder that has this ending and sorts last by name; empty if there is none."""
    if not folder or os.path.basename(ending) != ending or not os.path.isdir(folder):
        return ""
    pattern = os.path.join(glob.escape(folder), *["*"] * depth, f"*{glob.escape(ending)}")
    return max(glob.iglob(pattern), default="", key=os.path.basename)
