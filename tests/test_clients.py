"""How each client is called, and what is read from what it prints: recorded samples, and samples that went wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnt.clients import registry
from learnt.clients.kit import run as programs
from learnt.clients.kit.run import LINE_LIMIT, TEXT_LIMIT, Call, Output, RunReport, RunRequest
from learnt.errors import WrongRequest

CLIENTS = [client.name for client in registry.that_offer("run")]

SESSION = "540b6f0e-91ab-4cde-8f01-23456789abcd"
PROMPT = "Add a login\n" + "and mind the details\n" * 10_000
FINAL = "The login works.\n<task-done/>"


def request(folder: Path, **fields: Any) -> RunRequest:
    given_fields = {"prompt": PROMPT, "folder": str(folder), "scratch": str(folder / "scratch"), **fields}
    return RunRequest(**given_fields)


@pytest.fixture
def read(tmp_path: Path, home: Path) -> Callable[..., RunReport]:
    """Read an output as a client left it: records become lines."""

    def reading(
        client: str, *printed: object, exit_code: int | None = 0, stderr: str = "", model: str = "", raw: bytes = b""
    ) -> RunReport:
        asked = request(tmp_path, model=model, command="agent" if client == "command" else "")
        (tmp_path / "stdout").write_bytes(raw or lines(printed))
        (tmp_path / "stderr").write_text(stderr)
        return programs.read_report(
            Output(
                call=programs.build_call(client, asked),
                folder=str(tmp_path),
                stdout=str(tmp_path / "stdout"),
                stderr=str(tmp_path / "stderr"),
                exit_code=exit_code,
                variables={"HOME": str(home)},
            )
        )

    return reading


def lines(printed: Iterable[object]) -> bytes:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in printed).encode()


# How they are called


def words(client: str, folder: Path, **fields: Any) -> list[str]:
    return list(programs.build_call(client, request(folder, **fields)).argv)


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_a_long_prompt_goes_in_by_stdin_or_by_a_file_never_as_an_argument(client: str, tmp_path: Path) -> None:
    call = programs.build_call(client, request(tmp_path, command="agent --now"))

    assert all(len(word) < 1_000 for word in call.argv)
    assert PROMPT in (call.stdin, *call.files.values())
    assert call.argv[:2] == ("agent", "--now")
    assert call.client == client


@pytest.mark.parametrize("client", sorted(set(CLIENTS) - {"command"}))
def test_the_model_is_named_when_one_is_asked_for(client: str, tmp_path: Path) -> None:
    named = words(client, tmp_path, model="big-one")
    assert named[named.index("--model") + 1] == "big-one"
    assert "--model" not in words(client, tmp_path)
    # Naming it twice is an error to some; the user's own argument wins.
    assert words(client, tmp_path, model="big-one", arguments=("--model=mine",)).count("--model") == 0


def test_the_defaults_let_an_agent_edit_and_no_more(tmp_path: Path) -> None:
    assert words("claude", tmp_path)[-2:] == ["--permission-mode", "acceptEdits"]
    assert words("codex", tmp_path)[-4:] == ["--sandbox", "workspace-write", "--skip-git-repo-check", "-"]
    assert "--allow-tool=write" in words("copilot", tmp_path)
    assert words("gemini", tmp_path)[-2:] == ["--approval-mode", "auto_edit"]
    for client in set(CLIENTS) - {"command"}:
        told = " ".join(words(client, tmp_path))
        assert not any(word in told for word in ("danger", "bypass", "yolo", "--auto ", "skip-trust"))


@pytest.mark.parametrize(
    ("client", "arguments", "replaced"),
    [
        ("claude", ("--permission-mode", "plan"), "acceptEdits"),
        ("codex", ("--sandbox=read-only",), "workspace-write"),
        ("codex", ("-s", "read-only"), "workspace-write"),
        ("gemini", ("--yolo",), "auto_edit"),
        ("gemini", ("-o", "json"), "stream-json"),
        ("opencode", ("--format", "default"), "json"),
    ],
)
def test_the_users_arguments_replace_our_defaults(
    client: str, arguments: tuple[str, ...], replaced: str, tmp_path: Path
) -> None:
    told = words(client, tmp_path, arguments=arguments)
    assert replaced not in told
    assert [word for word in told if word in arguments] == list(arguments)


def test_a_command_gets_what_it_asks_for(tmp_path: Path) -> None:
    asked = request(tmp_path, command="run 'a b' --file={prompt_file} -m {model}", model="m", arguments=("--more",))
    call = programs.build_call("command", asked)

    path = str(tmp_path / "scratch" / "prompt.md")
    assert call.argv == ("run", "a b", f"--file={path}", "-m", "m", "--more")
    assert (call.stdin, call.files) == ("", {path: PROMPT})


@pytest.mark.parametrize(
    ("client", "line"), [("command", ""), ("command", "   "), ("command", "echo 'unclosed"), ("codex", "npx 'codex")]
)
def test_a_command_that_is_none_is_refused_with_a_hint(client: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(WrongRequest) as refused:
        programs.build_call(client, request(tmp_path, command=line))
    assert "[work]" in refused.value.hint


def test_an_unknown_client_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(WrongRequest) as refused:
        programs.build_call("clippy", request(tmp_path))
    assert "opencode" in refused.value.hint


# Claude Code

CLAUDE_USAGE = {
    "input_tokens": 23_570,
    "cache_creation_input_tokens": 100,
    "cache_read_input_tokens": 4_000,
    "output_tokens": 14,
}
CLAUDE_RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 5_840,
    "num_turns": 2,
    "result": FINAL,
    "session_id": SESSION,
    "total_cost_usd": 0.09456,
    "usage": CLAUDE_USAGE,
    "modelUsage": {
        "claude-haiku-4-5": {"inputTokens": 400, "outputTokens": 6, "costUSD": 0.0004},
        "claude-opus-5-5": {
            "inputTokens": 23_570,
            "outputTokens": 14,
            "cacheReadInputTokens": 4_000,
            "cacheCreationInputTokens": 100,
            "costUSD": 0.09416,
        },
    },
    "permission_denials": [],
}


def claude_says(*content: dict[str, Any], id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    message = {
        "id": id,
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": list(content),
        "usage": CLAUDE_USAGE,
    }
    return {"type": "assistant", "message": message, "session_id": SESSION, "parent_tool_use_id": None, **fields}


CLAUDE_STREAM = [
    {"type": "system", "subtype": "hook_started", "hook_name": "SessionStart:startup"},
    {"type": "system", "subtype": "init", "session_id": SESSION, "model": "claude-opus-5-5", "cwd": "/home/me/shop"},
    claude_says({"type": "text", "text": "First I look.\n<learning>Look first</learning>"}),
    claude_says({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make test"}}),
    {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "<task-failed/>"}]}},
    claude_says({"type": "text", "text": "A sub-agent's words"}, id="msg_2", parent_tool_use_id="toolu_9"),
    claude_says({"type": "text", "text": FINAL}, id="msg_3"),
]


def test_claude_code_tells_everything_in_its_stream(read: Callable[..., RunReport], home: Path) -> None:
    transcript = home / ".claude" / "projects" / "-home-me-shop" / f"{SESSION}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.touch()
    assert read("claude", *CLAUDE_STREAM, CLAUDE_RESULT) == RunReport(
        text=FINAL,
        said=f"First I look.\n<learning>Look first</learning>\n\n{FINAL}",
        model="claude-opus-5-5",
        cost_usd=0.09456,
        tokens_in=400 + 23_570 + 100 + 4_000,
        tokens_cached=4_000,
        tokens_out=20,
        transcript=str(transcript),
    )


@pytest.mark.parametrize("whole", [CLAUDE_RESULT, [*CLAUDE_STREAM, CLAUDE_RESULT]], ids=["object", "array"])
@pytest.mark.parametrize("indent", [None, 2])
def test_claude_codes_plain_json_is_read_too(read: Callable[..., RunReport], whole: Any, indent: int | None) -> None:
    answer = read("claude", json.dumps(whole, indent=indent))
    assert (answer.text, answer.cost_usd, answer.tokens_out) == (FINAL, 0.09456, 20)
    assert answer.model == "claude-opus-5-5"


def test_a_run_of_claude_code_that_was_cut_short_is_read_from_its_messages(read: Callable[..., RunReport]) -> None:
    answer = read("claude", *CLAUDE_STREAM, '{"type":"assistant","mess', exit_code=143)

    assert answer.text == FINAL
    assert answer.cost_usd is None
    # Three messages; the one that came in two records counts once.
    assert answer.tokens_out == 3 * 14
    assert answer.error == "exit code 143"


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"result": "API Error: 400 stub error"}, "API Error: 400 stub error"),
        ({"subtype": "error_during_execution", "result": None, "errors": ["one", "two"]}, "one; two"),
        ({"subtype": "error_max_turns", "result": None}, "error_max_turns"),
    ],
)
def test_claude_codes_errors_are_told(read: Callable[..., RunReport], result: dict[str, Any], error: str) -> None:
    answer = read("claude", {**CLAUDE_RESULT, "is_error": True, **result}, exit_code=1)
    assert answer.error == error
    assert answer.cost_usd == 0.09456


# Codex

CODEX_STREAM = [
    {"type": "thread.started", "thread_id": "01a1de1d-4c26-7a71"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "I begin."}},
    {"type": "item.started", "item": {"id": "item_2", "type": "command_execution", "command": "bash -lc 'make test'"}},
    {
        "type": "item.completed",
        "item": {"id": "item_2", "type": "command_execution", "aggregated_output": "ok\n", "exit_code": 0},
    },
    {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": FINAL}},
]
CODEX_END = {
    "type": "turn.completed",
    "usage": {"input_tokens": 2_400, "cached_input_tokens": 400, "output_tokens": 68, "reasoning_output_tokens": 8},
}


def codex_session(home: Path) -> Path:
    path = home / ".codex" / "sessions" / "2026" / "11" / "15" / "rollout-2026-11-15T07-30-24-01a1de1d-4c26-7a71.jsonl"
    path.parent.mkdir(parents=True)
    used = {"input_tokens": 1_000, "cached_input_tokens": 10, "output_tokens": 5}
    path.write_bytes(
        lines(
            [
                {"type": "session_meta", "payload": {"id": "01a1de1d-4c26-7a71"}},
                {"type": "turn_context", "payload": {"model": "gpt-5-codex"}},
                {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
                {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": used}}},
            ]
        )
    )
    return path


def test_codex_tells_words_and_tokens_and_its_session_the_model(read: Callable[..., RunReport], home: Path) -> None:
    session = codex_session(home)
    assert read("codex", *CODEX_STREAM, CODEX_END) == RunReport(
        text=FINAL,
        said=f"I begin.\n\n{FINAL}",
        model="gpt-5-codex",
        tokens_in=2_400,
        tokens_cached=400,
        tokens_out=68,
        transcript=str(session),
    )


def test_a_run_of_codex_that_was_cut_short_has_its_tokens_from_the_session(
    read: Callable[..., RunReport], home: Path
) -> None:
    codex_session(home)
    answer = read("codex", *CODEX_STREAM, exit_code=None)
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (1_000, 10, 5)
    assert answer.error == "it did not end by itself"


def test_codexs_errors_are_told_unless_it_recovered(read: Callable[..., RunReport]) -> None:
    lost = {"type": "error", "message": "stream disconnected, retrying 1/5"}
    failed = {"type": "turn.failed", "error": {"message": "the quota is used up"}}
    assert read("codex", lost, failed, exit_code=1).error == "the quota is used up"
    assert read("codex", lost, *CODEX_STREAM, CODEX_END).error == ""


# Copilot CLI

COPILOT_CALL = {"toolCallId": "1", "name": "bash", "arguments": {"command": "make test"}}
COPILOT_STREAM = [
    {"type": "session.mcp_servers_loaded", "data": {"servers": []}},
    {"type": "user.message", "data": {"content": "Add a login <task-failed/>"}},
    {
        "type": "assistant.message",
        "data": {"content": "I begin.", "model": "gpt-5.4", "toolRequests": [COPILOT_CALL]},
    },
    {"type": "tool.execution_complete", "data": {"toolCallId": "1", "success": False, "error": {"code": "denied"}}},
    {"type": "assistant.message", "agentId": "a1", "data": {"content": "A sub-agent's words", "model": "gpt-5-mini"}},
    {"type": "assistant.message", "data": {"content": FINAL, "model": "gpt-5.4", "toolRequests": []}},
    {"type": "result", "sessionId": SESSION, "exitCode": 0, "usage": {"premiumRequests": 1}},
]


def copilot_usage(*nano_credits: int) -> list[object]:
    usage = {"inputTokens": 1_200, "cacheReadTokens": 200, "outputTokens": 34, "cost": 1}
    return [
        {"type": "session.usage_record", "data": {"usage": {**usage, "copilotUsage": {"totalNanoAiu": units}}}}
        for units in nano_credits
    ]


@pytest.mark.parametrize(("units", "cost"), [((250_000_000, 750_000_000), 0.01), ((0, 0), None)])
def test_copilot_is_read_with_the_tokens_and_the_credits_of_its_session(
    read: Callable[..., RunReport], home: Path, units: tuple[int, int], cost: float | None
) -> None:
    transcript = home / ".copilot" / "session-state" / SESSION / "events.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(lines(copilot_usage(*units)))

    report = read("copilot", *COPILOT_STREAM)

    assert report.cost_usd == (cost if cost is None else pytest.approx(cost))
    assert report.replace(cost_usd=None) == RunReport(
        text=FINAL,
        said=f"I begin.\n\n{FINAL}",
        model="gpt-5.4",
        tokens_in=2_400,
        tokens_cached=400,
        tokens_out=68,
        transcript=str(transcript),
        denied=("bash make test",),
    )


def test_copilots_errors_are_told(read: Callable[..., RunReport]) -> None:
    failed = {"type": "session.error", "data": {"message": "400 the quota is used up"}}
    assert read("copilot", *COPILOT_STREAM[:2], failed, exit_code=1).error == "400 the quota is used up"


# Gemini CLI

GEMINI_STREAM = [
    {"type": "init", "session_id": SESSION, "model": "auto"},
    {"type": "message", "role": "user", "content": "Add a login <task-failed/>"},
    {"type": "message", "role": "assistant", "content": "I be", "delta": True},
    {"type": "message", "role": "assistant", "content": "gin.", "delta": True},
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": {"command": "make test"}},
    {"type": "tool_result", "tool_id": "1", "status": "success", "output": "ok"},
    {"type": "message", "role": "assistant", "content": FINAL[:10], "delta": True},
    {"type": "message", "role": "assistant", "content": FINAL[10:], "delta": True},
]
GEMINI_END = {
    "type": "result",
    "status": "success",
    "stats": {
        "total_tokens": 3_709,
        "models": {
            "gemini-flash": {"total_tokens": 1_234, "input_tokens": 1_200, "output_tokens": 34, "cached": 200},
            "gemini-pro": {"total_tokens": 2_475, "input_tokens": 2_400, "output_tokens": 68, "cached": 400},
        },
    },
}
GEMINI_WHOLE = {
    "session_id": SESSION,
    "response": FINAL,
    "stats": {
        "models": {
            "gemini-flash": {"tokens": {"prompt": 1_200, "candidates": 34, "cached": 200, "thoughts": 0}},
            "gemini-pro": {"tokens": {"prompt": 2_400, "candidates": 68, "cached": 400, "thoughts": 7}},
        }
    },
}


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ([*GEMINI_STREAM, GEMINI_END], f"I begin.\n\n{FINAL}"),
        (["Some warning", json.dumps(GEMINI_WHOLE)], FINAL),
        ([json.dumps(GEMINI_WHOLE, indent=2)], FINAL),
    ],
    ids=["stream", "object", "indented"],
)
def test_gemini_is_read_as_a_stream_and_as_one_object(
    read: Callable[..., RunReport], home: Path, printed: list[object], said: str
) -> None:
    transcript = home / ".gemini" / "tmp" / "shop" / "chats" / f"session-2026-11-15T07-30-{SESSION[:8]}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.touch()
    assert read("gemini", *printed) == RunReport(
        text=FINAL,
        said=said,
        model="gemini-pro",
        tokens_in=3_600,
        tokens_cached=600,
        tokens_out=34 + 68 + 7,
        transcript=str(transcript),
    )


def test_geminis_errors_are_told(read: Callable[..., RunReport]) -> None:
    refused = {"type": "result", "status": "error", "error": {"type": "unknown", "message": "[API Error: quota]"}}
    assert read("gemini", *GEMINI_STREAM[:2], refused, exit_code=144).error == "[API Error: quota]"
    untrusted = read("gemini", exit_code=55, stderr="Gemini CLI is not running in a trusted directory.\n")
    assert untrusted.error == "exit code 55: Gemini CLI is not running in a trusted directory."


# opencode


def opencode_event(event: str, /, **part: Any) -> dict[str, Any]:
    return {"type": event, "sessionID": "ses_e21e27a0", "part": part}


def opencode_step(cost: float) -> dict[str, Any]:
    tokens = {"total": 1_244, "input": 1_000, "output": 34, "reasoning": 8, "cache": {"write": 2, "read": 200}}
    return opencode_event("step_finish", type="step-finish", tokens=tokens, cost=cost)


OPENCODE_STREAM = [
    opencode_event("step_start", type="step-start"),
    opencode_event("text", messageID="msg_1", text="I begin."),
    opencode_event("tool_use", tool="bash", state={"status": "completed", "input": {"command": "make test"}}),
    opencode_step(0.25),
    opencode_event("text", messageID="msg_2", text="The login works."),
    opencode_event("text", messageID="msg_2", text="<task-done/>"),
    opencode_step(0.5),
]


def test_opencode_is_summed_over_its_steps(read: Callable[..., RunReport], home: Path) -> None:
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    database.touch()
    assert read("opencode", *OPENCODE_STREAM, model="stub/stub-model") == RunReport(
        text="The login works.\n\n<task-done/>",
        said="I begin.\n\nThe login works.\n\n<task-done/>",
        model="stub/stub-model",
        cost_usd=0.75,
        tokens_in=2 * 1_202,
        tokens_cached=400,
        tokens_out=2 * 42,
        transcript=f"{database}#ses_e21e27a0",
    )


def test_opencodes_errors_are_told(read: Callable[..., RunReport]) -> None:
    error = {"name": "APIError", "data": {"message": "quota is used up", "statusCode": 400}}
    assert read("opencode", {"type": "error", "sessionID": "ses_1", "error": error}, exit_code=1).error == (
        "quota is used up"
    )


# aider

AIDER_PRINTED = """Aider v0.86.2
Main model: openai/gpt-4o with diff edit format
Git repo: .git with 0 files

