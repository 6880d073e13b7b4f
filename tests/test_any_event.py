"""Whatever a client sends, a hook has a valid answer to it, or none."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from learnt import Memory
from learnt.clients import registry
from learnt.clients.kit.events import HookEvent, answer, read_event
from learnt.clients.registry import KINDS
from tests.support import hooks
from tests.support.transcripts import NOON, copilot, written

CLIENTS = [client.name for client in registry.CLIENTS if client.events]

_TEXT = st.one_of(st.text(max_size=50), st.sampled_from(("cache the schema", hooks.WRONG, hooks.RIGHT, "\ud800", "")))
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _TEXT)
_KEYS = st.one_of(
    st.sampled_from(
        ("command", "file_path", "stdout", "llmContent", "error", "text", "workdir", "dir_path", "patchText")
    ),
    _TEXT,
)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)
_FIELDS = (
    "prompt", "prompt_response", "last_assistant_message", "tool_name", "tool_input", "tool_response", "tool_use_id",
    "error", "is_interrupt", "agent_id", "agent_type", "transcript_path", "agent_transcript_path", "source", "client",
    "cwd", "tool_failed", "turn_id", "model", "prompt_id", "permission_mode", "timestamp", "tool_result",
    "parent_agent_id",
)  # fmt: skip
_EVENTS = st.fixed_dictionaries(
    {
        "hook_event_name": st.one_of(st.sampled_from(sorted(KINDS)), _ANYTHING),
        "session_id": st.one_of(st.sampled_from(("one", "two")), _ANYTHING),
    },
    optional={
        **{field: st.one_of(_TEXT, _ANYTHING) for field in _FIELDS},
        "tool_name": st.one_of(st.sampled_from(("Bash", "Edit", "run_shell_command", "apply_patch")), _ANYTHING),
        "tool_input": st.one_of(st.dictionaries(_KEYS, _TEXT, max_size=2), _ANYTHING),
    },
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A store with something to say."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch, Memory.open(folder) as memory:
        patch.setenv("LEARNT_INTERNAL", "1")  # no worker is started
        memory.pin(memory.add('Cache the schema, or "it" \\ hangs', triggers={"files": ["*.py"]}).id)
        yield memory


@settings(max_examples=150, deadline=None)
@given(told=_EVENTS, client=st.sampled_from(("", *CLIENTS, "other")), of_task=st.sampled_from(("", "task_1")))
@example(told={"hook_event_name": "UserPromptSubmit", "session_id": "one", "prompt": "\x1b"}, client="", of_task="")
def test_any_object_gives_a_valid_answer_or_none(
    opened: Memory, told: dict[str, Any], client: str, of_task: str
) -> None:
    event = read_event(told, client)
    if event is None:
        return
    began_ns = time.perf_counter_ns()
    reply = opened.hooks.serve(event, loop_task=of_task, began_ns=began_ns)
    said = answer(event, reply.text, denies=reply.denies)

    assert len(said) <= hooks.LONGEST_ANSWER
    assert not said or hooks.is_answer(said)
    said.encode()  # no half of a character


def _read(name: str, client: str = "", **fields: Any) -> HookEvent:
    event = read_event({"hook_event_name": name, "session_id": "s1", "cwd": "/x", **fields}, client)
    assert event is not None
    return event


def _ran(client: str, response: object, *, name: str = "PostToolUse", **fields: Any) -> HookEvent:
    """Return the result of a command."""
    name = "AfterTool" if client == "gemini" else name
    tool = "run_shell_command" if client == "gemini" else "Bash"
    given = {"tool_name": tool, "tool_input": {"command": hooks.WRONG}, "tool_use_id": "call_1"}
    return _read(name, client, **{**given, "tool_response": response, **fields})


@pytest.mark.parametrize(
    ("fields", "client"),
    [
        ({"turn_id": "t", "model": "gpt-5-codex", "permission_mode": "default"}, "codex"),
        ({"transcript_path": "/home/me/.codex/sessions/2026/11/15/rollout-2026-540b.jsonl"}, "codex"),
        ({"transcript_path": "C:\\Users\\me\\moved\\rollout-2026-540b.jsonl"}, "codex"),
        ({"transcript_path": "/home/me/.claude/projects/-x/540b.jsonl"}, "claude"),
        ({"prompt_id": "2c04"}, "claude"),
        ({"permission_mode": "default"}, "claude"),
        ({"transcript_path": "/home/me/.gemini/tmp/x/chats/session-1.jsonl"}, "gemini"),
        ({"hook_event_name": "BeforeAgent"}, "gemini"),
        ({"timestamp": NOON, "transcript_path": "/home/me/.gemini/tmp/x/chats/session-1.jsonl"}, "gemini"),
        ({"timestamp": NOON, "source": "new"}, "copilot"),
        ({"timestamp": NOON, "transcript_path": "/home/me/.copilot/session-state/540b/events.jsonl"}, "copilot"),
        ({"client": "opencode"}, "opencode"),
        ({"client": "claude-code"}, "claude"),
        ({"client": 7, "transcript_path": ["x"]}, ""),
        ({}, ""),
    ],
)
def test_a_client_that_nobody_names_is_known_by_what_only_its_events_have(fields: dict[str, Any], client: str) -> None:
    for named in ("", "other", "aider"):
        event = read_event({"hook_event_name": "SessionStart", "session_id": "s1", **fields}, named)
        assert event is not None
        assert event.client == client


@pytest.mark.parametrize(("named", "client"), [("claude-code", "claude"), ("Gemini-CLI", "gemini"), ("codex", "codex")])
def test_a_client_has_several_names(named: str, client: str) -> None:
    assert _read("SessionStart", named, prompt_id="2c04").client == client


def test_the_same_session_in_two_clients_is_two_conversations() -> None:
    told = {"hook_event_name": "SessionStart", "session_id": "s1"}
    events = [read_event({**told, "agent_id": agent}, client) for client in CLIENTS for agent in ("", "a1")]

    assert len({event.conversation for event in events if event}) == 2 * len(CLIENTS)


@pytest.mark.parametrize(
    ("client", "response", "fields"),
    [
        ("gemini", {"llmContent": "Command was cancelled by user before it could complete. There was no output"}, {}),
        (
            "gemini",
            {
                "llmContent": "<untrusted_context>\nCommand was automatically cancelled because it exceeded the "
                f"timeout of 5.0 minutes without output. Below is the output before it was cancelled:\n{'x' * 50_000}\n"
                "</untrusted_context>"
            },
            {},
        ),
        ("gemini", {"llmContent": "Command moved to background (PID: 12). Output hidden."}, {}),
        ("gemini", {"llmContent": "Command is running in background. PID: 12. Initial output:\n"}, {}),
        ("gemini", {"llmContent": "Output: (empty)\nSignal: 9\nProcess Group PGID: 7"}, {}),
        ("claude", {"stdout": "", "stderr": "", "interrupted": True}, {}),
        ("claude", {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": "b1"}, {}),
        ("claude", {"stdout": ""}, {"tool_input": {"command": hooks.WRONG, "run_in_background": True}}),
        ("claude", "", {"name": "PostToolUseFailure", "error": "broken off", "is_interrupt": True}),
        ("opencode", "half", {"tool_failed": None}),
        ("codex", "shipped", {}),
        ("copilot", None, {"tool_result": {"text_result_for_llm": "<command started in background with shellId: 1>"}}),
        ("", "shipped", {"turn_id": "t", "model": "gpt-5-codex"}),
    ],
)
def test_what_did_not_end_or_does_not_tell_has_neither_failed_nor_succeeded(
    client: str, response: object, fields: dict[str, Any]
) -> None:
    assert _ran(client, response, **fields).failed is None


def _result(text: str) -> dict[str, str]:
    return {"result_type": "success", "text_result_for_llm": text}


@pytest.mark.parametrize(
    ("client", "response", "fields", "failed", "output"),
    [
        ("gemini", {"llmContent": "Output: shipped\nProcess Group PGID: 7"}, {}, False, "shipped"),
        ("gemini", {"llmContent": "Output: no\nExit Code: 2\nProcess Group PGID: 7"}, {}, True, "no"),
        ("gemini", {"llmContent": "Output: Exit Code: 2\nwas told\nProcess Group PGID: 7"}, {}, False, None),
        ("gemini", {"llmContent": "no such tool", "error": {"message": "no"}}, {}, True, "no such tool"),
        ("claude", {"stdout": "shipped", "stderr": "", "interrupted": False}, {}, False, "shipped"),
        (
            "copilot",
            None,
            {"tool_result": _result("shipped\n<shellId: 0 completed with exit code 0>")},
            False,
            "shipped",
        ),
        ("copilot", None, {"tool_result": _result("no\n<shellId: 0 completed with exit code 2>")}, True, "no"),
        ("copilot", None, {"tool_result": _result("a file"), "tool_name": "Read"}, False, "a file"),
        ("opencode", "shipped", {"tool_failed": False}, False, "shipped"),
        ("opencode", "shipped", {}, False, "shipped"),
        ("opencode", "no", {"name": "PostToolUseFailure", "tool_failed": True}, True, "no"),
    ],
)
def test_how_a_command_ended_is_read_as_each_client_tells_it(
    client: str, response: object, fields: dict[str, Any], failed: bool, output: str | None
) -> None:
    event = _ran(client, response, **fields)

    assert event.failed is failed
    assert event.output == output or output is None


def test_an_event_that_copilot_sends_to_two_clients_hooks_is_the_same_event_of_copilot() -> None:
    fields = {"timestamp": NOON, "tool_name": "Bash", "tool_input": {"command": "make"}}
    own, other = (_read("PreToolUse", client, **fields) for client in ("copilot", "claude"))
    later = _read("PreToolUse", "claude", **{**fields, "timestamp": "2026-03-01T12:00:00.001Z"})

    assert own == other
    assert (own.client, own.command, own.conversation) == ("copilot", "make", "copilot s1 ")
    assert own.identity != later.identity != ""
    assert _read("PreToolUse", "claude", **{**fields, "permission_mode": "default"}).client == "claude"
    named = {"hookEventName": "PreToolUse", "sessionId": "s1", "cwd": "/x", **fields}
    in_vs_code = read_event(named, "claude")
    assert in_vs_code is not None, "as VS Code documents it"
    assert in_vs_code.replace(identity="") == own.replace(identity="")
    first, second = (
        _read("PreToolUse", "claude", **{**fields, "timestamp": at, "tool_use_id": "1"}) for at in (NOON, "later")
    )
    assert first.identity == second.identity != "", "each hook is told the time of its own start"


def test_a_call_of_our_own_tools_is_permitted_and_told_in_one_answer_unless_it_is_stopped() -> None:
    event = _read("PreToolUse", "claude", tool_name="mcp__learnt__recall", tool_input={"query": "x"})
    allowed = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}

    assert json.loads(answer(event, ""))["hookSpecificOutput"] == allowed
    assert json.loads(answer(event, "Note"))["hookSpecificOutput"] == {**allowed, "additionalContext": "Note"}
    stopped = json.loads(answer(event, "No", denies=True))["hookSpecificOutput"]
    assert (stopped["permissionDecision"], stopped["permissionDecisionReason"]) == ("deny", "No")


def test_copilots_sub_agent_has_an_errand_and_ends_once(tmp_path: Path) -> None:
    path = written(tmp_path / "events.jsonl", [copilot("assistant.message", content="Painted."), copilot("hook.start")])
    agent = {"agent_id": "a1", "agent_type": "task", "parent_agent_id": "s1", "transcript_path": path}
    always = {"timestamp": NOON, "stop_hook_active": False}

    errand = _read("UserPromptSubmit", "copilot", **always, **agent, session_id="a1", prompt="Paint buoy 17")
    ended = _read("SubagentStop", "copilot", **always, **agent, last_assistant_message="It is red.")
    own = _read("Stop", "copilot", **always, transcript_path=path)

    assert (errand.kind, errand.prompt, errand.agent) == ("prompt", "Paint buoy 17", "task")
    assert errand.conversation == ended.conversation == "copilot s1 a1"
    assert (ended.said, ended.transcript) == ("It is red.", "")
    assert (own.said, own.may_go_on) == ("Painted.", True)
    turn = {"hook_event_name": "Stop", "session_id": "a1", **always, **agent}
    assert read_event(turn, "copilot") is None


def _item(**fields: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": {"id": "call_1", **fields}}}


def _call_output(output: object, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, "call_id": "call_1", "output": output}}


_RAN = "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code {}\nOriginal token count: 3\nOutput:\n{}"


@pytest.mark.parametrize(
    ("records", "failed"),
    [
        ([_item(status="completed", exit_code=0)], False),
        ([_item(status="completed", exit_code=2)], True),
        ([_item(status="failed", exit_code=None)], True),
        ([_item(status="declined", exit_code=-1)], None),
        ([_item(status="interrupted")], None),
        ([_item(status="in_progress")], None),
        ([_item()], None),
        ([_call_output(_RAN.format(2, "no"))], True),
        ([_call_output(_RAN.format(0, "Process exited with code 3\n"))], False),
        ([_call_output(_RAN.format(2, "x" * 100_000))], True),
        ([_call_output("Exit code: 1\nWall time: 0 seconds\nOutput:\nno")], True),
        ([_call_output([{"type": "input_text", "text": _RAN.format(1, "no")}])], True),
        ([_call_output("Wall time: 1 seconds\nProcess running with session ID 5\nOutput:\nbusy")], None),
        ([_call_output("exec_command was rejected by user")], None),
        ([_call_output('{"output": "no", "metadata": {"exit_code": 1}}', "custom_tool_call_output")], True),
        ([_item(status="failed", exit_code=2), _call_output("no")], True),
        ([_item(status="declined"), _call_output("rejected by user")], None),
        ([{"payload": None}, _item(status="failed", id="call_10"), ["call_1 item_completed"]], None),
        ([], None),
    ],
)
def test_how_a_command_of_codex_ended_stands_in_its_transcript(
    records: list[Any], failed: bool | None, tmp_path: Path
) -> None:
    rollout = tmp_path / "rollout-1.jsonl"
    rollout.write_text("".join(json.dumps(record) + "\n" for record in records))

    for client in ("codex", ""):
        assert _ran(client, "shipped", transcript_path=str(rollout)).failed is failed


@pytest.mark.parametrize(("client", "key"), [("opencode", "workdir"), ("gemini", "dir_path"), ("codex", "workdir")])
def test_a_command_is_run_in_the_folder_that_its_call_names(client: str, key: str, tmp_path: Path) -> None:
    (tmp_path / "shop" / "web").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    name = "BeforeTool" if client == "gemini" else "PreToolUse"
    tool = {"tool_name": "run_shell_command" if client == "gemini" else "bash"}

    def folder(cwd: object, **given: object) -> str:
        return _read(name, client, **tool, cwd=cwd, tool_input={"command": "ls", **given}).folder

    web = os.path.realpath(tmp_path / "shop" / "web")
    assert folder(str(tmp_path / "link"), **{key: "web"}) == web
    assert folder("/nowhere", **{key: str(tmp_path / "link" / "web")}) == web
    assert folder(str(tmp_path / "link" / "web")) == web
    assert folder(None, **{key: "web"}) == ""
    assert folder(str(tmp_path), **{key: "a\0b"}) == str(tmp_path)


_PATCH = "*** Begin Patch\n*** Update File: docs/a.md\n@@\n-a\n+b\n*** Add File: b.md\n+c\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "given", "paths"),
    [
        ("apply_patch", {"patchText": _PATCH}, ("docs/a.md", "b.md")),
        ("apply_patch", {"command": _PATCH}, ("docs/a.md", "b.md")),
        ("Bash", {"command": f"cd docs && apply_patch <<'EOF'\n{_PATCH}\nEOF"}, ("docs/a.md", "b.md")),
        ("shell", {"command": ["apply_patch", _PATCH]}, ("docs/a.md", "b.md")),
        ("Bash", {"command": f"cat > a.patch <<'EOF'\n{_PATCH}\nEOF"}, ()),
        ("Bash", {"command": "grep apply_patch notes.md"}, ()),
    ],
)
def test_the_files_of_a_patch_are_edited_however_it_is_applied(
    tool: str, given: dict[str, Any], paths: tuple[str, ...]
) -> None:
    event = _read("PreToolUse", "opencode", tool_name=tool, tool_input=given)

    assert (event.tool, event.paths) == (tool, paths)


def test_what_a_client_says_of_its_own_failure_is_not_what_the_agent_said() -> None:
    event = _read("StopFailure", "claude", last_assistant_message="API Error: 400", transcript_path="/t.jsonl")

    assert (event.kind, event.said, event.transcript) == ("stop", None, "/t.jsonl")
