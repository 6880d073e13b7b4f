"""What an agent merely repeats teaches nothing, marks nothing and ends nothing; what it states itself counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import process_time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from learnt import Memory
from learnt.debrief.marks import read_marks
from learnt.debrief.own_lines import own_lines
from learnt.debrief.sigils import read_sigils
from tests.support.repeated import HONEST, REPEATED

WAYS = 500
SOME_WAYS = 100
MOST_PLANTED = 0.05
LEAST_COUNTED = 0.95
SUPPORT = Path(__file__).parent.parent / "support"
# What stands in the answers of `own_answers.txt`.
STATEMENTS = {
    "@L2": '<learning category="decision" tags="build">The tests need a build first.</learning>',
    "@L": '<learning category="pitfall">Pass the locale to the cache, or users see the wrong language.</learning>',
    "@M2": "LEARNING_NOT_HELPFUL: learn_0k3v2d",
    "@M": "LEARNING_HELPFUL: learn_0k3v2c",
    "@R": "<task-done/>",
}

WORDS = st.text(st.sampled_from("abcdefghij klmnop `.,-"), min_size=3, max_size=60).filter(str.strip)
LEARNINGS = st.builds(
    "<learning{}>Always run {} first.{}</learning>".format,
    st.sampled_from(["", ' category="pitfall"', " kind='gotcha' tags=\"a, b\"", ' title="Trust it"']),
    WORDS,
    st.sampled_from(["", " It is needed.", "\nElse it fails."]),
)
RESULTS = st.sampled_from(["<task-done/>", "<task-done>all fine</task-done>", "<task-done>\nfine\n</task-done>"])
# What an agent may say around it without changing whose words they are.
BEFORE = st.sampled_from(["", "I fixed the login.\n\n", "All tests pass.\n\n", "## Summary\n\nI moved the cache.\n\n"])
AFTER = st.sampled_from(["", "\n", "\n\nAll tests pass.", "\n\nI then fixed the login."])


def fill(form: str, statement: str) -> str:
    return form.replace("{x}", statement).replace("{{", "{").replace("}}", "}")


class Counted:
    """Debriefs outputs, each in a task of its own that was given one learning."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.given = memory.add("Cache the schema of the replica")
        self._numbers = count()

    def learning(self, output: str) -> bool:
        read = self.memory.debrief(self._task(), output)
        return bool(read.learnings or read.repeated)

    def mark(self, output: str) -> bool:
        read = self.memory.debrief(self._task(), output)
        return bool(read.helpful or read.not_helpful)

    def result(self, output: str) -> bool:
        return self.memory.debrief(self._task(), output).result == "done"

    def marking(self) -> st.SearchStrategy[str]:
        return st.sampled_from(["LEARNING_HELPFUL: {}", "LEARNING_NOT_HELPFUL: {}", "**LEARNING_HELPFUL:** {}"]).map(
            lambda mark: mark.format(self.given.id)
        )

    def _task(self) -> str:
        task = f"task_{next(self._numbers)}"
        self.memory.brief("cache the schema of the replica", task=task)
        return task


@pytest.fixture
def counted(sqlite_memory: Memory) -> Counted:
    return Counted(sqlite_memory)


def find_planted(counts: Callable[[str], bool], statements: st.SearchStrategy[str], ways: int) -> list[str]:
    """Return which of many ways to repeat a statement make it count."""
    planted: list[str] = []

    @settings(
        max_examples=ways,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(REPEATED), statements, BEFORE, AFTER)
    def repeat(form: str, statement: str, before: str, after: str) -> None:
        output = before + fill(form, statement) + after
        if counts(output):
            planted.append(output)

    repeat()
    return planted


def test_there_are_enough_forms() -> None:
    assert len(set(REPEATED)) >= 120


def test_a_repeated_learning_teaches_nothing(counted: Counted) -> None:
    assert len(find_planted(counted.learning, LEARNINGS, SOME_WAYS)) <= MOST_PLANTED * SOME_WAYS


def test_a_repeated_mark_marks_nothing(counted: Counted) -> None:
    assert len(find_planted(counted.mark, counted.marking(), SOME_WAYS)) <= MOST_PLANTED * SOME_WAYS


def test_a_repeated_result_ends_nothing(counted: Counted) -> None:
    assert len(find_planted(counted.result, RESULTS, SOME_WAYS)) <= MOST_PLANTED * SOME_WAYS


@pytest.mark.soak
def test_nothing_counts_in_very_many_ways_to_repeat_it(counted: Counted, share: Callable[[int], int]) -> None:
    ways = max(SOME_WAYS, share(WAYS))
    assert len(find_planted(counted.learning, LEARNINGS, ways)) <= MOST_PLANTED * ways
    assert len(find_planted(counted.mark, counted.marking(), ways)) <= MOST_PLANTED * ways
    assert len(find_planted(counted.result, RESULTS, ways)) <= MOST_PLANTED * ways


@pytest.mark.parametrize("form", HONEST)
def test_what_an_agent_states_itself_counts(counted: Counted, form: str) -> None:
    learning = '<learning category="pitfall">Close the cursor `c` first. Else the commit waits.</learning>'
    assert counted.learning(fill(form, learning))
    assert counted.mark(fill(form, f"LEARNING_HELPFUL: {counted.given.id}"))
    assert counted.result(fill(form, "<task-done>It works</task-done>"))


def read_answers(name: str) -> list[str]:
    return (SUPPORT / name).read_text(encoding="utf-8").rstrip("\n").split("\n=====\n")


def count_statements(output: str) -> tuple[int, int, bool]:
    sigils, marks = read_sigils(output), read_marks(output)
    return len(sigils.learnings), len(marks.helpful + marks.not_helpful), bool(sigils.result)


@pytest.mark.parametrize("statement", ["@L", "@M", "@R"])
def test_answers_that_repeat_a_statement_do_not_make_it(statement: str) -> None:
    answers = read_answers("repeating_answers.txt")
    planted = [answer for answer in answers if any(count_statements(answer.replace("{x}", STATEMENTS[statement])))]
    assert len(planted) <= MOST_PLANTED * len(answers)


def test_statements_in_natural_places_of_an_answer_count() -> None:
    answers = read_answers("own_answers.txt")
    missed = []
    for answer in answers:
        output = answer
        for place, statement in STATEMENTS.items():
            output = output.replace(place, statement)
        learnings, marks = answer.count("@L"), answer.count("@M")
        if count_statements(output) != (learnings, marks, "@R" in answer or "<task-failed" in answer):
            missed.append(answer)
    assert len(missed) <= (1 - LEAST_COUNTED) * len(answers)


def test_the_time_to_read_an_output_grows_with_its_length() -> None:
    for piece in (
        "<a>\n",
        '"\n',
        "(\n",
        "/* \n",
        "<learning>\n",
        "The README says:\n",
        "---- a\n",
        "«a\n\n",
        "- a\n",
        "<a ",
    ):
        assert not any(own_lines(piece * 20_000))


@pytest.mark.parametrize("piece", ["/*", '"', "<learning>x</learning> "])
def test_a_very_long_line_takes_no_more_time_than_many_lines(piece: str) -> None:
    def cpu_s(chars: int) -> float:
        began = process_time()
        own_lines(piece * (chars // len(piece)))
        return process_time() - began

    assert cpu_s(800_000) < 8 * cpu_s(200_000) + 0.2
