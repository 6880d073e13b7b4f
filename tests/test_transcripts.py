"""Transcripts of the four clients become the same steps, and what nobody said or did becomes none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from learnt.clients import transcript
from learnt.clients.transcript import LONGEST_TEXT, Step

NOON = "2026-03-01T12:00:00.000Z"
NOON_MS = 1_772_366_400_000


def written(path: Path, records: list[Any], *, end: str = "\n") -> str:
    path.write_bytes(b"".join(json.dumps(record).encode() + end.encode() for record in records))
    return str(path)


def short(step: Step) -> tuple[str, ...]:
    """The step without its times: kind, what it does, path, text."""
    return step.kind, step.does, step.path, step.text


# Claude Code


def claude(kind: str, content: object, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **({"model": "claude-opus-5-5"} if kind == "assistant" else {})}
    common = {"uuid": "u", "sessionId": "s-1", "cwd": "/home/me/shop", "gitBranch": "tills", "timestamp": NOON}
    return {"type": kind, "message": message, "isSidechain": False, **common, **more}


def used(tool: str, given: object, id: str = "t1", **more: Any) -> dict[str, Any]:
    return claude("assistant", [{"type": "tool_use", "id": id, "name": tool, "input": given}], **more)


def answered(content: object, id: str = "t1", *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
    return claude("user", [block], **more)


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

    assert told == transcript.About(
        client="claude",
        session="s-1",
        folder="/home/me/shop",
        branch="tills",
        model="claude-opus-5-5",
        started_at=NOON_MS,
        ended_at=NOON_MS + 1_500,
    )


def test_a_long_text_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    (step,) = claude_steps(tmp_path, answered("first " + "x" * 3 * LONGEST_TEXT + " last"))

    assert step.text.startswith("first ")
    assert step.text.endswith(" last")
    assert "characters left out" in step.text
    assert len(step.text) <= LONGEST_TEXT
