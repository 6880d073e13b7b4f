"""What every database must share, through `Memory`: each test runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from learnt import InvalidValue, Memory, NoStore, NotFound, Triggers, WrongRequest
from learnt.model import KINDS, ORIGINS, POLARITIES
from learnt.text.records import as_record
from tests.conftest import Clock


def test_a_learning_reads_back_as_it_was_added(memory: Memory) -> None:
    added = memory.add(
        "Run `make lint` before each commit",
        context="Committing to main",
        observation="The hook rejects\nunformatted files",
        implication="A commit can fail late",
        action="make lint",
        tags=["Git", "lint", "git"],
        domain="tooling",
        category="git",
        kind="gotcha",
        polarity="avoid",
        triggers=Triggers(files=("*.py",), commands=("git commit",), errors=("E501",), tools=("Bash",)),
        goal="clean-history",
        task="task_1",
        discovery="d1",
        commit="abc123",
        pinned=True,
    )

    assert memory.get(added.id) == added
    assert added.tags == ("git", "lint")
    assert added.confidence == 0.8, "a person's word counts at once"
    assert (added.times_injected, added.status, added.version) == (0, "active", 1)


def test_only_the_title_is_required_and_its_white_space_is_folded(memory: Memory) -> None:
    assert memory.add("  Run\n\tmake   lint ").title == "Run make lint"
    with pytest.raises(InvalidValue):
        memory.add(" \u200b\n ")


def test_equal_learnings_are_not_merged(memory: Memory) -> None:
    assert memory.add("Same").id != memory.add("Same").id
    assert memory.learnings().total == 2


@pytest.mark.parametrize(
    "text",
    [
        "lone \ud800 surrogate",
        "nul \x00 byte",
        "bell \x07 and \x1b[31mescape",
        "zero\u200bwidth \u202ebidi",
        "tag \U000e0041",
    ],
)
def test_text_is_cleaned_the_same_on_every_database(memory: Memory, text: str) -> None:
    added = memory.add(text, observation=text, tags=[text], action=text)
    read = memory.get(added.id)

    assert read == added
    for letter in "\ud800\x00\x07\x1b\u200b\u202e\U000e0041":
        assert letter not in read.title + read.observation + read.action + "".join(read.tags)
    assert memory.learnings(tag=text).total == 1


@pytest.mark.parametrize(
    "text", ["naïve 日本語 👩‍👩‍👧 ''; drop table learning; --", "100% :name %s %(x)s \\ _", "ß" * 100]
)
def test_odd_but_visible_text_stays_as_it_is(memory: Memory, text: str) -> None:
    assert memory.get(memory.add(text, action=text, tags=[text.lower()]).id).action == text
    assert memory.learnings(tag=text).total == 1


@pytest.mark.parametrize(
    ("field", "values"),
    [("kind", KINDS), ("polarity", POLARITIES), ("origin", ORIGINS)],
    ids=lambda value: str(value)[:8],
)
def test_every_value_of_a_field_can_be_stored(memory: Memory, field: str, values: tuple[str, ...]) -> None:
    for value in values:
        assert getattr(memory.get(memory.add_all([{"title": value, field: value}])[0].id), field) == value
    with pytest.raises(InvalidValue, match="unknown"):
        memory.add_all([{"title": "t", field: "no-such-value"}])


def test_what_cannot_be_a_learning_is_refused_whole(memory: Memory) -> None:
    for wrong in (
        {"title": "x" * 101},
        {"title": "t", "confidence": 1.1},
        {"title": "t", "confidence": float("nan")},
        {"title": "t", "observation": "x" * 20_001},
        {"title": "t", "tags": ["ok", " "]},
        {"title": "t", "tags": "not a list"},
        {"title": "t", "goal": "../escape"},
        {"title": "t", "titel": "misspelt"},
        {"title": 7},
        {"title": "t", "triggers": {"file": ["*"]}},
    ):
        with pytest.raises(InvalidValue):
            memory.add_all([{"title": "fine"}, wrong])
    assert memory.learnings(status=None).total == 0


def test_an_unknown_id_is_an_error_with_a_hint(memory: Memory) -> None:
    with pytest.raises(NotFound) as caught:
        memory.get("learn_none")
    assert "learnt list" in caught.value.hint


def test_a_list_is_newest_first_in_pages(memory: Memory) -> None:
    ids = [memory.add(f"Learning {number}").id for number in range(7)]

    pages = [memory.learnings(limit=3, offset=offset) for offset in (0, 3, 6, 9)]

    assert [learning.id for page in pages for learning in page.learnings] == ids[::-1]
    assert {page.total for page in pages} == {7}


def test_a_list_is_filtered_by_every_field(memory: Memory) -> None:
    wanted = memory.add(
        "Wanted", domain="db", category="sql", tags=["a b", "c"], kind="gotcha", goal="g", confidence=0.9
    )
    memory.add("Other", domain="ui", category="css", tags=["a"], kind="solution", goal="h", confidence=0.3)

    for filters in (
        {"domain": "db"},
        {"category": "sql"},
        {"tag": "A B"},
        {"kind": "gotcha"},
        {"goal": "g"},
        {"min_confidence": 0.9},
    ):
        page = memory.learnings(**filters)
        assert [learning.id for learning in page.learnings] == [wanted.id], filters
        assert page.total == 1
    memory.hide(wanted.id)
    assert memory.learnings(status="hidden").total == 1
    assert memory.learnings(status=None).total == 2


def test_every_change_is_an_event_with_who_when_from_and_to(memory: Memory, clock: Clock) -> None:
    learning = memory.add("First", tags=["x"])
    clock.advance(days=1)
    memory.edit(learning.id, title="Second", tags=["y", "x"], reason="better")

    born, edited = memory.history(learning.id)

    assert (born.what, born.who, born.version, born.old, born.new["title"]) == ("add", "anna", 1, {}, "First")
    assert (edited.what, edited.reason, edited.version) == ("edit", "better", 2)
    assert (edited.old, edited.new) == ({"title": "First", "tags": ["x"]}, {"title": "Second", "tags": ["x", "y"]})
    assert edited.at - born.at > 86_000_000
    assert memory.get(learning.id).updated_at == edited.at


def test_a_change_that_changes_nothing_leaves_no_event(memory: Memory) -> None:
    learning = memory.add("Same")
    memory.edit(learning.id, title=" Same ")
    memory.restore(learning.id)
    memory.pin(learning.id, pinned=False)
    assert len(memory.history(learning.id)) == 1
    assert memory.get(learning.id) == learning


def test_status_goes_away_and_comes_back(memory: Memory) -> None:
    learning = memory.add("Here")
    assert memory.archive(learning.id).status == "archived"
    assert memory.hide(learning.id).status == "hidden"
    assert memory.restore(learning.id).status == "active"
    assert [event.what for event in memory.history(learning.id)] == ["add", "archive", "hide", "restore"]


def test_a_like_counts_once_per_person_and_never_beyond_one(
    memory: Memory, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = memory.add("Good", confidence=0.93)
    assert memory.like(learning.id).confidence == 0.98
    assert memory.like(learning.id).confidence == 0.98
    monkeypatch.setenv("LEARNT_PERSON", "berta")
    with Memory.open(project) as of_berta:
        assert of_berta.like(learning.id).confidence == 1.0


def test_a_like_that_was_undone_can_be_given_again(memory: Memory) -> None:
    learning = memory.add("Good")
    memory.like(learning.id)
    assert memory.undo(learning.id).confidence == 0.8
    assert memory.like(learning.id).confidence == 0.85


def test_superseding_links_both_ways_and_refuses_circles(memory: Memory) -> None:
    a, b, c = (memory.add(title) for title in "abc")
    memory.supersede(a.id, b.id)
    memory.supersede(b.id, c.id)

    assert (memory.get(a.id).status, memory.get(a.id).superseded_by) == ("superseded", b.id)
    assert memory.supersedes(b.id) == [a.id]
    for old, new in ((a.id, a.id), (c.id, a.id), (c.id, c.id)):
        with pytest.raises(WrongRequest):
            memory.supersede(old, new)
    assert memory.restore(a.id).superseded_by == ""


def test_repeated_undo_walks_back_to_before_the_learning_was_added(memory: Memory) -> None:
    learning = memory.add("One")
    memory.edit(learning.id, title="Two", triggers={"files": ["*.py"]})
    memory.pin(learning.id)

    assert memory.undo(learning.id).pinned is False
    assert (memory.undo(learning.id).title, memory.get(learning.id).triggers) == ("One", Triggers())
    assert memory.undo(learning.id).status == "archived"
    with pytest.raises(WrongRequest, match="already been undone"):
        memory.undo(learning.id)
    assert [event.what for event in memory.history(learning.id)] == ["add", "edit", "pin", "undo", "undo", "undo"]


def test_undoing_an_event_keeps_later_changes_of_other_fields(memory: Memory) -> None:
    learning = memory.add("One", action="old")
    memory.edit(learning.id, title="Two")
    memory.edit(learning.id, action="new")
    first_edit = memory.history(learning.id)[1]

    undone = memory.undo(first_edit.id)

    assert (undone.title, undone.action) == ("One", "new")
    redone = memory.undo(memory.history(learning.id)[-1].id)
    assert (redone.title, redone.action) == ("Two", "new")


def test_undoing_what_was_changed_again_is_refused(memory: Memory) -> None:
    learning = memory.add("One")
    memory.edit(learning.id, title="Two")
    first_edit = memory.history(learning.id)[1]
    memory.edit(learning.id, title="Three")
    with pytest.raises(WrongRequest, match="changed again"):
        memory.undo(first_edit.id)
    assert memory.get(learning.id).title == "Three"


def test_the_state_of_a_learning_is_the_sum_of_its_events(memory: Memory) -> None:
    learning = memory.add("One", tags=["a"])
    memory.edit(learning.id, title="Two", observation="x\ny")
    memory.like(learning.id)
    memory.hide(learning.id)
    memory.undo(learning.id)

    replayed: dict[str, object] = {}
    for event in memory.history(learning.id):
        replayed.update(event.new)

    present = as_record(memory.get(learning.id))
    assert {name: present[name] for name in replayed} == replayed


def test_an_exported_learning_comes_back_with_id_and_counters_and_only_once(memory: Memory, tmp_path: Path) -> None:
    learning = memory.add("Moves", observation="a\nb", tags=["x"], triggers={"errors": ["E1"]}, confidence=0.9)
    memory.archive(memory.add("Put away").id)
    records = [as_record(exported) for exported in memory.transfer.export()]

    (tmp_path / "other").mkdir()
    with Memory.open(tmp_path / "other") as other:
        assert other.transfer.import_all(records, as_is=True).added == 2
        assert other.transfer.import_all(records).unchanged == 2
        moved = other.get(learning.id)

    assert moved == learning
    assert memory.transfer.import_all(records).unchanged == 2


def test_an_import_never_overwrites_what_is_newer_here(memory: Memory) -> None:
    learning = memory.add("Old title")
    [record] = [as_record(exported) for exported in memory.transfer.export()]
    memory.edit(learning.id, title="Newer title")

    assert memory.transfer.import_all([record]).kept == 1
    assert memory.get(learning.id).title == "Newer title"


def test_an_import_without_ids_adds_once(memory: Memory) -> None:
    records = [{"title": "From elsewhere", "action": "x"}, {"title": "From elsewhere", "action": "y"}]
    assert memory.transfer.import_all(records).added == 2
    assert memory.transfer.import_all(records).unchanged == 2
    assert {learning.origin for learning in memory.learnings().learnings} == {"import"}
    assert {learning.confidence for learning in memory.learnings().learnings} == {0.5}


def test_a_purged_learning_is_gone_with_its_history(memory: Memory) -> None:
    kept, gone = memory.add("Kept"), memory.add("Holds a secret")
    memory.edit(gone.id, action="secret")

    memory.purge(gone.id)

    for look in (memory.get, memory.history):
        with pytest.raises(NotFound):
            look(gone.id)
    assert memory.get(kept.id) == kept


def test_a_backup_is_a_store_with_everything_in_it(memory: Memory, tmp_path: Path) -> None:
    learning = memory.add("Kept")
    memory.edit(learning.id, title="Kept well")
    target = tmp_path / "copy" / ".learnt" / "learnt.db"

    memory.transfer.backup(str(target))

    with Memory.open(tmp_path / "copy", create=False) as copy:
        assert copy.get(learning.id) == memory.get(learning.id)
        assert copy.history(learning.id) == memory.history(learning.id)
        assert copy.context.store.check() == []
    with pytest.raises(WrongRequest, match="exists"):
        memory.transfer.backup(str(target))


def test_another_project_in_the_same_database_sees_nothing(
    memory: Memory, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = memory.add("Mine")
    other = tmp_path / "other"
    other.mkdir()
    if database:
        monkeypatch.setenv("LEARNT_DATABASE", database)
        monkeypatch.setenv("LEARNT_PROJECT", "other")
    with Memory.open(other) as theirs:
        assert theirs.learnings(status=None).total == 0
        with pytest.raises(NotFound):
            theirs.get(learning.id)


def test_an_address_opens_the_same_database_as_the_setting(
    memory: Memory, database: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = memory.add("Here")
    monkeypatch.chdir(project)
    with Memory.open(database or ".") as by_address:
        assert by_address.get(learning.id) == learning


def test_no_way_leads_to_a_circle_of_supersession(memory: Memory) -> None:
    a, b, c = (memory.add(title) for title in "abc")
    memory.supersede(a.id, b.id)
    memory.restore(a.id)
    restored = memory.history(a.id)[-1]
    memory.supersede(b.id, a.id)
    with pytest.raises(WrongRequest, match="supersede itself"):
        memory.undo(restored.id)
    memory.supersede(a.id, c.id)
    for circular in ({"id": c.id, "superseded_by": b.id}, {"id": c.id, "superseded_by": c.id}):
        record = {"title": "c", "status": "superseded", "updated_at": 2**50, **circular}
        with pytest.raises((InvalidValue, WrongRequest)):
            memory.transfer.import_all([record])
    assert memory.get(c.id).status == "active"


def test_a_circle_is_told_with_the_learning_that_closes_it(memory: Memory) -> None:
    a, b, c = (memory.add(title) for title in "ABC")
    memory.supersede(a.id, b.id)
    memory.supersede(b.id, c.id)
    with pytest.raises(WrongRequest, match=f"`{c.id}` would supersede itself.* `{b.id}`"):
        memory.supersede(c.id, a.id)


def test_a_purged_successor_breaks_no_chain(memory: Memory) -> None:
    a, b, c = (memory.add(title) for title in "abc")
    memory.supersede(a.id, b.id)
    memory.purge(b.id)
    assert memory.supersede(c.id, a.id).superseded_by == a.id


def test_an_import_is_all_or_nothing_and_names_the_bad_entry(memory: Memory) -> None:
    records = [{"title": f"Learning {number}"} for number in range(700)] + [{"title": ""}]
    with pytest.raises(InvalidValue, match="entry 701"):
        memory.transfer.import_all(records)
    assert memory.learnings(status=None).total == 0


def test_a_file_can_be_edited_and_imported_again_and_again(memory: Memory) -> None:
    learning = memory.add("Title")
    [record] = [as_record(exported) for exported in memory.transfer.export()]
    for title in ("Second", "Third"):
        assert memory.transfer.import_all([{**record, "title": title}]).updated == 1
    assert memory.get(learning.id).title == "Third"


def test_tags_are_added_and_dropped_beside_what_others_do(memory: Memory) -> None:
    learning = memory.add("Tagged", tags=["a", "b"])
    assert memory.edit(learning.id, add_tags=["#C"], drop_tags=["A"]).tags == ("b", "c")
    with pytest.raises(InvalidValue, match="tags"):
        memory.add("Wrong", tags="abc")


def test_a_restored_backup_brings_everything_back(memory: Memory, tmp_path: Path) -> None:
    kept, changed = memory.add("Kept", triggers={"files": ["*.py"]}), memory.add("Before")
    backup = memory.transfer.backup(str(tmp_path / "backup.db"))
    memory.edit(changed.id, title="After")
    memory.purge(kept.id)
    late = memory.add("Late")

    before = memory.transfer.restore_backup(backup)

    assert memory.get(kept.id) == kept
    assert (memory.get(changed.id).title, len(memory.history(changed.id))) == ("Before", 1)
    with pytest.raises(NotFound):
        memory.get(late.id)
    assert [hit.learning.id for hit in memory.search("edit x.py kept")] == [kept.id]
    assert memory.context.store.check() == []
    memory.transfer.restore_backup(before)
    assert memory.get(late.id).title == "Late"


def test_only_init_and_open_create_a_store(project: Path, empty_database: str) -> None:
    with pytest.raises(NoStore), Memory.open(project, create=False) as memory:
        memory.learnings()
    with Memory.open(project) as memory:
        memory.add("Now there is one")
    with Memory.open(project, create=False) as memory:
        assert memory.learnings().total == 1


def test_times_must_be_times(memory: Memory) -> None:
    for wrong in (2**70, "x", 1.5, -1):
        with pytest.raises(InvalidValue):
            memory.add("Title", created_at=wrong)  # type: ignore[arg-type]
    assert memory.add("Title", created_at=7).created_at == 7
