"""What every client shares: how it is called, what it leaves behind, and what is read from that.

Nothing here starts a process, reads the clock or looks at the environment. Output is foreign: lines may be broken, huge
or not even text, and reading them gives less, never an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from learnt.model import Value
from learnt.text import command_line, json_values
from learnt.text.clean import fold

# A longer line of a client's stream is passed over: it holds a tool's output, never an answer.
LINE_LIMIT = 8_000_000
# How much of a plain text output is kept; the end, because an agent says last how it went.
TEXT_LIMIT = 4_000_000
ERROR_LIMIT = 2_000
PROGRESS_LIMIT = 160
# The variables that move the folders in which clients keep their transcripts.
PLACES = ("HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME")

# How a client's module reads what it was told.
dig, text_of, count, amount, total = (
    json_values.dig,
    json_values.text_of,
    json_values.count,
    json_values.amount,
    json_values.total,
)


class Request(Value):
    """What an agent is to do, and with what; `folder` and `scratch` are absolute, `scratch` belongs to this run."""

    prompt: str
    folder: str
    scratch: str
    model: str = ""
    arguments: tuple[str, ...] = ()
    # Another way to start the client than its name on PATH; for `command`, the whole command line.
    command: str = ""


class Call(Value):
    """How a client is started: `files` are written first.

    Of the environment, the agent does not get what `without` names, and gets `environment` on top.
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
    """What a run left behind; `places` holds those variables of PLACES that the agent had."""

    call: Call
    folder: str
    stdout: str
    stderr: str
    exit_code: int | None
    places: Mapping[str, str] = {}

    def place(self, variable: str, *below_home: str) -> str:
        """Return the folder that the variable names, or the one below the home folder that it stands for."""
        return place(self.places, variable, *below_home)


class Answer(Value):
    """What a client told about its run. `text` is its last word, `said` all that the agent itself said, in order.

    Figures are None when the client tells none. `tokens_in` counts everything that the model read, `tokens_cached` the
    part of it that came from a cache. `denied` names what the agent was not allowed to do, as far as the client tells.
    `error` is empty when the client ended well.
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


class Client(Protocol):
    """One module per client."""

    def call(self, request: Request) -> Call:
        """Return how the client is started for this request."""

    def read(self, output: Output) -> Answer:
        """Return what the client told."""

    def progress(self, line: str) -> str:
        """Return one short line for a person who watches, or nothing."""


def place(places: Mapping[str, str], variable: str, *below_home: str) -> str:
    """Return the folder that the variable names, or the one below the home folder that it stands for."""
    home = places.get("HOME") or places.get("USERPROFILE") or ""
    return places.get(variable) or (os.path.join(home, *below_home) if home else "")


def program(request: Request, name: str) -> tuple[str, ...]:
    """Return the words that start the client: the configured ones, or its name."""
    return split(request.command) or (name,)


def split(command: str) -> tuple[str, ...]:
    """Return the words of a command line, as a shell would see them."""
    return command_line.split(command, setting="`command` under [work] in learnt.toml")


def unless(arguments: Sequence[str], named: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Return the words, or none of them when the user's own arguments already decide the matter."""
    given = {argument.partition("=")[0] for argument in arguments}
    return () if given.intersection(named) else tuple(words)


def with_model(request: Request, flag: str, *others: str) -> tuple[str, ...]:
    """Return the words that choose the model, when one is asked for."""
    return unless(request.arguments, (flag, *others), (flag, request.model)) if request.model else ()


def records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file with one per line, or of a file that is one; the rest is passed over."""
    found_any = False
    for line in lines(path):
        for found in _objects(line):
            found_any = True
            yield found
    if not found_any:
        yield from _objects(plain_text(path, LINE_LIMIT).encode())


def record(line: str) -> dict[str, Any]:
    """Return the JSON object that a line holds, empty when it holds none."""
    return next(_objects(line.encode("utf-8", "replace")), {})


def _objects(text: bytes) -> Iterator[dict[str, Any]]:
    if not text.lstrip().startswith((b"{", b"[")):
        return
    try:
        found = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return
    yield from (part for part in (found if isinstance(found, list) else [found]) if isinstance(part, dict))


def lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file, but none that is too long; nothing when the file cannot be read."""
    try:
        with open(path, "rb") as file:
            while line := file.readline(LINE_LIMIT):
                if line.endswith(b"\n") or len(line) < LINE_LIMIT:
                    yield line
                else:
                    _pass_over(file)
    except OSError:
        return


def _pass_over(file: Any) -> None:
    while (rest := file.readline(LINE_LIMIT)) and not rest.endswith(b"\n"):
        pass


def plain_text(path: str, limit: int = TEXT_LIMIT) -> str:
    """Return the end of a file as text; what is left out before it is said."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - limit))
            text = file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
    return f"[{size - limit} bytes left out]\n{text}" if size > limit else text


def failure(output: Output, told: str = "") -> str:
    """Return why the client failed: its own word, or the end of what it complained about; empty when it did not."""
    if told:
        return shorten(told, ERROR_LIMIT)
    if output.exit_code == 0:
        return ""
    ending = "it did not end by itself" if output.exit_code is None else f"exit code {output.exit_code}"
    complaint = plain_text(output.stderr, ERROR_LIMIT).strip()
    return f"{ending}: {complaint}" if complaint else ending


def shorten(text: str, limit: int) -> str:
    """Return the text, cut where it is too long."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: object) -> str:
    """Return something fit for a screen: one line, no control characters, short."""
    return shorten(fold(str(text)[: 4 * PROGRESS_LIMIT]), PROGRESS_LIMIT)


def tool_line(name: object, given: object) -> str:
    """Return a line that tells of a tool call: its name and the most telling of its arguments."""
    if not isinstance(given, Mapping):
        return one_line(f"{name} {given or ''}")
    for key in (
        "command",
        "cmd",
        "file_path",
        "filePath",
        "absolute_path",
        "path",
        "pattern",
        "query",
        "url",
        "prompt",
    ):
        if given.get(key):
            return one_line(f"{name} {given[key]}")
    return one_line(name)


def joined(messages: Sequence[str]) -> str:
    """Return what was said in several messages as one text."""
    return "\n\n".join(message.strip() for message in messages if message.strip())


def newest(folder: str, ending: str, *, depth: int) -> str:
    """Return the file below the folder whose name ends so, the last by name of several; nothing for none."""
    if not folder or os.path.basename(ending) != ending or not os.path.isdir(folder):
        return ""
    import glob

    pattern = os.path.join(glob.escape(folder), *["*"] * depth, f"*{glob.escape(ending)}")
    return max(glob.iglob(pattern), default="", key=os.path.basename)
