"""Identifiers that a vouched learning names: whoever is about to edit or run what names them is told, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.system import watched
from learnt.text.triggers import list_mentioned, list_names
from tests.support.doors import Learnt

TITLE = "Round before `add_vat` is applied, never after it"
Call = Callable[..., str]


@pytest.fixture
def call(project: Path, learnt: Learnt) -> Call:
    """Send a call of a tool in Claude Code's format; return what the agent is told."""

    def send(tool: str, session: str = "s1", **arguments: Any) -> str:
        payload = {"hook_event_name": "PreToolUse", "session_id": session, "cwd": str(project), "tool_name": tool}
        done = learnt("hook", stdin=json.dumps({**payload, "tool_input": arguments}))
        return json.loads(done.out)["hookSpecificOutput"].get("additionalContext", "") if done.out else ""

    return send


def edit(call: Call, old: str, new: str, **more: str) -> str:
    return call("Edit", file_path="src/billing.py", old_string=old, new_string=new, **more)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Round before `add_vat` is applied", ["add_vat"]),
        ("InvoiceBuilder and getUserByID and HTTPServer are slow", ["InvoiceBuilder", "getUserByID", "HTTPServer"]),
        ("Set MAX_RETRIES in `settings.py`", ["MAX_RETRIES"]),
        ("`billing.tax.add_vat()` rounds", ["billing.tax.add_vat", "add_vat"]),
        ("`std::collections::BTreeMap` is sorted", ["std.collections.BTreeMap", "BTreeMap"]),
        ("E0308 and TS2345 mean a wrong type", ["TS2345", "E0308"]),
        ("See tests/test_api.py::test_login_works", ["test_login_works"]),
        ('Write `kind := DefaultKind` instead of `kind := makeKind("x")`', []),
        ("See example.com, README.md, app.config.json and the `__init__` of it.Then go on, e.g. here", []),
        ("Use pytest with JavaScript on GitHub; a ValueError in `os.path` says nothing", []),
        ("Plain words say nothing, and neither do APIs, URLs or PDFs", []),
    ],
)
def test_unmistakable_identifiers_are_found_in_prose(text: str, names: list[str]) -> None:
    assert sorted(list_names(text)) == sorted(names)


@pytest.mark.parametrize("text", ["", "." * 5000, "a." * 5000, "_" * 5000, "aB" * 5000, "\0\ud800", "a::" * 5000])
def test_any_text_is_read(text: str) -> None:
    assert len(list_names(text)) <= 5
    list_mentioned(text)


def test_an_edit_that_names_it_is_told_once_in_a_conversation(project: Path, call: Call) -> None:
    with Memory.open(project) as memory:
        memory.add(TITLE)
    assert "add_vat" in edit(call, "total = net", "total = add_vat(net)")
    assert edit(call, "total = net", "total = add_vat(net)") == ""
    assert "add_vat" in edit(call, "x = add_vat(net)", "x = net", session="s2")
    assert "add_vat" in call("Write", session="s3", file_path="a.py", content="from tax import add_vat\n")
    assert "add_vat" in call("Bash", session="s4", command="python -c 'import tax; tax.add_vat(1)'")


@pytest.mark.parametrize(
    "code", ["total = vat(net)", "total = add_vat_twice(net)", "ADD_VAT = 1", "# add vat to the net", "add_vatx()"]
)
def test_only_the_whole_name_in_its_spelling_counts(project: Path, call: Call, code: str) -> None:
    with Memory.open(project) as memory:
        memory.add(TITLE)
    assert edit(call, "", code) == ""


def test_looking_for_a_name_touches_nothing(project: Path, call: Call) -> None:
    with Memory.open(project) as memory:
        memory.add(TITLE)
    assert call("Bash", command="grep -rn add_vat src") == ""
    assert call("Read", file_path="add_vat.py") == ""


def test_what_nobody_vouches_for_is_not_told(project: Path, call: Call) -> None:
    with Memory.open(project) as memory:
        learning = memory.add(TITLE, origin="agent")
    assert edit(call, "", "add_vat(net)") == ""
    with Memory.open(project) as memory:
        memory.like(learning.id)
    assert "add_vat" in edit(call, "", "add_vat(net)")
    with Memory.open(project) as memory:
        memory.hide(learning.id)
    assert edit(call, "", "add_vat(net)", session="s2") == ""


def test_a_changed_learning_is_told_by_its_new_names(project: Path, call: Call) -> None:
    with Memory.open(project) as memory:
        learning = memory.add(TITLE)
        memory.edit(learning.id, title="Round before `apply_tax` is called")
    assert edit(call, "", "add_vat(net)") == ""
    assert "apply_tax" in edit(call, "", "apply_tax(net)")


def test_at_most_two_are_told_its_own_triggers_first(project: Path, call: Call) -> None:
    with Memory.open(project) as memory:
        for name in ("one", "two", "three"):
            memory.add(f"`add_vat` needs the {name} rate", pinned=True)
        memory.add("Billing is frozen", triggers={"files": ["src/billing.py"]})
    told = edit(call, "", "add_vat(net)")
    assert "Billing is frozen" in told
    assert told.count("needs the") == 1


def test_names_interrupt_a_conversation_twice_at_most(project: Path, call: Call) -> None:
    with Memory.open(project) as memory:
        for name in ("add_vat", "split_cents", "round_up"):
            memory.add(f"`{name}` is for coins only")
    told = [edit(call, "", f"{name}(net)") for name in ("add_vat", "split_cents", "round_up")]
    assert [bool(text) for text in told] == [True, True, False]
    assert "round_up" in edit(call, "", "round_up(net)", session="s2")


def test_a_name_in_many_learnings_or_files_says_nothing(project: Path, call: Call) -> None:
    with Memory.open(project) as memory:
        for number in range(4):
            memory.add(f"`add_vat` needs rate {number}")
        memory.add("`split_cents` loses one")
        memory.add("`round_up` is for coins only")
        for number in range(10):
            (project / f"shop{number}.py").write_text("split_cents(total)\n")
        memory.worker.catch_up()
    assert edit(call, "", "add_vat(net)") == ""
    assert edit(call, "", "split_cents(net)") == ""
    assert "round_up" in edit(call, "", "round_up(net)")


def test_the_hook_ends_early_where_no_name_occurs(project: Path) -> None:
    with Memory.open(project) as memory:
        learning = memory.add(TITLE)
        memory.add("`TaxTable::lookup` is slow")
        memory.worker.catch_up()
        folder = memory.folder
        arguments = {"file_path": "a.py", "old_string": "x", "new_string": "y = 1"}
        assert watched.concerns_nothing(folder, "Edit", arguments)
        assert not watched.concerns_nothing(folder, "Edit", {**arguments, "new_string": "add_vat(net)"})
        assert not watched.concerns_nothing(folder, "Edit", {**arguments, "new_string": "TaxTable::lookup(net)"})
        memory.hide(learning.id)
        assert not watched.is_current(folder)
        memory.worker.catch_up()
        assert watched.concerns_nothing(folder, "Edit", {**arguments, "new_string": "add_vat(net)"})


def test_names_of_a_purged_learning_are_gone(project: Path) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Round before `secretly_add_vat` is applied")
        memory.purge(learning.id)
    for path in (project / ".learnt").rglob("*"):
        assert path.is_dir() or b"secretly_add_vat" not in path.read_bytes(), path
