"""Values are frozen, compare by content, and wrong ones cannot be built."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

import learnt
from learnt import InvalidValue, Learning, Triggers
from learnt.errors import LearntError
from learnt.model import Injection, check_goal, is_id, new_id


def test_a_value_cannot_be_changed() -> None:
    learning = Learning(id="learn_1", title="t")
    with pytest.raises(AttributeError):
        learning.title = "u"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del learning.title
    with pytest.raises(AttributeError):
        learning.nickname = "u"


def test_a_value_needs_its_fields_and_no_others() -> None:
    with pytest.raises(TypeError, match="title"):
        Learning(id="learn_1")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="titel"):
        Learning(id="learn_1", title="t", titel="u")  # type: ignore[call-arg]


def test_values_compare_by_content_and_travel() -> None:
    learning = Learning(id="learn_1", title="t", triggers=Triggers(files=("*.py",)))
    assert learning == learning.replace() == pickle.loads(pickle.dumps(learning))  # noqa: S301 - our own bytes
    assert hash(learning) == hash(learning.replace())
    assert learning != learning.replace(title="u")


def test_a_value_refuses_to_be_subclassed() -> None:
    with pytest.raises(TypeError, match="Lesson"):
        type("Lesson", (Learning,), {})


def test_a_superseded_learning_names_its_successor() -> None:
    with pytest.raises(InvalidValue):
        Learning(id="learn_1", title="t", status="superseded")
    with pytest.raises(InvalidValue):
        Learning(id="learn_1", title="t", superseded_by="learn_2")


def test_ids_sort_by_time_never_repeat_and_are_safe_in_a_regex() -> None:
    ids = [new_id("learn", 1_800_000_000_000 + number // 1000) for number in range(10_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert all(is_id("learn", id) for id in ids)
    for wrong in ("learn_", "task_1", "learn_a-b", "learn_ä", "learn", "learn_" + "x" * 100):
        assert not is_id("learn", wrong)


def test_a_goal_can_name_a_file() -> None:
    check_goal("password-reset.v2")
    for wrong in ("../up", "a/b", ".hidden", "a b"):
        with pytest.raises(InvalidValue):
            check_goal(wrong)


def test_an_injection_is_of_a_learning_in_a_task() -> None:
    with pytest.raises(InvalidValue):
        Injection(learning="task_1", task="task_1", brief="brief_1", injected_at=1)


def test_the_promised_names_are_there_and_no_others() -> None:
    assert learnt.__all__ == sorted(learnt.__all__)
    for name in learnt.__all__:
        assert getattr(learnt, name).__name__ == name
    with pytest.raises(AttributeError):
        learnt.Nothing  # noqa: B018


def test_every_error_carries_an_exit_code_and_room_for_a_hint() -> None:
    kinds = [LearntError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert {kind.exit_code for kind in kinds} == {1, 2, 3}
    assert all(kind("what", hint="do").hint == "do" for kind in kinds)


def test_threads_and_forks_never_get_the_same_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        many = list(pool.map(lambda _: [new_id("learn", 1_000) for _ in range(2_000)], range(8)))
    ids = [id for some in many for id in some]
    assert len(set(ids)) == len(ids)

    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, new_id("learn", 1_000).encode())
        os._exit(0)
    os.wait()
    assert os.read(read, 100).decode() != new_id("learn", 1_000)
