"""Transcripts of the four clients become the same steps, and what nobody said or did becomes none."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from learnt.clients.kit import transcript
from learnt.clients.kit.run import LINE_LIMIT
from learnt.clients.kit.transcript import MAX_STEP_TEXT, About, Step
from learnt.errors import WrongRequest
from learnt.loop.prompt import Earlier, compose
from learnt.model import Task
from learnt.store import session_database
from learnt.text.fence import fenced
from tests.support.transcripts import (
    HEAD,
    INFO,
    META,
    NOON,
    NOON_MS,
    answered,
    asked,
    claude,
    codex,
    codex_call,
    codex_message,
    codex_output,
    copilot,
    copilot_call,
    copilot_output,
    gemini,
    gemini_call,
    part,
    used,
    written,
)


def short(step: Step) -> tuple[str, ...]:
    """The step without its times: kind, what it does, path, text."""
    return step.kind, step.does, step.path, step.text


# Claude Code


def claude_steps(folder: Path, *records: Mapping[str, Any]) -> list[Step]:
    first = claude("user", "Mend the tills")
    found = list(transcript.steps(written(folder / "s-1.jsonl", [first, *records])))
    assert found[0] == Step(kind="prompt", text="Mend the tills", at=NOON_MS)
    return found[1:]


def test_a_command_of_claude_code_that_fails_is_a_call_and_a_failed_result(tmp_path: Path) -> None:
    called, result = claude_steps(
        tmp_path, used("Bash", {"command": "make test", "description": "x"}), answered("Exit code 2\nno rule")
    )

    assert called == Step(kind="call", does="run", tool="Bash", text="make test", call="t1", at=NOON_MS)
    assert result == Step(kind="result", tool="Bash", text="Exit code 2\nno rule", call="t1", failed=True, at=NOON_MS)


@pytest.mark.parametrize(
    ("content", "is_error", "failed"),
    [
        ("fine", False, False),
        ("Exit code 0", False, False),
        ("<tool_use_error>no such file</tool_use_error>", True, True),
        ([{"type": "text", "text": "Exit code 1"}, {"type": "image", "source": {}}], False, True),
        (None, True, True),
    ],
)
def test_a_result_of_claude_code_failed_when_it_says_so(
    tmp_path: Path, content: object, is_error: bool, failed: bool
) -> None:
    _, result = claude_steps(tmp_path, used("Bash", {"command": "x"}), answered(content, is_error=is_error))

    assert (result.failed, result.denied) == (failed, False)


def test_a_refused_call_is_denied_and_what_the_person_said_to_it_is_a_prompt(tmp_path: Path) -> None:
    refusal = "The user doesn't want to proceed with this tool use. To tell you how, the user said:\nuse the fake till"
    _, result, prompt = claude_steps(tmp_path, used("Bash", {"command": "x"}), answered(refusal, is_error=True))

    assert (result.failed, result.denied) == (True, True)
    assert (prompt.kind, prompt.text) == ("prompt", "use the fake till")


@pytest.mark.parametrize(
    "refusal",
    [
        "Permission to use Bash has been denied.",
        "Permission for this tool use was denied. The tool use was rejected.",
        "Claude requested permissions to write to /etc/hosts, but you haven't granted it yet.",
        "The user doesn't want to take this action right now. STOP",
        "This command requires approval",
    ],
)
def test_what_the_permissions_refuse_is_denied(tmp_path: Path, refusal: str) -> None:
    _, result = claude_steps(tmp_path, used("Bash", {"command": "x"}), answered(refusal, is_error=True))

    assert result.denied


def test_a_command_that_was_refused_by_the_system_is_not_denied(tmp_path: Path) -> None:
    told = "Exit code 1\ncp: Permission denied"
    _, result = claude_steps(tmp_path, used("Bash", {"command": "x"}), answered(told, is_error=True))

    assert (result.failed, result.denied) == (True, False)


@pytest.mark.parametrize(
    ("tool", "given", "wanted"),
    [
        ("Edit", {"file_path": "/a.py", "old_string": "x", "new_string": "y"}, ("edit", "/a.py", "y", "x")),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3"}, 7]},
            ("edit", "a", "2", "1\n3"),
        ),
        ("Write", {"file_path": r"C:\shop\a.py", "content": "1\r\n2"}, ("edit", r"C:\shop\a.py", "1\n2", "")),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "1+1"}, ("edit", "n.ipynb", "1+1", "")),
        ("Read", {"file_path": "/a.py", "limit": 3}, ("read", "/a.py", "", "")),
        ("Grep", {"pattern": "till", "path": "src"}, ("other", "src", '{"pattern": "till", "path": "src"}', "")),
    ],
)
def test_tools_of_claude_code_do_what_they_do(
    tmp_path: Path, tool: str, given: object, wanted: tuple[str, ...]
) -> None:
    (step,) = claude_steps(tmp_path, used(tool, given))

    assert (step.tool, step.does, step.path, step.text, step.before) == (tool, *wanted)


def test_a_sub_agent_s_steps_are_aside_and_its_prompt_is_none(tmp_path: Path) -> None:
    reported = {"type": "agent_progress", "message": used("Bash", {"command": "pwd"}, "t9")}
    found = claude_steps(
        tmp_path,
        claude("user", "Look for tills", isSidechain=True),
        used("Read", {"file_path": "a"}, isSidechain=True),
        {"type": "progress", "data": reported, "sessionId": "s-1"},
    )

    assert [(step.kind, step.does, step.aside) for step in found] == [("call", "read", True), ("call", "run", True)]


def test_what_claude_code_adds_to_a_conversation_is_no_step(tmp_path: Path) -> None:
    thought = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": " Done. "},
        {"type": "text", "text": ""},
    ]
    found = claude_steps(
        tmp_path,
        claude("user", "Base directory for this skill: /x", isMeta=True),
        claude("user", "This is what was", isCompactSummary=True),
        claude("user", [{"type": "text", "text": "[Request interrupted by user]"}]),
        claude("user", "<task-notification>\n<result>x</result>\n</task-notification>"),
        claude("user", "<local-command-stdout>bye</local-command-stdout>"),
        claude("user", "<command-name>/exit</command-name>\n<command-args></command-args>"),
        claude(
            "user",
            "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>it</command-args>",
        ),
        claude("user", "Go on<system-reminder>never</system-reminder>"),
        {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["x"]}, "sessionId": "s"},
        {"type": "system", "subtype": "stop_hook_summary", "content": "x"},
        claude("assistant", "API Error: 500", isApiErrorMessage=True),
        claude("assistant", thought),
        answered("1\ttill = 2\n\n<system-reminder>\nwhatever\n</system-reminder>\n"),
    )

    assert [(step.kind, step.text) for step in found] == [
        ("prompt", "/fix it"), ("prompt", "Go on"), ("said", "Done."), ("result", "1\ttill = 2"),
    ]  # fmt: skip


def test_what_a_person_typed_meanwhile_is_told_once(tmp_path: Path) -> None:
    def queued(operation: str, **more: str) -> dict[str, Any]:
        return {"type": "queue-operation", "operation": operation, "sessionId": "s-1", "timestamp": NOON, **more}

    attached = {"type": "queued_command", "prompt": "and write tests", "commandMode": "prompt"}
    found = claude_steps(
        tmp_path,
        queued("enqueue", content="never mind"),
        queued("popAll", content="never mind"),
        queued("enqueue", content="and write tests"),
        queued("remove"),
        {"type": "attachment", "attachment": attached, "sessionId": "s-1", "timestamp": NOON},
        queued("enqueue", content="later"),
        queued("dequeue"),
        claude("user", "later"),
    )

    assert [short(step) for step in found] == [("prompt", "", "", "and write tests"), ("prompt", "", "", "later")]


def test_claude_code_tells_about_the_conversation(tmp_path: Path) -> None:
    later = claude("assistant", "Done", timestamp="2026-03-01T12:00:01.500Z")
    told = transcript.about(written(tmp_path / "s.jsonl", [claude("user", "Hello"), later]))

    assert told == About(
        client="claude",
        session="s-1",
        folder="/home/me/shop",
        branch="tills",
        model="claude-opus-5-5",
        started_at=NOON_MS,
        ended_at=NOON_MS + 1_500,
    )


def test_a_long_text_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    (step,) = claude_steps(tmp_path, answered("first " + "x" * 3 * MAX_STEP_TEXT + " last"))

    assert step.text.startswith("first ")
    assert step.text.endswith(" last")
    assert "characters left out" in step.text
    assert len(step.text) <= MAX_STEP_TEXT


# Codex


def codex_steps(folder: Path, *records: Mapping[str, Any], meta: Mapping[str, Any] = META) -> list[Step]:
    return list(transcript.steps(written(folder / "rollout.jsonl", [codex(meta, "session_meta"), *records])))


def test_a_conversation_with_codex_becomes_steps(tmp_path: Path) -> None:
    found = codex_steps(
        tmp_path,
        codex_message("developer", "<permissions instructions>no</permissions instructions>"),
        codex_message("user", "# AGENTS.md instructions for /home/me/shop\n\n<INSTRUCTIONS>x</INSTRUCTIONS>"),
        codex_message("user", "<environment_context>\n<cwd>/</cwd>\n</environment_context>", "Mend the tills"),
        codex({"type": "reasoning", "summary": [{"text": "hm"}]}),
        codex_call("exec_command", {"cmd": "make test"}),
        codex_output("Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nno rule\n"),
        codex_call("shell", {"command": ["bash", "-lc", "make lint"]}),
        codex_output(json.dumps({"output": "clean", "metadata": {"exit_code": 0}})),
        codex({"message": "Mended."}, "event_msg"),
        codex_message("assistant", "Mended."),
        codex({"message": "what was", "replacement_history": []}, "compacted"),
    )

    assert [short(step) for step in found] == [
        ("prompt", "", "", "Mend the tills"),
        ("call", "run", "", "make test"),
        ("result", "", "", "no rule\n"),
        ("call", "run", "", "make lint"),
        ("result", "", "", "clean"),
        ("said", "", "", "Mended."),
    ]
    assert [(step.tool, step.failed) for step in found if step.kind == "result"] == [
        ("exec_command", True),
        ("shell", False),
    ]


@pytest.mark.parametrize(
    ("output", "failed", "denied"),
    [
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", True, False),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 7", False, False),
        ("Chunk ID: 1\nProcess running with session ID 4\nOutput:\n", False, False),
        ('{"output": "no", "metadata": {"exit_code": 127}}', True, False),
        ({"content": "no", "success": False}, True, False),
        ([{"type": "input_text", "text": "fine"}], False, False),
        ("unsupported call: nothing", True, False),
        ("exec command rejected by user", True, True),
        ("MCP tool call requires approval, but approval policy is never", True, True),
        ("aborted by user after 2.0s", True, False),
        ("Process running with session ID 4\nOutput:\nExit code: 1", False, False),
    ],
)
def test_codex_tells_how_a_call_ended(tmp_path: Path, output: object, failed: bool, denied: bool) -> None:
    _, result = codex_steps(tmp_path, codex_call("exec_command", {"cmd": "x"}), codex_output(output))

    assert (result.failed, result.denied) == (failed, denied)


def test_codex_tells_of_a_failed_command_before_its_output(tmp_path: Path) -> None:
    ended = {"type": "CommandExecution", "id": "c1", "status": "failed", "exit_code": 1}
    found = codex_steps(
        tmp_path,
        codex_call("exec_command", {"cmd": "x"}),
        codex({"type": "item_completed", "item": ended}, "event_msg"),
        codex_output("no"),
    )

    assert found[-1].failed


PATCH = """*** Begin Patch
*** Update File: till.py
@@ def total():
 rows = []
