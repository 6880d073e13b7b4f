"""`learnt work` with clients that cannot be had here: stand-ins on PATH print what the real ones were seen to print.

A stand-in notes how it was called, so that both sides are looked at: what a client is given, and what is made of it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Done
from tests.support.shop import Shop
from tests.support.words import tells
from tests.test_clients import AIDER_PRINTED, CLAUDE_RESULT, CLAUDE_STREAM, SESSION, aider_sent, claude_says, lines

# Before it prints, it may do what the client does beside; `argv` and `stdin` are what it was given.
STAND_IN = """#!{python}
import json, os, pathlib, sys
argv, stdin = sys.argv[1:], sys.stdin.read()
given = {{"argv": argv, "stdin": stdin, "environ": dict(os.environ), "folder": os.getcwd()}}
pathlib.Path({notes!r}).write_text(json.dumps(given))
{work}
sys.stdout.write({stdout!r})
sys.stderr.write({stderr!r})
sys.exit({code})
"""
LEARNT = "Write made.txt in one go. Half of it is worse than none."


class Recorded(Shop):
    """A project whose agent is a stand-in, with one learning and one task that it fits."""

    def __init__(self, folder: Path, learnt: Callable[..., Done], programs: Path) -> None:
        super().__init__(folder, learnt)
        self.programs = programs
        self.notes = programs / "notes.json"

    def prepare(self, client: str, **settings: object) -> None:
        self.client = client
        self.settle(agent=client, **settings)
        self.given = self.learn("Never write made.txt by hand")
        self.task = self.add("Write made.txt", "--verify", "test -e made.txt")
        self.final = (
            f"LEARNING_HELPFUL: {self.given['id']}\n<learning>{LEARNT}</learning>\n<task-done>made it so</task-done>"
        )

    def attempt(self, stdout: str, *, stderr: str = "", exit_code: int = 0, work: str = "") -> dict[str, Any]:
        """Let the stand-in make one attempt, in which it prints this; return the record of it."""
        self.programs.mkdir(exist_ok=True)
        program = self.programs / self.client
        work = f"pathlib.Path('made.txt').touch()\n{work}"
        text = STAND_IN.format(
            python=sys.executable, notes=str(self.notes), work=work, stdout=stdout, stderr=stderr, code=exit_code
        )
        program.write_text(text)
        program.chmod(0o700)
        done = self.learnt("work", "--max-iterations", "1", "--json")
        assert done.err == ""
        latest: dict[str, Any] = self.show(self.task)["attempts"][0]
        return latest

    def called(self) -> dict[str, Any]:
        """Return how the stand-in was called last."""
        noted: dict[str, Any] = json.loads(self.notes.read_text())
        return noted

    def check_what_was_learnt(self) -> None:
        """Expect that the mark counted and that the new learning was kept."""
        learnings = self.learnings()
        (marked,) = [one for one in learnings if one["id"] == self.given["id"]]
        assert marked["confidence"] > self.given["confidence"]
        assert [one["task"] for one in learnings if one["observation"] == LEARNT] == [self.task]


@pytest.fixture
def recorded(project: Path, learnt: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    programs = tmp_path / "programs"
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    return Recorded(project, learnt, programs)


# Claude Code

CLAUDE_ARGUMENTS = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
CLAUDE_TRANSCRIPT = f"""
transcript = pathlib.Path.home() / ".claude" / "projects" / os.getcwd().replace("/", "-") / "{SESSION}.jsonl"
transcript.parent.mkdir(parents=True)
transcript.touch()
"""


def claude_prints(final: str, **result: Any) -> str:
    """Return the stream of a session that ends with these words, after much that is not the agent's own answer."""
    said = claude_says({"type": "text", "text": final}, id="msg_3")
    return lines([*CLAUDE_STREAM[:-1], said, {**CLAUDE_RESULT, "result": final, **result}]).decode()


@pytest.fixture
def claude(recorded: Recorded) -> Recorded:
    recorded.prepare("claude")
    return recorded


def test_claude_code_does_a_task(claude: Recorded, home: Path) -> None:
    attempt = claude.attempt(claude_prints(claude.final), work=CLAUDE_TRANSCRIPT)

    assert claude.show(claude.task)["status"] == "done"
    assert (attempt["result"], attempt["summary"]) == ("done", "made it so")
    assert (attempt["model"], attempt["cost_usd"]) == ("claude-opus-5-5", 0.09456)
    assert (attempt["tokens_in"], attempt["tokens_out"]) == (400 + 23_570 + 100 + 4_000, 20)
    assert Path(attempt["transcript"]).name == f"{SESSION}.jsonl"
    assert Path(attempt["transcript"]).is_file()
    claude.check_what_was_learnt()


