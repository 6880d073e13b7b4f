"""One story for each client, from `learnt init` to `learnt uninstall`, through the real programs and no other door.

In the first conversation a command fails and another one works; in the second the agent is told of it at the call; in
the third the call is stopped once. Then learnt asks the client as its own model, and has it do a task.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learnt.clients import registry
from tests.support import real_clients
from tests.support.claude_as_documented import ClaudeAsDocumented
from tests.support.model_stub import ModelStub, Reply
from tests.support.stories import MODELS, PATIENCE_S, Story, approve_hooks, texts

pytestmark = pytest.mark.clients

MATCHED = "Ship with the harbour key"
PINNED = "Speak with the pilot first"
SUMMARY_WANTED = "Please create a detailed summary of the conversation so far"
"""What Copilot CLI asks its model when it compacts."""
RECALLED = "ask WINCH-4711 for the fuel"
SAID = "The tide table is in UTC."
FAILED_BEFORE = "## This Failed Here Before"
FAILURE, FIX = "`./ship --fast` failed today: ship: unknown option --fast", "Then this worked: `./ship --safe`"
FOUND = "Tugs are ordered by telephone"

# As people write settings: each client's own, with something of theirs in it.
SETTINGS = {
    "claude": {
        ".claude/settings.json": b'{"permissions" : {"allow":[ "Bash(ls)"\t] },\r\n\r\n "model":"claude-sonnet-4-5"}',
        ".mcp.json": b'{ "mcpServers":{ } }',
    },
    "codex": {
        ".codex/hooks.json": b'{"hooks" : {\r\n\t"Stop":[ {"hooks":[{"type":"command","command":"true"} ]}]\r\n}}',
        ".codex/config.toml": b"# ours\n[ tui ]   # odd, but allowed\nnotifications= false\n\n\n",
    },
    "copilot": {
        ".github/hooks/learnt.json": b'{"version":1 ,\t"hooks":{ "Stop":[{"type":"command","command":"true"} ] }}',
        ".mcp.json": b'{ "mcpServers":{ } }',
    },
    "opencode": {
        # It writes a `$schema` into settings without one.
        "opencode.jsonc": b'{\n // it\n"$schema":"https://opencode.ai/config.json" , "instructions":["A.md",],\n\n}\n',
    },
}
# Codex does not wait by itself until a server offers its tools.
WAITING = {"codex": ("-c", "mcp_servers.learnt.required=true")}
# What lets each of them run a command without a person.
ALLOWED = {
    "claude": "--allowedTools=Bash",
    "codex": "",
    "copilot": "--allow-all-tools",
    "gemini": "--approval-mode=yolo",
    "opencode": "",
}
ERRAND, FITTING = "Paint buoy 17", "Paint a buoy with red lead"
SPAWNS = {
    "claude": Reply(
        tool="Agent",
        arguments={
            "description": "paint",
            "prompt": ERRAND,
            "subagent_type": "general-purpose",
            "run_in_background": False,
        },
    ),
    "codex": Reply(tool="spawn_agent", namespace="multi_agent_v1", arguments={"message": ERRAND}),
    "copilot": Reply(
        tool="task",
        arguments={
            "description": "paint",
            "prompt": ERRAND,
            "agent_type": "general-purpose",
            "name": "painter",
            "mode": "sync",
        },
    ),
    "opencode": Reply(tool="task", arguments={"description": "paint", "prompt": ERRAND, "subagent_type": "general"}),
}
AGENTS = {"claude": "general-purpose", "codex": "default", "copilot": "general-purpose", "opencode": "general"}
# How each is made to compact, and what its model says when it is offered tools for that, too.
COMPACTS: dict[str, tuple[Any, ...]] = {
    "codex": (("-c", "model_auto_compact_token_limit=15000"), Reply("We ship.")),
    "opencode": ((),),
}


class Told:
    """A story, and what came of each of its parts."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.client = story.client
        self.named = {"claude": "claude-code"}.get(story.client, story.client)
        in_first_prompt = registry.get(story.client, "setup").briefs_at_first_prompt
        self.occasions = ("prompt",) if in_first_prompt else ("session", "prompt")
        self.for_user = ("--user",) if story.client == "gemini" else ()
        story.learnt("init")
        self.matched = self._add(MATCHED)
        self.pinned = self._add(PINNED)
        self._add("The winch takes diesel", "--action", RECALLED)
        story.learnt("pin", self.pinned)
        self._install()
        self._converse()
        self.activity = story.told("activity")["activity"]
        self.doctor = story.examined().out
        self.learnings = {one["title"]: one for one in story.told("list")["learnings"]}

    def _add(self, title: str, *words: str) -> str:
        return str(self.story.told("add", title, *words)["id"])

    def _install(self) -> None:
        files = {self.story.project / name: content for name, content in SETTINGS.get(self.client, {}).items()}
        if self.for_user:
            path = self.story.home / ".gemini" / "settings.json"
            files = {path: b"// ours\n" + path.read_bytes().replace(b", ", b"\t,\n\n  ") + b"\n\n"}
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.settings = files
        self.before = set(self.story.project.rglob("*"))
        self.story.learnt("install", self.named, *self.for_user)
        if self.client == "codex":
            approve_hooks(self.story)

    def _converse(self) -> None:
        story = self.story
        mark = f"LEARNING_HELPFUL: {self.matched}"
        self.first = story.converse(
            "Please ship it with the harbour key",
            story.recalls("which fuel does the winch take"),
            story.runs("./ship --fast", saying=f"First I found out:\n<learning>{SAID}</learning>\n{mark}"),
            story.runs("./ship --safe"),
            Reply(f"It is shipped.\n{mark}"),
            words=WAITING.get(story.client, ()),
        )
        self.first_shipped = story.shipped()
        fast, safe, done = story.runs("./ship --fast"), story.runs("./ship --safe"), Reply("It is shipped again.")
        telling = {"LEARNT_BEFORE_TOOL": "tell"}
        self.second = story.converse("Once more, please", fast, fast, safe, done, environ=telling)
        self.second_shipped = story.shipped()
        self.third = story.converse("And a third time", fast, fast, safe, done)
        self.third_shipped = story.shipped()

    def done(self, what: str) -> list[dict[str, Any]]:
        """Return what learnt did of one kind, the oldest first."""
        return [entry for entry in reversed(self.activity) if entry["what"] == what]


