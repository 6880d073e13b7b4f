"""Sixty conversations in which an agent is warned of a command, and what came of each warning, worked out by hand.

A conversation is a row: an outcome, and the events after which it is known. The command failed in an earlier
conversation, in which another one worked.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.clients.kit.events import read_event
from learnt.system.detached import INTERNAL
from tests.conftest import Clock

ERROR = "unknown option --fast"
SHELL = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "opencode": "bash"}

RESULTS: dict[str, tuple[bool | None, str]] = {
    "fails": (True, ERROR),
    "works": (False, "shipped"),
    "vague": (None, ""),  # it goes on in the background, or was interrupted
    "flaky": (True, "connection timed out"),  # a failure that passes by itself
    "relative": (True, ERROR),  # another call with the same mistake
    "other": (False, "shipped"),
    "other fails": (True, "ls: cannot access 'nothing'"),
}
EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "edit": ("PostToolUse", {"tool_name": "Edit", "tool_input": {"file_path": "a.py"}, "tool_response": "ok"}),
    "says": ("Stop", {"last_assistant_message": "It is shipped.", "stop_hook_active": True}),
    "cut": ("StopFailure", {"last_assistant_message": "API Error: 500"}),
    "ends": ("SessionEnd", {"reason": "other"}),
    "asks": ("UserPromptSubmit", {"prompt": "Go on"}),
    "noted": ("UserPromptSubmit", {"prompt": "<task-notification>done</task-notification>"}),
    "compacts": ("SessionStart", {"source": "compact"}),
}
STOPPED = """
prevented: call, other
prevented: call, other fails
prevented: call, edit
prevented: call, says
prevented: call, says, ends
prevented: call, other, says, ends
prevented: call, other, asks, other
prevented: call, says, asks, other
prevented: call, noted, other
prevented: call, other, other, other
prevented: call, other, compacts
prevented: call, edit, cut
ignored: call, call, fails
ignored: call, call, fails, other, says
ignored: call, other, call, fails
ignored: call, says, asks, call, fails
ignored: call, asks, call, fails
ignored: call, call, vague, call, fails
ignored: call, call, flaky, call, fails
ignored: call, relative
ignored: call, other, relative, says
ignored: call, call, fails, call, fails
needless: call, call, works
needless: call, call, works, says, ends
needless: call, other, call, works
needless: call, call, fails, call, works
needless: call, call, vague, call, works
unknown: call
unknown: call, ends
unknown: call, cut
unknown: call, cut, ends
unknown: call, asks
unknown: call, asks, other
unknown: call, asks, says
unknown: call, asks, asks, other, says
unknown: call, call
unknown: call, call, ends
unknown: call, call, vague
unknown: call, call, vague, other, says
unknown: call, call, flaky, other
unknown: call, other, call, says
unknown: call, call, other, says
"""
TOLD = """
ignored: call, fails
ignored: call, fails, other, says
ignored: call, fails, call, fails
ignored: call, vague, call, fails
ignored: call, other, fails
needless: call, works
needless: call, works, says
prevented: call, other
prevented: call, says
unknown: call
unknown: call, ends
unknown: call, vague
unknown: call, vague, says
unknown: call, flaky, says
unknown: call, asks, other
"""
LATE = """
unknown: call, fails
unknown: call, fails, other, says
ignored: call, fails, call, fails
"""


def rows() -> list[tuple[str, str, str, str]]:
    """Return the setting, the client, the expected outcome and the events of each conversation."""
    clients = ("claude", "codex", "opencode", "gemini")
    found = []
    for mode, text, of in (("stop_once", STOPPED, clients), ("tell", TOLD, clients[:3]), ("tell", LATE, clients[3:])):
        for number, line in enumerate(text.strip().splitlines()):
            outcome, _, events = line.partition(": ")
            found.append((mode, of[number % len(of)], outcome, events))
    return found


class Talk:
    """A conversation in a client, with a hook for each event, in this process."""

    def __init__(self, memory: Memory, client: str, session: str, program: str, cwd: Path) -> None:
        self._memory = memory
        self._client = client
        self._always = {"session_id": session, "cwd": str(cwd)}
        self.fails, self.works = f"{program} --fast now", f"{program} --safe now"
        self._relative = f"cd web && {program} --fast tomorrow"

    def hear(self, name: str, **fields: Any) -> str:
        event = read_event({"hook_event_name": name, **self._always, **fields}, self._client)
        assert event is not None
        return self._memory.hooks.serve(event, loop_task="", began_ns=time.perf_counter_ns()).text

    def result(self, command: str, failed: bool | None, output: str = "") -> str:
        event = read_event({"hook_event_name": "PostToolUse", **self._always, **self._tool(command)}, self._client)
        assert event is not None
        told = event.replace(failed=failed, output=output)
        return self._memory.hooks.serve(told, loop_task="", began_ns=time.perf_counter_ns()).text

    def _tool(self, command: str) -> dict[str, Any]:
        return {"tool_name": SHELL[self._client], "tool_input": {"command": command}}

    def live(self, event: str) -> str:
        """Let something happen, and return what is said then."""
        if event in ("call", "relative", "other"):
            command = {"call": self.fails, "relative": self._relative, "other": self.works}[event]
            said = self.hear("PreToolUse", **self._tool(command))
            return said if event == "call" else said + self.result(command, *RESULTS[event])
        if event in RESULTS:
            return self.result("ls nothing" if event == "other fails" else self.fails, *RESULTS[event])
        name, fields = EVENTS[event]
        return self.hear(name, **fields)


@pytest.mark.parametrize("engine", ["sqlite"])
def test_what_came_of_sixty_warnings_is_told_as_worked_out_by_hand(
    memory: Memory, project: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INTERNAL, "1")
    expected, found = {}, {}
    assert len(rows()) == 60
    for number, (mode, client, outcome, events) in enumerate(rows()):
        memory.context.settings = memory.context.settings.replace(before_tool=mode)
        earlier = Talk(memory, "claude", "earlier", f"ship{number}", project)
        earlier.result(earlier.fails, True, ERROR)
        earlier.result(earlier.works, False)
        talk = Talk(memory, client, f"warned {number}", f"ship{number}", project)
        said = []
        for event in events.split(", "):
            clock.advance(days=0.001)
            said.append(talk.live(event))
        memory.worker.catch_up()
        assert sum(ERROR in text for text in said) == 1, events
        case = f"{mode} {client}: {events}"
        expected[case] = outcome
        found[case] = memory.reports.activity(what="warning", limit=1).entries[0].outcome

    assert found == expected
    assert dict(memory.reports.activity().outcomes) == Counter(expected.values())