The login works.
Tokens: 1.2k sent, 34 received. Cost: $0.0033 message, $0.0033 session.
"""
AIDER_CONVERSATION = """TO LLM 2026-11-15T07:34:58
-------
SYSTEM Act as an expert.
USER Add a login
ASSISTANT An example of an answer
LLM RESPONSE 2026-11-15T07:35:00
ASSISTANT I begin.
TO LLM 2026-11-15T07:35:01
-------
USER Fix it
LLM RESPONSE 2026-11-15T07:35:02
ASSISTANT The login works.
ASSISTANT <task-done/>
"""


def aider_sent(cost: float) -> dict[str, Any]:
    figures = {"main_model": "openai/REDACTED", "prompt_tokens": 1_200, "completion_tokens": 34, "cost": cost}
    return {"event": "message_send", "properties": figures}


def test_aider_is_read_from_the_files_that_it_keeps(read: Callable[..., RunReport], tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "aider.llm.log").write_text(AIDER_CONVERSATION)
    (scratch / "aider.figures.jsonl").write_bytes(lines([{"event": "launched"}, aider_sent(0.25), aider_sent(0.5)]))
    (scratch / "aider.chat.md").touch()
    assert read("aider", AIDER_PRINTED) == RunReport(
        text=FINAL,
        said=f"I begin.\n\n{FINAL}",
        model="openai/gpt-4o",
        cost_usd=0.75,
        tokens_in=2_400,
        tokens_out=68,
        transcript=str(scratch / "aider.chat.md"),
    )


def test_aider_without_its_files_is_read_from_what_it_printed(read: Callable[..., RunReport]) -> None:
    answer = read("aider", AIDER_PRINTED)
    assert "The login works." in answer.text
    assert (answer.model, answer.cost_usd, answer.tokens_in) == ("openai/gpt-4o", None, None)


def test_aider_that_got_no_answer_failed_whatever_its_exit_code_says(
    read: Callable[..., RunReport], tmp_path: Path
) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "aider.llm.log").write_text(AIDER_CONVERSATION.partition("LLM RESPONSE")[0])
    answer = read("aider", "litellm.BadRequestError: OpenAIException - quota")
    assert answer.text == ""
    assert answer.error == "litellm.BadRequestError: OpenAIException - quota"


def test_a_model_without_a_price_cost_aider_nothing_that_we_know(
    read: Callable[..., RunReport], tmp_path: Path
) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "aider.figures.jsonl").write_bytes(lines([aider_sent(0)]))
    assert read("aider", AIDER_PRINTED).cost_usd is None


# What goes wrong

HEALTHY: dict[str, list[Any]] = {
    "claude": [*CLAUDE_STREAM, CLAUDE_RESULT],
    "codex": [*CODEX_STREAM, CODEX_END],
    "copilot": COPILOT_STREAM,
    "gemini": [*GEMINI_STREAM, GEMINI_END],
    "opencode": OPENCODE_STREAM,
}


@pytest.mark.parametrize("client", sorted(CLIENTS))
@pytest.mark.parametrize("raw", [b"", b"\n\n", b"\xff\xfe\x00{", b"[[[[" * 50_000, b'{"type":', b"null\n1\n[]\n"])
def test_rubbish_gives_an_empty_answer_with_an_error_never_a_crash(
    client: str, raw: bytes, read: Callable[..., RunReport]
) -> None:
    answer = read(client, raw=raw, exit_code=1, stderr="went wrong")
    assert answer.error == "exit code 1: went wrong"
    assert (answer.cost_usd, answer.tokens_in, answer.tokens_out) == (None, None, None)


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_an_output_that_is_gone_gives_an_empty_answer(
    client: str, read: Callable[..., RunReport], tmp_path: Path
) -> None:
    read(client)
    os.unlink(tmp_path / "stdout")
    asked = request(tmp_path, command="agent" if client == "command" else "")
    output = Output(
        call=programs.build_call(client, asked),
        folder="",
        stdout=str(tmp_path / "stdout"),
        stderr=str(tmp_path / "nowhere"),
        exit_code=9,
    )
    assert programs.read_report(output) == RunReport(error="exit code 9")


@pytest.mark.parametrize("client", sorted(HEALTHY))
def test_broken_lines_between_good_ones_are_passed_over(client: str, read: Callable[..., RunReport]) -> None:
    good = read(client, *HEALTHY[client])
    noise = [
        b"\xff\xfenoise\n",
        b'{"type": "result", "resu\n',
        b"x" * (LINE_LIMIT + 5) + b"\n",
        b"[1, null]\n",
        b"\r\n",
    ]
    mixed = b"".join(line + b"\n" + noise[number % len(noise)] + b"\n" for number, line in enumerate(split(client)))
    assert read(client, raw=mixed) == good


def split(client: str) -> list[bytes]:
    return lines(HEALTHY[client]).splitlines()


@pytest.mark.parametrize("client", sorted(HEALTHY))
def test_figures_that_are_none_are_not_believed(client: str, read: Callable[..., RunReport]) -> None:
    for wrong in ("-1", '"12"', "NaN", "1e400", "true", "{}"):
        text = json.dumps(HEALTHY[client])
        for figure in ("0.09456", "2400", "0.25", "68", "34", "14"):
            text = text.replace(f": {figure}", f": {wrong}")
        answer = read(client, *json.loads(text))
        for value in (answer.cost_usd, answer.tokens_in, answer.tokens_out, answer.tokens_cached):
            assert value is None or 0 <= value < 1e15


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted({
        "type", "item", "part", "message", "content", "usage", "stats", "models", "modelUsage", "session_id", "error",
        "tokens", "result", "text", "model", "role", "cache", "errors", "is_error", "thread_id", "id", "tool_name",
        "parameters", "state", "input", "arguments", "data", "toolRequests", "agentId",
    })), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
KINDS = ("system", "assistant", "result", "thread.started", "item.completed", "item.started", "turn.completed", "error",
         "turn.failed", "message", "tool_use", "text", "step_finish", "assistant.message",
         "tool.execution_complete")  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(shapes=st.lists(st.dictionaries(st.sampled_from(["item", "part", "message", "usage", "stats", "modelUsage",
       "data", "error", "content", "role", "result", "errors", "is_error", "session_id", "sessionID", "model"]), JSON),
       max_size=4), kind=st.sampled_from(KINDS))  # fmt: skip
def test_no_shape_of_json_can_break_a_reader(tmp_path_factory: pytest.TempPathFactory, shapes: Any, kind: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "shapes"
    path.write_bytes(lines([{"type": kind, **shape} for shape in shapes]))
    for client in CLIENTS:
        call = Call(client=client, argv=("x",), scratch=str(folder / "none"))
        output = Output(call=call, folder="", stdout=str(path), stderr="", exit_code=0, variables={"HOME": str(folder)})
        answer = programs.read_report(output)
        assert isinstance(answer.text, str)
        for line in path.read_text().splitlines():
            assert len(programs.format_progress(call, line)) <= 160


@pytest.mark.parametrize("session", ["../../../etc/passwd", "*", "a/b", "x" * 5_000, "nul\0nul", ""])
def test_a_session_id_cannot_lead_elsewhere(session: str, read: Callable[..., RunReport], home: Path) -> None:
    for folder in (".claude/projects/shop", ".gemini/tmp/shop/chats", ".codex/sessions/1/2/3"):
        (home / folder).mkdir(parents=True)
        (home / folder / "other.jsonl").touch()
    for client, printed in HEALTHY.items():
        text = json.dumps(printed).replace(f'"{SESSION}"', json.dumps(session))
        text = text.replace('"01a1de1d-4c26-7a71"', json.dumps(session))
        assert read(client, *json.loads(text)).transcript == ""


def test_of_a_long_plain_output_the_end_is_kept(read: Callable[..., RunReport]) -> None:
    answer = read("command", raw=b"x" * TEXT_LIMIT + b"<task-done/>")
    assert answer.text.startswith("[12 bytes left out]\n")
    assert answer.text.endswith("<task-done/>")


# What a person sees


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude", ["First I look. <learning>Look first</learning>", "Bash make test", "A sub-agent's words"]),
        ("codex", ["I begin.", "bash -lc 'make test'"]),
        ("copilot", ["bash make test", "A sub-agent's words", "The login works. <task-done/>"]),
        ("gemini", ["I be", "gin.", "run_shell_command make test", "The login"]),
        ("opencode", ["I begin.", "bash make test", "The login works.", "<task-done/>"]),
    ],
)
def test_progress_is_one_short_line_for_what_is_worth_it(client: str, expected: list[str], tmp_path: Path) -> None:
    call = programs.build_call(client, request(tmp_path))
    shown = [programs.format_progress(call, line.decode()) for line in split(client)]
    assert [line for line in shown if line][: len(expected)] == expected


def test_progress_cannot_reach_the_terminal_behind_the_screen(tmp_path: Path) -> None:
    call = programs.build_call("command", request(tmp_path, command="x"))
    shown = programs.format_progress(call, "\x1b]0;title\x07one\r\ntwo \u202e" + "y" * 10_000)
    assert shown.isprintable()
    assert len(shown) <= 160


def test_no_client_loads_much(tmp_path: Path) -> None:
    import subprocess

    code = "import sys, learnt.clients; print(*sorted({'asyncio', 'subprocess', 'glob', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("", "")


PROVIDED = {
    "run": ("build_call", "read_report", "format_progress"),
    "hooks": ("read_result",),
    "transcript": ("recognises", "steps", "about", "find", "list_given_texts", "records_hooks"),
    "setup": ("targets", "next_step", "find_switch", "find_trust"),
}


@pytest.mark.parametrize(
    ("client", "module"),
    [(client, module) for client in registry.CLIENTS for module in client.offers],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_the_folder_of_a_client_provides_what_the_registry_says(client: registry.Client, module: str) -> None:
    assert all(callable(getattr(registry.load(client, module), name)) for name in PROVIDED[module])


def test_every_name_of_a_client_leads_to_one_client() -> None:
    names = [
        name for client in registry.CLIENTS for name in (client.name, registry.setup_name(client), *client.aliases)
    ]
    assert all(registry.find(name.upper()) is registry.find(name) is not None for name in names)
    assert len({*names}) == sum(
        len({client.name, registry.setup_name(client), *client.aliases}) for client in registry.CLIENTS
    )
    assert registry.find("") is registry.find("other") is None


def test_a_hook_loads_no_folder_of_a_client_to_read_a_prompt() -> None:
    code = (
        "import sys; from learnt.clients.kit.events import read_event\n"
        "read_event({'hook_event_name': 'UserPromptSubmit', 'session_id': 's', 'prompt': 'x'}, 'gemini')\n"
        "print(*sorted(name for name in sys.modules if name.startswith('learnt.clients')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "learnt.clients",
        "learnt.clients.kit",
        "learnt.clients.kit.events",
        "learnt.clients.registry",
    ]
