"""The shape of the code: who imports whom, where SQL lives, how long a function may be, what a hook pays for."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import learnt

SOURCE = Path(learnt.__file__).parent
# A module may import from its own level's room and from levels below; rooms of one level never import each other.
LEVELS = (
    ("errors",),
    ("model",),
    ("text",),
    ("system",),
    ("project", "store", "llm", "clients"),
    ("settings",),
    ("config", "debrief", "recall", "brief", "learnings_file", "weigh", "consolidate", "strategy"),
    ("mine",),
    ("flow",),
    ("memory",),
    ("doctor", "loop"),
    ("doors",),
)
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
# What a hook or a brief may load of the standard library and of others, beyond what Python itself has loaded.
HOOK_MAY_IMPORT = {
    "apsw", "binascii", "collections", "copyreg", "enum", "errno", "fcntl", "functools", "gc", "itertools", "json",
    "keyword", "learnt", "math", "operator", "re", "reprlib", "select", "signal", "types", "zlib",
}  # fmt: skip


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str:
    return module.partition(".")[0]


def test_imports_go_down_only() -> None:
    upward = []
    for module, tree in modules():
        if module in ("__init__", "__main__"):
            continue
        own = room_of(module)
        for imported in imports(tree):
            other = room_of(imported.removeprefix("learnt."))
            if (
                imported.startswith("learnt.")
                and other in LEVEL_OF
                and other != own
                and LEVEL_OF[other] >= LEVEL_OF[own]
            ):
                upward.append(f"{module} imports {imported}")
    assert upward == []


def test_every_module_has_a_level() -> None:
    rooms = {room_of(module) for module, _ in modules()} - {"__init__", "__main__"}
    assert rooms <= LEVEL_OF.keys()


def test_settings_and_environment_are_read_by_the_flow_and_the_doors_only() -> None:
    for module, tree in modules():
        if LEVEL_OF.get(room_of(module), 99) < LEVEL_OF["flow"] and module != "config":
            assert "learnt.config" not in set(imports(tree)), module
            assert not any(isinstance(node, ast.Attribute) and node.attr == "environ" for node in ast.walk(tree)), (
                module
            )


def test_sql_lives_in_the_store_only() -> None:
    statement = re.compile(
        r"^\s*(select\s.+\sfrom|insert\s+into|update\s.+\sset|delete\s+from|create\s+table|pragma)\s", re.I | re.S
    )
    for module, tree in modules():
        if room_of(module) == "store":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not statement.match(node.value), f"{module}: {node.value[:60]}"


def test_no_function_is_longer_than_sixty_lines() -> None:
    for module, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{module}.{node.name}"


def test_every_module_says_what_it_promises() -> None:
    for module, tree in modules():
        assert ast.get_docstring(tree), module


@pytest.mark.parametrize("words", [("hook",), ("brief", "something to find")], ids=["hook", "brief"])
def test_the_fast_door_loads_few_modules(words: tuple[str, ...], project: Path) -> None:
    (project / "learnt.toml").write_text("page_size = 7\n")
    with learnt.Memory.open(project) as memory:
        memory.add("Something to find")  # and a parsed copy of the settings is kept
    trace = subprocess.run(
        [sys.executable, "-X", "importtime", Path(sys.executable).with_name("learnt"), *words],
        cwd=project,
        input="{}",
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=True,
    ).stderr
    bare = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "pass"], capture_output=True, text=True, check=True
    ).stderr
    loaded = {room_of(name) for name in _names(trace) - _names(bare)}
    assert {name for name in loaded if not name.startswith("_")} - HOOK_MAY_IMPORT == set()


def _names(trace: str) -> set[str]:
    return {line.rpartition("|")[2].strip() for line in trace.splitlines() if line.startswith("import time:")}
