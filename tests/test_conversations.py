"""A conversation in a client, from its start to its end: what learnt says at each event, and what it remembers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.clients.kit.events import read_event
from learnt.clients.kit.setup import Location
from learnt.clients.opencode.setup import plugin
from learnt.clients.registry import KINDS
from learnt.doors.hook import CALLS
from learnt.errors import WrongRequest
from learnt.model import Claim, text_id
from learnt.store import errands, missteps
from learnt.store.spool import checksum
from learnt.system import watched
from learnt.text.words import estimate_tokens
from tests.support.deliveries import deliver_all
from tests.support.doors import Learnt
from tests.support.hooks import HOW_TO_KEEP, Client
from tests.support.transcripts import NOON_MS, claude, codex, codex_message, gemini, written

FAILS, WORKS = "ship --fast now", "ship --safe now"
ERROR = "ship: unknown option --fast"


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Callable[..., Client]:
    """A project in which a command failed in an earlier conversation, and another one worked then."""
    with Memory.open(project):
        pass
    earlier = Client(learnt, "claude", "earlier")
    earlier.fail(f"{FAILS} 2>&1 | tail -3", ERROR)
    earlier.work(WORKS)

    def client(name: str = "claude", session: str = "s1", **always: Any) -> Client:
        return Client(learnt, name, session, **always)

    return client


def test_a_command_that_failed_and_was_replaced_is_told_of_at_the_call_once(shop: Callable[..., Client]) -> None:
    client = shop()

    warning = client.call(FAILS)

    assert ERROR in warning
    assert f"`{WORKS}`" in warning
    assert client.call(FAILS) == ""
    assert shop(session="another").call(FAILS) != ""
    assert shop(session="third").call(WORKS) == shop(session="third").call("ls") == ""


def test_a_warning_is_explained_as_what_it_is(shop: Callable[..., Client], learnt: Learnt, project: Path) -> None:
    assert shop().call(FAILS)
    with Memory.open(project) as memory:
        (warning,) = memory.reports.activity(what="warning").entries

    told = learnt("explain", warning.id).out

    assert f"failed before: {FAILS} 2>&1 | tail -3: {ERROR}\n    then worked: {WORKS}\n" in told
    assert "query" not in told
    assert "no learning shares" not in told


def test_the_same_mistake_in_another_command_is_told_of(shop: Callable[..., Client]) -> None:
    assert ERROR in shop().call("cd web && ship tomorrow --fast > log.txt")
    assert shop().call("ship tomorrow") == ""


def test_a_failed_command_and_the_learning_from_it_are_one_warning_at_the_call(
    shop: Callable[..., Client], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(project) as memory:
        mined = memory.add(
            "`ship` has no `--fast`: use `--safe`",
            observation=f"`{FAILS}` failed: {ERROR}. `{WORKS}` worked.",
            action=f"Use `{WORKS}`.",
            triggers={"commands": ["ship"]},
        )
        other = memory.add(f"Keep the output of `{FAILS}`", triggers={"commands": ["ship"]})
    asked = {"prompt": "ship it with --fast or --safe"}

    briefed = shop(session="asked")
    assert mined.id in briefed.hear("UserPromptSubmit", **asked)
    assert ERROR in briefed.call(FAILS), "what was told at the prompt is forgotten at the call"

    stopped = shop(session="stopped")
    assert mined.id not in stopped.call(FAILS)
    said = stopped.call(WORKS)
    assert mined.id not in said, "the stop has told it"
    assert other.id in said

    monkeypatch.setenv("LEARNT_BEFORE_TOOL", "tell")
    said = shop(session="told").call(FAILS)
    assert ERROR in said
    assert mined.id not in said
    assert other.id in said


RELATIVES = {
    # failed, why, what worked: relatives, and other commands
    ("docker-compose up", "bash: docker-compose: command not found", "docker compose up"): (
        "docker-compose down; docker-compose up -d; cd web && docker-compose ps; docker-compose logs | grep err; "
        "COMPOSE_FILE=a.yml docker-compose up; timeout 5 docker-compose up 2>&1 | tail -5",
        "docker compose up; docker compose down; grep docker-compose README.md; which docker-compose; docker ps; "
        "./docker-compose up; pip install docker-compose; sudo docker-compose up",
    ),
    ("ship --fast now", ERROR, "ship --safe now"): (
        "ship --fast tomorrow; cd web && ship --fast; FAST=1 ship --fast now | tee log; ls && ship --fast now",
        "ship now; ship --faster now; echo --fast; ship --safe now; man ship; ./bin/ship --fast now",
    ),
    ("deploy now", "deploy: error: the port is taken", "deploy --retry now"): (
        "deploy now | tee log; deploy now > log.txt; cd . && deploy now; CI=1 deploy now; timeout 60 deploy now",
        "deploy later; deploy now --dry-run; cd web && deploy now; deploy --retry now; sudo deploy now; redeploy now",
    ),
    ("serve app", "serve: error: no port is set", "PORT=80 serve app"): ("DEBUG=1 serve app", "PORT=81 serve app"),
}


def test_a_call_that_concerns_nothing_passes_by_without_a_database(
    shop: Callable[..., Client], project: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def catch_up() -> None:
        with Memory.open(project) as memory:
            memory.worker.catch_up()
        opened.clear()

    def add(title: str, *words: str) -> None:
        assert learnt("add", title, *words).code == 0
        opened.clear()

    def note_and_open(path: str) -> Memory:
        opened.append(path)
        return really_open(path)

    opened: list[str] = []
    really_open = Memory.open_for_hook
    monkeypatch.setattr(Memory, "open_for_hook", note_and_open)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert tuple(dict.fromkeys(name for name, kind in KINDS.items() if kind == "call")) == CALLS
    catch_up()

    assert shop().call("make all") == ""
    assert opened == []
    assert ERROR in shop().call(FAILS)

    add("Mind the winch", "--on-command", "hoist")
    assert "Mind the winch" in shop().call("hoist --up"), "before a worker has run"
    catch_up()
    assert shop().call("make all") == ""
    assert opened == []
    assert "Mind the winch" in shop(session="later").call("cd x && hoist --up")

    shop(session="other").fail("make al", "make: *** No rule to make target 'al'.  Stop.")
    shop(session="other").work("make all")
    assert "make all" in shop(session="later").call("make al"), "what has just failed"
    catch_up()
    assert learnt("init", "--user").code == 0
    add("Label each crate", "--on-file", "*.crate", "--user")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "a.crate"}}
    assert "Label each crate" in shop().hear("PreToolUse", **edit), "in the user-wide store"
    catch_up()
    assert watched.is_current(str(project / ".learnt")), "also after the user-wide store has changed"
    assert "Label each crate" in shop(session="later").hear("PreToolUse", **edit)


@pytest.mark.parametrize("failure", RELATIVES, ids=lambda failure: failure[0])
def test_a_warning_covers_the_close_relatives_of_a_command_and_no_other(
    failure: tuple[str, str, str], project: Path, learnt: Learnt
) -> None:
    with Memory.open(project):
        pass
    failed, error, worked = failure
    earlier = Client(learnt, "claude", "earlier", cwd=str(project))
    earlier.fail(failed, error)
    earlier.work(worked)
    with Memory.open(project) as memory:
        memory.worker.catch_up()
    assert (project / ".learnt" / "calls.json").exists(), "calls that concern nothing are passed by"
    relatives, others = (text.split("; ") for text in RELATIVES[failure])
    calls = (failed, *relatives, *others)

    warned = [call for call in calls if Client(learnt, "claude", call, cwd=str(project)).call(call)]

    assert warned == [failed, *relatives]


def test_a_command_that_has_succeeded_since_is_not_told_of(shop: Callable[..., Client]) -> None:
    shop(session="other").work(FAILS)

    assert shop().call(FAILS) == ""


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (f"{FAILS} 2>&1 | tail -3", ERROR),
        (f"{FAILS} | tail -3", ""),
        (f"{FAILS} || true", ERROR),
        (f"{FAILS}; echo done", f"{ERROR}\ndone"),
        (f"{FAILS} &", ""),
    ],
)
def test_a_command_whose_failure_is_hidden_has_not_succeeded(
    command: str, output: str, shop: Callable[..., Client]
) -> None:
    shop(session="other").work(command, output)

    assert ERROR in shop().call(FAILS)


def test_what_a_command_prints_tells_that_it_succeeded_behind_a_pipe(shop: Callable[..., Client]) -> None:
    shop(session="other").work(f"{FAILS} 2>&1 | tail -3", "3 parcels are on their way")

    assert shop().call(FAILS) == ""


def test_a_script_of_the_same_name_in_another_folder_is_another_one(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    earlier = Client(learnt, "claude", "earlier", cwd=str(project))
    earlier.fail("./ship --fast now", ERROR)
    earlier.work("./ship --safe now")
    Client(learnt, "claude", "other", cwd=str(project)).work("cd web && ./ship --fast now")
    later = Client(learnt, "claude", "later", cwd=str(project))

    assert later.call("cd web && ./ship --fast tomorrow") == ""
    assert ERROR in later.call("ls && ./web/../ship --fast tomorrow")


def test_a_command_that_nothing_replaced_is_not_told_of(learnt: Learnt, project: Path) -> None:
    with Memory.open(project):
        pass
    Client(learnt, "claude", "earlier").fail(FAILS, ERROR)

    assert Client(learnt, "claude").call(FAILS) == ""


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("pytest -q tests/test_shop.py", "1 failed"),
        ("npm run lint", "error  Unexpected var"),
        ("grep -q sale shop.py", ""),
        ("git merge main", "CONFLICT (content): Merge conflict in shop.py"),
    ],
)
def test_what_says_nothing_about_the_command_does_not_count(
    command: str, error: str, learnt: Learnt, project: Path
) -> None:
    with Memory.open(project):
        pass
    earlier = Client(learnt, "claude", "earlier")
    earlier.fail(command, error)
    earlier.work(f"{command} --again")

    assert Client(learnt, "claude").call(command) == ""


def test_a_call_that_failed_is_refused_once_for_a_reason_that_a_person_understands(
    shop: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = {"tool_name": "Bash", "tool_input": {"command": FAILS}}

    refused = shop().tell("PreToolUse", **tool)["hookSpecificOutput"]

    assert refused["permissionDecision"] == "deny"
    first, _, brief = refused["permissionDecisionReason"].partition("\n\n")
    assert first == (
        f"learnt stopped this call once: `{FAILS} 2>&1 | tail -3` failed here today, and `{WORKS}` worked instead. "
        "To run it all the same, make the same call again."
    )
    assert brief.startswith("<learnt-brief id=")
    assert ERROR in brief
    assert shop().tell("PreToolUse", **tool) == {}
    of_gemini = {"tool_name": "run_shell_command", "tool_input": {"command": FAILS}}
    denied = shop("gemini", "g1").tell("BeforeTool", **of_gemini)
    assert denied["decision"] == "deny"
    assert ERROR in denied["reason"]
    assert shop("gemini", "g1").tell("BeforeTool", **of_gemini) == {}
    monkeypatch.setenv("LEARNT_BEFORE_TOOL", "tell")
    assert ERROR in shop(session="told").hear("PreToolUse", **tool)


def test_a_call_is_not_refused_where_there_is_no_room_to_say_why(
    shop: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_BRIEF_TOKENS", "10")

    assert shop().tell("PreToolUse", tool_name="Bash", tool_input={"command": FAILS}) == {}


def test_gemini_which_ignores_words_before_a_call_hears_them_with_the_result(
    shop: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_BEFORE_TOOL", "tell")
    client = shop("gemini")

    assert client.call(FAILS) == ""
    assert WORKS in client.fail(FAILS, ERROR)
    assert client.fail(FAILS, ERROR) == ""


def test_what_gemini_writes_around_an_error_is_no_part_of_it(learnt: Learnt, project: Path) -> None:
    with Memory.open(project):
        pass
    earlier = Client(learnt, "gemini", "earlier")
    earlier.fail(FAILS, ERROR)
    earlier.work(WORKS)

    assert f"failed today: {ERROR}\n" in Client(learnt, "claude", "s1").call(FAILS)


def test_after_a_failure_an_answer_to_its_error_is_told(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        known = memory.add("Log in first", action="Run `ship login`", triggers={"errors": ["token has expired"]})
    client = Client(learnt, "claude")

    assert known.id in client.fail("ship it", "fatal: the token  has expired")
    assert client.fail("ship that", "fatal: the token has expired") == ""


def test_codex_tells_in_its_transcript_how_a_call_ended(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    rollout = project.parent / "rollout.jsonl"
    client = Client(learnt, "codex", "earlier", transcript_path=str(rollout))
    for number, (command, code) in enumerate([(FAILS, 2), (WORKS, 0)]):
        item = {"type": "CommandExecution", "id": f"call_{number}", "exit_code": code}
        line = json.dumps({"type": "event_msg", "payload": {"type": "item_completed", "item": item}})
        with rollout.open("a") as file:
            file.write(f"{line}\n")
        tool = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"call_{number}"}
        client.tell("PostToolUse", **tool, tool_response=ERROR if code else "shipped")

    assert ERROR in Client(learnt, "codex").call(FAILS)


def test_a_learning_on_a_file_is_told_before_it_is_edited(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        gotcha = memory.add("Made by `make docs`", kind="gotcha", triggers={"files": ["docs/commands.md"]})
        memory.add("Words about pages", triggers={"files": ["docs/*.md"]})
        memory.add("Words of an agent", triggers={"files": ["docs/*.md"]}, kind="gotcha", origin="agent")
    client = Client(learnt, "claude")
    edit = {"tool_name": "Edit", "tool_input": {"file_path": f"{project}/docs/commands.md"}}
    patch = "*** Begin Patch\n*** Update File: docs/commands.md\n@@\n-a\n+b\n*** End Patch"

    said = client.hear("PreToolUse", **edit)

    assert gotcha.id in said
    assert "Words about pages" in said
    assert "Words of an agent" not in said
    assert client.hear("PreToolUse", **edit) == ""
    of_codex = {"tool_name": "apply_patch", "tool_input": {"command": patch}}
    assert gotcha.id in Client(learnt, "codex", "c1").hear("PreToolUse", **of_codex)
    written = {"tool_name": "write_file", "tool_input": {"file_path": "docs/commands.md"}}
    assert gotcha.id in Client(learnt, "gemini", "g1").hear("AfterTool", **written, tool_response={"llmContent": "ok"})
    read = {"tool_name": "Read", "tool_input": {"file_path": "docs/commands.md"}}
    assert Client(learnt, "claude", "c2").hear("PreToolUse", **read) == ""


def test_what_an_agent_found_is_told_of_at_its_file(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    said = (
        '<learning category="pitfall" tags="db/schema.sql">It is made by a tool. Change the models.</learning>'
        '<learning category="pitfall">Never edit web/api.ts by hand. Run make api.</learning>'
        '<learning category="process">Deploy after docs/deploy.md was read.</learning>'
    )
    Client(learnt, "claude", "earlier").tell("Stop", last_assistant_message=said)
    with Memory.open(project) as memory:
        memory.worker.catch_up()
        for learning in memory.learnings().learnings:
            memory.like(learning.id)
    client = Client(learnt, "claude")

    def edit(path: str) -> str:
        return client.hear("PreToolUse", tool_name="Edit", tool_input={"file_path": str(project / path)})

    assert "made by a tool" in edit("db/schema.sql")
    assert "Run make api" in edit("web/api.ts")
    assert "Deploy after" in edit("docs/deploy.md")
    assert edit("docs/deploy.md") == edit("db/other.sql") == ""


def test_warnings_can_be_turned_off(shop: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEARNT_BEFORE_TOOL", "off")

    assert shop().call(FAILS) == ""


def test_what_became_of_warnings_is_counted_for_each_agent(shop: Callable[..., Client], project: Path) -> None:
    heeded, ignored, needless = (shop(session=name, agent_type=name, agent_id=name) for name in ("a", "b", "c"))
    for client in (heeded, ignored, needless):
        assert client.call(FAILS)
    heeded.work(WORKS)
    heeded.tell("SubagentStop", last_assistant_message="It is shipped.")
    ignored.fail(FAILS, ERROR)
    needless.work(FAILS)

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.reports.prevented() == {}, "whether the warning was delivered is not known"
        deliver_all(memory)
        assert memory.reports.prevented() == {"a": 1}
        assert dict(memory.reports.stats().outcomes) == {"prevented": 1, "ignored": 1, "needless": 1, "unknown": 0}


class TestStart:
    """The start of a conversation."""

    def test_the_index_lists_every_vouched_learning_and_gives_none(self, project: Path, learnt: Learnt) -> None:
        with Memory.open(project) as memory:
            other = memory.add("Words that wait for their occasion", action="Wait for the occasion")
            pinned = memory.pin(memory.add("Speak of shops, not of stores", action="Grep for store").id)
            trial = memory.add("Nobody vouches for this", by="agent")
            hidden = memory.hide(memory.add("Hidden words").id)
        client = Client(learnt, "claude")

        start = client.hear("SessionStart", source="startup")
        lines = [f"- {learning.title} ({learning.id})\n" for learning in (pinned, other)]
        assert "".join(lines) in start, "the pinned one comes first"
        assert "Wait for the occasion" not in start
        assert trial.id not in start
        assert hidden.id not in start
        with Memory.open(project) as memory:
            deliver_all(memory)
            (entry,) = memory.reports.activity(what="brief").entries
            brief = memory.explain(entry.id)
            assert memory.why.is_as_sent(brief)
            assert [listed["id"] for listed in brief.receipt["index"]] == [pinned.id, other.id]
            assert (brief.learning_ids, memory.get(pinned.id).times_injected) == ((), 0)
            with pytest.raises(WrongRequest):
                memory.mark(pinned.id, brief.task, True)
        told = learnt("explain", entry.id).out
        assert f"{pinned.id}  listed: Speak of shops, not of stores" in told
        assert client.hear("SessionStart", source="resume") == ""
        assert "Grep for store" in client.hear("UserPromptSubmit", prompt="Speak of shops, not of stores")
        assert client.hear("UserPromptSubmit", prompt="Speak of shops, not of stores") == ""

    def test_the_index_is_shown_again_after_compaction_beside_what_was_given(
        self, project: Path, learnt: Learnt
    ) -> None:
        with Memory.open(project) as memory:
            pinned = memory.pin(memory.add("Speak of shops, not of stores", action="Grep for store").id)
            other = memory.add("Words that wait for their occasion")
        client = Client(learnt, "claude")
        client.hear("SessionStart", source="startup")
        client.hear("UserPromptSubmit", prompt="Speak of shops, not of stores")

        assert client.tell("PreCompact", trigger="auto") == {}, "what it says stays on the screen and in the context"
        again = client.hear("SessionStart", source="compact")
        assert (again.count(pinned.id), again.count(other.id)) == (1, 1)
        assert "Grep for store" in again
        assert f"- {other.title} ({other.id})" in again
        assert client.hear("SessionStart", source="resume") == ""
        assert client.hear("UserPromptSubmit", prompt="Speak of shops, not of stores") == ""

    def test_without_an_index_pinned_learnings_are_given_once(
        self, project: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LEARNT_INDEX_TOKENS", "0")
        with Memory.open(project) as memory:
            pinned = memory.pin(memory.add("Speak of shops, not of stores", action="Grep for store").id)
            other = memory.add("Words that wait for their occasion")
        client = Client(learnt, "claude")

        start = client.hear("SessionStart", source="startup")
        assert "Grep for store" in start
        assert other.id not in start
        assert client.hear("SessionStart", source="resume") == ""
        assert client.hear("UserPromptSubmit", prompt="Speak of shops, not of stores") == ""
        assert client.hear("SessionStart", source="compact").count(pinned.id) == 1

    def test_a_conversation_that_was_forked_is_given_nothing_twice(
        self, project: Path, learnt: Learnt, tmp_path: Path
    ) -> None:
        with Memory.open(project) as memory:
            pinned = memory.pin(memory.add("Speak of shops, not of stores").id)
            other = memory.add("Cache the schema of the replica")
        told = Client(learnt, "claude", "old").hear("SessionStart", source="startup")
        transcript = tmp_path / "new.jsonl"
        transcript.write_text(json.dumps({"type": "attachment", "attachment": {"content": [told]}}) + "\n")
        fork = Client(learnt, "claude", "new", transcript_path=str(transcript))

        assert fork.hear("SessionStart", source="fork") == ""
        assert pinned.id in fork.hear("UserPromptSubmit", prompt="Speak of shops, not of stores")
        assert fork.hear("UserPromptSubmit", prompt="Speak of shops, not of stores") == ""
        assert other.id in fork.hear("UserPromptSubmit", prompt="cache the schema of the replica")
        assert "LEARNING_HELPFUL" not in fork.hear("SessionStart", source="resume")
        again = fork.hear("SessionStart", source="compact")
        assert (again.count(pinned.id), again.count(other.id)) == (1, 1)
        with Memory.open(project) as memory:
            memory.speak_as_agent("claude")
            memory.mark(pinned.id, text_id("task", "claude new "), True)
            with pytest.raises(WrongRequest, match="was not given"):
                memory.mark(pinned.id, text_id("task", "claude old "), True)

    def test_a_fork_without_a_transcript_yet_is_given_nothing_twice(
        self, project: Path, learnt: Learnt, tmp_path: Path
    ) -> None:
        with Memory.open(project) as memory:
            learning = memory.add("Speak of shops, not of stores")
        prompt = "Speak of shops, not of stores"
        for session, seconds_ago in (("old", 500), ("other", 20)):
            told = Client(learnt, "claude", session).hear("UserPromptSubmit", prompt=prompt)
            assert learning.id in told
            answered = {
                "type": "assistant",
                "timestamp": (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(),
            }
            given = {"type": "attachment", "attachment": {"content": [told]}}
            lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in (given, answered)]
            (tmp_path / f"{session}.jsonl").write_text("".join(lines))
        fork, twin = (
            Client(learnt, "claude", name, transcript_path=str(tmp_path / f"{name}.jsonl")) for name in ("new", "twin")
        )

        assert fork.hear("SessionStart", source="fork", seconds_since_last_response=500) == ""
        assert fork.hear("UserPromptSubmit", prompt=prompt) == ""
        fork.tell("Stop", last_assistant_message=f"Done.\nLEARNING_HELPFUL: {learning.id}", stop_hook_active=False)
        with Memory.open(project) as memory:
            memory.worker.catch_up()
            assert memory.get(learning.id).times_helpful == 1, "as that of the conversation that was given it"
            memory.speak_as_agent("claude")
            with pytest.raises(WrongRequest, match="already"):
                memory.mark(learning.id, text_id("task", "claude old "), True)
        (tmp_path / "third.jsonl").write_bytes((tmp_path / "other.jsonl").read_bytes())
        assert twin.hear("SessionStart", source="fork", seconds_since_last_response=20) == ""
        assert learning.id in twin.hear("UserPromptSubmit", prompt=prompt), "either of two may be the origin"

    def test_gemini_is_told_with_its_first_prompt_what_others_are_told_at_the_start(
        self, project: Path, learnt: Learnt
    ) -> None:
        with Memory.open(project) as memory:
            pinned = memory.pin(memory.add("Speak of shops, not of stores").id)
            learning = memory.add("Cache the schema of the replica")
        client = Client(learnt, "gemini")
        prompt = "cache the schema of the replica"

        assert client.tell("SessionStart", source="startup") == {}
        assert client.hear("BeforeAgent", prompt="/help") == ""
        first = client.hear("BeforeAgent", prompt=prompt)
        assert (first.count("<learnt-brief"), first.count(pinned.id), first.count(learning.id)) == (1, 1, 1)
        assert first.endswith(HOW_TO_KEEP)
        assert client.hear("BeforeAgent", prompt=prompt) == ""
        with Memory.open(project) as memory:
            later = memory.pin(memory.add("Close the till at night").id)
        assert client.tell("SessionStart", source="resume") == {}
        resumed = client.hear("BeforeAgent", prompt="and now?")
        assert later.id in resumed
        assert pinned.id not in resumed
        assert HOW_TO_KEEP not in resumed

    def test_what_a_prompt_was_given_is_given_again_after_compaction(self, project: Path, learnt: Learnt) -> None:
        with Memory.open(project) as memory:
            learning = memory.add("Cache the schema of the replica")
        client = Client(learnt, "codex")
        assert learning.id in client.hear("UserPromptSubmit", prompt="cache the schema of the replica")

        assert client.tell("PreCompact", trigger="auto") == {}
        assert learning.id in client.hear("SessionStart", source="compact")
        assert client.hear("UserPromptSubmit", prompt="cache the schema of the replica") == ""
        cleared = client.hear("SessionStart", source="clear")
        assert f"- {learning.title} ({learning.id})\n" in cleared
        assert cleared.endswith(HOW_TO_KEEP)
        assert learning.id in client.hear("UserPromptSubmit", prompt="cache the schema of the replica")

    def test_what_failed_on_this_branch_and_was_not_finished_is_told(self, project: Path, learnt: Learnt) -> None:
        subprocess.run(["git", "init", "-q", "-b", "sale"], cwd=project, check=True)
        with Memory.open(project):
            pass
        report = "<task-failed>the till has no paper</task-failed>"
        Client(learnt, "claude", "earlier").tell("Stop", last_assistant_message=report)
        with Memory.open(project) as memory:
            memory.worker.catch_up()

        assert "the till has no paper" in Client(learnt, "claude").hear("SessionStart", source="startup")
        with Memory.open(project) as memory:
            (start,) = memory.reports.activity(what="brief").entries
        told = learnt("explain", start.id).out
        assert "unfinished: task_" in told
        assert ": the till has no paper\n" in told
        assert "no learning shares" not in told
        subprocess.run(["git", "checkout", "-q", "-b", "other"], cwd=project, check=True)
        assert Client(learnt, "claude", "s2").hear("SessionStart", source="startup") == HOW_TO_KEEP

    def test_a_sub_agent_is_briefed_for_its_errand_alone(self, project: Path, learnt: Learnt) -> None:
        with Memory.open(project) as memory:
            pinned = memory.pin(memory.add("Speak of shops, not of stores").id)
            schema = memory.add("Cache the schema of the replica")
            till = memory.add("Close the till at night")
        client = Client(learnt, "claude")

        def send(kind: str, errand: str, call: str = "") -> dict[str, Any]:
            asked = {"description": errand, "prompt": f"Please {errand}.", "subagent_type": kind}
            tool = {"tool_name": "Agent", "tool_input": asked, "tool_use_id": call}
            assert client.tell("PreToolUse", **tool) == {}
            return tool

        def start(agent: str, kind: str, **told: Any) -> str:
            return client.hear("SubagentStart", agent_id=agent, agent_type=kind, **told)

        client.hear("UserPromptSubmit", prompt="cache the schema of the replica")
        send("general-purpose", "cache the schema of the replica")
        send("Explore", "close the till at night")
        assert till.id in start("a1", "Explore")
        first = start("a2", "general-purpose")
        assert schema.id in first, "the conversation was given it, but not the sub-agent"
        assert pinned.id in first, "a pinned one reaches every agent"
        assert start("a3", "general-purpose") == "", "nobody knows its errand"
        send("general-purpose", "count the windows")
        other = start("a4", "general-purpose")
        assert pinned.id in other
        assert schema.id not in other, "an errand about something else"

        both = "cache the schema of the replica", "cache the schema of the replica, and close the till at night"
        for errand in both:
            send("general-purpose", errand)
        started = [start(agent, "general-purpose") for agent in ("b1", "b2", "b3")]
        assert [schema.id in said for said in started] == [True, True, False], "it fits whichever errand each has"
        assert not any(till.id in said for said in started), "it may be for the other one"

        denied = send("general-purpose", "close the till at night", "toolu_1")
        client.tell("PostToolUseFailure", **denied, error="denied")
        send("general-purpose", "cache the schema of the replica", "toolu_2")
        assert schema.id in start("c1", "general-purpose"), "nothing is left of the call that was denied"
        send("general-purpose", "close the till at night")
        client.hear("UserPromptSubmit", prompt="no, leave the till")
        assert start("c2", "general-purpose") == "", "the person said no"
        transcript = project / "transcript.jsonl"
        results = [{"tool_use_id": "toolu_3", "is_error": True}, {"tool_use_id": "toolu_4", "agentId": "c4"}]
        transcript.write_text("".join(f"{json.dumps(one)}\n" for one in results), encoding="utf-8")
        for call, errand in (("toolu_3", "count the windows"), ("toolu_4", both[1]), ("toolu_5", both[0])):
            told = send("general-purpose", errand, call)
        launched = {"status": "async_launched", "agentId": "c4"}
        client.tell("PostToolUse", **told | {"tool_use_id": "toolu_4"}, tool_response=launched)
        one, other = (start(agent, "general-purpose", transcript_path=str(transcript)) for agent in ("c3\udc80", "c4"))
        assert (schema.id in one, till.id in one) == (True, False), "the transcript tells who has the other errand"
        assert (schema.id in other, till.id in other) == (True, True)
        client.tell("Stop", last_assistant_message="Done.")
        codex = Client(learnt, "codex", agent_id="a1", agent_type="default")
        assert codex.hear("SubagentStart") == ""
        assert schema.id in codex.hear("UserPromptSubmit", prompt="cache the schema of the replica")
        assert codex.hear("UserPromptSubmit", prompt="count the windows") == ""
        assert list((project / ".learnt" / "errands").iterdir()) == []


def test_what_two_learnings_say_word_for_word_is_said_once(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        for _ in range(2):
            memory.add("Deploy only with the safe flag", triggers={"commands": ["ship"]})
    client = Client(learnt, "claude")
    call = {"tool_name": "Bash", "tool_input": {"command": "ship it"}}

    for said in (
        client.hear("PreToolUse", **call),
        Client(learnt, "claude", "s2").hear("UserPromptSubmit", prompt="deploy with the safe flag"),
    ):
        assert said.count("### Deploy only with the safe flag") == 1
    assert client.hear("PreToolUse", **call) == ""
    added = learnt("add", "Deploy only with the safe flag", "--on-command", "ship --now")
    assert (added.code, "is known already as" in added.err, "learnt supersede" in added.err) == (0, True, True)


def test_marks_are_asked_for_once_and_only_where_use_cannot_be_seen(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.add("Seed the shop before counting it", action="Run `make seed`")
        memory.add("Name the amounts of the till in `cents`")
        memory.add("Close the till at night")
    client = Client(learnt, "claude")

    said = [client.hear("UserPromptSubmit", prompt=text) for text in (
        "seed the shop before counting it", "name the amounts of the till in cents", "close the till at night"
    )]  # fmt: skip

    assert ["## Relevant Learnings" in text for text in said] == [True, True, True]
    assert ["LEARNING_HELPFUL" in text for text in said] == [False, True, False]


def test_sub_agents_that_start_at_once_use_up_one_errand_each(tmp_path: Path) -> None:
    folder, kind, names = str(tmp_path), "general-purpose", [f"errand {number}" for number in range(4)]

    def start(_: str) -> list[str]:
        return errands.take(folder, "talk", kind, calls=names, now=2_000)

    for _ in range(10):
        for name in names:
            errands.keep(folder, "talk", kind, name, call=name, at=1_000)
        with ThreadPoolExecutor(len(names)) as at_once:
            started = list(at_once.map(start, names))
        assert [sorted(errand) for errand in started] == [names] * len(names)
        assert not start("")
        assert not list((tmp_path / errands.FOLDER).iterdir())


def test_an_agent_of_the_loop_is_warned_but_neither_briefed_nor_debriefed(
    shop: Callable[..., Client], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(project) as memory:
        memory.pin(memory.add("Speak of shops, not of stores").id)
        task = memory.tasks.new_id()
    monkeypatch.setenv("LEARNT_TASK", task)
    client = shop()

    assert client.hear("SessionStart", source="startup") == ""
    assert client.hear("UserPromptSubmit", prompt="Speak of shops") == ""
    assert client.tell("Stop", last_assistant_message="<learning>Close the till at night</learning>") == {}
    assert ERROR in client.call(FAILS)

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.search("close the till at night") == []
        assert missteps.warned_since(memory.context.store.database, task, _sign(memory), 0)


def _sign(memory: Memory) -> str:
    from learnt.mine.missteps import command_key

    return command_key(FAILS, memory.root, "/x")


@pytest.mark.parametrize("path", ["\ud800", "a\0b", 7])
def test_what_an_agent_said_is_kept_whatever_its_client_calls_its_transcript(
    path: object, project: Path, learnt: Learnt
) -> None:
    with Memory.open(project):
        pass
    said = "<learning>Close the till at night</learning>"

    Client(learnt, "claude").tell("Stop", last_assistant_message=said, transcript_path=path, cwd=path)

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.search("close the till at night")


@pytest.mark.parametrize(
    ("prompt", "left"),
    [
        ("<system-reminder>cache it</system-reminder>", ""),
        ("<hook_context>cache it</hook_context>\n\npaint the shed", "paint the shed"),
        ("<task-notification>done<result>cache it</result></task-notification>", ""),
        ('<learnt-brief id="brief_1">cache it</learnt-brief> mend the roof', "mend the roof"),
        ("/compact keep it short", ""),
        ("/fix", ""),
        ("/fix mend the mail tests", "mend the mail tests"),
        ("<command-name>/fix</command-name><command-args>mend the roof</command-args>", "mend the roof"),
        ("/home/x/app.py fails", "/home/x/app.py fails"),
    ],
)
def test_what_a_client_puts_into_a_prompt_is_no_part_of_it(prompt: str, left: str) -> None:
    event = read_event({"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": prompt}, "claude")

    assert event is not None
    assert event.prompt.strip() == left


def test_secrets_in_commands_and_errors_are_not_kept(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    client = Client(learnt, "claude")
    client.fail(f"ship --token {token} --fast", f"ship: {token} is refused: unknown option --fast")
    client.work(f"ship --token {token} --safe")

    with Memory.open(project) as memory:
        kept = memory.context.store.database.rows("select * from misstep")
    assert kept
    assert token not in str(kept)


def test_an_answer_never_has_more_than_9500_characters(project: Path, learnt: Learnt) -> None:
    (project / "learnt.toml").write_text("brief_tokens = 100000\nbrief_learnings = 50\n")
    with Memory.open(project) as memory:
        for number in range(40):
            memory.add(f'Shop "{number}" sells "shops"', observation='"\\\n' * 600 + f"№ {number}")

    told = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": "a shop that sells shops"})
    done = learnt("hook", stdin=told)

    assert 5_000 < len(done.out) <= 9_500


def test_a_hook_leaves_a_sign_that_its_client_called(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass

    Client(learnt, "opencode").tell("UserPromptSubmit", prompt="paint the shed")

    sign = json.loads((project / ".learnt" / "fired" / "opencode.json").read_text())
    assert sign["event"] == "prompt"
    assert sign["chars"] == 0


def test_a_conversation_is_one_task_of_its_client(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
    client = Client(learnt, "gemini")
    client.tell("BeforeAgent", prompt="cache the schema of the replica")
    client.tell("AfterAgent", prompt="cache it", prompt_response="Done.")
    client.tell("AfterAgent", prompt="cache it", prompt_response="Done again.")

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        task = memory.tasks.get(text_id("task", "gemini s1 "))
        assert (task.type, task.client) == ("session", "gemini")
        assert len(memory.tasks.attempts(task.id)) == 1


def test_a_conversation_is_named_by_its_first_prompt(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.pin(memory.add("Speak of shops, not of stores").id)
        memory.add("Cache the schema of the replica")
    client = Client(learnt, "claude")

    assert client.hear("SessionStart", source="startup")
    assert client.hear("UserPromptSubmit", prompt="Cache the schema of the replica")

    with Memory.open(project) as memory:
        assert {one.title for one in memory.reports.activity().entries} == {"Cache the schema of the replica"}


def test_a_hook_that_is_started_outside_a_project_works_where_its_event_happens(
    project: Path, learnt: Learnt, tmp_path: Path
) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema of the replica")
    told = {"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": "cache the schema of the replica"}

    def hear(session: str, cwd: object, *options: str) -> str:
        sent = json.dumps({**told, "session_id": session, "cwd": cwd})
        done = learnt("hook", *options, "--client", "claude", stdin=sent, cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        return done.out

    assert learning.id in hear("1", str(project))
    assert learning.id in hear("2", str(tmp_path), "-C", str(project))
    assert hear("2", str(project), "-C", str(tmp_path)) == ""
    assert [hear("3", cwd) for cwd in (str(tmp_path), "/nowhere", None, 7, "\0")] == [""] * 5


def test_what_waits_in_the_spool_is_not_said_again(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        learning, other = memory.add("Cache the schema of the replica"), memory.add("Sweep the yard with a broom")
    client = Client(learnt, "claude")
    with Memory.open(project) as memory, memory.context.store.transaction():  # nobody else can write now
        assert learning.id in client.hear("UserPromptSubmit", prompt="cache the schema of the replica")
        assert client.hear("UserPromptSubmit", prompt="cache the schema of the replica") == ""
        (spool,) = (project / ".learnt").glob("spool*.jsonl")
        asks, content = b'"asks_marks": true, ', spool.read_bytes().rstrip().partition(b" ")[2]
        assert asks in content
        content = content.replace(asks, b"")  # as an earlier version wrote it
        spool.write_bytes(b"%08x %s\n" % (checksum(content), content))
        assert other.id in client.hear("UserPromptSubmit", prompt="sweep the yard with a broom")

    with Memory.open(project) as memory:
        assert [entry.learnings for entry in memory.reports.activity().entries] == [1, 1]


def test_a_warning_that_waits_in_the_spool_is_not_said_again(shop: Callable[..., Client], project: Path) -> None:
    client = shop()
    with Memory.open(project) as memory, memory.context.store.transaction():
        assert client.call(FAILS)
        assert client.call(FAILS) == ""
        client.hear("UserPromptSubmit", prompt="thank you")
    with Memory.open(project) as memory:
        memory.worker.catch_up()
        (warning,) = memory.context.store.database.rows("select * from warning where project = :project")
    assert (warning["made"], bool(warning["left_at"])) == (1, True), "the call was made, and a person wrote"
    assert client.call(FAILS) == ""


def test_the_end_of_a_turn_is_kept_although_the_database_is_damaged(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    database = project / ".learnt" / "learnt.db"
    sound = database.read_bytes()
    database.write_bytes(b"no database at all" * 1_000)

    Client(learnt, "claude").tell("Stop", last_assistant_message="<learning>Close the till at night</learning>")

    database.write_bytes(sound)
    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.search("close the till at night")[0].learning.origin == "agent"


def test_calls_side_by_side_are_refused_once(shop: Callable[..., Client], project: Path) -> None:
    shop()
    tool = {"tool_name": "Bash", "tool_input": {"command": FAILS}}
    event = json.dumps({"hook_event_name": "PreToolUse", "session_id": "s1", "cwd": "/x", **tool})
    words = [sys.executable, "-m", "learnt", "hook", "--client", "claude"]

    def answer(_: int) -> str:
        return subprocess.run(words, cwd=project, input=event, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(6) as at_once:
        answers = list(at_once.map(answer, range(6)))

    assert len([answer for answer in answers if answer]) == 1


def test_the_same_command_in_another_folder_is_another_one(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    root, web = str(project), str(project / "web")
    earlier = Client(learnt, "claude", "earlier", cwd=root)
    earlier.fail("npm start", "npm error: no package.json here")
    earlier.work("cd web && npm start")

    assert Client(learnt, "claude", "in web", cwd=web).call("npm start") == ""
    assert "cd web && npm start" in Client(learnt, "claude", "in root", cwd=root).call("npm start")
    assert "cd web && npm start" in Client(learnt, "claude", "back", cwd=web).call(f"cd {root} && npm start")


def test_each_attempt_of_the_loop_is_warned(
    shop: Callable[..., Client], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(project) as memory:
        task = memory.tasks.add("Ship it").id
        monkeypatch.setenv("LEARNT_TASK", task)
        for session in ("first", "second"):
            claim = memory.work.claim(worker="w", host="h", pid=1)
            assert isinstance(claim, Claim)
            assert ERROR in shop(session=session).call(FAILS)
            assert shop(session=session).call(FAILS) == ""
            memory.debrief(task, "<task-failed>no</task-failed>", claim=claim)


def test_a_task_that_failed_on_this_branch_is_told_of(project: Path, learnt: Learnt) -> None:
    subprocess.run(["git", "init", "-q", "-b", "sale"], cwd=project, check=True)
    with Memory.open(project) as memory:
        task = memory.tasks.add("Mend the till").id
        memory.debrief(task, "<task-failed>it has no paper</task-failed>")

    said = Client(learnt, "claude").hear("SessionStart", source="startup")

    assert "Mend the till" in said
    assert "it has no paper" in said
    with Memory.open(project) as memory:
        memory.brief("Mend the till", task="task_again")
        memory.debrief("task_again", "<task-done/>")
        memory.debrief(memory.tasks.add("Paint the till").id, "I painted one side of it")
    assert Client(learnt, "claude", "later").hear("SessionStart", source="startup") == HOW_TO_KEEP


def test_a_mistake_in_the_settings_costs_nothing_that_an_agent_said(project: Path, learnt: Learnt) -> None:
    settings = project / "learnt.toml"
    settings.write_text("brief_learnings = 1\n")
    with Memory.open(project) as memory:
        for number in range(3):
            memory.add(f"Cache schema {number} of the replica")
    settings.write_text("brief_learnings = 1\nnonsense = [\n")
    client = Client(learnt, "claude")

    said = client.hear("UserPromptSubmit", prompt="cache the schema of the replica")
    client.tell("Stop", last_assistant_message="<learning>Close the till at night</learning>")

    assert said.count("_ID: learn_") == 1, "as it was set before the mistake"
    assert "learnt.toml is not valid TOML" in (project / ".learnt" / "hook.log").read_text()
    settings.write_text("")
    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.search("close the till at night")


def test_a_long_spool_is_left_to_the_worker(project: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema of the replica")
        monkeypatch.setenv("LEARNT_INTERNAL", "1")
        for number in range(50):
            memory.hooks.end_turn(f"task_{number}", f"said {number} " * 500)
        monkeypatch.delenv("LEARNT_INTERNAL")

    assert learning.id in Client(learnt, "claude").hear("UserPromptSubmit", prompt="cache the schema of the replica")
    with Memory.open_for_hook(project) as memory:
        assert len(memory.context.store.spool.pending()) == 50
    with Memory.open(project) as memory:
        assert memory.tasks.attempts("task_49")
        assert memory.context.store.spool.is_empty()


def test_the_same_session_in_another_client_is_another_conversation(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        pinned = memory.pin(memory.add("Speak of shops, not of stores").id)

    for name in ("claude", "codex", "opencode"):
        assert pinned.id in Client(learnt, name).hear("SessionStart", source="startup")
        assert Client(learnt, name).hear("SessionStart", source="startup") == ""


@pytest.mark.parametrize(
    "options", [("--client", "claude-code"), ("--client=claude",), ("--json", "--client", "claude")]
)
def test_a_client_is_named_in_several_ways(options: tuple[str, ...], project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        pinned = memory.pin(memory.add("Speak of shops, not of stores").id)
    done = learnt("hook", *options, stdin=json.dumps({"hook_event_name": "SessionStart", "session_id": "s1"}))

    assert (done.code, done.err) == (0, "")
    assert pinned.id in done.out
    assert (project / ".learnt" / "fired" / "claude.json").exists()


def test_what_codex_tells_without_its_name_is_no_success(shop: Callable[..., Client], learnt: Learnt) -> None:
    tool = {"tool_name": "Bash", "tool_input": {"command": FAILS}, "tool_use_id": "call_1", "tool_response": ERROR}
    told = {"session_id": "other", "cwd": "/x", "turn_id": "t1", "model": "gpt-5-codex", **tool}
    shop()

    learnt("hook", stdin=json.dumps({"hook_event_name": "PostToolUse", **told}))

    assert ERROR in shop().call(FAILS)


def test_a_command_that_goes_on_in_the_background_replaces_none(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    earlier = Client(learnt, "claude", "earlier")
    earlier.fail(FAILS, ERROR)
    tool = {"tool_name": "Bash", "tool_input": {"command": WORKS, "run_in_background": True}}
    earlier.tell("PostToolUse", **tool, tool_response={"stdout": "", "stderr": "", "backgroundTaskId": "b1"})

    assert Client(learnt, "claude").call(FAILS) == ""


def test_a_command_in_the_folder_that_its_call_names_is_another_one(project: Path, learnt: Learnt) -> None:
    with Memory.open(project):
        pass
    os.symlink(project, project.parent / "link")

    def tell(event: str, command: str, workdir: str, session: str = "earlier", **more: Any) -> str:
        client = Client(learnt, "opencode", session, cwd=str(project.parent / "link"))
        return client.hear(event, tool_name="bash", tool_input={"command": command, "workdir": workdir}, **more)

    tell("PostToolUseFailure", "npm start", "web", error="npm error: no package.json here")
    tell("PostToolUse", "npm start", "api", tool_response="started")
    assert tell("PreToolUse", "npm start", "web", "before") == "", "the same words are no remedy"
    tell("PostToolUse", "cd app && npm start", "web", tool_response="started")

    assert tell("PreToolUse", "npm start", "api", "in api") == ""
    assert "this worked: `cd app && npm start`" in tell("PreToolUse", "npm start", f"{project}/web", "in web")
    assert "no package.json" in Client(learnt, "claude", "by its path", cwd=f"{project}/web").call("npm start")


def test_a_gotcha_on_a_tool_is_told_at_its_call(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        gotcha = memory.add(
            "It fetches from the live site", kind="gotcha", triggers={"tools": ["WebFetch", "web_fetch"]}
        )
        memory.add("Words about fetching", triggers={"tools": ["WebFetch"]})
    client = Client(learnt, "claude")
    fetch = {"tool_name": "WebFetch", "tool_input": {"url": "http://localhost"}}

    said = client.hear("PreToolUse", **fetch)

    assert gotcha.id in said
    assert "Words about fetching" in said, "whatever its kind"
    assert client.hear("PreToolUse", **fetch) == client.hear("PreToolUse", tool_name="Read", tool_input={}) == ""
    of_gemini = {"tool_name": "web_fetch", "tool_input": {}, "tool_response": {"llmContent": "fetched"}}
    assert gotcha.id in Client(learnt, "gemini").hear("AfterTool", **of_gemini)


def test_a_sub_agent_of_an_agent_of_the_loop_is_briefed_and_not_debriefed(
    project: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Speak of shops, not of stores")
        task = memory.tasks.add("Ship it").id
    monkeypatch.setenv("LEARNT_TASK", task)
    sub = Client(learnt, "claude", agent_id="a1", agent_type="engineer")
    errand = {"prompt": "Speak of shops, not of stores", "subagent_type": "engineer"}
    Client(learnt, "claude").tell("PreToolUse", tool_name="Task", tool_input=errand)

    assert learning.id in sub.hear("SubagentStart")
    assert sub.hear("SubagentStart") == ""
    assert sub.tell("SubagentStop", last_assistant_message="<learning>Close the till at night</learning>") == {}

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.search("close the till at night") == []
        (brief,) = memory.reports.activity(what="brief").entries
        assert brief.task == text_id("task", "claude s1 a1")
        assert memory.tasks.attempts(brief.task) == []


LESSON = "<learning>Close the till at night.</learning>"


def _conversation(client: str, path: Path, *said: str) -> str:
    """Write a transcript in which the agent says these words; return its path."""
    if client == "codex":
        meta = codex({"id": "s1", "cwd": "/x", "git": {}}, "session_meta")
        return written(path, [meta, *(codex_message("assistant", text) for text in said)])
    if client == "gemini":
        start = {"sessionId": "s1", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z", "kind": "main"}
        return written(path, [start, *(gemini(f"m{number}", text) for number, text in enumerate(said))])
    spoken = [claude("assistant", [{"type": "text", "text": text}]) for text in said]
    return written(path, [claude("user", "Mend the tills"), *spoken])


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_a_conversation_that_ends_within_a_turn_is_debriefed(
    client: str, project: Path, learnt: Learnt, tmp_path: Path
) -> None:
    with Memory.open(project):
        pass
    transcript = _conversation(client, tmp_path / "t.jsonl", LESSON)

    assert Client(learnt, client).tell("SessionEnd", reason="other", transcript_path=transcript) == {}

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.search("close the till at night")[0].learning.origin == "agent"


def test_a_conversation_in_which_nobody_spoke_leaves_nothing(project: Path, learnt: Learnt, tmp_path: Path) -> None:
    with Memory.open(project):
        pass
    for client in ("claude", "codex", "gemini"):
        for transcript in (_conversation(client, tmp_path / "t.jsonl"), str(tmp_path / "gone.jsonl"), "", "\0"):
            Client(learnt, client).tell("SessionEnd", reason="other", transcript_path=transcript)

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.reports.activity().entries == ()


def test_the_end_of_a_conversation_takes_nothing_back_that_its_last_turn_told(
    project: Path, learnt: Learnt, tmp_path: Path
) -> None:
    with Memory.open(project):
        pass
    client = Client(learnt, "claude", transcript_path=_conversation("claude", tmp_path / "t.jsonl", "I begin."))
    client.tell("Stop", last_assistant_message=f"{LESSON} <task-done/>")
    client.tell("SessionEnd", reason="other")

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        (attempt,) = memory.tasks.attempts(text_id("task", "claude s1 "))
        assert attempt.result == "done"
        assert memory.search("close the till at night")


def test_a_turn_that_the_model_broke_off_is_debriefed_with_what_was_said_before(
    project: Path, learnt: Learnt, tmp_path: Path
) -> None:
    with Memory.open(project):
        pass
    transcript = _conversation("claude", tmp_path / "t.jsonl", LESSON)
    error = "API Error: 400 <learning>The service is down.</learning>"
    told = {"error": "unknown", "last_assistant_message": error, "transcript_path": transcript}

    Client(learnt, "claude").tell("StopFailure", **told)

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert [one.title for one in memory.learnings().learnings] == ["Close the till at night."]


PLUGIN_HOST = """
import { spawnSync } from "node:child_process"
globalThis.Bun = {
  spawnSync: ({ cmd, cwd, stdin }) => {
    const done = spawnSync(cmd[0], cmd.slice(1), { cwd, input: Buffer.from(stdin) })
    return { exitCode: done.status, stdout: done.stdout }
  },
}
const { Learnt } = await import("./learnt.mjs")
const hooks = await Learnt({ directory: process.cwd() })
const before = (callID, command, sessionID = "s1") =>
  hooks["tool.execute.before"]({ tool: "bash", sessionID, callID }, { args: { command } })
