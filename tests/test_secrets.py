"""Secrets are redacted before anything is stored, by whichever door they come."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.errors import InvalidValue
from learnt.flow import hook_events
from learnt.flow.briefs import BriefRequest
from learnt.flow.context import Context
from learnt.model import Triggers
from tests.conftest import Done
from tests.support import leaks
from tests.support.postgres import PostgresServer
from tests.support.secrets import Secret, draw, is_missed, secrets

Learnt = Callable[..., Done]
TOKEN = draw("ghp_{a:36}", random.Random(7))[0]


@cache
def sample() -> list[Secret]:
    """Secrets of each form; not at import, because every process of the tests imports this."""
    return [secret for secret in secrets() if not is_missed(secret)][::250]


def test_no_door_lets_a_secret_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leaks.walk(sample(), monkeypatch) == {}


def test_no_door_lets_a_secret_into_a_table(memory: Memory, project: Path) -> None:
    for number, secret in enumerate(sample()):
        leaks.tell_memory(memory, number, secret.text)

    search = leaks.Search(sample())
    assert memory.redactions > 10 * len(sample())
    assert search.found(leaks.dump(memory.context.store.database)) == set()
    assert search.found_in_files((project / ".learnt").rglob("*")) == {}


def test_the_search_finds_what_was_not_redacted(memory: Memory, project: Path) -> None:
    memory.brief("Nothing secret", task="task_1")
    for number, secret in enumerate(sample()[:3]):
        memory.context.store.database.execute(
            "insert into goal (project, name, created_at) values (:project, :name, 1)", name=f"{number} {secret.text}"
        )
    search = leaks.Search(sample())
    assert search.found(leaks.dump(memory.context.store.database)) == {0, 1, 2}
    if memory.context.store.place.address:
        return
    assert search.found_in_files((project / ".learnt").rglob("*"))["learnt.db-wal"] == {0, 1, 2}


# By hand


def test_what_is_added_and_edited_by_hand_is_redacted_and_counted(memory: Memory) -> None:
    learning = memory.add(
        f"Push with {TOKEN}",
        context=f"a\n{TOKEN}\nb",
        tags=["git", TOKEN],
        triggers=Triggers(errors=(f"bad {TOKEN}", "E1")),
    )
    assert learning.title == "Push with [redacted: github-token]"
    assert learning.context == "a\n[redacted: github-token]\nb"
    assert (learning.tags, learning.triggers) == (("git",), Triggers(errors=("E1",)))
    assert memory.redactions == 4

    edited = memory.edit(learning.id, action=f"use {TOKEN}", add_tags=[TOKEN, "ci"], reason=f"{TOKEN} is new")
    assert (edited.action, edited.tags) == ("use [redacted: github-token]", ("ci", "git"))
    assert memory.history(learning.id)[-1].reason == "[redacted: github-token] is new"
    assert memory.redactions == 7


def test_a_title_that_redaction_makes_longer_is_cut_and_one_that_was_too_long_is_refused(memory: Memory) -> None:
    assert len(memory.add("password=" + "h7!kQ2z " + "x" * 83).title) == 100
    with pytest.raises(InvalidValue, match="at most 100"):
        memory.add("password=" + "h7!kQ2z " + "x" * 90)


def test_a_secret_of_several_lines_or_hidden_by_invisible_letters_does_not_become_a_title(memory: Memory) -> None:
    key = draw("-----BEGIN {k} KEY-----\n{b:64}\n{b:20}==\n-----END {k} KEY-----", random.Random(7))[0]
    assert memory.add(f"Use {key}").title == "Use [redacted: private-key]"
    assert memory.add(f"Use {TOKEN[:9]}\u200b{TOKEN[9:]}").title == "Use [redacted: github-token]"
    assert memory.tasks.add("password:\n  h7!kQ2zz", text=key).title == "password: [redacted: password]"


def test_an_imported_file_is_redacted_and_a_second_import_changes_nothing(memory: Memory) -> None:
    records: list[dict[str, Any]] = [
        {"title": f"Push with {TOKEN}", "action": TOKEN},
        {"title": "Nothing secret", "tags": ["git"]},
    ]
    assert memory.transfer.import_all(records).added == 2
    assert memory.redactions == 2
    assert memory.transfer.import_all(records).unchanged == 2
    assert {learning.title for learning in memory.transfer.export()} == {
        "Push with [redacted: github-token]",
        "Nothing secret",
    }


def test_the_count_is_said_beside_the_result_and_json_stays_as_it_is(project: Path, learnt: Learnt) -> None:
    Memory.open(project).close()
    added = learnt("add", f"Push with {TOKEN}", "--action", TOKEN)
    id = added.out.split()[1].rstrip(":")
    assert (added.code, added.err) == (0, "2 secrets were redacted\n")
    assert learnt("edit", id, "--action", TOKEN, "--reason", TOKEN).err == "2 secrets were redacted\n"
    assert learnt("hide", id, "--reason", TOKEN).err == "1 secret was redacted\n"
    assert learnt("task", "add", TOKEN).err == "1 secret was redacted\n"
    imported = learnt("import", "-", "--json", stdin=json.dumps({"title": "Push", "action": TOKEN}))
    assert (json.loads(imported.out)["added"], imported.err) == (1, "1 secret was redacted\n")
    assert learnt("add", "Nothing secret").err == ""


# The hook's log, and the copy of the settings


def test_the_log_of_the_hook_never_quotes_what_a_client_sent(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema")
    leaks.hurry(monkeypatch)
    monkeypatch.chdir(project)
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": f"xyzzy {TOKEN}"}
    log = project / ".learnt" / "hook.log"

    leaks.run_with(json.dumps(event)[:-1])
    leaks.run_with("[" * 100_000 + "xyzzy")
    leaks.run_with(json.dumps({**event, "agent_type": "xyzzy " * 100}))
    for error in (ValueError, KeyError, InvalidValue):
        with monkeypatch.context() as patch:
            patch.setattr(hook_events, "brief", _failing(error))
            leaks.run_with(json.dumps(event))

    lines = log.read_text().splitlines()
    assert len(lines) == 6
    assert all(re.search(r"(Error|InvalidValue): at [a-z_/]+\.py:\d+$", line) for line in lines), lines
    assert "xyzzy" not in log.read_text()
    assert TOKEN not in log.read_text()


def test_the_log_of_the_hook_says_what_is_wrong_with_the_store(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Memory.open(project).close()
    monkeypatch.chdir(project)
    (project / ".learnt" / "learnt.db").write_bytes(b"damaged" * 1000)
    leaks.run_with(json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": "cache"}))
    assert "learnt.db is damaged" in (project / ".learnt" / "hook.log").read_text()


def _failing(error: type[Exception]) -> Callable[..., None]:
    def brief(_context: Context, request: BriefRequest) -> None:
        raise error(f"nothing can be made of {request.text!r}")

    return brief


def test_a_password_in_a_settings_file_is_not_copied_into_the_store(project: Path, postgres: PostgresServer) -> None:
    Memory.open(project).close()
    copy = project / ".learnt" / "settings.json"
    (project / "learnt.toml").write_text("page_size = 7\n")
    with Memory.open(project):
        pass
    assert copy.exists()
    address = postgres.address().replace("@", ":h7kQ2zzM@", 1)
    (project / "learnt.toml").write_text(f'database = "{address}"\n')
    with Memory.open(project) as memory:
        assert memory.settings.database == address
    assert not copy.exists()