-return 1
+return 2
*** Add File: docs/till.md
+# Till
*** End Patch"""


@pytest.mark.parametrize(
    "called",
    [
        codex({"type": "custom_tool_call", "name": "apply_patch", "input": PATCH, "call_id": "c1"}),
        codex_call("apply_patch", {"input": PATCH}),
        codex_call("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        codex_call("shell", {"command": ["apply_patch", PATCH]}),
        codex_call("apply_patch", {"input": PATCH.replace("\n", "\r\n")}),
    ],
    ids=["freeform", "function", "here-document", "words", "CRLF"],
)
def test_a_patch_of_codex_is_an_edit_of_each_file(tmp_path: Path, called: dict[str, Any]) -> None:
    found = codex_steps(
        tmp_path, called, codex_output("Exit code: 0\nOutput:\nSuccess.", kind="custom_tool_call_output")
    )

    assert [(step.does, step.path, step.before, step.text) for step in found[:2]] == [
        ("edit", "till.py", "rows = []\nreturn 1", "rows = []\nreturn 2"),
        ("edit", "docs/till.md", "", "# Till"),
    ]
    assert [step.call for step in found] == ["c1"] * 3


def test_a_command_that_only_prints_a_patch_is_no_edit(tmp_path: Path) -> None:
    (step,) = codex_steps(tmp_path, codex_call("exec_command", {"cmd": f"cat <<'EOF'\n{PATCH}\nEOF"}))

    assert step.does == "run"


def test_the_transcript_of_a_sub_agent_of_codex_is_aside(tmp_path: Path) -> None:
    meta = {**META, "source": {"subagent": {"thread_spawn": {"parent_thread_id": "r-0"}}}}
    (step,) = codex_steps(tmp_path, codex_message("user", "Look"), codex_message("assistant", "Seen"), meta=meta)

    assert (step.kind, step.aside) == ("said", True)


def test_codex_tells_about_the_conversation(tmp_path: Path) -> None:
    records = [codex(META, "session_meta"), codex({"model": "gpt-5-codex", "cwd": "/x"}, "turn_context")]

    assert transcript.about(written(tmp_path / "r.jsonl", records)) == About(
        client="codex",
        session="r-1",
        folder="/home/me/shop",
        branch="tills",
        model="gpt-5-codex",
        started_at=NOON_MS,
        ended_at=NOON_MS,
    )


# Gemini CLI


RAN = "<untrusted_context>\nOutput: no rule\nExit Code: 2\nProcess Group PGID: 99\n</untrusted_context>"
GEMINI = [
    asked("m0", "<session_context>\nToday\n</session_context>"),
    asked("m1", "<hook_context>told</hook_context>\n\nMend the tills", "<hook_context>more</hook_context>"),
    gemini("m2", "I look.", toolCalls=[gemini_call("run_shell_command", {"command": "make test"}, RAN)]),
    {"id": "m3", "type": "user", "content": [{"functionResponse": {"response": {"output": RAN}}}]},
    gemini(
        "m4",
        thoughts=[{"subject": "hm"}],
        toolCalls=[
            gemini_call("replace", {"file_path": "till.py", "old_string": "1", "new_string": "2"}, "Modified"),
            gemini_call("read_file", {"file_path": "no.py"}, "File not found", status="error", key="error"),
        ],
    ),
    {"id": "m5", "timestamp": NOON, "type": "info", "content": "Update available"},
]
GEMINI_STEPS = [
    ("prompt", "", "", "Mend the tills"),
    ("said", "", "", "I look."),
    ("call", "run", "", "make test"),
    ("result", "", "", "no rule"),
    ("call", "edit", "till.py", "2"),
    ("result", "", "", "Modified"),
    ("call", "read", "no.py", ""),
    ("result", "", "", "File not found"),
]


def test_a_conversation_with_gemini_becomes_steps_and_the_last_of_a_repeated_message_counts(tmp_path: Path) -> None:
    updated = {"$set": {"lastUpdated": NOON}}
    log = [HEAD, {"$set": {"messages": GEMINI[:1], "lastUpdated": NOON}}, GEMINI[1], updated, gemini("m2", "I l")]
    log += [updated, *GEMINI[2:4], HEAD, GEMINI[4], {"$set": {"messages": GEMINI[:5]}}, GEMINI[5]]
    found = list(transcript.steps(written(tmp_path / "session.jsonl", log)))

    assert [short(step) for step in found] == GEMINI_STEPS
    assert [step.failed for step in found if step.kind == "result"] == [True, False, True]


@pytest.mark.parametrize("indent", [None, 2])
def test_the_one_document_of_older_versions_of_gemini_becomes_the_same_steps(
    tmp_path: Path, indent: int | None
) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps({**HEAD, "messages": GEMINI}, indent=indent))

    assert [short(step) for step in transcript.steps(str(path))] == GEMINI_STEPS


@pytest.mark.parametrize(
    ("status", "told", "denied"),
    [
        ("cancelled", "User cancelled", True),
        ("error", "Tool execution denied by policy.", True),
        ("error", "no", False),
    ],
)
def test_what_gemini_was_not_allowed_is_denied(tmp_path: Path, status: str, told: str, denied: bool) -> None:
    made = gemini_call("run_shell_command", {"command": "x"}, told, status=status, key="error")
    _, result = transcript.steps(written(tmp_path / "s.jsonl", [HEAD, gemini("m1", toolCalls=[made])]))

    assert (result.failed, result.denied) == (True, denied)


def test_gemini_tells_about_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    (tmp_path / ".project_root").write_text("/home/me/shop")

    assert transcript.about(written(tmp_path / "chats" / "s.jsonl", [HEAD, *GEMINI])) == About(
        client="gemini",
        session="g-1",
        folder="/home/me/shop",
        model="gemini-2.5-flash",
        started_at=NOON_MS,
        ended_at=NOON_MS,
    )


# Copilot CLI

FROM_HOOKS = '\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:\ntold'
COPILOT_START = copilot(
    "session.start",
    sessionId="p-1",
    producer="copilot-agent",
    selectedModel="gpt-5.4",
    context={"cwd": "/home/me/shop", "branch": "tills"},
)
COPILOT = [
    COPILOT_START,
    copilot("hook.start", hookType="sessionStart", input={}),
    copilot("user.message", content="Mend the tills", transformedContent="<current_datetime>x</current_datetime>"),
    copilot("system.message", role="system", content="You are the GitHub Copilot CLI"),
    copilot_call("bash", {"command": "make test"}, said="I look."),
    copilot_output(f"no rule\n<shellId: 0 completed with exit code 2>{FROM_HOOKS}", shellExecution={"exitCode": 2}),
    copilot_call("edit", {"path": "till.py", "old_str": "1", "new_str": "2"}),
    copilot_output("Edited"),
    copilot_call("apply_patch", "*** Begin Patch\n*** Add File: new.py\n+3\n*** End Patch"),
    copilot_output("Added"),
    copilot("user.message", content="Look around", source="agent-p-1", agent="a1"),
    copilot_call("view", {"path": "no.py"}, agent="a1"),
    copilot_output("", agent="a1", success=False, error={"message": "Path does not exist", "code": "failure"}),
    copilot_call("bash", {"command": "rm x"}),
    copilot_output("", success=False, error={"message": "Permission denied", "code": "denied"}),
    copilot("user.message", content="Go on until done", isAutopilotContinuation=True),
    copilot("session.shutdown", totals={}),
]


def test_a_conversation_with_copilot_becomes_steps(tmp_path: Path) -> None:
    found = list(transcript.steps(written(tmp_path / "events.jsonl", COPILOT)))

    assert [short(step) for step in found] == [
        ("prompt", "", "", "Mend the tills"),
        ("said", "", "", "I look."),
        ("call", "run", "", "make test"),
        ("result", "", "", "no rule"),
        ("call", "edit", "till.py", "2"),
        ("result", "", "", "Edited"),
        ("call", "edit", "new.py", "3"),
        ("result", "", "", "Added"),
        ("call", "read", "no.py", ""),
        ("result", "", "", "Path does not exist"),
        ("call", "run", "", "rm x"),
        ("result", "", "", "Permission denied"),
    ]
    results = [step for step in found if step.kind == "result"]
    assert [(step.failed, step.denied, step.aside) for step in results] == [
        (True, False, False),
        (False, False, False),
        (False, False, False),
        (True, False, True),
        (True, True, False),
    ]


@pytest.mark.parametrize(
    ("instructions", "typed"),
    [
        (["You are the GitHub Copilot CLI. You are an interactive tool"], True),
        (["You are an interactive tool", "You are running in non-interactive mode"], False),
        ([f"{'x' * 300} You are an interactive tool"], False),
        ([], False),
    ],
)
def test_a_prompt_to_copilot_is_typed_if_a_person_used_it(tmp_path: Path, instructions: list[str], typed: bool) -> None:
    asked_first = [COPILOT_START, copilot("user.message", content="Mend the tills")]
    told = [copilot("system.message", content=text) for text in instructions]
    (prompt,) = transcript.steps(written(tmp_path / "events.jsonl", [*asked_first, *told]))
    (resumed,) = transcript.steps(written(tmp_path / "r.jsonl", [*asked_first, *told[:1], copilot("session.resume")]))

    assert (prompt.typed, resumed.typed) == (typed, False)


def test_copilot_tells_about_the_conversation(tmp_path: Path) -> None:
    assert transcript.about(written(tmp_path / "events.jsonl", COPILOT)) == About(
        client="copilot",
        session="p-1",
        folder="/home/me/shop",
        branch="tills",
        model="gpt-5.4",
        started_at=NOON_MS,
        ended_at=NOON_MS,
    )


# opencode


OPENCODE: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (
        {"role": "user", "time": {"created": NOON_MS}},
        [{"type": "text", "text": "Mend the tills"}, {"type": "text", "text": "<x>", "synthetic": True}],
    ),
    (
        {"role": "assistant", "time": {"created": NOON_MS}},
        [
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm"},
            part("bash", {"command": "make test"}, output="no rule", metadata={"exit": 2}),
            part("edit", {"filePath": "till.py", "oldString": "1", "newString": "2"}, output="Edited"),
            part("read", {"filePath": "no.py"}, status="error", error="File not found"),
            part("bash", {"command": "rm"}, status="error", error="The user rejected permission to use it."),
            part("apply_patch", {"patchText": PATCH}, output="Success"),
            part("bash", {"command": "make"}, status="running"),
            {"type": "text", "text": "Mended."},
        ],
    ),
    ({"role": "assistant", "summary": True}, [{"type": "text", "text": "What was"}]),
]
OPENCODE_STEPS = [
    ("prompt", "", "", "Mend the tills"),
    ("call", "run", "", "make test"),
    ("result", "", "", "no rule"),
    ("call", "edit", "till.py", "2"),
    ("result", "", "", "Edited"),
    ("call", "read", "no.py", ""),
    ("result", "", "", "File not found"),
    ("call", "run", "", "rm"),
    ("result", "", "", "The user rejected permission to use it."),
    ("call", "edit", "till.py", "rows = []\nreturn 2"),
    ("call", "edit", "docs/till.md", "# Till"),
    ("result", "", "", "Success"),
    ("call", "run", "", "make"),
    ("said", "", "", "Mended."),
]
OPENCODE_ABOUT = About(
    client="opencode",
    session="ses_1",
    folder="/home/me/shop",
    model="stub-model",
    started_at=NOON_MS,
    ended_at=NOON_MS + 5,
)


def exported(path: Path, info: object = None, *, indent: int | None = 2) -> str:
    messages = [{"info": message, "parts": parts} for message, parts in OPENCODE]
    path.write_text(json.dumps({"info": info or INFO, "messages": messages}, indent=indent))
    return str(path)


def kept_by_opencode(path: Path, *, folder: str = "/home/me/shop") -> apsw.Connection:
    """Write a database as opencode has it, and return the connection, with all of it still in the log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal").fetchall()
    connection.execute(
        """
        create table session (id text, directory text, parent_id text, model text, time_created int, time_updated int);
        create table message (id text, session_id text, time_created int, data text);
        create table part (id text, message_id text, session_id text, data text);
        """
    )
    row = ("ses_1", folder, None, json.dumps(INFO["model"]), NOON_MS, NOON_MS + 5)
    connection.execute("insert into session values (?, ?, ?, ?, ?, ?)", row)
    for number, (message, parts) in enumerate(OPENCODE):
        connection.execute("insert into message values (?, 'ses_1', ?, ?)", (f"m{number}", number, json.dumps(message)))
        for place, one in enumerate(parts):
            row_of_part = (f"p{place:02}", f"m{number}", json.dumps(one))
            connection.execute("insert into part values (?, ?, 'ses_1', ?)", row_of_part)
    connection.execute("insert into part values ('p99', 'm1', 'ses_1', '{torn')")
    return connection