def test_what_an_attempt_cost_and_said_is_recorded_even_if_its_work_cannot_be_committed(recorded: Recorded) -> None:
    recorded.repository()
    recorded.prepare("claude", isolation="worktree")
    recorded.model("sonnet", price=0.01)
    leaves = "os.system('git checkout -q --orphan other && git -c user.name=a -c user.email=a@b commit -q -m x')"

    attempt = recorded.attempt(claude_prints(recorded.final), work=leaves)

    assert (attempt["result"], attempt["model"]) == ("failed", "sonnet")
    assert tells(attempt["failure"]["reason"], "switched", "does not build on")
    assert (attempt["cost_usd"], attempt["tokens_out"] > 0) == (CLAUDE_RESULT["total_cost_usd"], True)
    recorded.check_what_was_learnt()


def test_claude_code_is_given_the_prompt_by_stdin_and_the_right_to_edit(claude: Recorded) -> None:
    claude.attempt(claude_prints(claude.final))

    called = claude.called()
    assert called["argv"] == CLAUDE_ARGUMENTS
    assert called["folder"] == str(claude.folder)
    assert called["stdin"].startswith("# Task: Write made.txt\n")
    assert '<learnt-brief id="brief_' in called["stdin"]
    assert claude.given["id"] in called["stdin"]
    assert "<task-done>" in called["stdin"]


def test_claude_code_is_given_the_chosen_model_and_the_users_arguments(recorded: Recorded) -> None:
    recorded.prepare("claude", arguments=["--allowedTools", "Bash"])
    recorded.model("opus", price=1)
    attempt = recorded.attempt(claude_prints(recorded.final))
    assert recorded.called()["argv"] == [*CLAUDE_ARGUMENTS, "--model", "opus", "--allowedTools", "Bash"]
    assert attempt["model"] == "opus"


def test_claude_code_can_be_started_from_within_claude_code(claude: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID")
    assert claude.learnt("trust", "--yes").code == 0
    for name in (*outer, "ANTHROPIC_MODEL"):
        monkeypatch.setenv(name, "1")
    claude.attempt(claude_prints(claude.final))

    environ = claude.called()["environ"]
    assert not set(outer) & set(environ)
    assert environ["ANTHROPIC_MODEL"] == "1"
    assert environ["LEARNT_TASK"] == claude.task


CLAUDE_ERRORS: dict[str, tuple[dict[str, Any], int, str]] = {
    "service": ({"is_error": True, "result": "API Error: 400 stub error"}, 1, "API Error: 400 stub error"),
    "turns": ({"is_error": True, "subtype": "error_max_turns", "result": None}, 0, "error_max_turns"),
    "execution": ({"is_error": True, "result": None, "errors": ["one", "two"]}, 1, "one; two"),
    "exit": ({}, 1, "Connection lost"),
}


@pytest.mark.parametrize("kind", CLAUDE_ERRORS)
def test_an_error_of_claude_code_is_a_failure_whatever_its_agent_said(claude: Recorded, kind: str) -> None:
    result, exit_code, error = CLAUDE_ERRORS[kind]
    attempt = claude.attempt(claude_prints(claude.final, **result), stderr="Connection lost\n", exit_code=exit_code)

    reason = "the agent ended with exit code 1" if exit_code else "the agent reported an error"
    assert attempt["result"] == "failed"
    assert attempt["failure"]["reason"].startswith(reason)
    assert attempt["failure"]["error"] == error
    assert (attempt["cost_usd"], attempt["model"]) == (0.09456, "claude-opus-5-5")
    assert claude.show(claude.task)["status"] == "ready"


def test_claude_code_that_was_cut_short_has_its_tokens_from_its_messages_and_its_cost_by_price(
    claude: Recorded,
) -> None:
    claude.model("claude-opus-5-5", input_price=10, output_price=100)
    whole = claude_prints(claude.final).splitlines()
    attempt = claude.attempt("\n".join([*whole[:-1], whole[-1][:20]]), exit_code=143)

    assert attempt["tokens_out"] == 3 * 14
    read = attempt["tokens_in"] - 0.9 * 3 * 4_000  # what comes from a cache costs a tenth
    assert attempt["cost_usd"] == pytest.approx((read * 10 + attempt["tokens_out"] * 100) / 1e6)
    assert tells(attempt["failure"]["reason"], "exit code 143")


DENIED = {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "make test"}}


