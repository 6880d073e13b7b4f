"""Importing many learnings: they are read as they are needed, written in batches, and their events kept together."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learnt import InvalidValue, Memory
from learnt.errors import OldSchema
from learnt.flow import transfer
from learnt.store import index, learnings, migrate
from learnt.store.database import Database
from learnt.store.index import Filter
from learnt.text.meaning import MODEL, embed, likeness
from learnt.text.records import as_record
from learnt.text.words import words
from tests.support.former import write_as_before
from tests.support.hooks import event_text
from tests.support.workers import ended

SECRET = "zebrathree"


def records(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"id": f"learn_{number}", "title": f"Shelf {number} holds jars", "observation": "They rattle at night."}


def stored_in(memory: Memory) -> int:
    return learnings.count(memory.context.store.database, Filter(status=None))


def vector_of(memory: Memory, id: str) -> bytes | None:
    return index.read_vectors(memory.context.store.database, [id]).get(id)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_BATCH", 10)


@pytest.mark.usefixtures("small_batches")
def test_records_are_read_only_as_they_are_needed(memory: Memory) -> None:
    read = 0
    ahead = []

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal read
        for record in records(100):
            read += 1
            yield record

    report = memory.transfer.import_all(counted(), progress=lambda done: ahead.append(read - done))
    assert report.added == 100
    assert max(ahead) <= 30


@pytest.mark.usefixtures("small_batches")
def test_an_invalid_record_stops_the_import_before_its_batch(memory: Memory) -> None:
    faulty = [*records(25), {"title": ""}]
    with pytest.raises(InvalidValue, match="entry 26"):
        memory.transfer.import_all(iter(faulty))
    assert stored_in(memory) == 20
    with pytest.raises(InvalidValue, match="entry 26"):
        memory.transfer.import_all(
            [{**record, "id": f"{record['id']}b"} if "id" in record else record for record in faulty]
        )
    assert stored_in(memory) == 20, "a list is checked before anything is written"
    assert memory.transfer.import_all(records(25)).added == 5


def test_a_killed_import_leaves_whole_batches(project: Path) -> None:
    script = f"""
        import os, signal
        from learnt import Memory
        from learnt.flow import transfer

        transfer._BATCH = 10

        def records():
            for number in range(100):
                if number == 45:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield {{"id": f"learn_{{number}}", "title": f"Shelf {{number}} holds jars"}}

        Memory.open({str(project)!r}).transfer.import_all(records())
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False).returncode < 0
    with Memory.open(project) as memory:
        stored = stored_in(memory)
        assert stored in (10, 20, 30, 40)
        assert memory.context.store.check() == []
        assert memory.transfer.import_all(records(100)).added == 100 - stored


def test_the_event_of_an_import_is_told_like_any_other(memory: Memory) -> None:
    id = memory.transfer.import_all(records(3)).id
    database = memory.context.store.database
    assert not database.has("select id from event where project = :project")
    (event,) = memory.history("learn_1")
    assert (event.what, event.reason, event.version, event.old) == ("import", id, 1, {})
    assert event.new["title"] == "Shelf 1 holds jars"
    assert learnings.get_event(database, event.id) == event
    memory.edit("learn_1", title="Shelf 1 is empty")
    assert memory.history("learn_1")[0] == event, "an edit does not change what was imported"
    memory.context.store.count_uses(["learn_2"], at=5)
    assert "times_injected" not in memory.history("learn_2")[0].new
    assert memory.context.store.check() == []


def test_an_import_can_be_undone_after_some_of_it_has_changed(memory: Memory) -> None:
    memory.transfer.import_all([{"id": "learn_2", "title": "Shelf 2 held cups", "updated_at": 5}])
    report = memory.transfer.import_all(records(4))
    assert (report.added, report.updated) == (3, 1)
    memory.edit("learn_1", title="Shelf 1 is empty")
    memory.context.store.count_uses(["learn_3"], at=5)
    undone = memory.transfer.undo_import(report.id)
    assert (set(undone.archived), undone.restored, undone.left) == (
        {"learn_0", "learn_1", "learn_3"},
        ("learn_2",),
        (),
    )
    assert memory.get("learn_2").title == "Shelf 2 held cups"


def test_a_brief_with_imported_learnings_is_rendered_again_after_they_have_changed(memory: Memory) -> None:
    memory.transfer.import_all([{**record, "vouched": "person", "origin": "person"} for record in records(1)])
    brief = memory.brief("the jars on shelf 0 rattle at night", task="task_1")
    assert "learn_0" in brief.learning_ids
    memory.edit("learn_0", title="Shelf 0 is empty")
    assert memory.explain(brief.id).text == brief.text