@pytest.mark.parametrize("indent", [None, 2])
def test_an_export_of_opencode_becomes_steps(tmp_path: Path, indent: int | None) -> None:
    path = exported(tmp_path / "export.json", indent=indent)
    found = list(transcript.steps(path))

    assert [short(step) for step in found] == OPENCODE_STEPS
    assert [(step.failed, step.denied) for step in found if step.kind == "result"] == [
        (True, False), (False, False), (True, False), (True, True), (False, False),
    ]  # fmt: skip
    assert transcript.about(path) == OPENCODE_ABOUT


def test_a_sub_agent_s_export_of_opencode_is_aside(tmp_path: Path) -> None:
    found = list(transcript.steps(exported(tmp_path / "export.json", {**INFO, "parentID": "ses_0"})))

    assert {step.kind for step in found if step.aside} == {"call", "result", "said"}
    assert [step.kind for step in found if not step.aside] == []


@pytest.mark.parametrize("opencode_is", ["running", "closed", "killed"])
def test_a_conversation_in_the_database_of_opencode_becomes_the_same_steps_and_leaves_no_trace(
    tmp_path: Path, opencode_is: str
) -> None:
    path = tmp_path / "opencode" / "opencode.db"
    connection = kept_by_opencode(path)
    if opencode_is == "killed":
        path = Path(shutil.copytree(path.parent, tmp_path / "copy")) / path.name
    if opencode_is != "running":
        connection.close()
    before = contents(path.parent)

    assert [short(step) for step in transcript.steps(f"{path}#ses_1", session_database)] == OPENCODE_STEPS
    assert transcript.about(f"{path}#ses_1", session_database) == OPENCODE_ABOUT
    assert contents(path.parent) == before
    connection.close()


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder; in the index of a log, readers and writers tell each other where they are."""
    return {path.name: b"" if path.name.endswith("-shm") else path.read_bytes() for path in folder.iterdir()}


def test_a_log_without_its_index_is_a_clear_error_and_stays_as_it_is(tmp_path: Path) -> None:
    connection = kept_by_opencode(tmp_path / "there" / "opencode.db")
    folder = Path(shutil.copytree(tmp_path / "there", tmp_path / "copy"))
    connection.close()
    (folder / "opencode.db-shm").unlink()
    before = contents(folder)

    with pytest.raises(WrongRequest, match="cannot be read") as raised:
        transcript.about(f"{folder / 'opencode.db'}#ses_1", session_database)
    assert "opencode export" in raised.value.hint
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("name", "reference", "message"),
    [
        ("opencode.db", "#ses_2", "no conversation `ses_2`"),
        ("opencode.db", "", "not a transcript"),
        ("other.db", "#ses_1", "cannot be read as an opencode database"),
        ("nothing.db", "#ses_1", "no file"),
    ],
)
def test_what_is_not_in_the_database_of_opencode_is_a_clear_error(
    tmp_path: Path, name: str, reference: str, message: str
) -> None:
    kept_by_opencode(tmp_path / "opencode.db").close()
    (tmp_path / "other.db").write_text("no database")

    with pytest.raises(WrongRequest, match=message) as raised:
        list(transcript.steps(f"{tmp_path / name}{reference}", session_database))
    assert raised.value.hint


# All of them


def brief_text(id: str) -> str:
    return fenced("- Use ruff", f"brief_{id}")


def attached(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "attachment",
        "uuid": "u",
        "sessionId": "s-1",
        "timestamp": NOON,
        "attachment": {"type": kind, **more},
    }


def escaped(text: str) -> str:
    return f"<hook_context>{text.replace('<', '&lt;').replace('>', '&gt;')}</hook_context>"


GIVEN = {
    "claude": [
        claude("user", "Mend the tills"),
        attached("hook_success", stdout=json.dumps({"additionalContext": brief_text("dropped")})),
        attached("hook_additional_context", content=[brief_text("session"), brief_text("prompt")]),
        answered(brief_text("stop"), is_error=True),
        claude("assistant", [{"type": "text", "text": "Done."}]),
    ],
    "codex": [
        codex(META, "session_meta"),
        codex_message("developer", brief_text("session"), brief_text("prompt")),
        codex({"type": "hook_completed", "output": brief_text("dropped")}, "event_msg"),
        codex_output(f"refused: {brief_text('stop')}"),
    ],
    "copilot": [
        COPILOT_START,
        copilot("hook.start", hookType="sessionStart"),
        copilot("hook.end", hookType="sessionStart", output={"additionalContext": brief_text("session")}),
        copilot("hook.end", hookType="userPromptSubmitted", output={"additionalContext": brief_text("dropped")}),
        copilot("user.message", content="Mend", transformedContent=f"Mend\n\n{brief_text('prompt')}"),
        copilot_output("", success=False, error={"message": f"Denied: {brief_text('stop')}", "code": "denied"}),
    ],
    "gemini": [
        HEAD,
        asked("m1", f"{escaped(brief_text('session'))}\n\nMend the tills"),
        {"$set": {"messages": [asked("m2", "Go on", escaped(brief_text("prompt")))]}},
        gemini(
            "m3", toolCalls=[gemini_call("run_shell_command", {"command": "ls"}, f"ok\n{escaped(brief_text('stop'))}")]
        ),
    ],
    "opencode": [
        {
            "info": INFO,
            "messages": [
                {
                    "info": {"role": "user", "time": {"created": NOON_MS}},
                    "parts": [
                        {"type": "text", "text": "Mend the tills"},
                        {"type": "text", "synthetic": True, "text": brief_text("session") + brief_text("prompt")},
                        {"type": "text", "synthetic": True, "ignored": True, "text": brief_text("dropped")},
                    ],
                },
                {
                    "info": {"role": "assistant"},
                    "parts": [part("bash", {}, output="ok", metadata={"learnt": brief_text("dropped")})],
                },
                {"info": {"role": "assistant"}, "parts": [part("bash", {}, output=f"ok\n\n{brief_text('stop')}")]},
            ],
        }
    ],
}


@pytest.mark.parametrize("client", GIVEN)
def test_the_briefs_that_the_model_was_given_are_found_and_those_that_a_hook_only_printed_are_not(
    tmp_path: Path, client: str
) -> None:
    found = transcript.find_briefs(written(tmp_path / "s.jsonl", GIVEN[client]))

    assert found.ids == {"brief_session", "brief_prompt", "brief_stop"}
    assert found.is_complete == (client != "opencode"), "there our plugin reports what was not given"


def test_a_version_of_claude_code_that_does_not_record_hooks_does_not_tell_what_was_not_given(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", [claude("user", "Mend"), answered("ok"), claude("assistant", "Done.")])

    assert not transcript.find_briefs(path).is_complete


def test_our_own_brief_and_the_rest_of_our_prompt_are_no_words_of_the_person(tmp_path: Path) -> None:
    brief = fenced("## What failed before\n\nNever <b>mind</b>", "brief_1")
    task = Task(id="task_1", title="Mend the tills", text="They count twice.\n\n## Where\n\nin till.py", spec="spec.md")
    prompt = compose(
        task,
        brief=brief,
        spec="All of it",
        prerequisites=[Earlier(task=task, summary="done")],
        chain=[Earlier(task=task)],
    )
    (step,) = claude_steps(tmp_path, claude("user", prompt))

    assert step.text == "Mend the tills\n\nThey count twice.\n\n## Where\n\nin till.py"


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (f"{fenced('told', 'brief_1')}Go on", "Go on"),
        ("What is a <system-reminder> for?", "What is a <system-reminder> for?"),
        ("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nGo on\n", "Go on"),
        ("<state_snapshot>x</state_snapshot>", ""),
        ("# Task: of mine\n\nwithout the rest", "# Task: of mine\n\nwithout the rest"),
        ("\x1b[31mred\x1b[0m\r\nand\0 more", "red\nand more"),
    ],
)
def test_of_a_prompt_the_person_s_words_are_left(tmp_path: Path, prompt: str, words: str) -> None:
    found = claude_steps(tmp_path, claude("user", prompt))

    assert [step.text for step in found] == ([words] if words else [])


def test_many_tags_that_nobody_closes_take_no_longer_than_others(tmp_path: Path) -> None:
    """Were each looked for to the end of the text, this would not end within minutes."""
    (step,) = claude_steps(tmp_path, claude("user", "<system-reminder>" * 200_000))

    assert "characters left out" in step.text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_are_torn_or_no_text_are_passed_over(tmp_path: Path, end: str) -> None:
    path = tmp_path / "s.jsonl"
    whole = [claude("user", "Mend the tills"), claude("assistant", "Done")]
    lines = [json.dumps(record).encode() for record in whole]
    broken = lines[0].replace(b"Mend", b"M\xff\0nd")  # a control character is no JSON
    torn = lines[1][: len(lines[1]) // 2]
    path.write_bytes(end.encode().join([b"\xff\xfe", lines[0], b"[1, 2]", b"null", broken, b"", lines[1], torn]))

    assert [step.text for step in transcript.steps(str(path))] == ["Mend the tills", "Done"]


def test_what_is_not_utf_8_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(json.dumps(claude("user", "Mend the tills")).encode().replace(b"tills", b"t\xffills"))

    assert [step.text for step in transcript.steps(str(path))] == ["Mend the t\ufffdills"]


def test_a_line_longer_than_any_message_is_passed_over(tmp_path: Path) -> None:
    found = claude_steps(tmp_path, claude("user", "x" * LINE_LIMIT), claude("assistant", "Done"))

    assert [step.text for step in found] == ["Done"]


def test_a_message_longer_than_any_is_passed_over_in_a_document_too(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    long = gemini("long", "[{" * LINE_LIMIT)
    path.write_text(json.dumps({**HEAD, "messages": [GEMINI[1], long, gemini("m9", 'a "\\" ]} b')]}))

    assert [step.text for step in transcript.steps(str(path))] == ["Mend the tills", 'a "\\" ]} b']


def test_a_document_that_is_still_being_written_gives_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    whole = Path(exported(path)).read_text()
    path.write_text(whole[: whole.index('"Mended."')])

    assert [short(step) for step in transcript.steps(str(path))] == OPENCODE_STEPS[:1]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 5_000,
        b"Some notes\n",
        b'{"type": "user"}\n',
        b"[1, 2, 3]",
        b'{"info": 1, "messages": 2}',
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"type": "message", "content": "from a stream"}\n' * 3,
    ],
    ids=["empty", "zeros", "notes", "bare", "list", "wrong", "open", "nested", "stream"],
)
def test_what_is_no_transcript_is_refused_with_a_hint(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)

    for read in (transcript.steps, transcript.about):
        with pytest.raises(WrongRequest, match="not a transcript") as raised:
            read(str(path))
        assert "Claude Code" in raised.value.hint


@pytest.mark.parametrize("path", ["", "nothing", ".", "a\0b", "nothing.db#ses_1"])
def test_a_path_without_a_file_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(WrongRequest, match="no file"):
        transcript.steps(str(tmp_path / path) if path else "")


TRANSCRIPTS: dict[str, list[Any]] = {
    "claude": [
        claude("user", "Mend"),
        used("MultiEdit", {"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}]}),
        answered([{"type": "text", "text": "Exit code 1"}], is_error=True),
        {"type": "queue-operation", "operation": "enqueue", "content": "x", "sessionId": "s", "timestamp": NOON},
        {"type": "queue-operation", "operation": "remove", "sessionId": "s"},
        {"type": "progress", "data": {"type": "agent_progress", "message": claude("assistant", "x")}},
    ],
    "codex": [
        codex(META, "session_meta"),
        codex_message("user", "Mend"),
        codex_call("shell", {"command": ["bash", "-lc", "x"]}),
        codex({"item": {"id": "c1", "status": "failed", "exit_code": 1}}, "event_msg"),
        codex_output({"content": "no", "success": False}),
        codex({"type": "local_shell_call", "action": {"command": ["ls"]}, "call_id": "c2"}),
    ],
    "copilot": COPILOT,
    "gemini": [HEAD, *GEMINI, {"$set": {"messages": GEMINI}}],
    "gemini document": [{**HEAD, "messages": GEMINI}],
    "opencode": [{"info": INFO, "messages": [{"info": info, "parts": parts} for info, parts in OPENCODE]}],
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1e308, 10**30, "", "\ud800\0", "x" * 5_000, [], {}, [[]], [{}], {"type": {}}]
)


def changed(data: st.DataObject, value: Any) -> Any:
    """Return the value with something odd in a place of it."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 5)) == 0:
        return data.draw(ODD)
    key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = changed(data, copy[key])
    return copy


