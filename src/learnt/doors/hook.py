"""The door of the agent clients: an event on stdin, at most one answer on stdout.

Fails open: at its deadline, or whatever goes wrong, the client goes on as if we were not there: exit code 0, an empty
answer, and the reason in `.learnt/hook.log`, which `learnt doctor` shows. The log never quotes what a client sent.
Without a store, beside a server, and inside a model call of our own, the hook says nothing.

Served are a prompt (answered with a brief of what its conversation has not seen yet) and the end of a turn (debriefed).
A conversation is one task, named after the client's session.
"""

from __future__ import annotations

import os
import sys
import time

from learnt.doors.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.memory import Memory
    from learnt.project import Project

_LONGEST_LOG = 100_000
_LONGEST_ANSWER = 9_500
_LONGEST_REASON = 1_000
_LONGEST_EVENT = 50_000_000
# What the clients call a prompt and the end of a turn.
_PROMPTS = ("UserPromptSubmit", "BeforeAgent")
_ENDS = ("Stop", "SubagentStop", "AfterAgent")
# What Gemini CLI puts before a prompt: what hooks said at the start.
_CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"
# What clients send in the person's name: not theirs to answer, and no query.
_SYNTHETIC = ("<task-notification>", "<system-reminder>", "<hook_prompt")


def run_hook() -> int:
    """Serve one event and return 0."""
    if os.environ.get("LEARNT_INTERNAL"):
        return 0
    here = None
    try:
        from learnt.project import find_project

        here = find_project(".")
        if here is not None and os.path.isdir(here.folder):
            answer = _serve(here)
            if answer:
                sys.stdout.write(answer)
                sys.stdout.flush()
    except Exception as error:  # the one place that must never disturb whom it serves
        _log(here, f"{type(error).__name__}: {_reason(error)}")
    return 0


def _serve(here: Project) -> str:
    from learnt.errors import NoStore
    from learnt.memory import Memory

    try:
        opened = Memory.open(".", create=False)
    except NoStore:
        return ""  # a clone with shared learnings, say, in which nobody keeps any
    with opened as memory, Deadline(memory.settings.hook_deadline_ms):
        event = _read(sys.stdin.buffer.read(_LONGEST_EVENT))
        if memory.store.place.address:
            return ""  # a hook never waits for a server
        memory.store.take_up_spool()
        return _answer(memory, event, here)


def _read(content: bytes) -> dict[str, Any]:
    import json

    if not content.strip():
        return {}
    event = json.loads(content.decode("utf-8", "replace"))
    return event if isinstance(event, dict) else {}


def _answer(memory: Memory, event: dict[str, Any], here: Project) -> str:
    name, session = str(event.get("hook_event_name", "")), str(event.get("session_id", ""))
    if not session or os.environ.get("LEARNT_TASK"):  # the loop briefs and debriefs its own agents
        return ""
    from learnt.model import text_id

    task = text_id("task", f"{session} {event.get('agent_id', '')}")
    if name in _PROMPTS:
        return _brief(memory, task, str(event.get("prompt", "")), event=name, agent=str(event.get("agent_type", "")))
    if name in _ENDS:
        said = event.get("last_assistant_message", event.get("prompt_response"))
        if said:
            memory.debrief(task, str(said), agent=str(event.get("agent_type", "")), task_type="session")
        elif said is None:
            _log(here, f"there is nothing to read in a {name} event without last_assistant_message", once=True)
    return ""


def _brief(memory: Memory, task: str, prompt: str, *, event: str, agent: str) -> str:
    while prompt.lstrip().startswith(_CONTEXT) and _CONTEXT_END in prompt:
        prompt = prompt.partition(_CONTEXT_END)[2]
    if not prompt.strip() or prompt.lstrip().startswith(_SYNTHETIC) or _is_slash_command(prompt):
        return ""
    brief = memory.brief(prompt, task=task, task_type="session", agent=agent, only_new=True, max_chars=_LONGEST_ANSWER)
    if not brief.text:
        return ""
    import json

    said = {"hookEventName": event, "additionalContext": brief.text}
    return json.dumps({"hookSpecificOutput": said}) + "\n"


def _is_slash_command(prompt: str) -> bool:
    """Say whether a prompt is for the client itself: `/compact`, unlike `/home/x/app.py fails`."""
    first = prompt.split(None, 1)[0]
    return first.startswith("/") and len(first) > 1 and "/" not in first[1:]


def _log(here: Project | None, remark: str, *, once: bool = False) -> None:
    if here is None:
        return
    try:
        from learnt.store import HOOK_LOG

        path = os.path.join(here.folder, HOOK_LOG)
        if once and os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                if remark in file.read():
                    return
        if os.path.exists(path) and os.path.getsize(path) > _LONGEST_LOG:
            os.replace(path, path + ".old")
        with open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8") as file:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            file.write(f"{moment} {remark}\n")
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
