"""A brief of a hook counts only once the client's transcript shows that the model was given it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from learnt import Memory
from learnt.clients.kit.events import read_event
from learnt.errors import WrongRequest
from learnt.flow.injections import confirm_delivery
from learnt.model import text_id
from learnt.store import deliveries, evidence, happened
from learnt.store.happened import BriefRecord
from tests.conftest import Clock
from tests.support.transcripts import answered, claude, copilot, used, written

TASK = text_id("task", "claude s-1 ")
TILL, SCALE = "Close the drawer before counting the till", "Warm the scale before weighing apples"


class Talk:
    """A conversation with Claude Code; its transcript is written when a turn ends."""

    def __init__(self, memory: Memory, clock: Clock, path: Path) -> None:
        self._memory, self._clock, self._path = memory, clock, path
        self.records: list[dict[str, Any]] = []
        self.transcript = ""

    def prompt(self, text: str, *, arrives: bool = True) -> str:
        """Send a prompt; return what a hook said to it."""
        said = self._hear("UserPromptSubmit", prompt=text)
        self.write(claude("user", text))
        self.attach(said, arrives=arrives)
        return said

    def call(self, command: str, output: str, *, arrives: bool = True) -> str:
        """Let a command fail; return what a hook said to it."""
        self.write(used("Bash", {"command": command}))
        tool = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t1"}
        said = self._hear("PostToolUseFailure", **tool, error=output)
        self.write(answered(output, is_error=True))
        self.attach(said, arrives=arrives)
        return said

    def end(self, answer: str = "Done.") -> None:
        """Let the agent answer, and the worker read the transcript."""
        self.write(claude("assistant", [{"type": "text", "text": answer}]))
        self.look()

    def look(self) -> None:
        """Let the worker read the transcript as it is."""
        self.transcript = written(self._path, self.records)
        self._memory.hooks.end_turn(TASK, "", client="claude", transcript=self.transcript)
        assert not self._memory.worker.catch_up().remarks

    def deliveries(self) -> list[str]:
        entries = self._memory.reports.activity(what="brief").entries
        return [entry.delivery for entry in reversed(entries)]

    def _hear(self, name: str, **fields: Any) -> str:
        event = read_event({"hook_event_name": name, "session_id": "s-1", **fields}, "claude")
        assert event is not None
        return self._memory.hooks.serve(event, loop_task="", began_ns=time.perf_counter_ns()).text

    def attach(self, said: str, *, arrives: bool) -> None:
        kind = {"type": "attachment", "uuid": "u", "sessionId": "s-1"}
        self.write({**kind, "attachment": {"type": "hook_success", "stdout": said}})
        if arrives and said:
            self.write({**kind, "attachment": {"type": "hook_additional_context", "content": [said]}})

    def write(self, record: dict[str, Any]) -> None:
        at = datetime.fromtimestamp(self._clock() / 1000, UTC).isoformat(timespec="milliseconds")
        self.records.append({**record, "timestamp": at})


@pytest.fixture
def talk(memory: Memory, clock: Clock, tmp_path: Path, alone: None) -> Talk:
    return Talk(memory, clock, tmp_path / "s-1.jsonl")


def test_a_brief_that_arrived_counts_once_it_is_in_the_transcript(memory: Memory, talk: Talk) -> None:
    learning = memory.add(TILL)
    assert learning.id in talk.prompt("count the till")
    assert talk.deliveries() == ["unknown"]
    assert memory.get(learning.id).times_injected == 0
    assert talk.prompt("count the till again") == "", "what may have arrived is not said twice"

    talk.end()

    assert talk.deliveries() == ["delivered"]
    used_then = memory.get(learning.id)
    assert (used_then.times_injected, used_then.last_injected_at) == (1, memory.reports.activity().entries[-1].at)
    talk.end("And more.")
    assert memory.get(learning.id).times_injected == 1
    talk.records = [claude("user", "A summary of all"), *talk.records[-1:]]
    talk.end("Compacted.")
    assert talk.deliveries() == ["delivered"], "whatever becomes of the transcript"


def test_a_brief_that_the_client_dropped_counts_for_nothing_and_is_said_again(memory: Memory, talk: Talk) -> None:
    learning = memory.add(TILL)
    assert learning.id in talk.prompt("count the till", arrives=False)
    talk.look()
    assert talk.deliveries() == ["unknown"], "the agent has not gone on"
    talk.end()

    assert talk.deliveries() == ["not delivered"]
    assert memory.get(learning.id).times_injected == 0
    assert memory.reports.today().briefs == 0
    assert memory.reports.stats().brief_tokens[-1].count == 0
    with pytest.raises(WrongRequest, match="was not given"):
        memory.mark(learning.id, TASK, True)
    (latest,) = deliveries.count_latest(memory.context.store.database, since=0)
    assert (latest.client, latest.occasion, latest.delivered, latest.missed) == ("claude", "prompt", 0, 1)

    assert learning.id in talk.prompt("count the till again")
    talk.end()
    assert talk.deliveries() == ["not delivered", "delivered"]
    assert memory.get(learning.id).times_injected == 1


def test_a_warning_that_was_dropped_is_given_again(memory: Memory, talk: Talk) -> None:
    event = read_event(
        {
            "hook_event_name": "PostToolUse",
            "session_id": "s-0",
            "tool_name": "Bash",
            "tool_input": {"command": "./ship --safe"},
            "tool_response": {"stdout": "shipped"},
        },
        "claude",
    )
    assert event is not None
    failed = event.replace(
        name="PostToolUseFailure", command="./ship --fast", failed=True, output="unknown option --fast"
    )
    for one in (failed, event):
        memory.hooks.serve(one, loop_task="", began_ns=time.perf_counter_ns())
    memory.add(TILL)
    talk.prompt("count the till")
    warnings = [talk.call("./ship --fast", "unknown option --fast", arrives=False)]
    talk.end()
    counted = deliveries.count_latest(memory.context.store.database, since=0)
    told = {one.occasion: (one.delivered, one.missed) for one in counted}
    assert told == {"prompt": (1, 0), "failure": (0, 1)}, "it drops warnings only"
    for _ in range(2):
        warnings.append(talk.call("./ship --fast", "unknown option --fast"))
        talk.end()

    assert ["This Failed Here Before" in said for said in warnings] == [True, True, False]


def test_an_agent_that_marks_a_learning_was_given_it(memory: Memory, talk: Talk) -> None:
    learning = memory.add(TILL)
    talk.prompt("count the till", arrives=False)
    talk.end()
    assert talk.deliveries() == ["not delivered"]

    talk.end(f"LEARNING_HELPFUL: {learning.id}")

    assert talk.deliveries() == ["delivered"]
    marked = memory.get(learning.id)
    assert (marked.times_injected, marked.times_helpful) == (1, 1)


def test_without_a_transcript_that_shows_hooks_it_stays_unknown(memory: Memory, talk: Talk) -> None:
    learning = memory.add(TILL)
    talk.prompt("count the till", arrives=False)
    talk.records = [record for record in talk.records if record["type"] != "attachment"]
    talk.end()
    Path(talk.transcript).unlink()
    memory.worker.catch_up()

    assert talk.deliveries() == ["unknown"]
    assert memory.get(learning.id).times_injected == 0


def test_what_a_sub_agent_of_copilot_was_given_stands_in_the_transcript_of_its_conversation(
    memory: Memory, clock: Clock, tmp_path: Path, alone: None
) -> None:
    learning = memory.add(TILL)
    records = [copilot("session.start", sessionId="p-1"), copilot("hook.start", agent="a-1")]

    def tell(name: str, **fields: Any) -> str:
        event = read_event({"hook_event_name": name, "timestamp": "x", **fields}, "copilot")
        assert event is not None
        return memory.hooks.serve(event, loop_task="", began_ns=time.perf_counter_ns()).text

    def speak(agent: str) -> None:
        at = datetime.fromtimestamp(clock() / 1000, UTC).isoformat(timespec="milliseconds")
        records.append({**copilot("assistant.message", agent=agent, content="Done."), "timestamp": at})

    for agent, arrives in (("a-1", True), ("a-2", False)):
        sub_agent = {"agent_id": agent, "agent_type": "task", "parent_agent_id": "p-1"}
        said = tell("UserPromptSubmit", session_id=agent, prompt="count the till", **sub_agent)
        assert learning.id in said
        sent = said if arrives else "count the till"
        records.append(copilot("user.message", agent=agent, content="", transformedContent=sent))
        speak(agent)
        tell("SubagentStop", session_id="p-1", last_assistant_message="Done.", **sub_agent)
    speak("")
    path = written(tmp_path / "events.jsonl", records)
    tell("Stop", session_id="p-1", transcript_path=path, last_assistant_message="Done.")
    memory.worker.catch_up()

    entries = memory.reports.activity(what="brief").entries
    assert [(one.delivery, one.occasion) for one in entries] == [("not delivered", "agent"), ("delivered", "agent")]
    assert memory.get(learning.id).times_injected == 1


def test_what_a_plugin_saw_in_the_requests_is_delivered_and_nothing_else(memory: Memory, alone: None) -> None:
    learning = memory.add(TILL)

    def tell(name: str, session: str, **fields: Any) -> str:
        event = read_event({"hook_event_name": name, "session_id": session, **fields}, "opencode")
        assert event is not None
        return memory.hooks.serve(event, loop_task="", began_ns=time.perf_counter_ns()).text

    for session, sends in (("seen", True), ("dropped", False), ("open", None)):
        said = tell("UserPromptSubmit", session, prompt="count the till")
        if sends is not None:
            given = [said.split('"')[1]] if sends else ["brief_of_others"]
            tell("Stop", session, last_assistant_message="Done.", given=given)
            tell("Stop", session, last_assistant_message="Done.", given=["brief_of_others"])  # a compaction dropped it
        memory.worker.catch_up()

    entries = memory.reports.activity(what="brief").entries
    assert [entry.delivery for entry in entries] == ["unknown", "not delivered", "delivered"]
    assert memory.get(learning.id).times_injected == 1
    tell("Stop", "dropped", last_assistant_message="Done.", given=[entries[1].id])
    memory.worker.catch_up()
    assert memory.get(learning.id).times_injected == 2, "a later request may contain it"


def test_what_somebody_asked_for_is_delivered_at_once(memory: Memory) -> None:
    learning = memory.add(TILL)
    for asker in ("prompt", "tool", "person"):
        assert memory.brief("count the till", task=f"task_{asker}", asked_by=asker).delivery == "delivered"
    memory.brief("count the till", task="task_hook", asked_by="hook")

    assert memory.get(learning.id).times_injected == 3
    assert [entry.delivery for entry in memory.reports.activity().entries].count("delivered") == 3


def test_each_attempt_of_the_loop_is_decided_by_its_own_transcript(
    memory: Memory, clock: Clock, tmp_path: Path, alone: None
) -> None:
    memory.add(TILL)
    for arrives in (False, True):
        attempt, began = Talk(memory, clock, tmp_path / f"{arrives}.jsonl"), clock()
        brief = memory.brief("count the till", task="task_1", asked_by="hook", client="claude", occasion="failure")
        attempt.attach(brief.text, arrives=arrives)
        attempt.write(claude("assistant", "Done."))
        path = written(tmp_path / f"{arrives}.jsonl", attempt.records)
        memory.debrief("task_1", "Done.", transcript=path, duration_ms=clock() - began)
    memory.worker.catch_up()

    assert attempt.deliveries() == ["not delivered", "delivered"]


def test_successes_count_for_what_arrived_before_them_even_if_that_is_known_late(memory: Memory, talk: Talk) -> None:
    learning = memory.add(TILL)
    talk.prompt("count the till", arrives=False)
    database = memory.context.store.database
    happened_before = {"sign": "s", "task": TASK, "at": memory.context.clock()}
    with memory.context.store.transaction():
        database.insert("command_run", happened_before)
    assert evidence.list_given(database, learning.id) == []
    assert evidence.count_runs(database, learning, ["s"])[0].after_given == 0
    (brief,) = deliveries.list_undecided(database, since=0)
    with memory.context.store.transaction():
        assert confirm_delivery(memory.context, brief.id) == [learning.id]
    assert evidence.list_given(database, learning.id) == [TASK]
    assert evidence.count_runs(database, learning, ["s"])[0].after_given == 1


ACTS = st.lists(st.sampled_from(("hook", "tool", "replay", "deliver", "miss", "mark")), max_size=8)


@given(acts=ACTS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_in_whatever_order_a_learning_counts_once_for_each_task(
    sqlite_memory: Memory, acts: list[str]
) -> None:
    memory = sqlite_memory
    learning, store = memory.add(SCALE), memory.context.store
    task = text_id("task", learning.id)
    records: list[BriefRecord] = []
    for act in acts:
        if act in ("hook", "tool"):
            brief = memory.brief("weigh apples on the warm scale", task=task, asked_by=act)
            records.append(BriefRecord(task=memory.tasks.get(task), brief=brief))
        elif act == "mark" and records:
            memory.debrief(task, f"LEARNING_HELPFUL: {learning.id}")
        for record in records:
            with store.transaction():
                if act == "replay":
                    happened.put_brief(store.database, BriefRecord.from_body(record.as_body()))
                elif act == "deliver":
                    confirm_delivery(memory.context, record.brief.id)
                elif act == "miss":
                    deliveries.miss(store.database, record.brief.id)
    begun = acts[min((acts.index(act) for act in ("hook", "tool") if act in acts), default=len(acts)) :]
    assert memory.get(learning.id).times_injected == int(bool({"tool", "deliver", "mark"} & set(begun)))
