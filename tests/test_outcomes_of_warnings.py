"""Sixty conversations in which an agent is warned of a command, and what came of each warning, worked out by hand.

A conversation is a row: an outcome, and the events after which it is known. The command failed in an earlier
conversation, in which another one worked. The client writes a transcript, which the worker reads when it knows of it,
at the end of a turn or of the conversation.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.clients.kit.events import read_event
from learnt.model import text_id
from learnt.system.detached import INTERNAL
from tests.conftest import Clock
from tests.support.transcripts import answered, claude, used, written

ERROR = "unknown option --fast"
SHELL = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "opencode": "bash"}

RESULTS: dict[str, tuple[bool | None, str]] = {
    "fails": (True, ERROR),
    "works": (False, "shipped"),
    "vague": (None, ""),  # it goes on in the background, or was interrupted
    "flaky": (True, "connection timed out"),  # a failure that passes by itself
    "relative": (True, ERROR),  # another call with the same mistake
    "other": (False, "shipped"),
    "listed": (False, "a.py"),  # the result of `list`, a call that may have begun before the warning
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
prevented: call, other, ends
prevented: call, other fails, ends
prevented: call, edit, ends
prevented: call, says
prevented: list, call, listed, other, ends
prevented: call, other, says, ends
prevented: call, other, asks, other, ends
prevented: call, says, asks, other
prevented: call, noted, other, ends
prevented: call, other, compacts, ends
prevented: call, edit, cut, ends
ignored: call, call, fails
ignored: call, call, fails, other, says
ignored: call, other, call, fails
ignored: call, says, asks, call, fails
ignored: call, asks, call, fails
ignored: call, call, vague, call, fails
ignored: call, call, flaky, call, fails
ignored: call, relative
ignored: call, other, relative, says
needless: call, call, works
needless: call, call, works, says, ends
needless: call, other, call, works
ignored: call, call, fails, call, works
needless: call, call, vague, call, works
unknown: call
unknown: call, other
unknown: call, ends
unknown: call, cut, ends
unknown: call, asks, ends
unknown: call, asks, other, ends
unknown: call, asks, says
unknown: call, asks, asks, other, says
unknown: list, call, listed, ends
unknown: list, call, listed, asks, other, ends
unknown: call, call
unknown: call, call, ends
unknown: call, call, vague, ends
unknown: call, call, vague, other, says
unknown: call, call, flaky, other, ends
unknown: call, other, call, says
unknown: call, call, other, says
"""
# The client's transcript shows that it dropped what the hook said, or does not tell.
DROPPED = """
unknown: call, other, says
unknown: call, call, fails, says
"""
UNRECORDED = """
unknown: call, other, says, ends
ignored: call, call, fails, says
needless: call, call, works, says
"""
TOLD = """
ignored: call, fails
ignored: call, fails, other, says
ignored: call, vague, call, fails
ignored: call, other, fails
needless: call, works, says
prevented: call, refused, other, ends
prevented: call, refused, says
unknown: call, refused, ends
unknown: call, vague, says
unknown: call, asks, other, ends
"""
LATE = """
unknown: call, fails
unknown: call, fails, other, says
ignored: call, fails, call, fails
"""


def rows() -> list[tuple[str, str, str, str, str]]:
    """Return the setting, what the transcript shows, the client, the outcome and the events of each conversation."""
    clients = ("claude", "codex", "opencode", "gemini")
    found = []
    for mode, shows, text, of in (
        ("stop_once", "all", STOPPED, clients),
        ("stop_once", "dropped", DROPPED, clients),
        ("stop_once", "nothing", UNRECORDED, clients),
        ("tell", "all", TOLD, clients[:3]),
        ("tell", "all", LATE, clients[3:]),
    ):
        for number, line in enumerate(text.strip().splitlines()):
            outcome, _, events = line.partition(": ")
            found.append((mode, shows, of[number % len(of)], outcome, events))
    return found


class Talk:
    """A conversation in a client, with a hook for each event, in this process.

    Its transcript has Claude Code's format, whatever the client. `shows` says whether it has what hooks say (`all`),
    only that they ran (`dropped`), or `nothing` of them.
    """

    def __init__(
        self, memory: Memory, clock: Clock, client: str, program: str, *, path: Path, shows: str = "all", task: str = ""
    ) -> None:
        self._loop_task = task
        self._memory, self._clock, self._path, self._shows = memory, clock, path, shows
        self._client = client
        self._always = {"session_id": path.stem, "cwd": str(path.parent), "transcript_path": str(path)}
        self._records: list[dict[str, Any]] = []
        self.fails, self.works = f"{program} --fast now", f"{program} --safe now"
        self._relative = f"cd web && {program} --fast tomorrow"

    def hear(self, name: str, **fields: Any) -> str:
        event = read_event({"hook_event_name": name, **self._always, **fields}, self._client)
        assert event is not None
        reply = self._memory.hooks.serve(event, loop_task=self._loop_task, began_ns=time.perf_counter_ns())
        if reply.text and self._shows != "nothing":
            said = {"type": "hook_additional_context", "content": [reply.text]}
            is_given = self._shows == "all" and not reply.denies
            self.write({"type": "attachment", "attachment": said if is_given else {"type": "hook_success"}})
        if reply.denies:
            self.write(answered(reply.text if self._shows == "all" else "denied", is_error=True))
        return reply.text

    def call(self, command: str, *, message: str = "") -> str:
        record = used("Bash", {"command": command})
        self.write({**record, "message": {**record["message"], "id": message}})
        return self.hear("PreToolUse", **self._tool(command))

    def result(self, command: str, failed: bool | None, output: str = "") -> str:
        event = read_event({"hook_event_name": "PostToolUse", **self._always, **self._tool(command)}, self._client)
        assert event is not None
        told = event.replace(failed=failed, output=output)
        said = self._memory.hooks.serve(told, loop_task=self._loop_task, began_ns=time.perf_counter_ns()).text
        self.write(answered(output, is_error=bool(failed)))
        return said

    def _tool(self, command: str) -> dict[str, Any]:
        return {"tool_name": SHELL[self._client], "tool_input": {"command": command}}

    def live(self, event: str) -> str:
        """Let something happen, and return what is said then."""
        if event == "refused":  # by a person, so that there is no hook
            self.write(answered("The user doesn't want to proceed with this tool use.", is_error=True))
            return ""
        calls = {"call": self.fails, "relative": self._relative, "other": self.works, "list": "ls"}
        if event in calls:
            said = self.call(calls[event])
            return said + self.result(calls[event], *RESULTS[event]) if event in RESULTS else said
        if event == "other fails":
            return self.call("ls nothing") + self.result("ls nothing", *RESULTS[event])
        if event in RESULTS:
            return self.result("ls" if event == "listed" else self.fails, *RESULTS[event])
        name, fields = EVENTS[event]
        if event == "edit":
            self.write(used("Edit", fields["tool_input"]))
            self.write(answered("ok"))
        elif event == "says":
            self.write(claude("assistant", [{"type": "text", "text": fields["last_assistant_message"]}]))
        return self.hear(name, **fields)

    def write(self, record: dict[str, Any]) -> None:
        at = datetime.fromtimestamp(self._clock() / 1000, UTC).isoformat(timespec="milliseconds")
        self._records.append({"uuid": "u", "sessionId": self._path.stem, **record, "timestamp": at})
        written(self._path, self._records)


