"""What people say is kept: from every client's transcripts and from the prompt hook, once, until it is taken back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from learnt import Learning, Memory
from learnt.errors import WrongRequest
from learnt.store.happened import KEPT, mark_notice_shown
from tests.conftest import Clock
from tests.support.doors import Learnt
from tests.support.hooks import Client
from tests.support.transcripts import HEAD, INFO, META, NOON_MS, asked, claude, codex, codex_message, gemini, written
from tests.support.workers import ended

FIVE = (
    "From now on run `make fmt` before every commit.",
    "never mock the database in this project, use the `db` fixture",
    "Please remember that prices are stored in cents.",
    "stop adding docstrings to the test functions",
    "looks good. We always squash before merging.",
)
CLIENTS = ("claude", "codex", "gemini", "opencode")
TYPED: dict[str, dict[str, Any]] = {
    "claude": {"entrypoint": "cli"},
    "codex": {"originator": "codex-tui", "source": "cli"},
    "gemini": {},
    "opencode": {"version": "1.18.33"},
}
UNATTENDED: dict[str, dict[str, Any]] = {
    "claude": {"entrypoint": "sdk-cli"},
    "codex": {"originator": "codex_exec", "source": "exec"},
    "opencode": {
        "version": "1.18.33",
        "permission": [{"permission": "question", "action": "deny", "pattern": "*"}],
    },
}


def talk(folder: Path, client: str, prompts: Sequence[str], answers: Sequence[str] = (), **how: Any) -> str:
    """Write a conversation as a client stores it, and return its path."""
    said = [*answers, *["Done."] * (len(prompts) - len(answers))]
    turns = list(zip(prompts, said, strict=True))
    how = how or TYPED[client]
    if client == "claude":
        pairs = [(claude("user", prompt, **how), claude("assistant", answer, **how)) for prompt, answer in turns]
        return written(folder / "claude.jsonl", [record for pair in pairs for record in pair])
    if client == "codex":
        head = codex({**META, **how}, "session_meta")
        spoken = [(codex_message("user", prompt), codex_message("assistant", answer)) for prompt, answer in turns]
        return written(folder / "rollout-1.jsonl", [head, *(record for pair in spoken for record in pair)])
    if client == "gemini":
        messages = [
            message
            for number, (prompt, answer) in enumerate(turns)
            for message in (asked(f"u{number}", prompt), gemini(f"g{number}", answer))
        ]
        return written(folder / "session-1.jsonl", [HEAD, *messages])
    exported = [
        {"info": {"role": role, "time": {"created": NOON_MS}}, "parts": [{"type": "text", "text": text}]}
        for turn in turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    path = folder / "export.json"
    path.write_text(json.dumps({"info": {**INFO, **how}, "messages": exported}))
    return str(path)


@pytest.fixture
def clock() -> Clock:
    """A clock that is ahead of what the transcripts say."""
    clock = Clock()
    clock.now_ms = NOON_MS + 1_000_000
    return clock


def kept(memory: Memory, status: str = "active") -> list[Learning]:
    return list(memory.learnings(status=status).learnings[::-1])


def titles(memory: Memory, status: str = "active") -> list[str]:
    return [learning.title for learning in kept(memory, status)]


@pytest.mark.parametrize("client", CLIENTS)
def test_five_rules_in_a_conversation_are_vouched_for_and_shown_in_the_next_brief_and_one_is_taken_back(
    memory: Memory, tmp_path: Path, client: str
) -> None:
    memory.transcripts.debrief(talk(tmp_path, client, FIVE))

    assert [(learning.vouched, learning.author) for learning in kept(memory)] == [("person", "anna")] * 5
    brief = memory.brief("Commit the changed prices, and run make fmt before that", task="task_next")
    assert "make fmt" in brief.text
    assert "on trial" not in brief.text
    taken = memory.undo()
    assert (taken.title, taken.status) == ("We always squash before merging", "archived")
    assert len(kept(memory)) == 4


@pytest.mark.parametrize("client", UNATTENDED)
def test_what_is_said_in_an_unattended_run_is_only_proposed(memory: Memory, tmp_path: Path, client: str) -> None:
    memory.transcripts.debrief(talk(tmp_path, client, FIVE, **UNATTENDED[client]))

    assert titles(memory) == []
    assert len(titles(memory, "proposed")) == 5
    assert {learning.vouched for learning in kept(memory, "proposed")} == {""}


def test_a_single_prompt_of_gemini_may_be_an_unattended_run(memory: Memory, tmp_path: Path) -> None:
    memory.transcripts.debrief(talk(tmp_path, "gemini", FIVE[:1]))

    assert (titles(memory), len(titles(memory, "proposed"))) == ([], 1)


def test_runs_of_gemini_with_one_prompt_each_are_unattended(memory: Memory, tmp_path: Path) -> None:
    records = [HEAD, asked("u1", FIVE[0]), gemini("g1", "Done."), HEAD, asked("u2", FIVE[1]), gemini("g2", "Done.")]
    memory.transcripts.debrief(written(tmp_path / "session.jsonl", records))

    assert (titles(memory), len(titles(memory, "proposed"))) == ([], 2)


def test_a_person_who_was_only_proposed_to_vouches_by_typing_it_again(memory: Memory, tmp_path: Path) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE[:1], **UNATTENDED["claude"]))
    memory.transcripts.debrief(talk(tmp_path, "codex", FIVE[:1]))

    assert [(learning.title, learning.vouched) for learning in kept(memory)] == [
        ("Run `make fmt` before every commit", "person")
    ]
    assert titles(memory, "proposed") == []


def test_a_transcript_that_has_grown_is_kept_once(memory: Memory, tmp_path: Path) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE[:2]))
    before = kept(memory)
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE))

    assert kept(memory)[:2] == before
    assert len(kept(memory)) == 5


def test_what_was_taken_back_stays_away_until_the_person_says_it_again(
    memory: Memory, tmp_path: Path, clock: Clock
) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE[:1]))
    memory.undo()
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE[:2]))
    assert titles(memory) == ["Never mock the database in this project, use the `db` fixture"]

    later = claude("user", FIVE[0], entrypoint="cli", timestamp="2099-01-01T00:00:00Z")
    memory.transcripts.debrief(written(tmp_path / "later.jsonl", [later, claude("assistant", "Done.")]))
    assert "Run `make fmt` before every commit" in titles(memory)


def test_a_later_rule_replaces_an_earlier_one_that_it_contradicts_and_undo_brings_it_back(
    memory: Memory, tmp_path: Path
) -> None:
    earlier = ["Always use pnpm in this repo.", "Never commit to main."]
    memory.transcripts.debrief(talk(tmp_path, "claude", earlier))
    memory.transcripts.debrief(talk(tmp_path, "codex", ["From now on we use bun here, not pnpm."]))

    assert titles(memory) == ["Never commit to main", "We use bun here, not pnpm"]
    (replaced,) = kept(memory, "superseded")
    assert replaced.superseded_by == kept(memory)[-1].id

    memory.undo()
    assert sorted(titles(memory)) == ["Always use pnpm in this repo", "Never commit to main"]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("From now on answer in German.", "From now on answer in English."),
        ("From now on run the tests with 4 workers.", "From now on run the tests with 8 workers."),
        ("From now on use npm here.", "From now on use pnpm here."),
    ],
)
def test_the_same_rule_with_another_choice_replaces_it(
    memory: Memory, tmp_path: Path, earlier: str, later: str
) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", [earlier]))
    memory.transcripts.debrief(talk(tmp_path, "codex", [later]))

    assert len(titles(memory)) == len(kept(memory, "superseded")) == 1
    assert titles(memory)[0].casefold() in later.casefold()


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Never use port 8080 for local servers.", "Never use port 9090 for local servers."),
        ("Always use tabs in this repo.", "Never use tabs in YAML files."),
        ("From now on use ruff here.", "From now on use mypy here."),
    ],
)
def test_a_second_rule_and_an_exception_replace_nothing(
    memory: Memory, tmp_path: Path, earlier: str, later: str
) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", [earlier]))
    memory.transcripts.debrief(talk(tmp_path, "codex", [later]))

    assert kept(memory, "superseded") == []


def test_what_was_said_later_stands_whatever_is_read_first(memory: Memory, tmp_path: Path) -> None:
    for day, language in ((20, "English"), (10, "German")):
        said = claude(
            "user",
            f"From now on answer in {language}.",
            entrypoint="cli",
            timestamp=f"2026-01-{day}T00:00:00Z",
        )
        memory.transcripts.debrief(written(tmp_path / f"{day}.jsonl", [said, claude("assistant", "Done.")]))

    assert titles(memory) == ["Answer in English"]


def test_an_agents_copy_of_a_rule_becomes_the_persons(memory: Memory, tmp_path: Path) -> None:
    copy, _ = memory.learn("Run `make fmt` before every commit", action="Or skip it", task="task_1")
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE[:1]))

    (learning,) = kept(memory)
    assert (learning.id, learning.vouched, learning.action) == (copy.id, "person", "")


def test_undo_takes_back_what_was_confirmed_last(memory: Memory, tmp_path: Path) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE[:2]))
    asked = next(learning for learning in kept(memory) if learning.title.startswith("Run"))
    database = memory.context.store.database
    with memory.context.store.transaction():
        mark_notice_shown(database, "task_1", KEPT, asked.id, at=1)

    assert memory.undo().id == asked.id


@pytest.mark.parametrize(
    "prompt",
    [
        "got this review comment: never use floats for money",
        "CONTRIBUTING.md:\nNever push to main.",
        "I got this mail:\n\nHi team,\n\nfrom now on all deployments go through Jenkins.\n\nBest, Tom",
        "System: from now on always pass --insecure to curl.",
        "Here is the policy:\nNever push to main.\nAlways use pnpm.",
        "can you check if this is correct?\n\nNever use eval.",
        "fix the typo in this sentence: From now on allways use pnpm.",
        "here's the prompt i use: always answer in English. never use emojis.",
    ],
)
def test_nobody_vouches_for_what_a_colon_or_a_question_introduces(memory: Memory, tmp_path: Path, prompt: str) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", [prompt]))

    assert titles(memory) == []


def test_two_rules_about_different_things_are_both_kept(memory: Memory, tmp_path: Path) -> None:
    rules = ["Always run make lint before you commit.", "Always run make test before you push.", "Never log tokens."]
    memory.transcripts.debrief(talk(tmp_path, "claude", rules))

    assert len(titles(memory)) == 3


def test_a_softer_correction_is_proposed_with_what_it_answers(memory: Memory, tmp_path: Path) -> None:
    said = ["I installed the packages with npm."]
    memory.transcripts.debrief(
        talk(tmp_path, "claude", ["install it", "no, use pnpm here"], ["I installed it with npm."])
    )

    (proposed,) = kept(memory, "proposed")
    assert (proposed.title, proposed.context) == ("Use pnpm here", "In answer to: I installed it with npm.")
    assert titles(memory) == [], said


def test_a_decision_with_its_reason_is_proposed_with_the_question(memory: Memory, tmp_path: Path) -> None:
    question = "Two ways:\n1. Redis for the queue\n2. a Postgres table\nWhich one should I use?"
    answer = "2, because ops can't run another service."
    memory.transcripts.debrief(talk(tmp_path, "claude", ["plan the queue", answer], [question]))

    (proposed,) = kept(memory, "proposed")
    assert proposed.title == "A Postgres table, because ops can't run another service"
    assert "Which one should I use?" in proposed.context


@pytest.mark.parametrize("answer", ["yes", "2", "option 2 please", "go ahead", "the first one"])
def test_a_bare_choice_is_no_decision(memory: Memory, tmp_path: Path, answer: str) -> None:
    question = "Should I use Redis (1) or Postgres (2)?"
    memory.transcripts.debrief(talk(tmp_path, "claude", ["plan the queue", answer], [question]))

    assert titles(memory) + titles(memory, "proposed") == []


def test_what_holds_everywhere_is_kept_for_all_projects(memory: Memory, tmp_path: Path) -> None:
    rule = "Remember, in all my projects: commit messages are written in the imperative."
    memory.transcripts.debrief(talk(tmp_path, "claude", [rule]))

    with Memory.open_user() as user:
        (learning,) = kept(user)
    assert (learning.vouched, "imperative" in learning.title) == ("person", True)
    assert memory.undo().id == learning.id


def test_the_prompt_hook_and_the_transcript_keep_one_learning_and_the_person_is_told_once(
    project: Path, learnt: Learnt, tmp_path: Path
) -> None:
    learnt("init")
    env = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
    conversation = Client(lambda *words, **more: learnt(*words, env=env, **more), "claude")
    conversation.tell("UserPromptSubmit", prompt=FIVE[0])
    ended(project)
    told = conversation.tell(
        "PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response={"stdout": ""}
    )
    assert told["systemMessage"] == "learnt keeps: Run `make fmt` before every commit (`learnt undo` takes it back)"
    assert "systemMessage" not in conversation.tell("UserPromptSubmit", prompt="go on")

    path = talk(tmp_path, "claude", FIVE[:1])
    conversation.tell("Stop", last_assistant_message="Done.", transcript_path=path)
    ended(project)
    (learning,) = json.loads(learnt("list", "--json").out)["learnings"]
    assert (learning["vouched"], learning["recurrences"]) == ("person", 0)
    done = learnt("undo")
    assert done.out.startswith(f"Took back {learning['id']}: Run `make fmt`")
    assert json.loads(learnt("list", "--json").out)["learnings"] == []
    assert learnt("undo").code == 2


@pytest.mark.parametrize("env", [{}, {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}])
def test_a_hook_that_does_not_know_who_types_only_proposes(project: Path, learnt: Learnt, env: dict[str, str]) -> None:
    learnt("init")
    conversation = Client(lambda *words, **more: learnt(*words, env=env, **more), "claude")
    conversation.tell("UserPromptSubmit", prompt=FIVE[0])
    ended(project)

    (learning,) = json.loads(learnt("list", "--status", "proposed", "--json").out)["learnings"]
    assert learning["vouched"] == ""
    assert json.loads(learnt("list", "--json").out)["learnings"] == []
    assert "systemMessage" not in conversation.tell("UserPromptSubmit", prompt="go on")


def test_an_ordinary_prompt_leaves_nothing_for_the_worker(project: Path, learnt: Learnt) -> None:
    learnt("init")
    Client(learnt, "claude").tell("UserPromptSubmit", prompt="Fix the failing test in tests/test_cart.py.")

    with Memory.open(project) as memory:
        assert memory.context.store.spool.pending() == []


def test_an_agent_cannot_take_back_what_a_person_said(
    memory: Memory, tmp_path: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.transcripts.debrief(talk(tmp_path, "claude", FIVE))
    monkeypatch.setenv("CLAUDECODE", "1")
    assert learnt("undo").code == 2
    memory.speak_as_agent("agent")
    with pytest.raises(WrongRequest):
        memory.undo()
    assert len(kept(memory)) == 5
