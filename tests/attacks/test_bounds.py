"""Whatever a store, a settings file or a trigger holds, a hook ends in time and a command says what is wrong."""

from __future__ import annotations

import os
import random
import re
import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from learnt import Memory
from learnt.errors import InvalidValue, TryAgain
from learnt.store.sqlite import SqliteDatabase
from learnt.system import files
from learnt.system.files import Deadline
from learnt.text.triggers import MAX_WILDCARDS, _matches_path
from tests.soak import seed_of
from tests.support.doors import Learnt
from tests.support.hooks import event_text

# A deadline of 0.4 s, and what starting a process may take on a busy machine.
IN_TIME_S = 10
ENDLESS = "with recursive number(n) as (select 1 union all select n + 1 from number) select n from number"
DEADLINE = {"LEARNT_HOOK_DEADLINE_MS": "400"}
PROMPT = event_text("UserPromptSubmit", prompt="cache the schema of the replica")


def store_of(project: Path) -> Path:
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
    return project / ".learnt" / "learnt.db"


# ── statements that never end ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("table", ["learning", "learning_words"])
def test_a_view_that_never_ends_does_not_hold_up_a_hook(project: Path, learnt_process: Learnt, table: str) -> None:
    with closing(apsw.Connection(str(store_of(project)))) as connection:
        names = ", ".join(f"n as {row[1]}" for row in connection.execute(f"pragma table_info({table})"))
        connection.execute("pragma legacy_alter_table = on")
        connection.execute(f"alter table {table} rename to old_{table}")
        connection.execute(f"create view {table} as select {names} from ({ENDLESS})")
    began = time.monotonic()

    done = learnt_process("hook", stdin=PROMPT, env=DEADLINE)

    assert (done.code, done.out, done.err) == (0, "", "")
    assert time.monotonic() - began < IN_TIME_S


def test_a_deadline_ends_a_statement(project: Path) -> None:
    database = SqliteDatabase(str(store_of(project)), wait_ms=1000)
    began = time.monotonic()
    with pytest.raises(TryAgain, match="within 100 ms"), Deadline(100):
        database.rows(f"select count(*) as count from ({ENDLESS})")
    assert time.monotonic() - began < IN_TIME_S
    assert database.has("select id from learning")
    database.close()


def _count_for_ever() -> None:
    number = 0
    while True:
        number += 1


def test_a_deadline_that_has_passed_interrupts_its_block_and_nothing_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_ALARM_REPEAT_S", 0.000_05)
    for _ in range(300):
        with pytest.raises(TryAgain), Deadline(1):
            _count_for_ever()
        sum(range(1_000))  # an alarm that was still due would go off here


def test_the_schema_of_a_store_is_not_trusted_and_works(project: Path) -> None:
    with Memory.open(project) as memory:
        memory.add("Cache the schema of the replica")
        assert memory.context.store.database.rows("pragma trusted_schema")[0]["trusted_schema"] == 0
        assert memory.search("cache the schema")
        assert memory.context.store.database.check() == []


# ── settings that are no settings ────────────────────────────────────────────────────────────────────────────────────


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_large(path: Path) -> None:
    path.write_bytes(b"# " + b"x" * 1_000_000)


def make_deep(path: Path) -> None:
    path.write_text("a = " + "[" * 100_000)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))


NOT_REGULAR = "cannot hold settings: it is not a regular file"
STRANGE_FILES = {
    "pipe": (make_pipe, NOT_REGULAR),
    "zeros": (make_zeros, NOT_REGULAR),
    "folder": (make_folder, NOT_REGULAR),
    "socket": (make_socket, NOT_REGULAR),
    "large": (make_large, "cannot hold settings: it has more than 1,000,000 bytes"),
    "deep": (make_deep, "is nested too deep"),
}


@pytest.mark.parametrize("kind", STRANGE_FILES)
@pytest.mark.parametrize("whose", ["project", "person"])
def test_a_strange_settings_file_is_refused_by_commands_and_passed_over_by_hooks(
    project: Path, learnt_process: Learnt, tmp_path: Path, kind: str, whose: str
) -> None:
    make, reason = STRANGE_FILES[kind]
    if kind == "zeros" and whose == "project":
        reason = "cannot hold settings: it is a link, and learnt follows none"
    store_of(project)
    home = tmp_path / "config"
    (home / "learnt").mkdir(parents=True)
    make(project / "learnt.toml" if whose == "project" else home / "learnt" / "learnt.toml")
    began = time.monotonic()

    env = {"XDG_CONFIG_HOME": str(home), **DEADLINE}
    refused = learnt_process("list", env=env)
    answered = learnt_process("hook", stdin=PROMPT, env=env)

    assert refused.code in (1, 2)
    assert refused.err.startswith("error: ")
    assert f"learnt.toml {reason}\n\nhint: " in refused.err
    assert (answered.code, answered.err) == (0, "")
    assert time.monotonic() - began < 2 * IN_TIME_S


def test_settings_that_take_for_ever_to_read_do_not_hold_up_a_hook(project: Path, learnt_process: Learnt) -> None:
    store_of(project)
    (project / "learnt.toml").write_text("a" + ".a" * 200_000 + " = 1")
    began = time.monotonic()

    done = learnt_process("hook", stdin=PROMPT, env=DEADLINE)

    assert (done.code, done.err) == (0, "")
    assert time.monotonic() - began < IN_TIME_S