const after = async (callID, text, exit, sessionID = "s1") => {
  const state = { output: text, metadata: { exit } }
  await hooks["tool.execute.after"]({ tool: "bash", sessionID, callID }, state)
  if (state.output !== text) throw new Error("opencode would print what is for the model")
  const messages = [{ info: { role: "assistant", sessionID }, parts: [{ type: "tool", state }] }]
  await hooks["experimental.chat.messages.transform"]?.({}, { messages })
  return messages[0].parts[0].state.output
}
const stop = async (sessionID = "s1") => {
  await hooks["experimental.text.complete"]({ sessionID }, { text: "Done." })
  await hooks.event({ event: { type: "session.idle", properties: { sessionID } } })
}
"""


@pytest.fixture
def opencode(project: Path) -> Callable[[str], list[str]]:
    """Run steps in the plugin as opencode would, and return what they say."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run the plugin")

    def run(steps: str) -> list[str]:
        setting = Location(root=str(project), program=(sys.executable, "-m", "learnt"))
        (project / "learnt.mjs").write_text(plugin(setting))
        (project / "host.mjs").write_text(f"{PLUGIN_HOST}\nconst told = []\n{steps}\nconsole.log(JSON.stringify(told))")
        done = subprocess.run([node, "host.mjs"], cwd=project, capture_output=True, text=True, check=True)
        return list(json.loads(done.stdout))

    return run