def test_what_claude_code_was_not_allowed_to_do_explains_a_session_without_a_result(claude: Recorded) -> None:
    attempt = claude.attempt(claude_prints("I need your approval.", permission_denials=[DENIED, DENIED]))

    assert attempt["result"] == "incomplete"
    assert tells(attempt["failure"]["reason"], "not allowed", "Bash make test")
    assert tells(claude.learnt("log").out, "denied", "Bash make test", "`arguments`", "[work]")
    claude.attempt(claude_prints(claude.final))
    assert tells(claude.called()["stdin"], "not allowed", "Bash make test")


def test_a_task_that_is_done_all_the_same_is_done(claude: Recorded) -> None:
    assert claude.attempt(claude_prints(claude.final, permission_denials=[DENIED]))["result"] == "done"


# aider

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
AIDER_KEEPS = """
def keep(option, text):
    pathlib.Path(argv[argv.index(option) + 1]).write_text(text)
given["message"] = pathlib.Path(argv[argv.index("--message-file") + 1]).read_text()
pathlib.Path({notes!r}).write_text(json.dumps(given))
keep("--chat-history-file", "# aider chat\\n" + given["message"] + {secret!r})
keep("--llm-history-file", {conversation!r})
keep("--analytics-log", {figures!r})
"""


def aider_does(aider: Recorded, *answers: str, cost: float) -> dict[str, Any]:
    """Let aider make one attempt, in which the model answers so."""
    conversation = "TO LLM 2026-11-15T07:34:58\nUSER Write made.txt\n"
    for answer in answers:
        spoken = "\n".join(f"ASSISTANT {line}" for line in answer.splitlines())
        conversation += f"LLM RESPONSE 2026-11-15T07:35:00\n{spoken}\nTO LLM 2026-11-15T07:35:01\nUSER Fix it\n"
    figures = lines([{"event": "launched"}, *(aider_sent(cost) for _ in answers)]).decode()
    work = AIDER_KEEPS.format(notes=str(aider.notes), conversation=conversation, figures=figures, secret=SECRET)
    return aider.attempt(AIDER_PRINTED, work=work)


@pytest.fixture
def aider(recorded: Recorded) -> Recorded:
    recorded.prepare("aider", arguments=["--no-auto-commits"])
    return recorded


def test_aider_does_a_task(aider: Recorded) -> None:
    attempt = aider_does(aider, "I begin.", aider.final, cost=0.25)

    assert aider.show(aider.task)["status"] == "done"
    assert (attempt["result"], attempt["summary"]) == ("done", "made it so")
    assert (attempt["model"], attempt["cost_usd"]) == ("openai/gpt-4o", 0.5)
    assert (attempt["tokens_in"], attempt["tokens_out"]) == (2_400, 68)
    aider.check_what_was_learnt()


def test_aiders_conversation_is_kept_without_its_secrets(aider: Recorded) -> None:
    kept = Path(aider_does(aider, aider.final, cost=0.25)["transcript"])

    assert kept.parent == aider.folder / ".learnt" / "transcripts"
    assert "# Task: Write made.txt" in kept.read_text()
    assert SECRET not in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0
    assert list((aider.folder / ".learnt" / "running").iterdir()) == []


def test_aider_is_given_the_prompt_as_a_file_and_nobody_to_ask(aider: Recorded) -> None:
    aider.model("sonnet", price=1)
    aider_does(aider, aider.final, cost=0.25)

    called = aider.called()
    assert called["stdin"] == ""
    assert called["message"].startswith("# Task: Write made.txt\n")
    assert aider.given["id"] in called["message"]
    assert "--yes-always" in called["argv"]
    assert called["argv"][-3:] == ["--model", "sonnet", "--no-auto-commits"]
    kept = [called["argv"][place + 1] for place, word in enumerate(called["argv"]) if word.endswith(("-file", "-log"))]
    assert all(Path(one).parent.parent == aider.folder / ".learnt" / "running" for one in kept)


def test_what_a_model_without_a_known_price_cost_comes_from_ours(aider: Recorded) -> None:
    aider.model("openai/gpt-4o", input_price=10, output_price=100)
    assert aider_does(aider, aider.final, cost=0)["cost_usd"] == pytest.approx((1_200 * 10 + 34 * 100) / 1e6)


def test_aider_that_got_no_answer_has_failed_although_it_ends_well(aider: Recorded) -> None:
    attempt = aider_does(aider, cost=0)
    assert attempt["result"] == "failed"
    assert attempt["failure"]["reason"].startswith("the agent reported an error")
    assert "The login works." in attempt["failure"]["error"], "what it printed is all there is"
