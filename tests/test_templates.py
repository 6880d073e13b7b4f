"""Templates: a project can start with common learnings, those that come along or its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import InvalidValue, Memory, WrongRequest
from learnt.flow.transfer import Transfer
from tests.conftest import Done

Command = Callable[..., Done]


@pytest.mark.parametrize("name", sorted(Transfer.templates()))
def test_each_says_what_to_do_with_which_tool(sqlite_memory: Memory, name: str) -> None:
    records = Transfer.template(name)
    assert 6 <= len(records) <= 10
    assert sqlite_memory.transfer.start_with(records, template=name).added == len(records)
    for learning in sqlite_memory.transfer.export():
        assert (learning.origin, learning.confidence, learning.status) == ("import", 0.5, "active")
        assert {"template", name} <= set(learning.tags)
        assert learning.category
        assert learning.observation
        assert re.search(r"`[^`]+`", learning.action), learning.title  # names something to type or to look for


def test_several_templates_share_nothing(sqlite_memory: Memory) -> None:
    for name in Transfer.templates():
        assert sqlite_memory.transfer.start_with(Transfer.template(name)).known == 0


def test_a_second_time_only_what_is_missing_is_added(memory: Memory) -> None:
    records = Transfer.template("python")
    assert memory.transfer.start_with(records, template="python").as_dict() == {"added": 8, "known": 0}
    hidden, purged = list(memory.transfer.export())[:2]
    memory.hide(hidden.id)
    memory.purge(purged.id)
    assert memory.transfer.start_with(records, template="python").as_dict() == {"added": 1, "known": 7}
    assert memory.get(hidden.id).status == "hidden"


def test_what_is_known_in_other_words_of_the_same_title_is_not_added(memory: Memory) -> None:
    memory.add("a mutable default argument is shared by ALL calls!")
    assert memory.transfer.start_with(Transfer.template("python")).known == 1


def test_of_an_export_only_what_it_says_counts(memory: Memory) -> None:
    record = {
        "id": "learn_elsewhere", "title": "Run make lint", "tags": ["git"], "confidence": 0.9, "times_helpful": 7,
        "origin": "agent", "task": "task_1", "created_at": 1, "updated_at": 2,
    }  # fmt: skip
    put_away = {"title": "Long gone", "status": "archived"}
    assert memory.transfer.start_with([record, put_away]).as_dict() == {"added": 1, "known": 0}
    [learning] = memory.transfer.export()
    assert learning.id != "learn_elsewhere"
    assert (learning.origin, learning.times_helpful, learning.task) == ("import", 0, "")
    assert (learning.tags, learning.confidence) == (("git", "template"), 0.5)


def test_a_bad_entry_refuses_the_whole_template(memory: Memory) -> None:
    with pytest.raises(InvalidValue, match="entry 2"):
        memory.transfer.start_with([{"title": "Good"}, {"title": "Bad", "colour": "red"}])
    assert list(memory.transfer.export()) == []


def test_an_unknown_template_is_refused_with_the_list() -> None:
    with pytest.raises(WrongRequest, match="no template `cobol`") as told:
        Transfer.template("cobol")
    assert all(name in told.value.hint for name in Transfer.templates())


class TestInit:
    def test_it_starts_a_project_and_adds_only_what_is_missing(self, learnt: Command) -> None:
        told = learnt("init", "--template", "python", "--template", "go")
        assert told.code == 0, told.err
        assert "Template python: 8 learnings added\n" in told.out
        assert "Template go: 8 learnings added\n" in told.out
        again = json.loads(learnt("init", "--template", "go", "--json").out)
        assert again["templates"] == {"go": {"added": 0, "known": 8}}
        assert "0 learnings added; 8 were there already" in learnt("init", "--template", "go").out

    def test_list_and_help_name_them_and_make_nothing(self, learnt: Command, project: Path) -> None:
        told = learnt("init", "--template", "list")
        assert [line.split()[0] for line in told.out.splitlines()] == sorted(Transfer.templates())
        listed = json.loads(learnt("init", "--template", "list", "--json").out)
        assert [one["id"] for one in listed] == sorted(Transfer.templates())
        assert "typescript" in learnt("init", "--help").out
        assert list(project.iterdir()) == []

    @pytest.mark.parametrize("name", ["cobol", "./none.md", "none.jsonl"])
    def test_what_cannot_be_read_is_told_before_anything_is_made(
        self, learnt: Command, project: Path, name: str
    ) -> None:
        done = learnt("init", "--template", name)
        assert done.code == 2
        assert "hint: " in done.err
        assert "Traceback" not in done.err
        assert list(project.iterdir()) == []

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("team.md", "# Ours\n\n## Run `make lint`\n\n**Action**: make lint\n"),
            ("team.jsonl", '{"title": "Run `make lint`", "action": "make lint"}\n'),
        ],
    )
    def test_a_file_of_ones_own_is_a_template(self, learnt: Command, project: Path, name: str, content: str) -> None:
        (project / name).write_text(content)
        assert learnt("init", "--template", f"./{name}").code == 0
        [learning] = json.loads(learnt("list", "--json").out)["learnings"]
        assert (learning["action"], learning["tags"], learning["origin"]) == ("make lint", ["template"], "import")

    def test_what_it_brings_waits_for_review(self, learnt: Command) -> None:
        learnt("init", "--template", "rust")
        assert len(json.loads(learnt("review", "--json").out)) == 8
