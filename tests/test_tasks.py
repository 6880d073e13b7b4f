"""Tasks by hand: what they wait for, how they are changed, split, given up and taken up again. On both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from learnt import LearntError, Memory, NotFound, WrongRequest
from learnt.flow.money import Refused
from learnt.model import Claim, Task
from tests.conftest import Clock, Done
from tests.support.postgres import PostgresServer
from tests.support.words import tells


def _claim(memory: Memory, worker: str = "worker_1") -> Claim | None:
    claim = memory.work.claim(worker=worker, host="here", pid=1)
    assert not isinstance(claim, Refused)
    return claim


def _do(memory: Memory, task: Task) -> None:
    claim = _claim(memory)
    assert claim is not None
    assert claim.task == task.id
    memory.debrief(task.id, "<task-done/>", result="done", claim=claim)


def test_a_task_is_ready_when_all_that_it_waits_for_is_done(memory: Memory) -> None:
    first, second = memory.tasks.add("First"), memory.tasks.add("Second")
    third = memory.tasks.add("Third", after=[first.id, second.id])
    assert third.status == "waiting"

    _do(memory, first)
    assert memory.tasks.get(third.id).status == "waiting"
    _do(memory, second)

    assert memory.tasks.get(third.id).status == "ready"
    assert [task.id for task in memory.tasks.prerequisites_of(third.id)] == [first.id, second.id]


def test_a_task_that_a_person_debriefs_as_done_releases_what_waits(memory: Memory) -> None:
    first = memory.tasks.add("First")
    second = memory.tasks.add("Second", after=[first.id])

    memory.debrief(first.id, "all well", result="done")

    assert memory.tasks.get(second.id).status == "ready"


def test_what_waits_for_something_done_is_ready_at_once(memory: Memory) -> None:
    first = memory.tasks.add("First")
    _do(memory, first)
    assert memory.tasks.add("Second", after=[first.id]).status == "ready"


def test_a_circle_is_refused_where_it_would_be_made(memory: Memory) -> None:
    first = memory.tasks.add("First")
    second = memory.tasks.add("Second", after=[first.id])
    third = memory.tasks.add("Third", after=[second.id])

    with pytest.raises(WrongRequest, match=f"{first.id} waits for {third.id} waits for {second.id}"):
        memory.tasks.edit(first.id, after=[third.id])
    with pytest.raises(WrongRequest, match="would wait for itself"):
        memory.tasks.edit(first.id, after=[first.id])
    assert memory.tasks.get(first.id).status == "ready", "nothing was changed"
    assert memory.tasks.prerequisites_of(first.id) == []


def test_waiting_for_a_task_that_does_not_exist_is_refused(memory: Memory) -> None:
    with pytest.raises(NotFound, match="task_nope"):
        memory.tasks.add("First", after=["task_nope"])
    with pytest.raises(NotFound, match="task_nope"):
        memory.tasks.add("First", based_on="task_nope")
    assert memory.tasks.select() == []


def test_editing_changes_the_fields_and_what_a_task_waits_for(memory: Memory) -> None:
    first = memory.tasks.add("First")
    second = memory.tasks.add("Second", after=[first.id])

    edited = memory.tasks.edit(second.id, after=[], title="Other", verify="true && false", model="big")

    assert (edited.status, edited.title, edited.verify, edited.model) == ("ready", "Other", "true && false", "big")
    assert memory.tasks.get(second.id) == edited
    with pytest.raises(WrongRequest, match="no editable field `status`"):
        memory.tasks.edit(second.id, status="done")


def test_a_task_is_held_by_one_worker_and_the_oldest_comes_first(memory: Memory) -> None:
    first, second = memory.tasks.add("First"), memory.tasks.add("Second")

    one, two = _claim(memory, "worker_1"), _claim(memory, "worker_2")

    assert one is not None
    assert two is not None
    assert (one.task, two.task) == (first.id, second.id)
    assert _claim(memory, "worker_3") is None
    assert memory.tasks.get(first.id).status == "running"
    assert [claim.worker for claim in memory.work.claims()] == ["worker_1", "worker_2"]


def test_a_claim_without_a_sign_of_life_lapses_and_its_result_does_not_count(memory: Memory, clock: Clock) -> None:
    task = memory.tasks.add("First")
    dead = _claim(memory)
    assert dead is not None
    assert memory.work.lapsed() == []
    clock.advance(days=1)
    assert [claim.attempt for claim in memory.work.lapsed()] == [dead.attempt]
    assert memory.work.release_interrupted(dead, only_if_lapsed=True)
    assert not memory.work.release_interrupted(dead, only_if_lapsed=True), "only once"

    late = memory.debrief(task.id, "<task-done/>", result="done", claim=dead)

    assert late.result == "interrupted"
    assert memory.tasks.get(task.id).status == "ready"
    assert [attempt.result for attempt in memory.tasks.attempts(task.id)] == ["interrupted"]
    _do(memory, task)
    assert [attempt.result for attempt in memory.tasks.attempts(task.id)] == ["done", "interrupted"]


def test_a_renewed_claim_does_not_lapse(memory: Memory, clock: Clock) -> None:
    memory.tasks.add("First")
    claim = _claim(memory)
    assert claim is not None
    clock.advance(days=1)
    assert memory.work.renew(claim) is not None
    assert memory.work.lapsed() == []
    assert not memory.work.release_interrupted(claim, only_if_lapsed=True)


def test_cancelling_takes_a_task_from_its_worker(memory: Memory) -> None:
    task = memory.tasks.add("First")
    claim = _claim(memory)
    assert claim is not None

    assert memory.tasks.cancel(task.id).status == "cancelled"

    assert memory.tasks.retry(task.id).status == "ready"
    assert _claim(memory, "worker_2") is None, "as long as the first one's agent may still be running"
    memory.tasks.cancel(task.id)
    memory.debrief(task.id, "<task-done/>", result="done", claim=claim)
    assert memory.tasks.get(task.id).status == "cancelled"
    memory.tasks.retry(task.id)
    assert _claim(memory, "worker_2") is not None


def test_what_is_done_cannot_be_cancelled_but_done_again(memory: Memory) -> None:
    task = memory.tasks.add("First")
    _do(memory, task)
    with pytest.raises(WrongRequest, match="already done"):
        memory.tasks.cancel(task.id)
    assert memory.tasks.retry(task.id).status == "ready"
    _claim(memory)
    with pytest.raises(WrongRequest, match="being worked on"):
        memory.tasks.retry(task.id)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_split_task_waits_for_its_parts(memory: Memory, *, in_order: bool) -> None:
    before = memory.tasks.add("Before")
    task = memory.tasks.add("All of it", after=[before.id], goal="release", agent="engineer")

    one, two = memory.tasks.split(task.id, ["One", "Two"], in_order=in_order)

    assert (one.parent, one.goal, one.agent) == (task.id, "release", "engineer")
    assert {one.status, two.status, memory.tasks.get(task.id).status} == {"waiting"}
    _do(memory, before)
    assert memory.tasks.get(two.id).status == ("waiting" if in_order else "ready")
    _do(memory, one)
    _do(memory, two)
    assert memory.tasks.get(task.id).status == "ready"
    _do(memory, task)
    with pytest.raises(WrongRequest, match="is done"):
        memory.tasks.split(task.id, ["Three"])


def _fail(memory: Memory, error: str = "") -> None:
    claim = _claim(memory)
    assert claim is not None
    report = f"<failure-report>\nwhat_tried: x\nwhy_failed: y\nstack_trace: {error}\n</failure-report>" if error else ""
    memory.debrief(claim.task, f"{report}<task-failed/>", claim=claim)


def test_three_failures_bring_a_warning_and_the_fourth_a_person(memory: Memory) -> None:
    task = memory.tasks.add("Fly to the moon")
    for word in ("wax", "feathers", "string"):
        assert "Stuck Loop Warning" not in memory.brief("fly", task=task.id).text
        _fail(memory, word)
    assert memory.tasks.get(task.id).status == "ready"
    assert "Stuck Loop Warning" in memory.brief("fly", task=task.id).text
    assert memory.tasks.escalations() == []

    _fail(memory, "sun")

    assert memory.tasks.get(task.id).status == "escalated"
    (escalation,) = memory.tasks.escalations()
    assert escalation.subject == task.id
    answered = memory.tasks.resolve(escalation.id, "Take the stairs")
    assert (answered.status, answered.answer, answered.resolved_by) == ("resolved", "Take the stairs", "anna")
    assert memory.tasks.get(task.id).status == "ready"
    anew = memory.brief("fly", task=task.id).text
    assert "Stuck Loop Warning" not in anew, "a person has helped: it starts anew"
    assert tells(anew, "Attempt 5", "person")
    _fail(memory, "yet another")
    assert tells(memory.brief("fly", task=task.id).text, "Attempt 6", "1 in a row", "person")
    with pytest.raises(WrongRequest, match="answered"):
        memory.tasks.resolve(escalation.id, "again")


def test_what_an_agent_says_in_ones_own_debrief_counts_for_the_loop(database: str, project: Path) -> None:
    (project / "learnt.toml").write_text('models = [{name = "haiku"}, {name = "sonnet"}, {name = "opus"}]\n')
    with Memory.open(project) as memory:
        task = memory.tasks.add("Fly to the moon")
        said = "<next-model>opus</next-model><difficulty-estimate>hard</difficulty-estimate>"
        memory.debrief(task.id, f"{said}<retry-suggestion>Take the stairs</retry-suggestion>", model="haiku")

        again = memory.tasks.get(task.id)
        assert memory.work.choose_model(again).reason == "the agent asked for opus"
        assert memory.tasks.attempts(task.id)[0].difficulty == "hard"
        assert "Suggestion: Take the stairs" in memory.brief("fly", task=task.id).text

        memory.debrief(task.id, "<next-model>sonnet</next-model><task-failed/>", model="opus")
        assert memory.tasks.get(task.id).status == "failed"
        assert memory.work.choose_model(memory.tasks.retry(task.id)).reason == "the agent asked for sonnet"


def test_a_model_is_checked_when_it_is_said(database: str, learnt: Callable[..., Done], project: Path) -> None:
    (project / "learnt.toml").write_text('models = [{name = "haiku-5"}, {name = "opus-5"}]\n')
    learnt("init")
    refused = learnt("task", "add", "Fly", "--model", "gpt")
    assert (refused.code, "`gpt` is not configured" in refused.err) == (2, True)
    assert tells(refused.err, "haiku-5, opus-5")
    assert "matches haiku-5 and opus-5" in learnt("task", "add", "Fly", "--model", "5").err
    added = json.loads(learnt("task", "add", "Fly", "--model", "opus", "--json").out)
    assert added["model"] == "opus"
    assert learnt("task", "edit", added["id"], "--model", "gpt").code == 2


def test_a_person_is_told_the_error_as_it_was_said(memory: Memory) -> None:
    memory.tasks.add("Fly to the moon")
    for number in range(4):
        _fail(memory, f"KeyError: 'Wing-{number}' at 0x7f{number}")
    (escalation,) = memory.tasks.escalations()
    assert "KeyError: 'Wing-2' at 0x7f2" in escalation.question


def test_an_escalated_task_can_be_given_up_or_split(memory: Memory) -> None:
    for way in ("cancel", "split"):
        task = memory.tasks.add(f"To {way}")
        for number in range(4):
            _fail(memory, f"error {way}{number}")
        (escalation,) = memory.tasks.escalations()
        if way == "cancel":
            memory.tasks.resolve(escalation.id, cancel=True)
            assert memory.tasks.get(task.id).status == "cancelled"
        else:
            (part,) = memory.tasks.split(task.id, ["A part"])
            assert memory.tasks.get(task.id).status == "waiting"
            assert memory.tasks.get(part.id).status == "ready"
        assert memory.tasks.escalations() == []


def _escalated(memory: Memory, title: str = "Fly") -> Task:
    task = memory.tasks.add(title)
    for number in range(4):
        _fail(memory, f"error {title}{number}")
    return memory.tasks.get(task.id)


def test_cancelling_answers_what_the_task_asked(memory: Memory) -> None:
    task = _escalated(memory)
    memory.tasks.cancel(task.id)
    (answered,) = memory.tasks.escalations(status=None)
    assert (answered.status, answered.answer) == ("resolved", "cancel")
    with pytest.raises(WrongRequest, match="is cancelled and has no open escalation"):
        memory.tasks.resolve(task.id, "go on")
    with pytest.raises(WrongRequest, match="is already cancelled"):
        memory.tasks.cancel(task.id)


def test_an_escalation_is_found_by_its_task_and_needs_an_answer(memory: Memory) -> None:
    task = _escalated(memory)
    with pytest.raises(WrongRequest, match="needs an answer"):
        memory.tasks.resolve(task.id)
    assert memory.tasks.resolve(task.id, "Take the stairs").subject == task.id
    assert memory.tasks.get(task.id).status == "ready"
    with pytest.raises(WrongRequest, match="is already ready"):
        memory.tasks.retry(task.id)


def test_a_task_cannot_be_based_on_itself_or_on_what_is_not_there(memory: Memory) -> None:
    first = memory.tasks.add("First")
    second = memory.tasks.add("Second", based_on=first.id)
    third = memory.tasks.add("Third", based_on=second.id)
    with pytest.raises(WrongRequest, match=f"{first.id} is based on {third.id} is based on {second.id}"):
        memory.tasks.edit(first.id, based_on=third.id)
    with pytest.raises(WrongRequest, match="would be based on itself"):
        memory.tasks.edit(first.id, based_on=first.id)
    with pytest.raises(NotFound):
        memory.tasks.edit(first.id, based_on="task_nope")
    assert memory.tasks.edit(third.id, based_on=first.id).based_on == first.id
    assert memory.tasks.edit(third.id, based_on="").based_on == ""


def test_what_was_given_up_names_those_that_wait_for_it(memory: Memory) -> None:
    first = memory.tasks.add("First")
    second = memory.tasks.add("Second", after=[first.id])
    memory.tasks.add("Third", after=[second.id])
    assert memory.tasks.blocked() == []

    memory.tasks.cancel(first.id)
    ((needed, waiting),) = memory.tasks.blocked()
    assert (needed.id, [task.id for task in waiting]) == (first.id, [second.id])


def test_only_what_is_still_to_be_done_is_split_and_its_parts_take_after_it(memory: Memory) -> None:
    task = memory.tasks.add("Large", model="haiku", skip_learnings=True, verify="make test")
    memory.tasks.cancel(task.id)
    with pytest.raises(WrongRequest, match="is cancelled") as refused:
        memory.tasks.split(task.id, ["A part"])
    assert f"learnt task retry {task.id}" in refused.value.hint
    memory.tasks.retry(task.id)
    (part,) = memory.tasks.split(task.id, ["A part"])
    assert (part.model, part.skip_learnings, part.verify) == ("haiku", True, "")


def test_interruptions_are_no_failures(memory: Memory) -> None:
    task = memory.tasks.add("First")
    for _ in range(5):
        claim = _claim(memory)
        assert claim is not None
        memory.work.release_interrupted(claim)

    assert memory.tasks.get(task.id).status == "ready"
    assert memory.tasks.stuck(memory.tasks.get(task.id)) is None
    assert "Stuck" not in memory.brief("first", task=task.id).text


def test_the_tasks_of_other_loops_are_left_to_them(memory: Memory) -> None:
    memory.brief("Ship the parcel", task="task_own")
    memory.debrief("task_other", "hm")
    assert _claim(memory) is None
    assert memory.tasks.select() == []
    assert {task.id for task in memory.tasks.select(queued=False)} == {"task_own", "task_other"}

    assert memory.tasks.retry("task_own").queued, "a person puts it into the queue"
    claim = _claim(memory)
    assert claim is not None
    assert claim.task == "task_own"


def test_a_long_title_becomes_the_text_and_secrets_are_redacted(memory: Memory) -> None:
    sentence = "Rewrite the importer so that it streams " * 5
    task = memory.tasks.add(sentence, text="token ghp_" + "a1B2" * 9)
    assert len(task.title) <= 100
    assert task.text.startswith(sentence.strip())
    assert "ghp_" not in task.text


def _json(done: Done) -> dict[str, str]:
    assert done.code == 0, done.err
    read: dict[str, str] = json.loads(done.out)
    return read


def test_tasks_from_the_command_line(database: str, learnt: Callable[..., Done], project: Path) -> None:
    learnt("init")
    (project / "spec.md").write_text("Use the blue one.\n")
    first = _json(learnt("task", "add", "First thing", "--spec", "spec.md", "--type", "plan", "--json"))
    second = _json(learnt("task", "add", "Second thing", "--after", first["id"], "--no-learnings", "--json"))
    assert (first["spec"], first["type"], second["status"]) == ("spec.md", "plan", "waiting")

    listed = learnt("task", "list").out
    assert first["id"] in listed
    assert f"[after {first['id']}]" in listed
    assert f"└─ {first['id']}" in learnt("task", "graph").out
    graph = json.loads(learnt("task", "graph", "--json").out)
    assert graph["edges"] == [{"task": second["id"], "needs": first["id"]}]
    prompt = learnt("task", "prompt", first["id"]).out
    assert prompt.index("# Task: First thing") < prompt.index("Use the blue one.") < prompt.index("Plan, do not change")
    assert "<task-done>" in prompt
    parts = json.loads(learnt("task", "split", second["id"], "A", "B", "--in-order", "--json").out)
    assert [part["title"] for part in parts] == ["A", "B"]
    assert _json(learnt("task", "cancel", parts[0]["id"], "--json"))["status"] == "cancelled"
    assert _json(learnt("task", "retry", parts[0]["id"], "--json"))["status"] == "waiting"
    edited = _json(learnt("task", "edit", parts[0]["id"], "--no-after", "--title", "C", "--json"))
    assert (edited["title"], edited["status"]) == ("C", "ready")
    assert "C" in learnt("task", "show", parts[0]["id"]).out


def test_a_specification_is_a_text_of_the_project(learnt: Callable[..., Done], project: Path, tmp_path: Path) -> None:
    learnt("init")
    (tmp_path / "secret").write_text("of somebody else")
    (project / "link").symlink_to(tmp_path / "secret")
    (project / "picture").write_bytes(b"\x89PNG\0")
    (project / "latin").write_bytes("größer".encode("latin-1"))
    (project / "long").write_text("x" * 200_001)
    (project / "fine").write_text("x" * 200_000)
    task = _json(learnt("task", "add", "First thing", "--spec", "fine", "--json"))["id"]
    wrong = {
        str(tmp_path / "secret"): "outside",
        "link": "outside",
        "picture": "not UTF-8 text",
        "latin": "not UTF-8 text",
    }
    for spec, said in {**wrong, "long": "longer than 200,000", "nope": "no file"}.items():
        for words in (["task", "add", "x"], ["task", "edit", task]):
            done = learnt(*words, "--spec", spec)
            assert (done.code, said in done.err) == (2, True), done.err


def test_cancelling_says_who_waits_in_vain(learnt: Callable[..., Done], project: Path) -> None:
    learnt("init")
    first = _json(learnt("task", "add", "First thing", "--json"))["id"]
    second = _json(learnt("task", "add", "Second thing", "--after", first, "--json"))["id"]
    told = f"{second} waits for {first}, which is cancelled: `learnt task retry {first}`"
    assert told in learnt("task", "cancel", first).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["task"], "task add"),
        (["task", "ad"], "did you mean `learnt task add`?"),
        (["task", "add", ""], "needs a title"),
        (["task", "add", "x", "--spec", "nope.md"], "no file nope.md"),
        (["task", "add", "x", "--after", "task_nope"], "no task `task_nope`"),
        (["task", "show", "task_nope"], "no task `task_nope`"),
        (["task", "edit", "task_nope"], "nothing to change"),
        (["task", "edit", "task_nope", "--no-after", "--after", "task_other"], "not allowed with argument --no-after"),
        (["task", "cancel", "task_nope"], "no task `task_nope`"),
        (["task", "split", "task_nope"], "TITLE"),
        (["resolve", "esc_nope"], "no escalation `esc_nope`"),
        (["log"], "no such log"),
        (["log", "task_nope"], "no task `task_nope`"),
        (["work", "--tasks", "0"], "--tasks must be at least 1, not 0"),
        (["work", "--jobs", "-1"], "--jobs must be from 1 to"),
        (["work", "--jobs", "65"], "from 1 to 64"),
        (["work", "--budget-usd", "-1"], "--budget-usd must be above 0 and below 1e9, not -1"),
        (["work", "--budget-usd", "0"], "--budget-usd must be above 0 and below 1e9, not 0"),
        (["work", "--max-iterations", "0"], "--max-iterations must be at least 1, not 0"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(learnt: Callable[..., Done], words: list[str], said: str) -> None:
    learnt("init")
    done = learnt(*words)
    assert done.code == 2
    assert said in done.out + done.err
    assert "Traceback" not in done.err


def test_editing_and_debriefing_at_once_do_not_lock_each_other(memory: Memory, project: Path) -> None:
    task = memory.tasks.add("First")
    mistakes: list[str] = []
    over = threading.Event()

    def edit() -> None:
        with Memory.open(project) as other:
            while not over.is_set():
                try:
                    other.tasks.edit(task.id, goal="release")
                except LearntError as error:
                    mistakes.append(error.message)

    editor = threading.Thread(target=edit)
    editor.start()
    for number in range(20):
        memory.debrief(task.id, f"<learning>Fact {number} is new</learning>")
    over.set()
    editor.join()

    assert mistakes == []
    memory.context.store.replay_spool(wait=True)  # where the editor was faster for a second
    assert {learning.title for learning in memory.learnings().learnings} == {f"Fact {n} is new" for n in range(20)}


def test_a_connection_that_the_server_ended_is_made_anew(postgres: PostgresServer, project: Path) -> None:
    address = postgres.address()
    (project / "learnt.toml").write_text(f'database = "{address}"\nproject = "shop"\n')
    with Memory.open(project) as memory:
        memory.add("First")
        with psycopg.connect(address, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where pid <> pg_backend_pid() and datname = current_database()"
            )
        memory.add("Second")
        assert memory.learnings().total == 2