@pytest.mark.parametrize("name", TRANSCRIPTS)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_stands_in_a_transcript_it_is_read_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    records = TRANSCRIPTS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        records = changed(data, records) or [None]
        records = records if isinstance(records, list) else [records]
    text = b"\n".join(json.dumps(record).encode() for record in records)
    for _ in range(data.draw(st.integers(0, 2))):
        cut = data.draw(st.integers(0, len(text)))
        text = text[:cut] + data.draw(st.binary(max_size=3)) + text[cut + data.draw(st.integers(0, 3)) :]
    path = tmp_path / "t.json"
    path.write_bytes(text)

    try:
        told = transcript.about(str(path))
        found = list(transcript.steps(str(path)))
    except WrongRequest:
        return
    assert told.client == name.partition(" ")[0]
    for step in found:
        assert step.kind in ("prompt", "said", "call", "result")
        assert all(len(text) <= MAX_STEP_TEXT for text in (step.text, step.before, step.path, step.call, step.tool))
        f"{step.text}{step.before}{step.path}".encode()  # fit to be stored


# Finding them


def at_home(home: Path, folder: Path) -> dict[str, Path]:
    """Write a transcript of every client for work in a folder; return their paths."""
    name = re.sub("[^A-Za-z0-9]", "-", str(folder))
    paths = {
        "claude": home / ".claude" / "projects" / name / "s-1.jsonl",
        "sub-agent": home / ".claude" / "projects" / name / "s-1" / "subagents" / "agent-1.jsonl",
        "codex": home / ".codex" / "sessions" / "2026" / "03" / "01" / "rollout-1.jsonl",
        "copilot": home / ".copilot" / "session-state" / "p-1" / "events.jsonl",
        "gemini": home / ".gemini" / "tmp" / folder.name / "chats" / "session-1.jsonl",
        "gemini document": home / ".gemini" / "tmp" / sha256(str(folder).encode()).hexdigest() / "chats" / "s.json",
    }
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    written(
        paths["claude"], [{"type": "summary", "summary": "x", "leafUuid": "u"}, claude("user", "x", cwd=str(folder))]
    )
    written(paths["sub-agent"], [claude("user", "x", cwd=str(folder), isSidechain=True)])
    written(paths["codex"], [codex({**META, "cwd": str(folder)}, "session_meta")])
    written(paths["copilot"], [copilot("session.start", sessionId="p-1", context={"cwd": str(folder)})])
    written(paths["gemini"], [HEAD])
    (paths["gemini"].parent.parent / ".project_root").write_text(str(folder))
    paths["gemini document"].write_text(json.dumps({**HEAD, "sessionId": "g-0", "messages": GEMINI}))
    for number, path in enumerate(paths.values()):
        os.utime(path, ns=(0, (NOON_MS - number) * 1_000_000))
    return paths


