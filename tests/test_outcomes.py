"""What a whole turn did in the end: a failed command, and the other one that did its work."""

from __future__ import annotations

from itertools import count

import pytest

from learnt.clients.kit.transcript import Step
from learnt.mine.observe import observe_steps
from learnt.model import Discovery

FOLDER = "/home/ada/lab"
SAID = "The build goes through `cmake --preset lab` here."
_numbers = count(1)


def ran(command: str, output: str = "", *, failed: bool = False, does: str = "run") -> list[Step]:
    """A call and its result."""
    call = f"call_{next(_numbers)}"
    path = f"{FOLDER}/main.c" if does == "edit" else ""
    return [
        Step(kind="call", call=call, tool="Bash", does=does, text=command, path=path),
        Step(kind="result", call=call, text=output, failed=failed),
    ]


def said(text: str, *, kind: str = "said") -> list[Step]:
    return [Step(kind=kind, text=text)]


def observed(*steps: list[Step]) -> list[Discovery]:
    return list(observe_steps((step for some in steps for step in some), folder=FOLDER))


MAKE = ran("make lab", "make: *** No rule to make target 'lab'.  Stop.", failed=True)
CMAKE = ran("cmake --build --preset lab", "[100%] Built target lab")


def test_another_program_that_did_the_work_in_the_end_is_what_to_use() -> None:
    (found,) = observed(MAKE, ran("ls"), CMAKE, said("It is built with `cmake --build --preset lab` now."))
    assert "cmake --build --preset lab" in found.text
    assert found.advice == "Use `cmake --build --preset lab`."
    assert found.observed.startswith("`make lab` failed: ")
    assert "`cmake --build --preset lab` worked." in found.observed


def test_the_agents_own_sentence_about_it_is_the_title() -> None:
    sentence = "The lab images must always be built with `cmake`, because there is no makefile."
    (found,) = observed(MAKE, CMAKE, said(f"Done. {sentence}"))
    assert found.text.rstrip(".") == sentence.rstrip(".")


@pytest.mark.parametrize(
    ("why", "steps"),
    [
        ("nothing worked", [MAKE, ran("cmake --preset lab", "error: no such preset", failed=True)]),
        ("it only looked around", [MAKE, ran("ls"), ran("cat CMakeLists.txt"), said(SAID)]),
        ("a file was changed in between", [MAKE, ran("x", does="edit"), CMAKE, said(SAID)]),
        ("too much was done in between", [MAKE, ran("npm install"), ran("docker build ."), CMAKE, said(SAID)]),
        ("another turn began", [MAKE, said("Please build it with docker.", kind="prompt"), CMAKE]),
        ("it worked before it failed", [CMAKE, MAKE, said("I stop here.")]),
        ("it is about something else", [MAKE, ran("npm install", "added 3 packages"), said("Done.")]),
        (
            "it passes by itself",
            [ran("make lab", "curl: (28) Connection timed out", failed=True), CMAKE, said("Built.")],
        ),
    ],
)
def test_a_turn_teaches_nothing_as_a_whole_where(why: str, steps: list[list[Step]]) -> None:
    assert [found.text for found in observed(*steps) if "cmake" in found.text or "npm" in found.text] == [], why


def test_what_another_rule_has_settled_is_said_once() -> None:
    wrong = ran("pytest tests", "pytest: command not found", failed=True)
    assert len(observed(wrong, ran("uv run pytest tests", "3 passed"), said("Use `uv run pytest tests` here."))) == 1
