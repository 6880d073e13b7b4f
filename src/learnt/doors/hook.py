"""The door for agent clients: it reads an event from stdin and writes at most one answer to stdout.

The project is the one around the current folder or, if that has no store, around the event's `cwd`.

In a project that the user has not trusted, the hook says only that, to the person, at the start of a conversation.

The hook fails open: at the deadline and on any error, the exit code is 0, there is no answer, and the client continues.
The reason goes to `.learnt/hook.log`, which `learnt doctor` shows; the log never quotes what a client sent. Without a
store, and inside learnt's own model calls, the hook prints nothing. Modules that need the database are imported only if
there is a store.

With `LEARNT_INTERNAL=probe`, `learnt doctor` starts hooks as clients do: the event is read and the store is opened, but
nothing is recorded or logged, and the answer is the version of learnt.
"""

from __future__ import annotations

import os
import sys
import time

from learnt import __version__
from learnt.errors import InvalidValue, LearntError, NoStore, NotTrusted, OldSchema, TryAgain
from learnt.project import HOOK_LOG, Project, find_project
from learnt.system import files, watched
from learnt.system.files import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.clients.kit.events import HookEvent
    from learnt.flow.hook_events import Reply
    from learnt.memory import Memory

_MAX_LOG_BYTES = 100_000
_MAX_REASON_CHARS = 1_000
_MAX_EVENT_BYTES = 50_000_000
# An agent's words must be saved even on a busy machine, because they are not sent again. Clients wait five seconds, or
# as little as three at the end of a conversation.
_SAVE_DEADLINE_MS = {"stop": 4_000, "end": 2_000}
# How long to wait for an event while the settings have not been read yet, and how long reading them may take.
_PATIENCE_MS = 400
_OPENING_MS = 2_000
_MAX_LIMIT_DIGITS = 9
_NOT_TRUSTED = "learnt is silent here: `learnt trust` shows what came with this project, and asks"
# The names of the event before a call, as in the registry of clients, which takes longer to load than this file.
CALLS = ("PreToolUse", "BeforeTool")
_PROBE = "probe"
# To apply edits takes about 200 ms, and a brief needs some of the time.
_TAKE_OVER_MS, _BRIEF_MS = 250, 100
_BRIEFED = ("session", "prompt", "agent")
_STDIN, _STDOUT = 0, 1
_CHUNK_BYTES = 1 << 20


def run_hook() -> int:
    """Serve one event and return 0."""
    if os.environ.get("LEARNT_INTERNAL", "") not in ("", _PROBE):
        return 0
    began_ns = time.perf_counter_ns()
    sys.unraisablehook = lambda _: None  # otherwise Python prints the error if the deadline passes inside a callback
    here, payload = None, None
    try:
        with Deadline(_opening_ms()) as deadline:
            here = _find_store(_read_option("-C") or ".")
            if here is None and not _read_option("-C"):
                payload = _parse(_read_stdin(_PATIENCE_MS, deadline))
                deadline.start(_opening_ms())
                folder = payload.get("cwd")
                here = _find_store(folder) if isinstance(folder, str) and os.path.isdir(folder) else None
            if here is not None and payload is None and watched.has_file(here.folder):
                payload = _parse(_read_stdin(_PATIENCE_MS, deadline))
                deadline.start(_opening_ms())
            if here is not None and not (payload and _passes_by(here, payload)):
                _serve(here, payload, deadline, began_ns)
            elif _is_probe():
                _answer_probe()
    except Exception as error:  # the hook must never disturb its client
        reason = f"{type(error).__name__}: {_describe_error(error)}"
        _answer_probe(reason) if _is_probe() else _log(here, reason)
    return 0


def _is_probe() -> bool:
    return os.environ.get("LEARNT_INTERNAL") == _PROBE


def _answer_probe(error: str = "") -> None:
    import json

    _write_answer(json.dumps({"learnt": __version__, "error": error}) + "\n")


def _opening_ms() -> int:
    """Return how long the settings may take to read; a longer deadline in the environment counts already."""
    limit = os.environ.get("LEARNT_HOOK_DEADLINE_MS", "")
    return max(_OPENING_MS, int(limit) if limit.isdecimal() and len(limit) <= _MAX_LIMIT_DIGITS else 0)


def _find_store(start: str) -> Project | None:
    """Return the project around a folder, if it has a store."""
    here = find_project(start)
    return here if here is not None and os.path.isdir(here.folder) else None


def _passes_by(here: Project, payload: dict[str, Any]) -> bool:
    """Return whether an event is a call that surely concerns nothing, so that no database is opened for it.

    That the hook fired is recorded at the result.
    """
    tool = payload.get("tool_name")
    if payload.get("hook_event_name") not in CALLS or not isinstance(tool, str):
        return False
    return watched.concerns_nothing(here.folder, tool, payload.get("tool_input"))