def test_opencode_hears_what_was_said_before_a_call_that_threw(
    project: Path, shop: Callable[..., Client], opencode: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_BEFORE_TOOL", "tell")
    shop()
    thrown, other = opencode(
        f"""
        await before("c1", "{FAILS}") // throws: nothing comes after it
        await before("c2", "ls")
        told.push(await after("c2", "a list", 0))
        await before("c3", "ls")
        told.push(await after("c3", "a list", 0))
        await stop()
        delete hooks["experimental.chat.messages.transform"]
        await before("c4", "{FAILS}", "s2")
        await after("c4", "shipped", 0, "s2")
        await stop("s2")
        """
    )

    assert thrown.startswith("a list\n\n")
    assert ERROR in thrown
    assert other == "a list"
    with Memory.open(project) as memory:
        memory.worker.catch_up()
        entries = memory.reports.activity(what="warning").entries
    assert [entry.delivery for entry in entries] == ["not delivered", "delivered"], "it counts if it was sent"


@pytest.mark.parametrize(("exit_code", "is_known"), [("0", False), ("null", True)])
def test_a_command_that_opencode_broke_off_has_not_succeeded(
    exit_code: str,
    is_known: bool,
    shop: Callable[..., Client],
    opencode: Callable[[str], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LEARNT_BEFORE_TOOL", "tell")
    shop()
    opencode(f"""await before("c1", "{FAILS}"); told.push(await after("c1", "shipped", {exit_code}))""")

    assert (ERROR in shop(session="later").call(FAILS)) is is_known


def test_a_sub_agent_of_the_loop_hears_nothing_twice_and_works_for_its_task(
    project: Path, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(project) as memory:
        gotcha = memory.add("Made by `make docs`", kind="gotcha", triggers={"files": ["docs/commands.md"]})
        task = memory.tasks.add("Mend the docs").id
    monkeypatch.setenv("LEARNT_TASK", task)
    sub_agent = Client(learnt, "claude", agent_id="a1", agent_type="engineer")
    errand = {"prompt": "Mend what is made by `make docs`", "subagent_type": "engineer"}
    Client(learnt, "claude").tell("PreToolUse", tool_name="Agent", tool_input=errand)
    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(project / "docs" / "commands.md")}}

    assert gotcha.id in sub_agent.hear("SubagentStart")
    assert sub_agent.hear("PreToolUse", **edit) == ""
    assert gotcha.id in Client(learnt, "claude").hear("PreToolUse", **edit)

    with Memory.open(project) as memory:
        assert memory.tasks.get(text_id("task", "claude s1 a1")).parent == task


def test_a_turn_in_which_only_the_client_spoke_leaves_nothing(project: Path, learnt: Learnt, tmp_path: Path) -> None:
    with Memory.open(project):
        pass
    said = {"role": "assistant", "content": [{"type": "text", "text": "API Error: 529"}]}
    record = {"type": "assistant", "isApiErrorMessage": True, "message": said}
    transcript = tmp_path / "s1.jsonl"
    transcript.write_text(json.dumps(record, separators=(",", ":")) + "\n")
    client = Client(learnt, "claude", transcript_path=str(transcript))

    client.tell("StopFailure", error="API Error: 529")
    client.tell("SessionEnd", reason="other")

    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert memory.reports.activity().entries == ()


class TestIndex:
    """What the index at the start of a conversation lists."""

    def list_lines(self, learnt: Learnt, client: str = "claude", **told: Any) -> tuple[str, list[str]]:
        event = {"gemini": "BeforeAgent"}.get(client, "SessionStart")
        said = Client(learnt, client, **told).hear(event, source="startup", prompt="hello there")
        return said, [line for line in said.split("\n") if line.startswith("- ")]

    def test_if_not_all_fit_pinned_ones_and_the_best_of_each_area_are_listed(
        self, project: Path, learnt: Learnt
    ) -> None:
        with Memory.open(project) as memory:
            pinned = memory.add("Speak of shops, not of stores", pinned=True)
            rare = memory.add("Sign every tag", category="git")
            tagged = memory.add("Lock the door at noon", tags=["doors"])
            memory.add_all([{"title": f"Till {n} opens with key {n * 7} of shelf {n * 3}"} for n in range(100)])
        said, lines = self.list_lines(learnt)

        assert estimate_tokens(said.removesuffix(HOW_TO_KEEP)) <= 600
        assert lines[0] == f"- Speak of shops, not of stores ({pinned.id})"
        assert all(learning.id in said for learning in (rare, tagged))
        assert lines[-1] == f"- … and {103 - len(lines) + 1} more"

    def test_of_thousands_the_pinned_and_foremost_ones_are_listed_and_the_others_counted(
        self, project: Path, learnt: Learnt
    ) -> None:
        (project / "CLAUDE.md").write_text("# Rules\n\n- Always close the till at night\n")
        with Memory.open(project) as memory:
            memory.add_all([{"title": f"Till {n} opens with key {n * 7} of shelf {n * 3}"} for n in range(2_000)])
            pinned = memory.add("Speak of shops, not of stores", pinned=True, confidence=0.7)
        assert learnt("import", "CLAUDE.md", "--yes").code == 0
        said, lines = self.list_lines(learnt)

        assert lines[0] == f"- Speak of shops, not of stores ({pinned.id})"
        assert "close the till" not in said
        assert lines[-1] == f"- … and {2_002 - len(lines) + 1:,} more"

    def test_the_setting_bounds_it_and_a_project_may_only_lower_it(self, project: Path, learnt: Learnt) -> None:
        with Memory.open(project) as memory:
            memory.add_all([{"title": f"Till {n} opens with key {n * 7}"} for n in range(30)])
        (project / "learnt.toml").write_text("index_tokens = 200\n")
        said, lines = self.list_lines(learnt)
        assert 3 <= len(lines) < 30
        assert estimate_tokens(said.removesuffix(HOW_TO_KEEP)) <= 200

    def test_what_a_person_says_comes_first_and_what_is_said_twice_once(self, project: Path, learnt: Learnt) -> None:
        with Memory.open(project) as memory:
            persons = memory.add("Close the till at night", created_at=NOON_MS)
            copy = memory.add("Close the till at night!", origin="agent", by="agent", created_at=NOON_MS + 1)
            again = memory.add("Close the till at night", created_at=NOON_MS + 2)
            topic = memory.add("Replica schema", action="Cache it for an hour", created_at=NOON_MS + 3)
            with memory.context.store.transaction():
                memory.context.store.database.execute(
                    "update learning set vouched = 'evidence', confidence = 0.9 where project = :project and id = :id",
                    id=copy.id,
                )
        _, lines = self.list_lines(learnt)
        assert lines == [
            f"- Replica schema: Cache it for an hour ({topic.id})",
            f"- Close the till at night ({again.id})",
        ]
        assert persons.id != again.id

    def test_what_the_client_loads_by_itself_is_not_listed(self, project: Path, learnt: Learnt) -> None:
        (project / "CLAUDE.md").write_text("# Rules\n\n- Always close the till at night\n")
        with Memory.open(project) as memory:
            memory.add("Lock the door at noon")
        assert learnt("import", "CLAUDE.md", "--yes").code == 0
        _, lines = self.list_lines(learnt)
        assert [line.rpartition(" (")[0] for line in lines] == ["- Lock the door at noon"]

    def test_gemini_gets_it_with_the_first_prompt_without_what_is_given_there(
        self, project: Path, learnt: Learnt
    ) -> None:
        with Memory.open(project) as memory:
            listed = memory.add("Lock the door at noon")
            given = memory.add("Cache the schema of the replica")
        client = Client(learnt, "gemini")
        client.tell("SessionStart", source="startup")
        said = client.hear("BeforeAgent", prompt="cache the schema of the replica")

        assert f"- {listed.title} ({listed.id})" in said
        assert f"### {given.title} [" in said
        assert said.count(given.id) == 1
        with Memory.open(project) as memory:
            brief = memory.explain(memory.reports.latest_brief())
            assert memory.why.is_as_sent(brief)
            assert brief.learning_ids == (given.id,)
