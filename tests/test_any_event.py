"""Whatever a client sends, a hook has a valid answer to it, or none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnt import Memory
from learnt.clients.events import CLIENTS, KINDS, answer, read_event
from learnt.memory.conversing import Conversing
from tests.support import hooks

_TEXT = st.one_of(st.text(max_size=50), st.sampled_from(("cache the schema", hooks.WRONG, hooks.RIGHT, "\ud800", "")))
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _TEXT)
_KEYS = st.one_of(st.sampled_from(("command", "file_path", "stdout", "llmContent", "error", "text")), _TEXT)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)
_FIELDS = (
    "prompt", "prompt_response", "last_assistant_message", "tool_name", "tool_input", "tool_response", "tool_use_id",
    "error", "is_interrupt", "agent_id", "agent_type", "transcript_path", "agent_transcript_path", "source", "client",
    "cwd",
)  # fmt: skip
_EVENTS = st.fixed_dictionaries(
    {
        "hook_event_name": st.one_of(st.sampled_from(sorted(KINDS)), _ANYTHING),
        "session_id": st.one_of(st.sampled_from(("one", "two")), _ANYTHING),
    },
    optional={
        **{field: st.one_of(_TEXT, _ANYTHING) for field in _FIELDS},
        "tool_name": st.one_of(st.sampled_from(("Bash", "Edit", "run_shell_command", "apply_patch")), _ANYTHING),
        "tool_input": st.one_of(st.dictionaries(_KEYS, _TEXT, max_size=2), _ANYTHING),
    },
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A store with something to say."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch, Memory.open(folder) as memory:
        patch.setenv("LEARNT_INTERNAL", "1")  # no worker is started
        memory.pin(memory.add('Cache the schema, or "it" \\ hangs', triggers={"files": ["*.py"]}).id)
        yield memory


@settings(max_examples=300, deadline=None)
@given(told=_EVENTS, client=st.sampled_from(("", *CLIENTS, "other")), of_task=st.sampled_from(("", "task_1")))
def test_any_object_gives_a_valid_answer_or_none(
    opened: Memory, told: dict[str, Any], client: str, of_task: str
) -> None:
    event = read_event(told, client)
    if event is None:
        return
    began_ns = time.perf_counter_ns()
    reply = Conversing(opened, event, of_task=of_task, began_ns=began_ns).serve()
    said = answer(event, reply.text, denies=reply.denies)

    assert len(said) <= hooks.LONGEST_ANSWER
    assert not said or hooks.is_answer(said)
    said.encode()  # no half of a character