def test_a_purged_import_leaves_no_bytes(sqlite_memory: Memory, project: Path) -> None:
    record = {
        "id": "learn_9",
        "title": f"The code is {SECRET}",
        "observation": f"{SECRET}_door opens.",
        "cues": [SECRET],
    }
    sqlite_memory.transfer.import_all(iter([record, *records(3)]))
    sqlite_memory.edit("learn_9", action=f"Say {SECRET} aloud")
    sqlite_memory.purge("learn_9")
    sqlite_memory.close()
    files = [path for path in (project / ".learnt").rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    with Memory.open(project) as memory:
        database = memory.context.store.database
        assert vector_of(memory, "learn_9") is None
        assert database.value("select count(*) as left from learning_vector") == 3
        assert memory.search(SECRET) == []


def find_nearest(database: Database, vector: bytes, *, near: int) -> list[index.Candidate]:
    return index.find(database, Filter(), meanings=[(vector, MODEL)], near=near)[1]


def test_the_vector_follows_what_a_learning_says(memory: Memory) -> None:
    learning = memory.add("Restart the database server after the migration")
    memory.add("Water the plants in the office")
    wanted = embed(words("the server for databases must be restarted"))
    assert wanted is not None
    database = memory.context.store.database
    assert find_nearest(database, wanted, near=5)[0].id == learning.id
    before = vector_of(memory, learning.id)
    memory.edit(learning.id, title="Feed the cat in the kitchen")
    after = vector_of(memory, learning.id)
    assert before is not None
    assert after is not None
    assert likeness(wanted, after) < likeness(wanted, before)
    assert find_nearest(database, after, near=1)[0].id == learning.id
    memory.archive(learning.id)
    assert learning.id not in [one.id for one in find_nearest(database, after, near=5)]


def test_the_nearest_are_found_among_many(memory: Memory) -> None:
    topics = ["database migration", "garden flowers", "train timetable", "guitar strings", "login password"]
    memory.transfer.import_all(
        {"title": f"{topics[number % 5]} note {number}", "created_at": number} for number in range(1_200)
    )
    wanted = embed(words("flowers in the garden"))
    assert wanted is not None
    found = find_nearest(memory.context.store.database, wanted, near=20)
    titles = [memory.get(one.id).title for one in found]
    assert len(titles) == 20
    assert all(title.startswith("garden flowers") for title in titles)
    likenesses = [one.likeness or 0.0 for one in found]
    assert likenesses == sorted(likenesses, reverse=True)


def test_a_store_of_before_the_vectors_is_indexed_anew(sqlite_memory: Memory, project: Path) -> None:
    learning = sqlite_memory.add("Close the drawer", observation="It jams.", cues=["Kassensturz"])
    sqlite_memory.edit(learning.id, action="Push twice")
    before = as_record(sqlite_memory.get(learning.id)), sqlite_memory.history(learning.id)
    sqlite_memory.close()
    write_as_before(project / ".learnt" / "learnt.db", schema=10)
    with Memory.open(project) as memory:
        assert (as_record(memory.get(learning.id)), memory.history(learning.id)) == before
        for query in ("jams", "push", "Kassensturz"):
            assert memory.search(query)[0].learning.id == learning.id
        assert vector_of(memory, learning.id) is not None
        assert migrate.find_foreign(memory.context.store.database) == []
        assert memory.context.store.check() == []


def test_a_hook_leaves_a_long_migration_to_the_worker(sqlite_memory: Memory, project: Path) -> None:
    _write_many_as_before(sqlite_memory, project)
    with Memory.open_for_hook(project) as memory, pytest.raises(OldSchema):
        memory.search("drawer")
    with Memory.open(project) as memory:
        assert memory.search("drawer 7")
    with Memory.open_for_hook(project) as memory:
        assert memory.search("drawer 7")


def test_a_hook_that_leaves_it_to_the_worker_does_not_load_what_the_worker_needs(
    sqlite_memory: Memory, project: Path
) -> None:
    _write_many_as_before(sqlite_memory, project)
    words = [sys.executable, "-X", "importtime", "-m", "learnt", "hook"]
    event = event_text("UserPromptSubmit", cwd=str(project), prompt="Close drawer 7")
    loaded = subprocess.run(words, input=event, cwd=project, capture_output=True, text=True, check=True).stderr
    assert "learnt.flow.background" in loaded
    assert "learnt.mine" not in loaded
    ended(project)


def _write_many_as_before(memory: Memory, project: Path) -> None:
    """Leave a store of an older schema with more learnings than a hook may index anew."""
    memory.transfer.import_all({"title": f"Close drawer {number}"} for number in range(301))
    memory.close()
    write_as_before(project / ".learnt" / "learnt.db", schema=10)