def test_the_transcripts_of_a_project_are_found_newest_first(tmp_path: Path) -> None:
    home, shop = tmp_path / "home", tmp_path / "shop"
    shop.mkdir()
    paths = at_home(home, shop)
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    kept_by_opencode(database, folder=str(shop / "tills")).close()
    found = list(transcript.find({"HOME": str(home)}, folder=str(shop), since_ms=0, database=session_database))

    assert [(one.client, one.path, one.session) for one in found] == [
        ("opencode", f"{database}#ses_1", "ses_1"),
        ("claude", str(paths["claude"]), "s-1"),
        ("claude", str(paths["sub-agent"]), "s-1"),
        ("codex", str(paths["codex"]), "r-1"),
        ("copilot", str(paths["copilot"]), "p-1"),
        ("gemini", str(paths["gemini"]), "g-1"),
        ("gemini", str(paths["gemini document"]), "g-0"),
    ]
    assert [one.changed_at for one in found] == [NOON_MS + 5, *(NOON_MS - number for number in range(6))]
    assert [one.size for one in found[1:]] == [path.stat().st_size for path in paths.values()]
    assert found[0].size > 0
    for one in found:
        list(transcript.steps(one.path, session_database))


def test_only_what_changed_since_then_is_found(tmp_path: Path) -> None:
    at_home(tmp_path / "home", tmp_path / "shop")
    found = transcript.find({"HOME": str(tmp_path / "home")}, folder=str(tmp_path / "shop"), since_ms=NOON_MS - 1)

    assert [one.client for one in found] == ["claude", "claude"]