@pytest.mark.parametrize("engine", ["sqlite"])
def test_what_came_of_sixty_warnings_is_told_as_worked_out_by_hand(
    memory: Memory, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INTERNAL, "1")
    expected, found = {}, {}
    assert len(rows()) == 60
    for number, (mode, shows, client, outcome, events) in enumerate(rows()):
        memory.context.settings = memory.context.settings.replace(before_tool=mode)
        earlier = Talk(memory, clock, "claude", f"ship{number}", path=tmp_path / "earlier.jsonl")
        earlier.result(earlier.fails, True, ERROR)
        earlier.result(earlier.works, False)
        path = tmp_path / f"warned {number}.jsonl"
        talk = Talk(memory, clock, client, f"ship{number}", path=path, shows=shows)
        said = []
        for event in events.split(", "):
            clock.advance(days=0.00001)
            said.append(talk.live(event))
        memory.worker.catch_up()
        assert sum(ERROR in text for text in said) == 1, events
        case = f"{mode} {shows} {client}: {events}"
        expected[case] = outcome
        found[case] = memory.reports.activity(what="warning", limit=1).entries[0].outcome

    assert found == expected
    counted = Counter(expected.values())
    assert dict(memory.reports.activity().outcomes) == dict(memory.reports.stats().outcomes) == counted
    assert {outcome: getattr(memory.reports.today(), outcome) for outcome in counted} == counted


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("client", ["claude", "opencode"])
def test_what_an_agent_said_before_it_was_killed_or_cancelled_proves_nothing(
    client: str, memory: Memory, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = "task_1" if client == "claude" else ""  # of the loop
    monkeypatch.setenv(INTERNAL, "1")
    earlier = Talk(memory, clock, "claude", "ship", path=tmp_path / "earlier.jsonl")
    earlier.result(earlier.fails, True, ERROR)
    earlier.result(earlier.works, False)
    talk = Talk(memory, clock, client, "ship", path=tmp_path / "talk.jsonl", task=task)
    clock.advance(days=0.00001)
    assert ERROR in talk.call(talk.fails, message="msg_1")
    clock.advance(days=0.00001)
    talk.call("ls", message="msg_1")  # both were written at once
    clock.advance(days=0.00001)
    if task:
        for words in ("", "I ship it."):
            memory.debrief(task, words, result="interrupted", transcript=str(tmp_path / "talk.jsonl"))
    else:
        talk.hear("Stop", last_assistant_message="I ship it.", given=[])
    memory.worker.catch_up()

    (warning,) = memory.reports.activity(what="warning").entries
    assert (warning.delivery, warning.outcome) == ("delivered", "unknown")


@pytest.mark.parametrize("engine", ["sqlite"])
def test_the_prompt_before_an_error_that_was_prevented_is_a_cue_of_the_learning_about_it(
    memory: Memory, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INTERNAL, "1")
    memory.add("Shops open at eight", triggers={"task_types": ["session"]})  # so that prompts are recorded
    earlier = Talk(memory, clock, "claude", "ship", path=tmp_path / "earlier.jsonl")
    earlier.result(earlier.fails, True, ERROR)
    earlier.result(earlier.works, False)
    event = read_event({"hook_event_name": "Stop", "session_id": "earlier", "cwd": str(tmp_path)}, "claude")
    assert event is not None
    title = f"Ship with `{earlier.works}`, not `{earlier.fails}`"
    learning = memory.add(title, task=text_id("task", event.conversation), origin="agent")
    talk = Talk(memory, clock, "claude", "ship", path=tmp_path / "warned.jsonl")
    talk.hear("UserPromptSubmit", prompt="Hello! Please ship the release of the till to all customers.")
    for step in ("call", "other", "ends"):
        clock.advance(days=0.00001)
        talk.live(step)
    memory.worker.catch_up()

    assert memory.get(learning.id).observed_cues == ("Please ship the release of the till to all customers.",)
    version = memory.get(learning.id).version
    memory.worker.catch_up()
    assert memory.get(learning.id).version == version
