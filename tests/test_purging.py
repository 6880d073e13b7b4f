"""What a person purged stays away: from the store, from its copies, and from files that could bring it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory, TryAgain
from learnt.flow.background import LOCK
from learnt.learnings_file.write import remove_learning
from learnt.store import calls, reviews
from learnt.store.calls import ModelCall
from learnt.store.purge import TEXT_COLUMNS
from learnt.store.reviews import Escalation
from learnt.store.spool import SpoolRecord
from learnt.system.files import Locked
from tests.conftest import Clock, Done
from tests.support.shop import Shop

SECRET = "zebrathree"
SAID = f"The door code is {SECRET} for all"


def texts_of(memory: Memory) -> str:
    """Return all rows in which texts may be repeated, and the learnings with their history."""
    tables = ("learning", "event", "learning_words", "word", "rendered_line", *TEXT_COLUMNS)
    return str([memory.context.store.database.rows(f"select * from {table}") for table in tables])


def holding(folder: Path) -> list[str]:
    """Return the files below a folder that hold the secret, what git keeps apart."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return [str(path) for path in files if SECRET.encode() in path.read_bytes()]


def test_an_update_does_not_bring_back_what_was_purged(memory: Memory) -> None:
    gone, kept = memory.add(SAID), memory.add("Count the till at noon")
    memory.file.update()
    path = Path(memory.file.path())
    before = path.read_text()
    assert SAID in before

    memory.purge(gone.id)

    assert path.read_text() == "".join(line for line in before.splitlines(True) if SECRET not in line)
    update = memory.file.update()
    assert update.taken == ()
    assert SECRET not in path.read_text() + texts_of(memory)
    assert [one.id for one in memory.learnings(status=None).learnings] == [kept.id]


def test_on_the_command_line_it_is_in_no_file_afterwards(project: Path, learnt: Callable[..., Done]) -> None:
    learnt("init")
    id = json.loads(learnt("add", SAID, "--action", f"Say {SECRET} at the door", "--json").out)["id"]
    assert learnt("update").code == 0
    assert learnt("backup").code == 0
    with Memory.open(project) as memory:
        memory.context.store.spool.append(SpoolRecord("op_1", "brief", 1, {"learning": id, "text": SECRET}))
    Path(f"{project}/.learnt/learnings.md.new").write_text(SAID)
    assert len(holding(project)) > 3

    done = learnt("purge", id, "--yes")

    assert done.code == 0, done.err
    assert "learnings files" in done.out
    assert holding(project) == []
    assert learnt("update").code == 0
    assert holding(project) == []
    assert json.loads(learnt("list", "--status", "all", "--json").out)["learnings"] == []


def test_a_branch_that_still_has_the_bullet_does_not_bring_it_into_the_store(
    project: Path, learnt: Callable[..., Done]
) -> None:
    shop = Shop(project, learnt)
    shop.git("init", "-q", "-b", "main")
    (project / ".gitignore").write_text("learnt.toml\n")
    with Memory.open(project) as memory:
        id = memory.add(SAID).id
        memory.add("Count the till at noon")
        memory.file.update()
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "both")
    shop.git("checkout", "-q", "-b", "other")
    path = project / ".learnt" / "learnings.md"
    # Whatever the branch made of its text: it is the learning that is gone.
    path.write_text(path.read_text().replace(SAID, f"{SAID}, even at night"))
    shop.git("commit", "-q", "-a", "-m", "reworded")
    shop.git("checkout", "-q", "main")
    assert learnt("purge", id, "--yes").code == 0
    shop.git("commit", "-q", "-a", "-m", "purged")

    for branch in ("other", "main~1"):
        shop.git("checkout", "-q", branch, "--", ".learnt/learnings.md")
        assert SECRET in path.read_text()
        assert learnt("update").code == 0
        assert SECRET not in path.read_text()
        with Memory.open(project) as memory:
            assert [one.title for one in memory.learnings(status=None).learnings] == ["Count the till at noon"]
            assert SECRET not in texts_of(memory)