def _serve(here: Project, payload: dict[str, Any] | None, deadline: Deadline, began_ns: int) -> None:
    """Answer an event within its deadline; `payload` is the event if it has been read already."""
    from learnt.clients.kit import events
    from learnt.memory import Memory

    try:
        with Memory.open_for_hook(here.root) as memory:
            if memory.mistake and not _is_probe():
                _log(here, memory.mistake, once=True)
            if payload is None:
                payload = _parse(_read_stdin(memory.settings.hook_deadline_ms, deadline))
            event = events.read_event(payload, _read_option("--client"))
            if _is_probe():
                _answer_probe()
                return
            if event and memory.hooks.is_repeated(event):
                event = None
            # At the end of a turn nobody waits for an answer, but words that are not saved now are lost.
            limit_ms = _SAVE_DEADLINE_MS.get(event.kind if event else "", memory.settings.hook_deadline_ms)
            if event and event.kind in _BRIEFED and memory.hooks.has_edited_files():
                _take_over_edits(memory, deadline, _remaining_ms(limit_ms, began_ns))
            deadline.start(_remaining_ms(limit_ms, began_ns))
            reply = _reply_to(event, memory, here, began_ns) if event else None
            answer = ""
            if event and reply:
                answer = events.answer(event, reply.text, denies=reply.denies, message=reply.message)
            deadline.stop()
    except (NotTrusted, NoStore) as error:
        if _is_probe():
            _answer_probe()
            return
        if isinstance(error, NoStore):
            return  # a clone has learnings.md but no database, or the mirror does not exist yet
        event = events.read_event(payload or _parse(_read_stdin(_PATIENCE_MS, deadline)), _read_option("--client"))
        _write_answer(events.tell_person(_NOT_TRUSTED) if event and event.kind == "session" else "")
        return
    except OldSchema:
        memory.hooks.take_over_edits(later=True)  # by the worker, which brings the store up to date first
        raise
    _write_answer(answer)
    if event is not None and event.client:
        memory.hooks.note_fired(event, answer, began_ns)


def _take_over_edits(memory: Memory, deadline: Deadline, remaining_ms: int) -> None:
    """Apply the edits to learnings.md; the worker does it if there is too little time, so that a brief is made.

    In the loop, the edits may be the agent's, and the loop applies them.
    """
    if os.environ.get("LEARNT_TASK"):
        return
    try:
        deadline.start(max(1, remaining_ms - _BRIEF_MS))
        memory.hooks.take_over_edits(later=remaining_ms < _TAKE_OVER_MS)
    except LearntError:
        deadline.stop()
        memory.hooks.take_over_edits(later=True)


def _remaining_ms(limit_ms: int, began_ns: int) -> int:
    """Return how much time remains, but at least one millisecond."""
    return max(1, limit_ms - (time.perf_counter_ns() - began_ns) // 1_000_000)


def _read_stdin(patience_ms: int, deadline: Deadline) -> bytes:
    """Return all of stdin; raise TryAgain if the client does not close it in time.

    No alarm runs until the event is known, because on a busy machine it could go off after everything has arrived.
    """
    deadline.stop()
    if sys.platform == "win32":
        return sys.stdin.buffer.read(_MAX_EVENT_BYTES)
    from select import select

    pieces: list[bytes] = []
    remaining_s = patience_ms / 1000
    while sum(map(len, pieces)) < _MAX_EVENT_BYTES:
        began_s = time.perf_counter()
        is_readable = select([_STDIN], [], [], remaining_s)[0]
        remaining_s -= time.perf_counter() - began_s
        if not is_readable or remaining_s <= 0:
            raise TryAgain(f"the event did not end within {patience_ms} ms", hint="the client must close the pipe")
        pieces.append(os.read(_STDIN, _CHUNK_BYTES))
        if not pieces[-1]:
            break
    return b"".join(pieces)


def _write_answer(answer: str) -> None:
    """Write to stdout without Python's buffer, because flushing it at exit would fail if the client has exited."""
    content = answer.encode()
    while content:
        content = content[os.write(_STDOUT, content) :]


def _read_option(option: str) -> str:
    """Return the value of an option, as in `--client X` or `--client=X`; empty if it is missing."""
    words = sys.argv[2:]
    if option in words[:-1]:
        return words[words.index(option) + 1]
    return next((word.partition("=")[2] for word in words if word.startswith(f"{option}=")), "")


def _parse(content: bytes) -> dict[str, Any]:
    import json

    if not content.strip():
        return {}
    event = json.loads(content.decode("utf-8", "replace"))
    return event if isinstance(event, dict) else {}


def _reply_to(event: HookEvent, memory: Memory, here: Project, began_ns: int) -> Reply | None:
    if not event.is_end:  # an end does not need the database, so its debrief is saved even if that is damaged
        memory.hooks.check_mirror()
    if event.kind == "stop" and event.said is None and not event.transcript:
        remark = f"nothing to read in a {event.name} event: it has neither the agent's words nor a transcript"
        _log(here, remark, once=True)
        return None
    # The loop briefs and debriefs its own agents.
    return memory.hooks.serve(event, loop_task=os.environ.get("LEARNT_TASK", ""), began_ns=began_ns)


def _log(here: Project | None, remark: str, *, once: bool = False) -> None:
    if here is None:
        return
    from learnt.text.redact import redact_line

    remark = redact_line(remark, _MAX_REASON_CHARS)[0][:_MAX_REASON_CHARS]
    try:
        path = os.path.join(here.folder, HOOK_LOG)
        remark = files.as_remark(remark)
        if once and files.exists(path) and remark.encode() in files.read_end(path, max_bytes=2 * _MAX_LOG_BYTES):
            return
        files.rotate(path, max_bytes=_MAX_LOG_BYTES)
        files.append_remark(path, remark)
    except OSError:
        return


def _describe_error(error: Exception) -> str:
    """Return an error's message or, if the message might quote the input, only the place in the code."""
    if isinstance(error, LearntError | OSError) and not isinstance(error, InvalidValue):
        return str(error)
    ours = os.path.dirname(os.path.dirname(__file__))
    place = "unknown"
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(ours):
            place = f"{os.path.relpath(path, ours)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"at {place}"
