"""The shape of the code: who imports whom, where SQL lives, what a hook pays for, and figures that are to stay low.

Each figure is a place to look when it is passed: sizes, imports inside functions, the façade and its neighbours, names,
and how many files a brief, a debrief and a hook go through.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import learnt
from learnt.clients.kit.events import HookEvent

SOURCE = Path(learnt.__file__).parent
# A module may import from its own level's room and from levels below; rooms of one level never import each other.
LEVELS = (
    ("errors",),
    ("model",),
    ("text",),
    ("system",),
    ("project", "store", "llm", "clients"),
    ("settings", "trust"),
    ("settings_text",),
    ("weigh",),
    ("config", "debrief", "recall", "brief", "learnings_file", "strategy"),
    ("mine", "consolidate"),
    ("flow",),
    ("memory",),
    ("doctor", "loop"),
    ("doors",),
)
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
# What a hook or a brief may load of the standard library and of others, beyond what Python itself has loaded.
HOOK_MAY_IMPORT = {
    "apsw", "binascii", "bisect", "collections", "copyreg", "enum", "errno", "fcntl", "functools", "gc", "itertools",
    "json", "keyword", "learnt", "math", "mmap", "operator", "re", "reprlib", "select", "signal", "struct", "types",
    "zlib",
}  # fmt: skip


LONGEST_FILE = 600
MOST_IMPORTS_IN_FUNCTIONS = 25
MOST_FILES_NAMING_GEMINI = 8
MOST_CLASS_NAMES_USED_TWICE = 6
MOST_PARTICIPLES = 40
LONGEST_MEDIAN, LONGEST_P90 = 7, 19
# Files of ours that are entered, as measured, with four in reserve.
MOST_ENTERED = {"brief": 43, "debrief": 56, "hook": 44}
MOST_LOADED_BY_A_HOOK = 55
PARTICIPLES = (
    "told said found given asked known kept made seen opened refused taken shown read_out left held named looked "
    "started ended written"
).split()
# Runs the door that the arguments name with every call of a function of ours on record, and prints how many files
# were entered and how many of our modules are loaded.
WALK = """
import json, os, sys, threading

class Ended(BaseException):
    pass

def end(code):
    raise Ended

entered = set()

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(source) and code.co_name[0] not in "<ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        entered.add(code.co_filename)

source, *sys.argv = sys.argv[1:]
os._exit = end
from learnt.__main__ import main

threading.setprofile(note)
sys.setprofile(note)
try:
    main()
except (Ended, SystemExit):
    pass
