"""Any program that answers on stdout: the prompt comes on stdin, or as a file for `{prompt_file}`.

`{model}` in the command line is replaced by the model's name. Whatever the program does, `ask` returns in time: it may
hang, print without end, leave its input unread or leave others running. It has a session of its own, and all that is in
its process group is killed when it is over. `LEARNT_INTERNAL=1` tells the hooks of a client that the call is ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import IO

from learnt.llm.service import too_late
from learnt.llm.shapes import FAILED, Answer, Provider, Request
from learnt.text.clean import clean, fold

PROMPT_FILE = "{prompt_file}"
MODEL = "{model}"
OUTPUT_LIMIT_BYTES = 5_000_000
_ERRORS_KEPT_BYTES = 4_000
_LONGEST_COMPLAINT = 300
_CHUNK = 65_536
# How long a killed process may take to vanish, and a pipe to close that something outside of the group still holds.
_PATIENCE_S = 2.0
_EXITED, _FLOODED = "exited", "flooded"

if sys.platform == "win32":
    _NEW_GROUP = subprocess.CREATE_NEW_PROCESS_GROUP
else:
    _NEW_GROUP = 0  # a new session stands for it


def ask(words: Sequence[str], request: Request, provider: Provider) -> Answer:
    """Return what the program prints when it is given the prompt."""
    with tempfile.TemporaryDirectory(prefix="learnt-", ignore_cleanup_errors=True) as scratch:
        path = os.path.join(scratch, "prompt.md")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(f"{request.instructions}\n\n{clean(request.prompt)}".strip() + "\n")
        program = _Program([word.replace(PROMPT_FILE, path).replace(MODEL, provider.model) for word in words])
        as_file = any(PROMPT_FILE in word for word in words)
        flaw = program.start(
            os.devnull if as_file else path,
            folder=provider.folder or scratch,
            environment={**provider.environment, "LEARNT_INTERNAL": "1"},
        )
        if flaw:
            hint = "check `command`: `learnt config model.command` shows it and where it is set"
            return Answer(result=FAILED, reason=flaw, hint=hint, reached=False)
        try:
            ending = program.watch(provider.time_limit_s)
        finally:
            program.end()
        return program.answer(ending, provider)


class _Program:
    """One program while it runs, and the threads that serve it."""

    def __init__(self, argv: list[str]) -> None:
        self._argv = argv
        self._events: SimpleQueue[str] = SimpleQueue()
        self._out = bytearray()
        self._errors = bytearray()
        self._threads: list[threading.Thread] = []

    def start(self, stdin: str, *, folder: str, environment: Mapping[str, str]) -> str:
        """Start the program; return why that was not possible."""
        try:
            with open(stdin, "rb") as given:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    cwd=folder,
                    env=environment,
                    start_new_session=sys.platform != "win32",
                    creationflags=_NEW_GROUP,
                )
        except FileNotFoundError:
            return f"the program `{self._argv[0]}` was not found"
        except (OSError, ValueError) as mistake:
            return f"the program `{self._argv[0]}` could not be started: {mistake}"
        self._thread(self._keep_output, self._process.stdout)
        self._thread(self._keep_errors, self._process.stderr)
        self._thread(self._wait)
        return ""

    def watch(self, limit_s: float) -> str:
        """Return how it ended, or nothing when it has not within the limit."""
        try:
            return self._events.get(timeout=limit_s)
        except Empty:
            return ""

    def end(self) -> None:
        """Kill what is left of the group, and take the rest of the output."""
        _kill_group(self._process)
        for thread in self._threads:
            thread.join(_PATIENCE_S)
        self._process.poll()

    def answer(self, ending: str, provider: Provider) -> Answer:
        """Return what came of it, once it has ended."""
        if len(self._out) > OUTPUT_LIMIT_BYTES:
            reason = f"`{self._argv[0]}` printed more than {OUTPUT_LIMIT_BYTES:,} bytes"
            return Answer(result=FAILED, reason=reason, again=True)
        if not ending:
            return too_late(provider.time_limit_s)
        text = self._out.decode("utf-8", "replace")
        if code := self._process.returncode:
            complaint = _last_line(self._errors.decode("utf-8", "replace")) or _last_line(text)
            told = f": {complaint}" if complaint else ""
            return Answer(
                result=FAILED, reason=f"`{self._argv[0]}` ended with exit code {_as_told(code)}{told}", again=True
            )
        return Answer(text=text)

    def _thread(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name=f"learnt-{work.__name__}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _wait(self) -> None:
        if sys.platform == "linux":
            # Seen, but not taken: until the group is killed, its number must stay its own.
            try:
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:  # it took longer to vanish than anybody waits
                pass
        else:
            self._process.wait()
        self._events.put(_EXITED)

    def _keep_output(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := pipe.read(_CHUNK):
                self._out += chunk
                if len(self._out) > OUTPUT_LIMIT_BYTES:
                    self._events.put(_FLOODED)
                    return

    def _keep_errors(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := pipe.read(_CHUNK):
                self._errors = (self._errors + chunk)[-_ERRORS_KEPT_BYTES:]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        words = ("taskkill", "/T", "/F", "/PID", str(process.pid))
        subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        process.kill()
    else:
        import signal

        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # nobody is left, or only what runs as somebody else
            process.kill()


def _as_told(code: int) -> int:
    """Return an exit code as a shell tells it: 137 for a kill."""
    return code if code >= 0 else 128 - code


def _last_line(text: str) -> str:
    lines = [line for line in clean(text).splitlines() if line.strip()]
    return fold(lines[-1])[:_LONGEST_COMPLAINT] if lines else ""
