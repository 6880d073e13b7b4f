"""The hook: briefs a conversation's prompts, debriefs its turns, and never disturbs the client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from learnt import Memory
from learnt.clients import registry
from learnt.clients.kit.setup import Location, targets
from learnt.clients.registry import KINDS
from learnt.system.files import Locked
from tests.support.doors import Done, Learnt
from tests.support.hooks import event_text
from tests.support.words import tells


def _context(done: Done) -> str:
    assert (done.code, done.err) == (0, "")
    return str(json.loads(done.out)["hookSpecificOutput"]["additionalContext"]) if done.out else ""


def _debriefed(project: Path) -> Memory:
    """Open the project's memory after the end of a turn, which the worker may be debriefing at this moment."""
    memory = Memory.open(project)
    memory.context.store.replay_spool(wait=True)
    return memory


def test_a_prompt_is_briefed_once_with_what_matters(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema of the replica")

    first = _context(learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema of the replica")))
    again = _context(learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema of the replica")))
    other = _context(learnt("hook", stdin=event_text("UserPromptSubmit", prompt="paint the shed")))
    elsewhere = learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema", session_id="77"))

    assert learning.id in first
    assert again == other == ""
    assert learning.id in _context(elsewhere)


def test_the_end_of_a_turn_is_debriefed(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema of the replica")
    learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema of the replica"))
    said = f"Done.\nLEARNING_HELPFUL: {learning.id}\n<learning category='pitfall'>Close the cursor first</learning>"

    assert _context(learnt("hook", stdin=event_text("Stop", last_assistant_message=said))) == ""

    with _debriefed(project) as memory:
        assert memory.get(learning.id).confidence == 0.85
        assert memory.search("close the cursor")[0].learning.origin == "agent"
    own = learnt("hook", stdin=event_text("UserPromptSubmit", prompt="close the cursor first"))
    assert _context(own) == "", "a conversation is not given back what it taught itself"


def test_gemini_has_other_names_for_the_same(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema of the replica")
    prompt = "<hook_context>paint the shed</hook_context>\n\ncache the schema of the replica"

    done = learnt("hook", "--client", "gemini", stdin=event_text("BeforeAgent", prompt=prompt))

    assert learning.id in _context(done)
    assert json.loads(done.out)["hookSpecificOutput"]["hookEventName"] == "BeforeAgent"
    said = f"Done.\nLEARNING_HELPFUL: {learning.id}"
    learnt("hook", "--client", "gemini", stdin=event_text("AfterAgent", prompt=prompt, prompt_response=said))
    with _debriefed(project) as memory:
        assert memory.get(learning.id).confidence == 0.85


def test_a_process_answers_keeps_and_stays_silent_whatever_it_is_sent(project: Path, learnt_process: Learnt) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema of the replica")
    said = f"LEARNING_HELPFUL: {learning.id}\n<learning>Close the cursor first</learning>"

    assert learning.id in _context(
        learnt_process("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema"))
    )
    assert _context(learnt_process("hook", stdin=event_text("Stop", last_assistant_message=said))) == ""
    for rubbish in ("", "garbage", b"\x00\xff", "[" * 100_000):
        assert _context(learnt_process("hook", "--client", "claude", stdin=rubbish)) == ""

    with _debriefed(project) as memory:
        assert memory.get(learning.id).confidence == 0.85
        assert memory.search("close the cursor")[0].learning.origin == "agent"


@pytest.mark.parametrize(
    "event",
    [
        "",
        "garbage",
        "[]",
        "{}",
        "\x00\ud800",
        event_text("UserPromptSubmit"),
        event_text("UserPromptSubmit", prompt="<task-notification>cache the schema</task-notification>"),
        event_text("UserPromptSubmit", prompt="/compact cache the schema"),
        event_text("UserPromptSubmit", prompt=" /Model\tcache the schema in src/cache"),
        event_text("UserPromptSubmit", prompt="/cache-the-schema"),
        event_text("PreToolUse", tool_name="Bash"),
        event_text("Stop"),
    ],
)
def test_nothing_is_said_where_there_is_nothing_to_say(project: Path, learnt: Learnt, event: str) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
    done = learnt("hook", stdin=event.encode("utf-8", "surrogatepass"))
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("prompt", ["/srv/cache/schema.py fails: cache the schema", "// cache the schema", "/ schema"])
def test_a_prompt_that_starts_with_a_path_is_no_slash_command(project: Path, learnt: Learnt, prompt: str) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema", triggers={"files": ["schema.py"]})
    assert learning.id in _context(learnt("hook", stdin=event_text("UserPromptSubmit", prompt=prompt)))


@pytest.mark.parametrize("prompt", ["/fix cache the schema", " /team:fix.it\ncache the schema in src/cache"])
def test_what_stands_behind_a_command_of_the_users_own_is_the_prompt(
    project: Path, learnt: Learnt, prompt: str
) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Cache the schema")
    assert learning.id in _context(learnt("hook", stdin=event_text("UserPromptSubmit", prompt=prompt)))


def test_a_turn_that_cannot_be_read_is_logged_once(project: Path, learnt: Learnt) -> None:
    learnt("init")
    for _ in range(3):
        learnt("hook", stdin=event_text("Stop"))
    learnt("hook", stdin=event_text("SessionEnd"))
    learnt("hook", stdin=event_text("Stop", last_assistant_message=""))
    (line,) = (project / ".learnt" / "hook.log").read_text().splitlines()
    assert tells(line, "nothing", "Stop")


def test_the_hook_is_listed_and_explained_and_fails_open_on_any_other_word(project: Path, learnt: Learnt) -> None:
    assert "  hook " in learnt("--help").out
    for words in (["hook", "--help"], ["hook", "-h"], ["help", "hook"]):
        assert "usage: learnt hook" in learnt(*words).out
    done = learnt("hook", "--nonsense", stdin="{}")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert learnt("-C", ".", "hook", stdin="{}").code == 0


def test_without_a_store_and_inside_our_own_calls_the_hook_is_silent(project: Path, learnt_process: Learnt) -> None:
    event = event_text("UserPromptSubmit", prompt="cache the schema")
    done = learnt_process("hook", stdin=event)
    assert (done.code, done.out, done.err, list(project.iterdir())) == (0, "", "", [])
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
    for sign in ("LEARNT_INTERNAL", "LEARNT_TASK"):
        assert learnt_process("hook", stdin=event, env={sign: "1"}).out == ""


def test_a_locked_database_or_a_passed_deadline_costs_the_client_nothing(project: Path, learnt_process: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
        event = event_text("UserPromptSubmit", prompt="cache the schema")
        for setting in ({"LEARNT_HOOK_DEADLINE_MS": "1"}, {"LEARNT_HOOK_DEADLINE_MS": "100"}):
            with memory.context.store.transaction():
                done = learnt_process("hook", stdin=event, env=setting)
                assert (done.code, done.err) == (0, "")
    (project / ".learnt" / "learnt.db").write_bytes(b"damaged" * 1000)
    done = learnt_process("hook", stdin=event)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "damaged" in learnt_process("doctor").out


def test_a_database_that_somebody_has_for_himself_is_not_waited_for(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
    holder = apsw.Connection(str(project / ".learnt" / "learnt.db"))
    holder.execute("pragma locking_mode = exclusive; begin immediate; delete from counter").fetchall()

    done = learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema"))

    holder.execute("rollback")
    holder.close()
    assert (done.code, done.out, done.err) == (0, "", "")
    assert tells((project / ".learnt" / "hook.log").read_text(), "TryAgain", "writing", "0.1 s")


def test_what_an_agent_said_is_kept_however_busy_the_machine_is(project: Path, learnt_process: Learnt) -> None:
    learnt_process("init")
    said = event_text("Stop", last_assistant_message="<learning>Close the cursor first</learning>")

    learnt_process("hook", stdin=said, env={"LEARNT_HOOK_DEADLINE_MS": "1"})

    with _debriefed(project) as memory:
        assert memory.search("close the cursor")[0].learning.title == "Close the cursor first"


def test_a_client_that_has_gone_does_not_disturb_the_end_of_a_hook(project: Path) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
    process = subprocess.Popen(
        [sys.executable, "-m", "learnt", "hook"],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None

    _, err = process.communicate(event_text("UserPromptSubmit", prompt="cache the schema").encode())

    assert (process.returncode, err) == (0, b"")


def test_what_does_not_fit_into_an_answer_is_neither_said_nor_recorded(project: Path, learnt: Learnt) -> None:
    (project / "learnt.toml").write_text("brief_tokens = 50000\n")
    with Memory.open(project) as memory:
        long = [
            memory.add(f"Cache the schema of replica {number}", observation=f"{number} because " + "of latency " * 300)
            for number in range(5)
        ]

    said = _context(learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema of the replica")))

    assert 0 < len(said) <= 9_500
    with Memory.open(project) as memory:
        recorded = set(memory.explain(memory.reports.latest_brief()).learning_ids)
    assert recorded == {one.id for one in long if one.id in said}


def test_a_client_that_does_not_close_its_pipe_is_not_waited_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEARNT_HOOK_DEADLINE_MS", "400")
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
    process = subprocess.Popen(
        [sys.executable, "-m", "learnt", "hook"], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(event_text("UserPromptSubmit", prompt="cache the schema").encode())
        process.stdin.flush()
        assert process.stdout.read() == b"", "it ended although the pipe is open"
        assert process.wait(timeout=60) == 0


def test_a_client_that_drips_is_not_waited_for_longer(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEARNT_HOOK_DEADLINE_MS", "400")
    Memory.open(project).close()
    process = subprocess.Popen([sys.executable, "-m", "learnt", "hook"], cwd=project, stdin=subprocess.PIPE)
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        for _ in range(600):
            process.stdin.write(b" ")
            process.stdin.flush()
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
            if process.returncode is not None:
                break
    with suppress(BrokenPipeError):
        process.stdin.close()

    assert process.wait(timeout=60) == 0
    assert tells((project / ".learnt" / "hook.log").read_text(), "TryAgain", "event", "400 ms")


def test_a_turn_that_cannot_be_kept_is_given_up_before_a_client_does(project: Path, learnt_process: Learnt) -> None:
    learnt_process("init")
    with Memory.open(project) as memory:
        spool = memory.context.store.spool
    with Locked(spool._append_lock):
        done = learnt_process(
            "hook", stdin=event_text("Stop", last_assistant_message="<learning>Close the cursor</learning>")
        )
    assert (done.code, done.out, done.err) == (0, "", "")
    (line,) = (project / ".learnt" / "hook.log").read_text().splitlines()
    within = int(re.findall(r"no answer within (\d+) ms", line)[0])
    assert 1_000 < within < 5_000


def test_a_clone_without_a_store_hears_nothing_and_gets_no_log(project: Path, learnt: Learnt) -> None:
    (project / ".learnt").mkdir()
    (project / ".learnt" / "learnings.md").write_text("- Cache the schema\n")
    assert _context(learnt("hook", stdin=event_text("UserPromptSubmit", prompt="cache the schema"))) == ""
    assert [path.name for path in (project / ".learnt").iterdir()] == ["learnings.md"]


def test_whatever_is_installed_is_served_and_codex_is_not_asked_for_what_it_does_not_hear() -> None:
    assert {event for client in registry.CLIENTS for event in client.events} <= KINDS.keys()
    hooks = targets("codex", Location(root="/x"))[0].edit
    now = json.loads(hooks.add(None))
    assert "PreCompact" not in now["hooks"]
    older = json.dumps({"hooks": {**now["hooks"], "PreCompact": now["hooks"]["Stop"]}}).encode()
    assert json.loads(hooks.add(older)) == now
    assert hooks.remove(older, None) is None
