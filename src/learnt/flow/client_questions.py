"""Ask a client's own program about itself, and try our hooks and our server as clients start them.

A program is started, asked over its stdin and stopped, all within a few seconds. If anything goes wrong, there is no
reply. A client that is started writes into its folder, so it gets a temporary one with copies of its settings. Our own
programs know that they are only tried, and record nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from learnt import __version__
from learnt.clients.kit.setup import Question, Trial, Try, program_of
from learnt.system.detached import INTERNAL
from learnt.system.installation import install_command, own_script
from learnt.system.run import TIME_LIMIT, Exit, run

LIMIT_S = 3.0
# On a busy machine, loading the packages of the server takes several seconds. A hook is given as long as by clients.
_SERVER_LIMIT_S = 15.0
_HOOK_LIMIT_S = 5.0
_MAX_BYTES = 10_000_000
_MAX_REMARK_CHARS = 300
_PROBE = "probe"
_SHELLS = {"sh": "/bin/sh"}  # a client finds it without PATH
# Clients pass little of their environment on to servers; Codex only these.
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_HANDSHAKE: tuple[dict[str, Any], ...] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "learnt-doctor", "version": __version__},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def ask_client(question: Question, *, limit_s: float = LIMIT_S) -> dict[str, Any] | None:
    """Return the program's reply to a question; None if it does not reply."""
    if shutil.which(question.words[0]) is None:
        return None
    reader = _OutputReader(question.reply_id)
    with tempfile.TemporaryDirectory(prefix="learnt-", ignore_cleanup_errors=True) as folder:
        copy = os.path.realpath(folder)
        _copy_files(question, copy)
        environ = {**os.environ, INTERNAL: "1"} | ({question.home_variable: copy} if question.home_variable else {})
        _converse(question, reader, environ=environ, limit_s=limit_s)
    reply = reader.replies.get(question.reply_id)
    return reply and _rename_files(reply, question, copy)


def _copy_files(question: Question, folder: str) -> None:
    """Write the files that a client's program needs; where one names another, it names the copy."""
    for name, content in question.files.items():
        copied = content
        for other in question.files:
            original, copy = (f"{os.path.join(place, other)}:".encode() for place in (question.home, folder))
            copied = copied.replace(original, copy)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(copied)


def _rename_files(reply: dict[str, Any], question: Question, folder: str) -> dict[str, Any]:
    """Return a reply in which the copied files are named as the originals."""
    text = json.dumps(reply, ensure_ascii=False)
    for name in question.files:
        copy, original = (json.dumps(os.path.join(place, name))[1:-1] for place in (folder, question.home))
        text = text.replace(copy, original)
    renamed: dict[str, Any] = json.loads(text)
    return renamed