@pytest.mark.parametrize(
    ("folder", "count"),
    [(".learnt/worktrees/task_1", 5), ("", 6), ("../shop-old", 0), ("..", 0), ("../shop2", 0)],
)
def test_work_below_the_project_belongs_to_it_and_work_beside_it_does_not(
    tmp_path: Path, folder: str, count: int
) -> None:
    shop = tmp_path / "shop"
    worked_in = Path(os.path.normpath(shop / folder))
    at_home(tmp_path / "home", worked_in)
    found = list(transcript.find({"HOME": str(tmp_path / "home")}, folder=str(shop), since_ms=0))

    # A digest tells of one folder only, not of those above it.
    assert len(found) == count


def test_clients_that_keep_their_transcripts_elsewhere_are_found_there(tmp_path: Path) -> None:
    home = tmp_path / "home"
    at_home(home, tmp_path / "shop")
    places = {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CODEX_HOME": str(home / ".codex"),
        "GEMINI_CLI_HOME": str(home),
        "HOME": str(tmp_path / "nobody"),
    }

    assert len(list(transcript.find(places, folder=str(tmp_path / "shop"), since_ms=0))) == 5


def test_without_a_home_or_with_a_broken_database_nothing_is_found(tmp_path: Path) -> None:
    database = tmp_path / "opencode" / "opencode.db"
    database.parent.mkdir()
    database.write_text("no database")

    assert list(transcript.find({}, folder=str(tmp_path), since_ms=0)) == []
    places = {"XDG_DATA_HOME": str(tmp_path)}
    assert list(transcript.find(places, folder=str(tmp_path), since_ms=0, database=session_database)) == []
