"""Ends of turns: kept at once, made something of by a worker; a conversation has one debrief, whatever happens."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from learnt import Memory
from learnt.flow import background
from learnt.flow.mining import learn_from, read_task
from learnt.model import Learning, text_id
from learnt.project import head_branch
from learnt.store import mined
from learnt.store.regenerations import TASKS_SINCE_UPDATE
from learnt.system.files import Locked
from tests.conftest import Clock
from tests.support.accumulation import Model, until
from tests.support.doors import Learnt, start_worker, work_here
from tests.support.past import correction
from tests.support.service_stub import Reply
from tests.support.transcripts import claude, codex, codex_message, gemini, written
from tests.support.workers import ended

TASK = text_id("task", "540b ")
LESSON = "<learning>The till rounds half to even.</learning>"
FAILED = "<task-failed/>\n<failure-report>\nwhat_tried: pulling\nwhy_failed: The drawer is stuck\n</failure-report>"


def said(path: Path, *words: str) -> str:
    """Write a transcript of Claude Code in which the agent says these words; return its path."""
    asked = claude("user", "Mend the tills")
    return written(path, [asked, *(claude("assistant", [{"type": "text", "text": text}]) for text in words)])


def all_of(memory: Memory) -> dict[str, Learning]:
    return {one.title: one for one in memory.learnings(status=None, limit=1_000).learnings}


# The record


def test_an_ended_turn_is_on_the_disk_before_anything_is_made_of_it(memory: Memory, alone: None) -> None:
    attempt = memory.hooks.end_turn(
        TASK, f"{LESSON}\nThe key is AKIA4QTB7ZPLW2KD5XRM.", agent="engineer", client="claude"
    )

    (record,) = memory.context.store.spool.pending()
    assert (record.kind, record.body["attempt"]["id"]) == ("debrief", attempt)
    assert attempt == text_id("attempt", TASK)
    assert "AKIA4QTB7ZPLW2KD5XRM" not in json.dumps(record.body)

    memory.worker.catch_up()
    (made,) = memory.tasks.attempts(TASK)
    task = memory.tasks.get(TASK)
    assert (made.id, made.number, task.type, task.client, task.agent) == (attempt, 1, "session", "claude", "engineer")
    assert list(all_of(memory)) == ["The till rounds half to even."]


def test_each_turn_replaces_the_debrief_of_its_conversation(memory: Memory, alone: None) -> None:
    memory.hooks.end_turn(TASK, f"{LESSON}\n{FAILED}")
    memory.worker.catch_up()
    assert [one.reason for one in memory.tasks.failures(TASK).values()] == ["The drawer is stuck"]
    assert memory.tasks.attempts(TASK)[0].result == "failed"

    memory.hooks.end_turn(TASK, f"{LESSON}\nIt is mended.", branch="till-7", client="codex")
    memory.worker.catch_up()

    (attempt,) = memory.tasks.attempts(TASK)
    assert (attempt.number, attempt.result, attempt.branch) == (1, "incomplete", "till-7")
    assert memory.tasks.failures(TASK) == {}
    (learning,) = all_of(memory).values()
    assert (learning.recurrences, len(memory.history(learning.id))) == (0, 1), "said again is not learnt again"
    (material,) = mined.material_of(memory.context.store.database, TASK)
    assert material.text.endswith("It is mended.")
    assert memory.context.store.database.counter(TASKS_SINCE_UPDATE) == 1


def test_what_people_made_of_a_learning_stays_when_its_conversation_goes_on(memory: Memory, alone: None) -> None:
    other = "<learning>The scanner needs a warm lamp.</learning>"
    memory.hooks.end_turn(TASK, f"{LESSON} {other}")
    memory.worker.catch_up()
    edited, purged = sorted(all_of(memory).values(), key=lambda one: one.title, reverse=True)
    memory.edit(edited.id, title="The till rounds up", observation="It rounds up.")
    memory.purge(purged.id)

    memory.hooks.end_turn(TASK, f"{LESSON} {other}\nDone.")
    memory.worker.catch_up()

    assert list(all_of(memory)) == ["The till rounds up"] or len(all_of(memory)) == 1


def test_a_mark_counts_once_in_a_conversation_and_stays(memory: Memory, alone: None) -> None:
    learning = memory.add("Close the drawer before counting the till")
    memory.brief("count the till", task=TASK, task_type="session", only_new=True)
    memory.hooks.end_turn(TASK, f"LEARNING_HELPFUL: {learning.id}")
    memory.worker.catch_up()
    memory.hooks.end_turn(TASK, f"LEARNING_HELPFUL: {learning.id}\nAnd more.")
    memory.hooks.end_turn(TASK, "Nothing to say.")
    memory.worker.catch_up()
    assert memory.get(learning.id).times_helpful == 1

    memory.undo(memory.history(learning.id)[-1].id)
    memory.hooks.end_turn(TASK, f"LEARNING_HELPFUL: {learning.id}")
    memory.worker.catch_up()
    assert memory.get(learning.id).times_helpful == 0, "a person took it back"


def test_conversations_of_older_versions_stay_as_they_are(memory: Memory, alone: None) -> None:
    for turn in ("first", "second"):
        memory.debrief(TASK, turn, task_type="session")
    before = memory.tasks.attempts(TASK)

    memory.hooks.end_turn(TASK, "third")
    memory.worker.catch_up()

    after = memory.tasks.attempts(TASK)
    assert after[1:] == before
    assert after[0].number == 3


def test_the_branch_is_the_one_that_is_checked_out(project: Path, clock: Clock, alone: None) -> None:
    subprocess.run(["git", "init", "-q", "-b", "fix/till", str(project)], check=True)
    with Memory.open(project, clock=clock) as memory:
        memory.hooks.end_turn(TASK, "Hello.")
        memory.worker.catch_up()
        assert memory.tasks.attempts(TASK)[0].branch == "fix/till" == head_branch(str(project))
    assert head_branch(str(project.parent)) == ""


# Its transcript


def test_what_was_said_earlier_in_a_turn_counts_too(memory: Memory, tmp_path: Path, alone: None) -> None:
    learning = memory.add("Close the drawer before counting the till")
    memory.brief("count the till", task=TASK, task_type="session", only_new=True)
    transcript = said(tmp_path / "t.jsonl", f"{LESSON}\nLEARNING_HELPFUL: {learning.id}", "All is done.")
    memory.hooks.end_turn(TASK, "All is done.", transcript=transcript, client="claude")

    done = memory.worker.catch_up()

    assert (done.records, done.conversations, done.remarks) == (1, 1, ())
    assert "The till rounds half to even." in all_of(memory)
    assert memory.get(learning.id).times_helpful == 1
    assert len(memory.tasks.attempts(TASK)) == 1
    assert memory.worker.catch_up().conversations == 0, "what has not grown is not read again"
    said(tmp_path / "t.jsonl", f"{LESSON}\nLEARNING_HELPFUL: {learning.id}", "All is done.", "<task-done/>")
    assert memory.worker.catch_up().conversations == 1
    assert memory.tasks.attempts(TASK)[0].result == "done"


def test_words_that_are_not_written_down_yet_are_not_lost(memory: Memory, tmp_path: Path, alone: None) -> None:
    transcript = said(tmp_path / "t.jsonl", "I start.")
    memory.hooks.end_turn(TASK, FAILED, transcript=transcript)
    memory.worker.catch_up()
    assert [one.reason for one in memory.tasks.failures(TASK).values()] == ["The drawer is stuck"]


def test_a_transcript_is_found_where_it_is_whatever_blanks_its_path_has(
    memory: Memory, tmp_path: Path, alone: None
) -> None:
    folder = tmp_path / "a  b "
    folder.mkdir()
    transcript = said(folder / "t  1.jsonl", LESSON, "So be it.")
    memory.hooks.end_turn(TASK, "So be it.", transcript=transcript)
    memory.worker.catch_up()
    assert memory.tasks.attempts(TASK)[0].transcript == transcript
    assert list(all_of(memory)) == ["The till rounds half to even."]
    memory.debrief("task_2", "So be it.", transcript=transcript)
    assert memory.tasks.attempts("task_2")[0].transcript == transcript


def test_how_a_conversation_ended_is_what_it_said_last(memory: Memory, tmp_path: Path, alone: None) -> None:
    path = tmp_path / "t.jsonl"
    memory.hooks.end_turn(TASK, "So be it.", transcript=said(path, FAILED, "So be it."))
    memory.worker.catch_up()
    assert memory.tasks.attempts(TASK)[0].result == "failed"
    assert [one.reason for one in memory.tasks.failures(TASK).values()] == ["The drawer is stuck"]

    memory.hooks.end_turn(TASK, "<task-done/>", transcript=said(path, FAILED, "So be it.", "<task-done/>"))
    memory.worker.catch_up()
    assert memory.tasks.attempts(TASK)[0].result == "done"
    assert memory.tasks.failures(TASK) == {}


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff no transcript\n", b'{"a": 1}\n'])
def test_without_a_transcript_that_can_be_read_the_last_message_counts(
    content: bytes | None, memory: Memory, tmp_path: Path, alone: None
) -> None:
    path = tmp_path / "t.jsonl"
    if content is not None:
        path.write_bytes(content)
    memory.hooks.end_turn(TASK, LESSON, transcript=str(path))

    assert memory.worker.catch_up().remarks == ()

    assert list(all_of(memory)) == ["The till rounds half to even."]
    assert memory.tasks.attempts(TASK)[0].transcript == str(path)


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode"])
def test_the_work_in_a_conversation_is_mined_once(client: str, memory: Memory, tmp_path: Path, alone: None) -> None:
    transcript = correction(client, tmp_path / f"t.{'json' if client == 'opencode' else 'jsonl'}", folder=tmp_path)
    memory.hooks.end_turn(TASK, "Mended the tills.", transcript=transcript, client=client)

    (learnt,) = memory.worker.catch_up().learnings

    assert "uv run pytest" in memory.get(learnt).title
    assert memory.tasks.get(TASK).title == "Mend the tills"
    assert memory.worker.catch_up().learnings == ()
    with pytest.raises(Exception, match="has already been read"):
        memory.transcripts.debrief(transcript)
    memory.hooks.end_turn(TASK, "Once more.", transcript=transcript, client=client)
    memory.worker.catch_up()
    assert memory.get(learnt).recurrences == 0
    assert len(memory.tasks.attempts(TASK)) == 1


def test_a_transcript_that_a_person_has_read_belongs_to_its_conversation(
    memory: Memory, tmp_path: Path, alone: None
) -> None:
    transcript = said(tmp_path / "t.jsonl", LESSON)
    memory.hooks.end_turn(TASK, LESSON, transcript=transcript)
    memory.context.store.replay_spool(wait=True)

    read, _ = memory.transcripts.debrief(transcript)

    assert (read.task, len(memory.tasks.attempts(TASK))) == (TASK, 1)
    assert all_of(memory)["The till rounds half to even."].recurrences == 0
    assert memory.worker.catch_up().conversations == 0


def test_a_sub_agent_has_a_conversation_of_its_own(memory: Memory, tmp_path: Path, alone: None) -> None:
    main = [claude("user", "Mend"), {**claude("assistant", [{"type": "text", "text": LESSON}]), "isSidechain": True}]
    main.append(claude("assistant", [{"type": "text", "text": "Mended."}]))
    other = "<learning>The scanner needs a warm lamp.</learning>"
    sub = [{**claude("assistant", [{"type": "text", "text": text}]), "isSidechain": True} for text in (other, "Found.")]
    memory.hooks.end_turn(TASK, "Mended.", transcript=written(tmp_path / "main.jsonl", main))
    memory.worker.catch_up()
    assert all_of(memory) == {}, "what a sub-agent said is not the agent's"

    memory.hooks.end_turn("task_sub", "Found.", agent="Explore", transcript=written(tmp_path / "sub.jsonl", sub))
    memory.worker.catch_up()

    (learning,) = all_of(memory).values()
    assert (learning.title, learning.task) == ("The scanner needs a warm lamp.", "task_sub")


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_what_a_client_puts_into_a_conversation_is_never_learnt(
    client: str, memory: Memory, tmp_path: Path, alone: None
) -> None:
    put_in = [
        f"<system-reminder>\n{LESSON}\n</system-reminder>",
        f"<hook_context>{LESSON}</hook_context>",
        f"<task-notification>{LESSON}</task-notification>",
    ]
    head: dict[str, list[dict[str, object]]] = {
        "claude": [claude("user", text) for text in put_in],
        "codex": [codex_message("user", text) for text in put_in],
        "gemini": [],
    }
    if client == "claude":
        records = [*head[client], claude("assistant", [{"type": "text", "text": "\n".join([*put_in[:2], "Done."])}])]
    elif client == "codex":
        meta = codex({"id": "s", "cwd": str(tmp_path), "git": {}}, "session_meta")
        records = [meta, *head[client], codex_message("assistant", "\n".join([*put_in[:2], "Done."]))]
    else:
        start = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z", "kind": "main"}
        users = [{"id": f"u{at}", "type": "user", "content": [{"text": text}]} for at, text in enumerate(put_in)]
        records = [start, *users, gemini("m9", "\n".join([*put_in[:2], "Done."]))]
    memory.hooks.end_turn(TASK, "Done.", transcript=written(tmp_path / "t.jsonl", records), client=client)

    assert memory.worker.catch_up().conversations == 1

    assert all_of(memory) == {}


# A model


def test_a_model_that_fails_keeps_nothing_back_and_is_not_asked_again_within_the_hour(
    project: Path, clock: Clock, tmp_path: Path, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Model("command", tmp_path, monkeypatch, Reply("no", status=500))
    with failing as model, Memory.open(project, clock=clock) as memory:
        transcript = correction("claude", tmp_path / "t.jsonl", folder=project, said=f"Mended.\n{LESSON}")
        memory.hooks.end_turn(TASK, f"Mended.\n{LESSON}", transcript=transcript)
        assert len(memory.worker.catch_up().remarks) == 1
        asked = len(model.asked)
        assert asked >= 1
        assert list(all_of(memory)) == ["The till rounds half to even."]

        memory.hooks.end_turn(TASK, "And so on.", transcript=transcript)
        assert memory.worker.catch_up().remarks == ()
        assert len(model.asked) == asked

        clock.advance(days=0.05)
        assert len(memory.worker.catch_up().remarks) == 1
        assert len(model.asked) > asked


# The worker


def test_the_worker_is_started_ends_by_itself_and_leaves_nothing_waiting(project: Path, tmp_path: Path) -> None:
    with Memory.open(project) as memory:
        memory.hooks.end_turn(TASK, "Done.", transcript=said(tmp_path / "t.jsonl", LESSON, "Done."))
        assert ended(project) == ""
        assert memory.context.store.spool.is_empty()
        assert list(all_of(memory)) == ["The till rounds half to even."]
        assert background.worker_state(memory.context.store.place.folder)[0] == "done"


def test_many_ends_of_turns_at_once_start_few_workers_and_lose_nothing(project: Path) -> None:
    Memory.open(project).close()

    def end(number: int) -> None:
        with Memory.open(project, create=False) as memory:
            memory.hooks.end_turn(f"task_{number}", f"<learning>Till {number} sticks on rainy days.</learning>")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(end, range(24)))
    ended(project)
    with Memory.open(project) as memory:
        until(memory.context.store.spool.is_empty, "records are left")
        assert len(all_of(memory)) == 24


def test_a_worker_that_is_killed_anywhere_loses_no_debrief(
    project: Path, tmp_path: Path, chance: random.Random
) -> None:
    Memory.open(project).close()
    for number in range(12):
        with Memory.open(project, create=False) as memory:
            words = f"<learning>Till {number} sticks on rainy days.</learning>"
            memory.hooks.end_turn(
                f"task_{number}", "Done.", transcript=said(tmp_path / f"{number}.jsonl", words, "Done.")
            )
        worker = start_worker(project)
        with suppress(subprocess.TimeoutExpired):
            worker.wait(chance.random() * 0.6)
        worker.send_signal(signal.SIGKILL)  # wherever it is by now
        worker.wait()
    start_worker(project).wait()  # if the last one was killed, nobody else would go on
    ended(project)
    with Memory.open(project) as memory:
        memory.worker.catch_up()
        assert len(all_of(memory)) == 12
        assert [len(memory.tasks.attempts(f"task_{number}")) for number in range(12)] == [1] * 12
        assert memory.context.store.check() == []


class Interrupting(Clock):
    """A clock at whose looks something else happens, until it says that it has."""

    def __init__(self, act: Callable[[], bool]) -> None:
        super().__init__()
        self._act: Callable[[], bool] | None = act

    def __call__(self) -> int:
        act, self._act = self._act, None
        self._act = None if act is None or act() else act
        return super().__call__()


def test_what_arrives_while_a_worker_is_at_work_is_not_missed(memory: Memory, project: Path, alone: None) -> None:
    memory.hooks.end_turn(TASK, LESSON)

    def end_another() -> bool:  # as soon as the spool was taken up
        if memory.context.store.spool.is_empty():
            memory.hooks.end_turn("task_late", "<learning>The scanner needs a warm lamp.</learning>")
            return True
        return False

    with Memory.open(project, clock=Interrupting(end_another)) as worker:
        worker.worker.catch_up()
    assert memory.context.store.spool.is_empty()
    assert len(all_of(memory)) == 2


def test_while_one_is_at_work_no_other_is(project: Path, alone: None) -> None:
    with Memory.open(project) as memory:
        memory.hooks.end_turn(TASK, LESSON)
        with Locked(os.path.join(memory.context.store.place.folder, background.WORKER_LOCK)):
            assert memory.worker.catch_up().records == 0
        assert memory.worker.catch_up().records == 1


def test_doctor_tells_of_a_worker_that_failed(project: Path, learnt: Learnt) -> None:
    with Memory.open(project) as memory:
        folder = Path(memory.context.store.place.folder)
    (project / "learnt.toml").write_text("colour = 3\n")
    log = folder / background.WORKER_LOG
    failed = work_here(project)
    assert failed.code == 1
    log.write_text(failed.err)
    (project / "learnt.toml").unlink()
    found = json.loads(learnt("doctor", "--json").out)["findings"]
    (told,) = [one for one in found if one["subject"].endswith("worker")]
    assert not told["fine"]
    assert "colour" in told["detail"]

    assert work_here(project).code == 0
    found = json.loads(learnt("doctor", "--json").out)["findings"]
    (told,) = [one for one in found if one["subject"].endswith("worker")]
    assert told["fine"], told


# Turns without words


def test_a_turn_without_words_leaves_what_was_told_before(memory: Memory, tmp_path: Path, alone: None) -> None:
    memory.hooks.end_turn(TASK, f"{LESSON}\n{FAILED}")
    memory.worker.catch_up()

    memory.hooks.end_turn(TASK, "")
    memory.hooks.end_turn(TASK, " \n", transcript=str(tmp_path / "gone.jsonl"))
    memory.worker.catch_up()

    (attempt,) = memory.tasks.attempts(TASK)
    assert (attempt.result, attempt.transcript) == ("failed", str(tmp_path / "gone.jsonl"))
    assert [one.reason for one in memory.tasks.failures(TASK).values()] == ["The drawer is stuck"]
    (material,) = mined.material_of(memory.context.store.database, TASK)
    assert "The till rounds half to even." in material.text


def test_a_conversation_that_ends_without_words_is_read_where_it_is_written_down(
    memory: Memory, tmp_path: Path, alone: None
) -> None:
    path = tmp_path / "t.jsonl"
    memory.hooks.end_turn(TASK, "", transcript=said(path, LESSON))
    assert memory.worker.catch_up().conversations == 1
    assert list(all_of(memory)) == ["The till rounds half to even."]
    assert memory.tasks.get(TASK).title == "Mend the tills"

    memory.hooks.end_turn(TASK, "<task-done/>", transcript=said(path, LESSON, "<task-done/>"))
    memory.hooks.end_turn(TASK, "", transcript=str(path))
    memory.worker.catch_up()
    assert memory.tasks.attempts(TASK)[0].result == "done"
    memory.hooks.end_turn(TASK, "", transcript=str(path))
    assert memory.worker.catch_up().conversations == 0, "nothing was said since"


def test_a_message_that_arrives_while_an_earlier_one_is_mined_is_mined_next(memory: Memory, alone: None) -> None:
    """A model may take seconds to read an earlier message, and meanwhile the conversation goes on."""
    memory.hooks.end_turn(TASK, "Never run `bin/check` with `STAGE=prod`: it deletes the data of the till.")
    memory.context.store.replay_spool(wait=True)
    reading = read_task(memory.context, TASK, deadline=time.monotonic() + 60)

    memory.hooks.end_turn(TASK, "Never run `bin/count` with `STAGE=prod`: it locks the till.")
    memory.context.store.replay_spool(wait=True)
    with memory.context.store.transaction():
        learn_from(memory.context, reading)

    assert [part.text for part in mined.material_of(memory.context.store.database, TASK)] == [
        "Never run `bin/count` with `STAGE=prod`: it locks the till."
    ]
