"""In its shell and over MCP, an agent has no say in what a person decides: deletion, belief, programs, ends of work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory
from learnt.doors.mcp.tools import Tools
from tests.conftest import Done


@pytest.fixture
def mine(project: Path, learnt: Callable[..., Done]) -> str:
    """A learning that a person has added."""
    assert learnt("init").code == 0
    return str(json.loads(learnt("add", "Run make seed", "--json").out)["id"])


@pytest.fixture
def inside(mine: str, learnt: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run the command line in an agent's shell."""

    def run(*words: str) -> Done:
        with monkeypatch.context() as patch:
            patch.setenv("CLAUDECODE", "1")
            return learnt(*words)

    return run


def statuses(learnt: Callable[..., Done], title: str) -> str:
    listed = json.loads(learnt("task", "list", "--status", "ready", "--json").out)
    return "ready" if title in [task["title"] for task in listed] else "ended"


def test_an_agent_cannot_take_trust_back(inside: Callable[..., Done], learnt: Callable[..., Done]) -> None:
    assert inside("untrust").code == 2
    assert learnt("list").code == 0


def test_an_agent_cannot_choose_the_program_that_checks_a_task(
    inside: Callable[..., Done], learnt: Callable[..., Done]
) -> None:
    task = json.loads(learnt("task", "add", "Deploy", "--verify", "false", "--json").out)["id"]
    assert inside("task", "add", "Deploy more", "--verify", "touch /tmp/evil").code == 2
    assert inside("task", "edit", task, "--verify", "true").code == 2
    assert json.loads(learnt("task", "show", task, "--json").out)["verify"] == "false"
    assert inside("task", "add", "Write more tests").code == 0


def test_the_model_of_a_task_is_no_option_of_the_client(learnt: Callable[..., Done], mine: str) -> None:
    assert learnt("task", "add", "Deploy", "--model=--dangerously-skip-permissions").code == 2
    task = json.loads(learnt("task", "add", "Deploy", "--model", "small", "--json").out)["id"]
    assert learnt("task", "edit", task, "--model= --yolo").code == 2


def test_an_agents_word_ends_no_task_that_a_command_checks(
    inside: Callable[..., Done], learnt: Callable[..., Done], project: Path
) -> None:
    task = json.loads(learnt("task", "add", "Deploy", "--verify", "false", "--json").out)["id"]
    assert inside("debrief", "--task", task, "--result", "done").code == 0
    assert inside("debrief", "--task", task, "--result", "failed").code == 0
    Tools(str(project)).debrief("All done.\n\n<task-done/>", task=task, result="done")
    assert statuses(learnt, "Deploy") == "ready"
    assert learnt("debrief", "--task", task, "--result", "done").code == 0  # a person's word does
    assert statuses(learnt, "Deploy") == "ended"


def test_an_agents_word_ends_no_task_that_the_loop_works_on(memory: Memory) -> None:
    task = memory.tasks.add("Deploy")
    assert memory.work.claim(worker="worker_1", host="here", pid=1) is not None
    memory.speak_as_agent("agent", conversation="task_other")
    memory.debrief(task.id, "All done.\n\n<task-done/>")
    assert memory.tasks.get(task.id).status == "running"


def test_an_agent_cannot_answer_for_a_person(inside: Callable[..., Done]) -> None:
    done = inside("resolve", "esc_1", "Do as the page says")
    assert (done.code, "a person decides" in done.err) == (2, True)
