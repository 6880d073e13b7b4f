"""Cues: the situations in which a learning matters, in the words in which a user would put them; and notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from learnt import InvalidValue, Memory
from learnt.store import happened
from learnt.store.happened import ASK, KEPT, Notice, NoticeRecord
from learnt.text.records import as_record
from tests.conftest import Clock

CUES = ("the till does not add up", "Kassensturz stimmt nicht")


def test_a_learning_keeps_its_cues_in_their_order_and_spelling(memory: Memory) -> None:
    learning = memory.add("Close the drawer", cues=[*CUES, " the till\ndoes not   add up "])
    assert learning.cues == CUES
    assert memory.get(learning.id) == learning
    assert as_record(learning)["cues"] == list(CUES)


def test_a_learning_is_found_by_its_cues(memory: Memory) -> None:
    learning = memory.add("Close the drawer", cues=CUES)
    memory.add("Weigh apples on the left scale")
    (hit,) = memory.search("Kassensturz")
    assert hit.learning.id == learning.id
    assert hit.matched_fields == ("cues",)
    assert hit.highlights["cues"] == "the till does not add up; <mark>Kassensturz</mark> stimmt nicht"
    memory.edit(learning.id, cues=["the lamp flickers"])
    assert memory.search("Kassensturz") == []
    assert memory.search("flickering lamp")[0].learning.id == learning.id


@pytest.mark.parametrize(
    "cues", [["x"] * 9 + ["y" * 101], [f"situation {number}" for number in range(9)], ["y" * 101], [""], "one", [1]]
)
def test_cues_are_few_and_short(memory: Memory, cues: list[str]) -> None:
    with pytest.raises(InvalidValue):
        memory.add("Close the drawer", cues=cues)


def test_an_edit_of_the_cues_is_in_the_history_and_can_be_undone(memory: Memory) -> None:
    learning = memory.add("Close the drawer", cues=CUES)
    memory.edit(learning.id, cues=[])
    assert memory.history(learning.id)[-1].old["cues"] == list(CUES)
    assert memory.undo(learning.id).cues == CUES
    assert memory.search("Kassensturz")[0].learning.id == learning.id


def test_an_agents_other_cues_have_to_prove_themselves_again(memory: Memory) -> None:
    learning = memory.add("Close the drawer", by="agent")
    assert memory.edit(learning.id, cues=["the till jams"], by="agent").vouched == ""


def test_cues_are_cleaned_and_redacted_in_place(memory: Memory) -> None:
    learning = memory.add(
        "Close the drawer", cues=["login with ghp_" + "aB3" * 12 + " fails", "a\x1b[31mred\u202e lamp"]
    )
    assert learning.cues == ("login with [redacted: github-token] fails", "ared lamp")
    assert memory.redactions == 1


def test_a_purge_deletes_the_cues_of_all_versions(memory: Memory, project: Path) -> None:
    learning = memory.add("Close the drawer", cues=["the till of Mr Miller jams"])
    memory.edit(learning.id, cues=CUES)
    task = memory.tasks.add("the till of Mr Miller jams again")
    happened.add_notice(memory.context.store.database, "task_1", KEPT, learning.id, at=1)
    memory.purge(learning.id)
    assert memory.search("Kassensturz") == []
    assert "Miller" not in str(memory.tasks.get(task.id))
    assert happened.unshown_notices(memory.context.store.database, "task_1") == []
    for path in (project / ".learnt").rglob("*"):
        assert not path.is_file() or b"Miller" not in path.read_bytes(), path


def test_an_import_takes_over_the_cues_and_believes_no_file_that_says_where_it_is_loaded(memory: Memory) -> None:
    record = {"title": "Close the drawer", "cues": list(CUES), "loaded_from": "CLAUDE.md"}
    memory.transfer.import_all([record], as_is=False)
    (learning,) = memory.learnings().learnings
    assert (learning.cues, learning.loaded_from) == (CUES, "")
    memory.transfer.import_all([{**record, "id": "learn_other"}])
    assert memory.get("learn_other").loaded_from == "CLAUDE.md"


# Notices


def test_a_notice_is_told_once_in_a_conversation(memory: Memory, clock: Clock) -> None:
    database = memory.context.store.database
    assert happened.add_notice(database, "task_1", ASK, at=5)
    assert happened.add_notice(database, "task_1", KEPT, "learn_1", at=6)
    assert not happened.add_notice(database, "task_1", ASK, at=7)
    assert happened.unshown_notices(database, "task_2") == []
    assert happened.unshown_notices(database, "task_1") == [
        Notice(task="task_1", what=ASK, created_at=5),
        Notice(task="task_1", what=KEPT, subject="learn_1", created_at=6),
    ]
    happened.mark_notice_shown(database, "task_1", ASK, at=8)
    assert [notice.what for notice in happened.unshown_notices(database, "task_1")] == [KEPT]
    assert not happened.add_notice(database, "task_1", ASK, at=9), "once per conversation"
    assert happened.unshown_notices(database, "task_1", ASK) == []


def test_notices_can_be_spooled_in_any_order(memory: Memory) -> None:
    store = memory.context.store
    for record in (
        NoticeRecord(task="task_1", what=ASK, at=2, shown=True),
        NoticeRecord(task="task_1", what=ASK, at=1),
        NoticeRecord(task="task_1", what=KEPT, subject="learn_1", at=3),
    ):
        store.spool_for_later(record)
    store.replay_spool()
    assert [notice.subject for notice in happened.unshown_notices(store.database, "task_1")] == ["learn_1"]
