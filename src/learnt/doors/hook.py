"""The door of the agent clients: an event on stdin, at most one answer on stdout.

The project is the one around the folder in which the client starts us; where that has no store, the one around the
folder that the event names.

Fails open: at its deadline, or whatever goes wrong, the client goes on as if we were not there: exit code 0, an empty
answer, and the reason in `.learnt/hook.log`, which `learnt doctor` shows. The log never quotes what a client sent.
Without a store, and inside a model call of our own, the hook says nothing.
"""

from __future__ import annotations

import os
import sys
import time

from learnt.doors.deadline import Deadline
from learnt.errors import TryAgain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.clients.kit.events import HookEvent
    from learnt.memory import Memory
    from learnt.project import Project

_LONGEST_LOG = 100_000
_LONGEST_REASON = 1_000
_LONGEST_EVENT = 50_000_000
# What an agent said is kept however busy the machine is: nobody says it again. Clients wait for five seconds, Codex at
# the end of a conversation for three.
_TIME_TO_KEEP_MS = {"stop": 4_000, "end": 2_000}
# How long an event may take where no settings are known.
_PATIENCE_MS = 400
_STDIN, _STDOUT = 0, 1
_AT_ONCE = 1 << 20


def run_hook() -> int:
    """Serve one event and return 0."""
    if os.environ.get("LEARNT_INTERNAL"):
        return 0
    began_ns = time.perf_counter_ns()
    sys.unraisablehook = lambda _: None  # a deadline that falls into a callback of Python's own is told on stderr
    here, told = None, None
    try:
        here = _with_store(_given("-C") or ".")
        if here is None and not _given("-C"):
            told = _read(_sent(_PATIENCE_MS))
            folder = told.get("cwd")
            here = _with_store(folder) if isinstance(folder, str) and os.path.isdir(folder) else None
        if here is not None:
            _serve(here, told, began_ns)
    except Exception as error:  # the one place that must never disturb whom it serves
        _log(here, f"{type(error).__name__}: {_reason(error)}")
    return 0


def _with_store(start: str) -> Project | None:
    """Return the project around a folder, if it has a store."""
    from learnt.project import find_project

    here = find_project(start)
    return here if here is not None and os.path.isdir(here.folder) else None


def _serve(here: Project, told: dict[str, Any] | None, began_ns: int) -> None:
    """`told`: the event, if it was read already."""
    from learnt.clients.kit.events import read_event
    from learnt.errors import NoStore
    from learnt.memory import Memory

    try:
        with Memory.open_for_hook(here.root) as memory:
            if memory.mistake:
                _log(here, memory.mistake, once=True)
            told = _read(_sent(memory.settings.hook_deadline_ms)) if told is None else told
            event = read_event(told, _given("--client"))
            # Nobody hears an answer to the end of a turn, and what is not kept now is lost.
            limit_ms = _TIME_TO_KEEP_MS.get(event.kind if event else "", memory.settings.hook_deadline_ms)
            with Deadline(_left_ms(limit_ms, began_ns)):
                answer = _answer(memory, event, here, began_ns) if event else ""
    except NoStore:
        return  # a clone with shared learnings, say, in which nobody keeps any; or a mirror is to be made first
    _say(answer)
    if event is not None:
        _note(here, event, answer, began_ns)


def _left_ms(limit_ms: int, began_ns: int) -> int:
    """Return how much time there is still; at least a moment."""
    return max(1, limit_ms - (time.perf_counter_ns() - began_ns) // 1_000_000)


def _sent(patience_ms: int) -> bytes:
    """Return what stands on stdin; a client that does not close it is waited for so long in all, drip as it may.

    No alarm rings meanwhile: on a busy machine it would ring although all of it is there.
    """
    if sys.platform == "win32":
        return sys.stdin.buffer.read(_LONGEST_EVENT)
    from select import select

    pieces: list[bytes] = []
    left_s = patience_ms / 1000
    while sum(map(len, pieces)) < _LONGEST_EVENT:
        began_s = time.perf_counter()
        is_there = select([_STDIN], [], [], left_s)[0]
        left_s -= time.perf_counter() - began_s
        if not is_there or left_s <= 0:
            raise TryAgain(f"the event did not end within {patience_ms} ms", hint="the client must close the pipe")
        pieces.append(os.read(_STDIN, _AT_ONCE))
        if not pieces[-1]:
            break
    return b"".join(pieces)


def _say(answer: str) -> None:
    """Print past Python's own files: what they hold back for a client that has gone would disturb our end."""
    content = answer.encode()
    while content:
        content = content[os.write(_STDOUT, content) :]


def _given(option: str) -> str:
    """Return what an option on the command line names, as `--client X` or `--client=X`; nothing without it."""
    words = sys.argv[2:]
    if option in words[:-1]:
        return words[words.index(option) + 1]
    return next((word.partition("=")[2] for word in words if word.startswith(f"{option}=")), "")


def _read(content: bytes) -> dict[str, Any]:
    import json

    if not content.strip():
        return {}
    event = json.loads(content.decode("utf-8", "replace"))
    return event if isinstance(event, dict) else {}


def _answer(memory: Memory, event: HookEvent, here: Project, began_ns: int) -> str:
    from learnt.clients.kit.events import answer

    if not event.is_end:  # an end asks for no database: a damaged one must not cost a debrief
        memory.hooks.check_mirror()
    if event.kind == "stop" and event.said is None and not event.transcript:
        remark = f"there is nothing to read in a {event.name} event without an agent's words and without a transcript"
        _log(here, remark, once=True)
        return ""
    # The loop briefs and debriefs its own agents.
    reply = memory.hooks.serve(event, loop_task=os.environ.get("LEARNT_TASK", ""), began_ns=began_ns)
    return answer(event, reply.text, denies=reply.denies)


def _note(here: Project, event: HookEvent, answer: str, began_ns: int) -> None:
    """Leave a sign that the client has called: `learnt doctor` shows it."""
    if not event.client:
        return
    from learnt.store.fired import note

    took_ms = (time.perf_counter_ns() - began_ns) / 1_000_000
    at = time.time_ns() // 1_000_000
    note(here.folder, event.client, event.kind, at=at, duration_ms=took_ms, chars=len(answer))


def _log(here: Project | None, remark: str, *, once: bool = False) -> None:
    if here is None:
        return
    try:
        from learnt.store import HOOK_LOG
        from learnt.system import files

        path = os.path.join(here.folder, HOOK_LOG)
        if once and os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                if remark in file.read():
                    return
        files.rotate(path, longest=_LONGEST_LOG)
        files.append_private(path, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {remark}\n")
    except OSError:
        return


def _reason(error: Exception) -> str:
    """Return what went wrong; of an error that may quote what it was given, only where."""
    from learnt.errors import InvalidValue, LearntError

    if isinstance(error, LearntError | OSError) and not isinstance(error, InvalidValue):
        from learnt.text.redact import redact_line

        return redact_line(str(error), _LONGEST_REASON)[0][:_LONGEST_REASON]
    ours = os.path.dirname(os.path.dirname(__file__))
    place = "unknown"
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(ours):
            place = f"{os.path.relpath(path, ours)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"at {place}"