# ── patterns that match in very many ways ────────────────────────────────────────────────────────────────────────────

WILD = ["*a" * 30 + "b.tsx", "**/" * 40 + "x.tsx", "{a,aa}" * 40 + ".tsx", "?*" * 20 + ".tsx", "[a-z]*" * 20 + ".tsx"]
# Within the limit, and still endless for an expression that backtracks.
TAME = ["*a" * 19 + "b.tsx", "**/" * 9 + "**/b.tsx", "{a,aa,*}" * 9 + "b.tsx", "**a" * 9 + "**b.tsx"]
PATH = "src/" + "a" * 300 + "/" + "a" * 300 + ".tsx"


@pytest.mark.parametrize("pattern", WILD)
def test_a_pattern_with_too_many_wildcards_is_refused(project: Path, pattern: str) -> None:
    with Memory.open(project) as memory:
        learning = memory.add("Keep the component small")
        with pytest.raises(InvalidValue, match=f"more than {MAX_WILDCARDS} wildcards"):
            memory.add("Keep it small", triggers={"files": [pattern]})
        with pytest.raises(InvalidValue, match=f"more than {MAX_WILDCARDS} wildcards"):
            memory.edit(learning.id, triggers={"files": [pattern]})


@pytest.mark.parametrize("pattern", WILD + TAME)
def test_a_stored_pattern_does_not_hold_up_a_hook(project: Path, learnt_process: Learnt, pattern: str) -> None:
    with Memory.open(project) as memory:
        bad = memory.add("Keep the component small", kind="gotcha", triggers={"files": ["*.tsx"]})
        good = memory.add("Name the component like its file", kind="gotcha", triggers={"files": ["*.tsx"]})
        database = memory.context.store.database
        with memory.context.store.transaction():
            for table, column in (("learning", "triggers"), ("learning_trigger", "pattern")):
                database.execute(
                    f"update {table} set {column} = replace({column}, '*.tsx', :pattern)"
                    f" where {'id' if table == 'learning' else 'learning'} = :id",
                    pattern=pattern,
                    id=bad.id,
                )
    began = time.monotonic()
    told = {"tool_name": "Edit", "tool_input": {"file_path": str(project / PATH)}}

    done = learnt_process("hook", "--client", "claude", stdin=event_text("PreToolUse", **told))

    assert (done.code, done.err) == (0, "")
    assert good.title in done.out
    assert bad.title not in done.out
    assert time.monotonic() - began < IN_TIME_S


LETTERS = st.sampled_from("ab/.")
PIECES = st.sampled_from(
    [
        "a",
        "b",
        "/",
        ".",
        "*",
        "**",
        "**/",
        "?",
        "[ab]",
        "[!a]",
        "[a-b.]",
        "[!]",
        "[b-a]",
        "{a,b}",
        "{a*,/b}",
        "{",
        "]",
        ",",
    ]
)


PATTERNS = st.lists(PIECES, min_size=1, max_size=7).map("".join)
PATHS = st.text(LETTERS, min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(PATTERNS, PATHS)
def test_patterns_match_as_the_expressions_that_they_stand_for(pattern: str, path: str) -> None:
    check_match(pattern, path)


@pytest.mark.soak
def test_very_many_patterns_match_as_the_expressions_that_they_stand_for(
    share: Callable[[int], int], chance: random.Random, pytestconfig: pytest.Config
) -> None:
    print(f"seed {seed_of(pytestconfig)}")
    many = settings(max_examples=share(10_000), deadline=None, database=None)
    many(seed(chance.getrandbits(32))(given(PATTERNS, PATHS)(check_match)))()


def check_match(pattern: str, path: str) -> None:
    name = path if "/" in pattern else path.rpartition("/")[2]
    assert _matches_path(pattern, path) == bool(expression_of(pattern).fullmatch(name))


def expression_of(pattern: str) -> re.Pattern[str]:
    """Return the expression that a pattern stands for."""
    start = "" if pattern.startswith("/") else "(?:.*/)?"
    return re.compile(start + translate(pattern) + (".*" if pattern.endswith("/") else ""), re.DOTALL)


def translate(pattern: str) -> str:
    expression, position = "", 0
    for sign in re.finditer(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}", pattern):
        expression += re.escape(pattern[position : sign.start()]) + translate_sign(sign[0])
        position = sign.end()
    return expression + re.escape(pattern[position:])


def translate_sign(sign: str) -> str:
    if sign[0] == "[":
        negated = sign[1] == "!" and len(sign) > 3
        return f"(?!/)[{'^' if negated else ''}{translate_set(sign[2 if negated else 1 : -1])}]"
    if sign[0] == "{":
        return f"(?:{'|'.join(map(translate, sign[1:-1].split(',')))})"
    return {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}[sign]


def translate_set(letters: str) -> str:
    members, place = "", 0
    while place < len(letters):
        first, last = letters[place], letters[place + 2 : place + 3]
        if letters[place + 1 : place + 2] == "-" and last and first <= last:
            members, place = f"{members}{re.escape(first)}-{re.escape(last)}", place + 3
        else:
            members, place = members + re.escape(first), place + 1
    return members