sys.setprofile(None)
loaded = [name for name in sys.modules if name.partition(".")[0] == "learnt"]
print(json.dumps({"entered": len(entered), "loaded": len(loaded)}), file=sys.__stderr__)
"""

pytestmark = pytest.mark.xdist_group("trees")  # one process reads all sources

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def sources() -> dict[str, str]:
    """Return the text of each file of ours, by its path in the package."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def trees() -> dict[str, ast.Module]:
    gc.disable()  # looking for garbage among half a million nodes takes longer than reading them
    try:
        return {name: ast.parse(text) for name, text in sources().items()}
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree; going through them takes seconds, and most tests here do."""
    return [*ast.walk(tree)]


def functions() -> Iterator[tuple[str, Function]]:
    for name, tree in trees().items():
        yield from ((name, node) for node in nodes(tree) if isinstance(node, Function))


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for name, tree in trees().items():
        yield from ((name, node) for node in nodes(tree) if isinstance(node, ast.ClassDef))


def matches(pattern: str, files: Iterator[str] | list[str]) -> list[str]:
    """Return where a pattern occurs, as `file:line`."""
    return [
        f"{name}:{number}"
        for name in files
        for number, line in enumerate(sources()[name].splitlines(), start=1)
        for _ in re.finditer(pattern, line)
    ]


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path, tree in trees().items():
        yield path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"), tree


def imports(tree: ast.Module) -> Iterator[str]:
    for node in nodes(tree):
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
            assert not any(isinstance(node, ast.Attribute) and node.attr == "environ" for node in nodes(tree)), module


def test_sql_lives_in_the_store_only() -> None:
    statement = re.compile(
        r"^\s*(select\s.+\sfrom|insert\s+into|update\s.+\sset|delete\s+from|create\s+table|pragma)\s", re.I | re.S
    )
    for module, tree in modules():
        if room_of(module) == "store":
            continue
        for node in nodes(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not statement.match(node.value), f"{module}: {node.value[:60]}"


def test_no_function_is_longer_than_sixty_lines() -> None:
    for module, tree in modules():
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{module}.{node.name}"


def test_every_module_says_what_it_promises() -> None:
    for module, tree in modules():
        assert ast.get_docstring(tree), module


def _event(name: str, **fields: object) -> str:
    return json.dumps({"hook_event_name": name, "session_id": "s1", "transcript_path": "/t.jsonl", **fields})


_CALL = {"tool_name": "Bash", "tool_input": {"command": "make find"}}
FAST = {
    "brief": ("brief", "{}"),
    "hook": ("hook", "{}"),
    "hook, session": ("hook", _event("SessionStart", source="startup")),
    "hook, prompt": ("hook", _event("UserPromptSubmit", prompt="something to find")),
    "hook, compaction": ("hook", _event("SessionStart", source="compact")),
    "hook, call": ("hook", _event("PreToolUse", **_CALL)),
    "hook, success": ("hook", _event("PostToolUse", **_CALL, tool_response={"stdout": "found"})),
}


@pytest.mark.parametrize("name", FAST)
def test_the_fast_door_loads_few_modules(name: str, project: Path) -> None:
    (project / "learnt.toml").write_text("page_size = 7\n")
    with learnt.Memory.open(project) as memory:
        memory.add("Something to find", action="Run `make find`")  # and a parsed copy of the settings is kept
        prompt = HookEvent(client="claude", name="UserPromptSubmit", kind="prompt", session="s1", prompt="to find")
        memory.hooks.serve(prompt, loop_task="", began_ns=0)
    door, stdin = FAST[name]
    words = (door, "--client", "claude") if door == "hook" else (door, "something to find")
    trace = subprocess.run(
        [sys.executable, "-X", "importtime", Path(sys.executable).with_name("learnt"), *words],
        cwd=project,
        input=stdin,
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


# Sizes


def test_no_file_is_longer_than_can_be_read_in_one_go() -> None:
    sizes = {name: text.count("\n") for name, text in sources().items()}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_functions_stay_short() -> None:
    sizes = sorted((node.end_lineno or 0) - node.lineno + 1 for _, node in functions())
    assert statistics.median(sizes) <= LONGEST_MEDIAN
    assert sizes[int(len(sizes) * 0.9)] <= LONGEST_P90


# Imports


def test_few_of_our_own_modules_are_imported_inside_functions() -> None:
    hidden = {f"{name}:{line}" for name, node in functions() for line in _own_imports(node)}
    assert len(hidden) <= MOST_IMPORTS_IN_FUNCTIONS, sorted(hidden)


def _own_imports(function: Function) -> Iterator[int]:
    for node in nodes(function):
        if isinstance(node, ast.ImportFrom):
            imported = [node.module or ""] if not node.level else ["learnt"]
        elif isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            imported = ["learnt"]  # whatever it is, nobody sees it
        else:
            continue
        if any(module.partition(".")[0] == "learnt" for module in imported):
            yield node.lineno


# The façade


def test_the_facade_is_one_class() -> None:
    bases = {node.name: [ast.unparse(base) for base in node.bases] for name, node in classes() if name == "memory.py"}
    assert bases["Memory"] == []


def test_nobody_uses_a_private_member_of_the_facade() -> None:
    neighbours = [name for name in sources() if name != "memory.py"]
    assert matches(r"\b(?:memory|context)\._[a-z]", neighbours) == []


def test_no_door_reaches_round_the_facade() -> None:
    doors = [name for name in sources() if name.partition("/")[0] in ("doors", "loop", "doctor.py")]
    assert matches(r"\bmemory\.(?:_?context\.)?stores?\b", doors) == []


def test_doors_loop_and_doctor_import_only_classes_and_constants_of_the_flow_and_the_store() -> None:
    is_class_or_constant = re.compile(r"(?:[A-Z][A-Za-z0-9]*|[A-Z][A-Z0-9_]*)").fullmatch
    reaching = [
        f"{name}: {alias.name}"
        for name, tree in trees().items()
        if name.partition("/")[0] in ("doors", "loop", "doctor.py")
        for node in nodes(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if re.match(r"learnt\.(?:flow|store)\b", f"{getattr(node, 'module', '')}.{alias.name}".lstrip("."))
        and not is_class_or_constant(alias.name)
    ]
    assert reaching == []


# Names


def test_a_client_is_named_in_few_files() -> None:
    naming = [name for name, text in sources().items() if "gemini" in text.lower()]
    assert len(naming) <= MOST_FILES_NAMING_GEMINI, naming


def test_a_class_name_has_one_meaning() -> None:
    count = Counter(node.name.lstrip("_") for _, node in classes())
    several = {name: number for name, number in count.items() if number > 1}
    assert len(several) <= MOST_CLASS_NAMES_USED_TWICE, several


def test_functions_are_named_by_verbs() -> None:
    participle = re.compile(rf"_?(?:{'|'.join(PARTICIPLES)})(?:_\w+)?")
    named = [f"{name} {node.name}" for name, node in functions() if participle.fullmatch(node.name)]
    assert len(named) <= MOST_PARTICIPLES, named


# Walks


@pytest.fixture
def shop(project: Path) -> Path:
    """A project with a learning that each walk has a use for."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    with learnt.Memory.open(project) as memory:
        memory.add("Run make lint before each commit", action="make lint")
    return project


def walk(folder: Path, *words: str, stdin: str = "") -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", WALK, f"{SOURCE}{os.sep}", "learnt", *words],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, int] = json.loads(done.stderr.splitlines()[-1])
    return figures


def test_a_brief_enters_few_files(shop: Path) -> None:
    assert walk(shop, "brief", "commit fails with lint")["entered"] <= MOST_ENTERED["brief"]


def test_a_debrief_enters_few_files(shop: Path) -> None:
    said = "<learning>Use tabs in Makefiles</learning> <task-done>x</task-done>"
    assert walk(shop, "debrief", "--task", "task_a", stdin=said)["entered"] <= MOST_ENTERED["debrief"]


def test_a_hook_enters_few_files_and_loads_few(shop: Path) -> None:
    fields = {"session_id": "s1", "prompt": "commit fails with lint", "cwd": str(shop), "transcript_path": "/t.jsonl"}
    figures = walk(shop, "hook", stdin=json.dumps({"hook_event_name": "UserPromptSubmit", **fields}))
    assert figures["entered"] <= MOST_ENTERED["hook"]
    assert figures["loaded"] <= MOST_LOADED_BY_A_HOOK