@pytest.fixture(scope="module", params=[*real_clients.PACKAGES, "claude as documented"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """The story of a client, told up to its third conversation."""
    client = str(request.param).partition(" ")[0]
    kind = Story if client == request.param else ClaudeAsDocumented
    with ModelStub(Reply("Nothing to say.")) as stub:
        yield Told(kind(client, tmp_path_factory.mktemp(client), stub))


def test_a_conversation_is_briefed_at_its_start_and_at_its_prompt(told: Told) -> None:
    in_index, in_full = f"- {MATCHED} (", f"{MATCHED} ["
    for request in told.first:
        assert request.count(PINNED) == request.count(in_full) == 1
        assert request.count(in_index) == len(told.occasions) - 1, "not beside its full text in the same brief"
    assert told.first[0].count("<learnt-brief") == len(told.occasions)
    for another in (*told.second, *told.third):
        assert another.count(PINNED) == another.count(in_index) == 1
        assert in_full not in another
    given = [(one["occasion"], one["client"]) for one in told.done("brief")]
    assert given[: len(told.occasions)] == [(occasion, told.client) for occasion in told.occasions]


def test_what_the_agent_recalls_over_mcp_reaches_it(told: Told) -> None:
    assert "it finds what was learnt about it" in told.first[0]
    assert RECALLED not in told.first[0]
    assert RECALLED in told.first[1]


def test_a_command_that_failed_before_is_told_of_at_the_call_once(told: Told) -> None:
    assert told.first_shipped == ["--fast", "--safe"]
    assert FAILED_BEFORE not in told.first[-1]
    start, after_call, *_, end = told.second
    assert FAILED_BEFORE not in start
    assert after_call.count(FAILURE) == after_call.count(FIX) == 1
    assert end.count(FAILED_BEFORE) == 1
    assert told.second_shipped == ["--fast", "--fast", "--safe"]


def test_a_call_that_failed_before_is_stopped_once(told: Told) -> None:
    _, after_call, after_repetition, end = told.third
    assert after_call.count(FAILURE) == after_call.count(FIX) == 1
    assert "stopped this call once" in after_call
    assert after_call.count("ship: unknown option") == 1, "it was not made"
    assert after_repetition.count("ship: unknown option") > 1
    assert end.count(FAILED_BEFORE) == 1
    assert told.third_shipped == ["--fast", "--safe"]


def test_what_was_said_on_the_way_is_learnt_and_a_mark_counts_once(told: Told) -> None:
    said = told.learnings[SAID]
    (debrief, *_) = told.done("debrief")
    assert (said["origin"], said["task"]) == ("agent", debrief["task"])
    assert debrief["title"] == "Please ship it with the harbour key"
    assert debrief["learnings"] == 2, "with what was found out about the script"
    assert told.learnings[MATCHED]["confidence"] == pytest.approx(0.85)
    assert told.learnings[PINNED]["confidence"] == pytest.approx(0.8)


def test_nothing_that_learnt_said_itself_is_learnt(told: Told) -> None:
    added = {MATCHED, PINNED, "The winch takes diesel", SAID}
    (mined,) = (one for title, one in told.learnings.items() if title not in added)
    assert mined["title"] == "`./ship` has no `--fast`: use `--safe`"
    assert "stopped" not in json.dumps(mined)


def test_activity_and_doctor_tell_what_happened_in_the_client(told: Told) -> None:
    assert {entry["client"] for entry in told.activity} == {told.client}
    assert [(one["command"], one["outcome"], one["denied"]) for one in told.done("warning")] == [
        ("./ship --fast", "ignored", False),
        ("./ship --fast", "ignored", True),
    ]
    assert {one["delivery"] for one in told.activity if one["what"] != "debrief"} == {"delivered"}
    counted = (told.learnings[title]["times_injected"] for title in (MATCHED, PINNED))
    assert [*counted] == [1, 0], "a line of the index does not count"
    assert len(told.done("debrief")) == len({one["task"] for one in told.activity}) == 3
    (line,) = (line for line in told.doctor.splitlines() if f"client {told.named}" in line)
    assert line.startswith("ok")
    assert "hooks and server answer" in line
    assert "last fired" in line
    assert "(end)" in line
    assert "hook: " not in told.doctor


def test_a_model_call_of_our_own_inside_the_client_starts_no_hook(told: Told) -> None:
    story = told.story
    if isinstance(story, ClaudeAsDocumented):
        pytest.skip("there is no program to be asked")
    fired = story.project / ".learnt" / "fired" / f"{told.client}.json"
    before = fired.read_bytes(), story.told("activity", "--limit", "100")
    story.learnt("debrief", "--task", "task_tugs", "--result", "done", stdin="We had to phone for a tug, again.")
    change = {"do": "ADD", "type": "pattern", "title": FOUND, "observation": "Nobody answers mail there", "reason": "-"}
    story.begin(Reply(json.dumps({"changes": [change]})))
    line = shlex.join(("sh", "-c", f"cd {shlex.quote(str(story.project))} && exec {shlex.join(story.start())}"))
    model = {"PROVIDER": "command", "COMMAND": line, "TIME_LIMIT_S": str(PATIENCE_S)}

    story.learnt("update", **{f"LEARNT_MODEL_{name}": value for name, value in model.items()})

    (asked,) = story.asked()
    assert "phone for a tug" in asked
    assert "<learnt-brief" not in asked
    assert FOUND in {one["title"] for one in story.told("list")["learnings"]}
    story.settle()
    after = story.told("activity", "--limit", "100")["activity"]
    assert [one for one in after if one["task"] != "task_tugs"] == before[1]["activity"]
    assert fired.read_bytes() == before[0]


def test_an_agent_of_the_loop_is_briefed_and_debriefed_by_the_loop_alone(told: Told) -> None:
    story = told.story
    if isinstance(story, ClaudeAsDocumented):
        pytest.skip("there is no program to be started")
    task = story.told("task", "add", "Ship with the harbour key, as always")["id"]
    answer = f"<learning>The crane is booked by noon</learning>\nLEARNING_HELPFUL: {told.matched}\n<task-done/>"
    story.begin(story.runs("./ship --safe"), Reply(answer))

    work = {"AGENT": told.client, "ISOLATION": "none", "MODEL": MODELS[told.client], "ARGUMENTS": ALLOWED[told.client]}
    story.learnt("work", **{f"LEARNT_WORK_{name}": value for name, value in work.items()})

    assert story.shipped() == ["--safe"]
    for request in story.asked():
        assert request.count(MATCHED + " [") == 1
    story.settle()
    done = [one for one in story.told("activity")["activity"] if one["task"] == task]
    assert [(one["what"], one["asked_by"]) for one in done if one["what"] == "brief"] == [("brief", "prompt")]
    assert [one["outcome"] for one in done if one["what"] == "debrief"] == ["done"]
    (stored,) = (one for one in story.told("list")["learnings"] if one["title"].startswith("The crane"))
    assert (stored["task"], stored["recurrences"]) == (task, 0)
    assert story.told("show", told.matched)["confidence"] == pytest.approx(0.9)


def test_a_conversation_that_was_compacted_is_briefed_anew(told: Told) -> None:
    if told.client not in COMPACTS:
        pytest.skip("nothing that a model says makes it compact a conversation that is so short")
    story = told.story
    words, *summary = COMPACTS[told.client]
    replies = (story.runs("./ship --safe")._replace(tokens_in=195_000), *summary, story.runs("./ship --safe"))

    asked = story.converse("Ship it, with the harbour key", *replies, Reply("It is shipped."), words=words)

    for request in asked:
        assert request.count(PINNED) == request.count(f"{MATCHED} [") == 1
    assert "Ship it, with the harbour key" in asked[0]
    given = [one for one in told.story.told("activity")["activity"] if one["occasion"] == "compaction"]
    assert [(one["client"], one["delivery"]) for one in given] == [(told.client, "delivered")]


def test_what_was_compacted_is_briefed_at_its_next_prompt(told: Told) -> None:
    if told.client != "copilot":
        pytest.skip("others are briefed when they have compacted")
    story = told.story
    full = story.runs("./ship --safe")._replace(tokens_in=165_000)

    def choose(body: str) -> Reply | None:
        """Let the agent go on until the summary, asked for beside its work, stands in place of what it was told."""
        if SUMMARY_WANTED in body:
            return Reply("It ships.")
        return full if PINNED in body else None

    (*_, last) = story.converse("Ship it, with the harbour key", Reply("Done."), choose=choose)
    (again, *_) = story.converse("Ship it again, with the harbour key", Reply("Yes."), words=("--continue",))

    assert PINNED not in last
    assert again.count(PINNED) == again.count(f"{MATCHED} [") == 1


def require_sub_agents(told: Told) -> None:
    if told.client not in SPAWNS or isinstance(told.story, ClaudeAsDocumented):
        pytest.skip("no event tells of its sub-agents, or there is no program to start one")


def send_sub_agent(told: Told, answer: str) -> tuple[str, list[str]]:
    """Let the agent start a sub-agent; return what the model of the sub-agent was sent, and what the agent's was."""
    children = []

    def choose(body: str) -> Reply | None:
        """Answer for the sub-agent, and let Codex's agent wait for it, which ends it otherwise."""
        called = any(f'"{word}"' in body for word in ("function_call", "tool_calls", "tool_use"))
        if ERRAND in body and not called:
            children.append("\n".join(texts(json.loads(body))))
            return Reply(answer)
        started = re.search(r"agent_id\W+([0-9a-f-]{36})", body)
        if told.client == "codex" and started and 'wait_agent","namespace' not in body and "timed_out" not in body:
            return Reply(tool="wait_agent", namespace="multi_agent_v1", arguments={"targets": [started[1]]})
        return None

    own = told.story.converse("See to the buoys", SPAWNS[told.client], Reply("They are seen to."), choose=choose)
    (child,) = children
    return child, own


def test_a_sub_agent_is_told_nothing_that_its_errand_is_not_about(told: Told) -> None:
    require_sub_agents(told)
    told.story.learnt("pin", told.pinned, "--off")
    try:
        child, _ = send_sub_agent(told, "It is painted.")
    finally:
        told.story.learnt("pin", told.pinned)

    assert "<learnt-brief" not in child


def test_a_sub_agent_gets_its_own_brief_and_is_debriefed_on_its_own(told: Told) -> None:
    require_sub_agents(told)
    story = told.story
    fitting = story.told("add", FITTING)["id"]

    child, own = send_sub_agent(
        told, f"<learning>Buoys are numbered from the sea</learning>\nLEARNING_HELPFUL: {fitting}"
    )

    assert child.count(FITTING) == child.count(PINNED) == 1, "a sub-agent has no index, so it is told what is pinned"
    assert own[-1].count(PINNED) == 1
    (stored,) = (one for one in story.told("list")["learnings"] if one["title"].startswith("Buoys"))
    done = {one["what"]: one for one in story.told("activity")["activity"] if one["task"] == stored["task"]}
    assert (done["brief"]["occasion"], done["brief"]["agent"]) == ("agent", AGENTS[told.client])
    assert done["brief"]["delivery"] == "delivered"
    assert (done["debrief"]["learnings"], done["debrief"]["agent"]) == (1, AGENTS[told.client])
    assert story.told("show", fitting)["confidence"] == pytest.approx(0.85)


def test_a_client_that_runs_the_hooks_of_two_clients_hears_everything_once(tmp_path: Path) -> None:
    folder = tmp_path / "copilot"
    folder.mkdir()
    with ModelStub(Reply("Nothing to say.")) as stub:
        story = Story("copilot", folder, stub)
        story.learnt("init")
        pinned = story.told("add", PINNED)["id"]
        story.learnt("pin", pinned)
        story.learnt("add", MATCHED)
        story.learnt("install", "claude-code")
        alone = story.converse("Please ship it with the harbour key", Reply("No."))
        story.learnt("install", "copilot")
        fast, safe = story.runs("./ship --fast"), story.runs("./ship --safe")
        both = story.converse("Please ship it with the harbour key", fast, safe, Reply("It is shipped."))
        warned = story.converse(
            "Once more", fast, fast, safe, Reply("Again."), environ={"LEARNT_BEFORE_TOOL": "stop_once"}
        )
        shipped = story.shipped()
        resumed = story.converse("And now?", Reply("Nothing."), words=("--continue",))

    for request in (*alone, *both):
        assert request.count(PINNED) == request.count(f"{MATCHED} [") == 1
    for request in (*warned, *resumed):
        assert request.count(PINNED) == 1
    assert (warned[-1].count(FAILED_BEFORE), warned[-1].count("stopped this call once")) == (1, 1)
    assert shipped == ["--fast", "--safe", "--fast", "--safe"]
    assert "Once more" in resumed[-1]
    activity = story.told("activity", "--limit", "100")["activity"]
    assert {one["client"] for one in activity} == {"copilot"}
    assert len([one for one in activity if one["what"] == "debrief"]) == 3
    (failure,) = (one for one in activity if one["what"] == "warning")
    assert failure["command"] == "./ship --fast"


def test_what_a_client_drops_is_not_counted_and_doctor_names_the_client(told: Told) -> None:
    story = told.story
    before = {one["title"]: one["times_injected"] for one in story.told("list")["learnings"]}
    fast, safe = story.runs("./ship --fast"), story.runs("./ship --safe")
    with story.garbled_hooks():
        asked = story.converse("Please ship it with the harbour key", fast, safe, Reply("It is shipped."))

    assert not [request for request in asked if "<learnt-brief" in request]
    (latest, *_) = (one["task"] for one in story.told("activity")["activity"])
    dropped = [one for one in story.told("activity")["activity"] if one["task"] == latest and one["what"] != "debrief"]
    assert {one["delivery"] for one in dropped} == {"not delivered"}
    assert set(told.occasions) <= {one["occasion"] for one in dropped}
    assert {one["title"]: one["times_injected"] for one in story.told("list")["learnings"]} == before
    assert "not delivered" in story.learnt("activity")
    assert "ran our hooks and dropped their text" in story.examined().out


def test_after_uninstall_nothing_is_left(told: Told) -> None:
    story = told.story
    story.learnt("uninstall", told.named, *told.for_user)

    assert {path: path.read_bytes() for path in told.settings} == told.settings
    ours = [path for path in story.project.rglob("*") if path not in told.before and ".learnt" not in path.parts]
    assert not [path for path in ours if "learnt" in path.name or path.name == "plugin"]
    assert PINNED not in story.converse("Is anybody there?", Reply("No."))[0]