def test_the_files_of_goals_and_text_beside_bullets_are_purged_too(memory: Memory) -> None:
    memory.context.settings = memory.settings.replace(learnings_injection_strategy="both")
    gone = memory.add(SAID, goal="tills", observation=f"Somebody read {SECRET} out aloud")
    memory.edit(gone.id, title=f"Never tell {SECRET} to a guest")
    other = memory.add(f"Never tell {SECRET} to a guest, nor to a waiter", goal="tills")
    memory.file.update()
    path = Path(memory.file.path("tills"))
    assert gone.id in path.read_text()
    path.write_text(path.read_text() + f"\nAnna says: Somebody read {SECRET} out aloud, in May.\n\n- {SAID.upper()}\n")
    memory.file.update()
    path.write_text(path.read_text() + f"\n- {SAID}\n")

    memory.purge(gone.id)

    left = path.read_text()
    assert "Anna says: [purged], in May." in left
    assert SAID not in left
    assert f"- {other.title} <!-- {other.id} -->\n" in left, "another learning is not touched"
    memory.file.update()
    assert memory.get(other.id).title == other.title
    titles = [one.title for one in memory.learnings(status=None).learnings]
    assert SAID not in titles


def test_what_was_asked_of_people_and_of_models_about_it_goes_too(memory: Memory, clock: Clock) -> None:
    learning = memory.add(SAID)
    path = Path(memory.file.path())
    memory.file.update()
    path.write_text(path.read_text() + f"\n## Doors\n\nAnna says: {SAID}.\n")
    memory.file.update()
    call = ModelCall(
        id="call_1", purpose="extract", provider="command", model="", result="failed", at=clock(), reason=f"no: {SAID}"
    )
    about = Escalation(
        id="esc_1", subject=learning.id, question="Change it?", detail={"title": f"Say {SECRET}"}, created_at=clock()
    )
    beside = Escalation(id="esc_2", subject="task_1", question=SAID, detail={"quoted": SAID}, created_at=clock())
    with memory.context.store.transaction():
        calls.add(memory.context.store.database, call)
        for one in (about, beside):
            reviews.add_escalation(memory.context.store.database, one)
    assert texts_of(memory).count(SECRET) > 8

    memory.purge(learning.id)

    assert SECRET not in texts_of(memory)
    assert [one.id for one in memory.tasks.escalations()] == ["esc_2"]


def test_a_text_that_is_short_leaves_the_renderings_by_its_id(memory: Memory) -> None:
    gone, _ = memory.add("hunter2"), memory.add("Count the till at noon")
    memory.file.update()
    memory.purge(gone.id)
    assert "hunter2" not in texts_of(memory) + Path(memory.file.path()).read_text()


def test_while_the_files_are_being_made_nothing_is_purged(memory: Memory) -> None:
    learning = memory.add(SAID)
    memory.file.update()
    with Locked(str(Path(memory.context.store.place.folder) / LOCK)), pytest.raises(TryAgain, match="being updated"):
        memory.purge(learning.id)
    assert memory.get(learning.id).title == SAID


def test_a_file_that_cannot_be_read_is_told_and_does_not_keep_the_learning(memory: Memory) -> None:
    learning = memory.add(SAID)
    memory.file.update()
    path = Path(memory.file.path())
    path.write_bytes(path.read_bytes() + b"\xff\xfe")
    memory.purge(learning.id)
    assert any(str(path) in remark and "UTF-8" in remark for remark in memory.remarks)
    assert SECRET not in texts_of(memory)


def test_what_a_person_imports_again_is_a_learning_like_any_other(memory: Memory) -> None:
    learning = memory.add("Count the till at noon")
    (record,) = [one.as_dict() for one in memory.transfer.export()]
    memory.file.update()
    memory.purge(learning.id)
    memory.transfer.import_all([{key: value for key, value in record.items() if key != "scope"}])
    memory.file.update()
    path = Path(memory.file.path())
    path.write_text(path.read_text().replace("at noon", "at night"))
    memory.file.update()
    assert memory.get(learning.id).title == "Count the till at night"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_lines_of_the_learning_go(end: str) -> None:
    lines = [
        "# Project Learnings",
        "",
        "* One",
        "- The door code",
        "  is zebrathree",
        "",
        "  for all <!-- learn_1 -->",
        "- Three <!-- learn_3 -->",
        "",
        "1. THE door code is zebrathree",
        "- Avoid: the door code is zebrathree",
        "- the door code is zebrathree <!-- learn_4 -->",
    ]
    left = remove_learning("\ufeff" + end.join(lines), "learn_1", ["The door code is zebrathree"])
    kept = [lines[place] for place in (0, 1, 2, 5, 7, 8, 11)]
    assert left == "\ufeff" + end.join(kept)
    assert remove_learning(left, "learn_1", ["The door code is zebrathree"]) == left
    assert remove_learning(left, "learn_2", []) == left
