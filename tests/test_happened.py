"""What happened to agents: recorded at once or through the spool, exactly once, on both databases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from learnt import InvalidValue, Memory
from learnt.flow.marks import after_helpful_mark
from learnt.model import (
    DIFFICULTIES,
    FAILURE_CATEGORIES,
    RESULTS,
    TASK_STATUSES,
    Attempt,
    Brief,
    Failure,
    Injection,
    Task,
    new_id,
)
from learnt.store import evidence, learnings
from learnt.store.happened import BriefRecord
from learnt.store.spool import SpoolRecord

TASK = Task(id="task_1", title="Add password reset", goal="accounts", created_at=1, updated_at=1)


def _brief(memory: Memory, learning: str, *, held_out: bool = False) -> Brief:
    id = new_id("brief", 5)
    injection = Injection(learning=learning, task=TASK.id, brief=id, injected_at=5, held_out=held_out)
    receipt = {"chosen": [learning]}
    return Brief(id=id, created_at=5, task=TASK.id, receipt=receipt, injections=(injection,), delivery="delivered")


def _body(brief: Brief) -> dict[str, Any]:
    return BriefRecord(task=TASK, brief=brief).as_body()


class AttemptRecord:
    """What older versions recorded when an attempt ended."""

    kind = "attempt"

    def __init__(self, *, task: Task, attempt: Attempt, failure: Failure | None = None) -> None:
        self._parts = {"task": task, "attempt": attempt, "failure": failure}

    def as_body(self) -> dict[str, Any]:
        return {name: part and part.as_dict() for name, part in self._parts.items()}


def _rows(memory: Memory, table: str) -> int:
    return int(memory.context.store.database.value(f"select count(*) as n from {table} where project = :project"))


def test_a_brief_counts_a_learning_once_for_each_task(memory: Memory) -> None:
    learning = memory.add("Shown")
    for _ in range(3):
        assert memory.context.store.record(BriefRecord(task=TASK, brief=_brief(memory, learning.id)))

    assert memory.get(learning.id).times_injected == 1
    assert memory.get(learning.id).last_injected_at == 5
    assert (_rows(memory, "brief"), _rows(memory, "injection"), _rows(memory, "task"), _rows(memory, "goal")) == (
        3,
        1,
        1,
        1,
    )


def test_what_was_held_out_is_recorded_but_not_counted(memory: Memory) -> None:
    learning = memory.add("Held out")
    memory.context.store.record(BriefRecord(task=TASK, brief=_brief(memory, learning.id, held_out=True)))
    assert (memory.get(learning.id).times_injected, _rows(memory, "injection")) == (0, 1)


def test_every_result_difficulty_and_failure_category_can_be_stored(memory: Memory) -> None:
    number = 0
    for result in RESULTS:
        for difficulty in ("", *DIFFICULTIES):
            number += 1
            attempt = Attempt(
                id=new_id("attempt", 5), task=TASK.id, number=number, result=result, difficulty=difficulty, cost_usd=0.1
            )
            memory.context.store.record(AttemptRecord(task=TASK, attempt=attempt))
    for category in FAILURE_CATEGORIES:
        number += 1
        attempt = Attempt(id=new_id("attempt", 5), task=TASK.id, number=number, result="failed")
        failure = Failure(attempt=attempt.id, task=TASK.id, category=category, files=("a.py",))
        memory.context.store.record(AttemptRecord(task=TASK, attempt=attempt, failure=failure))

    assert _rows(memory, "attempt") == len(RESULTS) * (len(DIFFICULTIES) + 1) + len(FAILURE_CATEGORIES)
    assert _rows(memory, "failure") == len(FAILURE_CATEGORIES)
    hardest = memory.context.store.database.value(
        "select max(difficulty) as rank from attempt where project = :project"
    )
    assert DIFFICULTIES[hardest] == "blocked", "ordinals sort by rank, not by their letters"


def test_every_task_status_can_be_stored(memory: Memory) -> None:
    for number, status in enumerate(TASK_STATUSES):
        task = Task(id=f"task_{number}", title="t", status=status)
        attempt = Attempt(id=f"attempt_{number}", task=task.id, number=1, result="done")
        memory.context.store.record(AttemptRecord(task=task, attempt=attempt))
    assert _rows(memory, "task") == len(TASK_STATUSES)


def test_the_database_itself_refuses_what_no_value_may_hold(memory: Memory) -> None:
    learning = memory.add("Checked")
    for column, wrong in (
        ("kind", "x"),
        ("status", "x"),
        ("polarity", "x"),
        ("origin", "x"),
        ("confidence", 1.5),
        ("pinned", 2),
    ):
        with pytest.raises(InvalidValue, match="constraint"), memory.context.store.transaction():
            memory.context.store.database.execute(
                f"update learning set {column} = :wrong where project = :project and id = :id",
                wrong=wrong,
                id=learning.id,
            )
    assert memory.get(learning.id) == learning


def test_a_spooled_record_takes_effect_once_however_often_it_is_replayed(memory: Memory) -> None:
    learning = memory.add("Shown")
    record = SpoolRecord("op_1", "brief", 5, _body(_brief(memory, learning.id)))
    for _ in range(3):
        memory.context.store.spool.append(record)
        assert [waiting.op for waiting in memory.context.store.spool.pending()] == ["op_1"]
        memory.context.store.replay_spool()

    assert memory.context.store.spool.is_empty()
    assert (memory.get(learning.id).times_injected, _rows(memory, "brief"), _rows(memory, "operation")) == (1, 1, 1)


def test_a_record_that_can_never_be_applied_is_set_aside(memory: Memory) -> None:
    learning = memory.add("Shown")
    memory.context.store.spool.append(SpoolRecord("op_1", "of-the-future", 5, {}))
    orphan = Attempt(id="attempt_1", task="task_9", number=1, result="done")
    memory.context.store.spool.append(
        SpoolRecord("op_2", "attempt", 5, AttemptRecord(task=TASK, attempt=orphan).as_body())
    )
    memory.context.store.spool.append(SpoolRecord("op_3", "brief", 5, _body(_brief(memory, learning.id))))

    memory.context.store.replay_spool()

    assert memory.context.store.spool.refused() == 2
    assert (memory.get(learning.id).times_injected, _rows(memory, "operation")) == (1, 1)


def test_purging_a_learning_also_clears_the_spool_of_it(memory: Memory) -> None:
    learning = memory.add("Secret")
    other = memory.add("Stays")
    for op, shown in (("op_1", learning), ("op_2", other)):
        memory.context.store.spool.append(SpoolRecord(op, "brief", 5, _body(_brief(memory, shown.id))))
    memory.context.store.spool.append(SpoolRecord("op_3", "mark", 5, {"learning": learning.id, "helpful": True}))

    memory.purge(learning.id)

    waiting = {record.op: json.dumps(record.body) for record in memory.context.store.spool.pending()}
    assert list(waiting) == ["op_1", "op_2"], "what else a record says is kept"
    assert learning.id not in str(waiting)
    assert other.id in waiting["op_2"]


DAMAGED = {
    "surrogate": {"task": {"id": "task_1", "title": "x\ud800"}, "attempt": {}, "failure": None},
    "huge": {
        "task": TASK.as_dict(),
        "attempt": {"id": "attempt_1", "task": "task_1", "number": 10**30, "result": "done"},
        "failure": None,
    },
    "nul": {
        "task": {**TASK.as_dict(), "id": "task_2", "title": "a\0b"},
        "attempt": {"id": "attempt_1", "task": "task_2", "number": 1},
        "failure": None,
    },
    "list": ["no object"],
    "text": "nonsense",
}


@pytest.mark.parametrize("body", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_never_blocks_what_comes_after_it(memory: Memory, body: object) -> None:
    learning = memory.add("Shown")
    memory.context.store.spool.append(SpoolRecord("op_1", "attempt", 5, body))  # type: ignore[arg-type]
    memory.context.store.spool.append(SpoolRecord("op_2", "brief", 5, _body(_brief(memory, learning.id))))

    memory.context.store.replay_spool()

    assert memory.get(learning.id).times_injected == 1
    assert memory.context.store.spool.is_empty()
    assert memory.context.store.check() == []


def test_reading_goes_on_while_another_process_writes_and_the_spool_waits(sqlite_memory: Memory, project: Path) -> None:
    learning = sqlite_memory.add("Shown")
    sqlite_memory.context.store.spool.append(SpoolRecord("op_1", "brief", 5, _body(_brief(sqlite_memory, learning.id))))
    with sqlite_memory.context.store.transaction(), Memory.open(project) as reader:
        assert reader.get(learning.id).times_injected == 0
        assert not reader.context.store.spool.is_empty()
    with Memory.open(project) as later:
        assert later.get(learning.id).times_injected == 1


def test_what_happened_is_spooled_even_when_the_database_is_damaged(sqlite_memory: Memory, project: Path) -> None:
    learning = sqlite_memory.add("Shown")
    sqlite_memory.close()
    file = project / ".learnt" / "learnt.db"
    good = file.read_bytes()
    file.write_bytes(b"x" * 5000)
    with Memory.open(project) as memory:
        assert memory.context.store.record(BriefRecord(task=TASK, brief=_brief(memory, learning.id))) is False
    file.write_bytes(good)
    with Memory.open(project) as mended:
        assert mended.get(learning.id).times_injected == 1


@pytest.mark.parametrize("fault", ["damaged", "out of reach", "newer"])
def test_one_process_after_the_other_spools_while_the_database_cannot_take_it(
    fault: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Shown")
        file = Path(memory.context.store.place.path)
    good = file.read_bytes()
    if fault == "damaged":
        file.write_bytes(b"x" * 5000)
    elif fault == "out of reach":
        monkeypatch.setenv("LEARNT_DATABASE", f"postgresql://nobody@/x?host={project}/nowhere")
        monkeypatch.setenv("LEARNT_WAIT_MS", "10")
    else:
        with Memory.open(project) as memory:
            memory.context.store.database.execute("insert into migration values (999, 'later', '9.9', 1)")

    for count in (1, 2, 3):
        with Memory.open(project) as memory:
            task = TASK.replace(id=f"task_{count}")
            brief = _brief(memory, learning.id)
            injection = brief.injections[0].replace(task=task.id)
            given = BriefRecord(task=task, brief=brief.replace(task=task.id, injections=(injection,)))
            assert memory.context.store.record(given) is False
            assert len(memory.context.store.spool.pending()) == count

    monkeypatch.delenv("LEARNT_DATABASE", raising=False)
    file.write_bytes(good)
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    with Memory.open(project) as mended:
        kept_for_another = 3 if fault == "out of reach" else 0
        assert mended.get(learning.id).times_injected == 3 - kept_for_another
        assert mended.context.store.spool.pending_for_others() == kept_for_another


def test_a_late_record_does_not_overwrite_what_happened_after_it(memory: Memory) -> None:
    learning = memory.add("Shown")
    newer = _brief(memory, learning.id)
    newer = newer.replace(injections=(newer.injections[0].replace(injected_at=100),))
    older = _brief(memory, learning.id)
    for brief in (newer, older):
        memory.context.store.record(BriefRecord(task=TASK, brief=brief))

    row = memory.context.store.database.row("select brief, injected_at from injection where project = :project")
    assert row == {"brief": newer.id, "injected_at": 100}
    assert memory.get(learning.id).last_injected_at == 100


def test_damaged_lines_of_the_spool_are_set_aside_not_dropped(memory: Memory, project: Path) -> None:
    learning = memory.add("Shown")
    memory.context.store.spool.append(SpoolRecord("op_1", "brief", 5, _body(_brief(memory, learning.id))))
    (file,) = (project / ".learnt").glob("spool*.jsonl")
    file.write_bytes(b"garbage\n00000000\n00000000 \n" + file.read_bytes() + b"torn")

    memory.context.store.replay_spool()

    assert memory.get(learning.id).times_injected == 1
    assert memory.context.store.spool.refused() == 3
    assert "garbage" in Path(memory.context.store.spool.refused_path).read_text()


def test_an_agents_mark_that_takes_back_a_use_is_undone_and_redone_as_what_it_is(memory: Memory) -> None:
    learning, database = memory.add("Count the till"), memory.context.store.database
    memory.brief("count the till", task="task_1")
    with memory.context.store.transaction():
        evidence.add(database, learning.id, "task_1", evidence.WORKED, at=1)
        used = learnings.Change(what="use", who="learnt", at=1)
        learnings.change(database, learning.id, lambda known: after_helpful_mark(known, at=1), used)
    memory.debrief("task_1", f"LEARNING_NOT_HELPFUL: {learning.id}")
    found = []
    for _ in range(3):
        marks = database.rows("select helpful from mark where project = :project")
        against = database.value(
            "select count(*) from evidence where project = :project and kind = :kind", kind=evidence.NOT_HELPFUL
        )
        found.append((memory.get(learning.id).times_helpful, [row["helpful"] for row in marks], against))
        memory.undo(memory.history(learning.id)[-1].id)

    assert found == [(0, [0], 1), (1, [], 0), (0, [0], 1)]