class Trials:
    """Tries command lines for several clients at once. Clients often have the same one, which is tried once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool = ThreadPoolExecutor()
        self._begun: dict[tuple[object, ...], Future[Trial]] = {}

    def try_hook(self, words: tuple[str, ...], folder: str) -> Trial:
        """Return what came of sending an event to a hook."""
        return self._try_once(_try_hook, words, folder)

    def try_server(self, words: tuple[str, ...], folder: str) -> Trial:
        """Return what came of asking an MCP server for its tools."""
        return self._try_once(_try_server, words, folder)

    def _try_once(self, attempt: Try, words: tuple[str, ...], folder: str) -> Trial:
        key = (attempt, words, folder)
        with self._lock:
            if key not in self._begun:
                self._begun[key] = self._pool.submit(attempt, words, folder)
        return self._begun[key].result()


def _try_server(words: tuple[str, ...], folder: str) -> Trial:
    question = Question(words=words, folder=folder, messages=_HANDSHAKE, reply_id=2)
    reader = _OutputReader(question.reply_id)
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    ended = _converse(question, reader, environ=environ, limit_s=_SERVER_LIMIT_S)
    if ended is None:
        return Trial()
    about = reader.replies.get(1, {}).get("result", {}).get("serverInfo", {})
    version = str(about.get("version", "")) if isinstance(about, dict) else ""
    tools = reader.replies.get(2, {}).get("result", {}).get("tools")
    if not tools:
        return _blame("server", words, ended, reader)
    return _compare_version(version, words)


def _try_hook(words: tuple[str, ...], folder: str) -> Trial:
    event = {"hook_event_name": "SessionStart", "session_id": "learnt-doctor", "source": "startup", "cwd": folder}
    reader = _OutputReader(None)
    question = Question(words=words, folder=folder, messages=(event,), reply_id=0)
    environ = {**os.environ, INTERNAL: _PROBE}
    ended = _converse(question, reader, environ=environ, limit_s=_HOOK_LIMIT_S, keep_open=False)
    if ended is None:
        return Trial()
    answer = reader.last_message
    if answer is None:
        return _blame("hook", words, ended, reader)
    if answer.get("error"):
        fault = f"the hook {_quote(words)} fails: {answer['error']}"
        return Trial(fault=fault, remedy="the lines about the store say more")
    return _compare_version(str(answer.get("learnt", "")), words)


def _compare_version(version: str, words: tuple[str, ...]) -> Trial:
    """Return a trial that has succeeded, unless another version of learnt has answered."""
    if version == __version__:
        return Trial(version=version)
    program = _find_program(words)
    this = f"this is learnt {__version__}, {own_script() or sys.executable}"
    fault = f"{program} is learnt {version or 'of an unknown version'}, and {this}"
    return Trial(fault=fault, wrong_program=program, version=version)


def _blame(what: str, words: tuple[str, ...], ended: Exit, reader: _OutputReader) -> Trial:
    """Return a trial of a program that did not answer: it cannot be started, hangs, fails, or is not learnt.

    What is said about another program is the same for all clients, so that it is said once.
    """
    program = _find_program(words)
    is_own = os.path.realpath(program) == os.path.realpath(own_script())
    silent = f"our {what} does not answer"
    if interpreter := _find_missing_interpreter(program):
        fault = f"{program} cannot be started: its interpreter {interpreter} does not exist"
    elif ended.ending == TIME_LIMIT:
        fault = f"{silent}: {program} hangs"
    elif what == "hook" and not is_own:
        fault = f"{silent}: {program} is another version of learnt, or another program"
    else:
        remark = f": {reader.remark}" if reader.remark else ""
        failure = ended.error or f"{program} ended with exit code {ended.exit_code}"
        return Trial(fault=f"{silent}: {failure}{remark}", remedy=f"`{install_command()}`")
    return Trial(fault=fault, remedy=f"`{install_command()}`") if is_own else Trial(fault=fault, wrong_program=program)


def _find_missing_interpreter(program: str) -> str:
    """Return the interpreter that a script names, if it does not exist; otherwise an empty string."""
    try:
        with open(program, "rb") as file:
            first = file.readline(_MAX_REMARK_CHARS)
    except OSError:
        return ""
    words = first.removeprefix(b"#!").split() if first.startswith(b"#!") else []
    interpreter = os.fsdecode(words[0]) if words else ""
    return interpreter if interpreter and not os.path.exists(interpreter) else ""


def _find_program(words: tuple[str, ...]) -> str:
    return shutil.which(program_of(words)) or program_of(words)


def _quote(words: tuple[str, ...]) -> str:
    """Return a command line as it can be typed."""
    in_shell = words[:-1] == ("sh", "-c")
    return f"`{words[-1] if in_shell else shlex.join(words)}`"


def _converse(
    question: Question, reader: _OutputReader, *, environ: Mapping[str, str], limit_s: float, keep_open: bool = True
) -> Exit | None:
    """Start a program, send it the messages and read its replies; None if it cannot be tried here."""
    if sys.platform == "win32":
        return None
    name = question.words[0]
    program = shutil.which(name) or _SHELLS.get(name, name)
    reading, writing = os.pipe()
    # The program would stop at the end of its input, so the pipe stays open until the reply has arrived.
    with open(reading, "rb") as stdin, open(writing, "wb", buffering=0) as pipe:
        pipe.write(b"".join(json.dumps(message).encode() + b"\n" for message in question.messages))
        if not keep_open:
            pipe.close()
        return run(
            [program, *question.words[1:]],
            folder=question.folder,
            environ=environ,
            stdin=stdin,
            keep=reader.keep,
            time_limit_s=limit_s,
        )


class _OutputReader:
    """Reads what the program prints, line by line, until the last reply has arrived."""

    def __init__(self, last_id: int | None) -> None:
        self.replies: dict[int, dict[str, Any]] = {}
        self.last_message: dict[str, Any] | None = None
        self.remark = ""
        """The last line on stderr."""
        self._last_id = last_id
        self._rest = {"stdout": b"", "stderr": b""}
        self._bytes_left = _MAX_BYTES

    def keep(self, name: str, chunk: bytes) -> bool:
        """Read a piece of output; return False when no more output is needed."""
        self._bytes_left -= len(chunk)
        *lines, self._rest[name] = (self._rest[name] + chunk).split(b"\n")
        for line in lines:
            if name == "stdout":
                self._read_message(line)
            elif line.strip():
                self.remark = line.decode("utf-8", "replace").strip()[:_MAX_REMARK_CHARS]
        return self._last_id not in self.replies and self._bytes_left > 0

    def _read_message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if isinstance(message, dict):
            self.last_message = message
            if isinstance(message.get("id"), int):
                self.replies[message["id"]] = message
