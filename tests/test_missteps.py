"""What a project remembers of commands that failed: for how long, what came of warnings, and how it is forgotten."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from learnt import Memory, NotFound, WrongRequest
from learnt.clients.kit.events import read_event
from learnt.store import Place, mirror, missteps
from learnt.store.spool import Spool, SpoolRecord
from learnt.system.detached import INTERNAL
from learnt.text.times import HOUR_MS
from tests.conftest import Clock, Done
from tests.support.faults import Raw
from tests.support.transcripts import answered, claude, used, written

FAILS, WORKS = "deploy now", "deploy --retry now"
ERROR = "deploy: error: the port is taken"
TOKEN = "ghp_" + "a1B2" * 9
SECRET = "zebrathree"


class Shop:
    """A project in which hooks serve conversations, in this process and by the test's own clock."""

    def __init__(self, memory: Memory, project: Path, clock: Clock) -> None:
        self.memory = memory
        self.project = project
        self.clock = clock
        self.began = clock()

    def hear(self, session: str, name: str, **fields: Any) -> str:
        """Return what a client is told at an event."""
        told = {"hook_event_name": name, "session_id": session, "cwd": str(self.project), **fields}
        event = read_event(told, "claude")
        assert event is not None
        with Memory.open_for_hook(self.project, clock=self.clock) as hook:
            return hook.hooks.serve(event, loop_task="", began_ns=time.perf_counter_ns()).text

    def call(self, session: str, command: str) -> str:
        return self.hear(session, "PreToolUse", tool_name="Bash", tool_input={"command": command})

    def fail(self, session: str, command: str, error: str = ERROR) -> str:
        told = {"tool_input": {"command": command}, "error": f"Exit code 1\n{error}"}
        return self.hear(session, "PostToolUseFailure", tool_name="Bash", **told)

    def work(self, session: str, command: str) -> str:
        told = {"tool_input": {"command": command}, "tool_response": {"stdout": "done", "stderr": ""}}
        return self.hear(session, "PostToolUse", tool_name="Bash", **told)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return what the store has of a table, once it knows all that happened."""
        self.memory.worker.catch_up()
        return list(self.memory.context.store.database.rows(f"select * from {table} where project = :project"))

    def warning(self, session: str = "warned", command: str = FAILS) -> str:
        """Warn a conversation, and return the id of the brief that did."""
        assert self.call(session, command)
        self.memory.worker.catch_up()
        return self.memory.reports.activity(what="warning").entries[0].id


@pytest.fixture
def shop(memory: Memory, project: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A project without a misstep; no worker is started, a test catches up itself."""
    monkeypatch.setenv(INTERNAL, "1")
    subprocess.run(["git", "init", "-q", "-b", "sale"], cwd=project, check=True)
    memory.worker.catch_up()
    return Shop(memory, project, clock)


@pytest.fixture
def warned(shop: Shop) -> Shop:
    """A project in which a command failed in an earlier conversation, and another one worked then."""
    shop.fail("earlier", FAILS)
    shop.work("earlier", WORKS)
    return shop


# What worked then


def test_what_worked_is_told_no_more_once_the_command_itself_has_worked(warned: Shop) -> None:
    assert f"`{WORKS}`" in warned.call("before", FAILS)
    warned.work("other", FAILS)
    assert warned.call("between", FAILS) == ""

    warned.fail("other", FAILS, "deploy: error: disk full")

    assert warned.call("after", FAILS) == ""
    warned.work("other", "deploy --clean now")
    assert "`deploy --clean now`" in warned.call("at last", FAILS)


def test_what_worked_is_told_on_when_the_command_fails_again_and_nothing_replaces_it(warned: Shop) -> None:
    warned.fail("other", FAILS)

    assert f"`{WORKS}`" in warned.call("after", FAILS)


def test_what_comes_late_does_not_bring_back_what_no_longer_holds(memory: Memory) -> None:
    def told(kind: str, at: int, **fields: Any) -> None:
        body = {"sign": "a", "command": FAILS, "repeats": [], "task": "task_1", "at": at, "replaces": {}}
        memory.context.store.record(Raw(kind, {**body, "error": ERROR, **fields}))

    told("misstep", 1)
    told("success", 3)
    told("success", 2, sign="b", command=WORKS, replaces={"a": ["", []]})
    told("misstep", 4)

    found = missteps.find(memory.context.store.database, "a")
    assert found is not None
    assert (found.has_replacement, found.worked, found.failures) == (False, "", 2)


def test_what_failed_a_season_ago_is_not_told(warned: Shop) -> None:
    warned.clock.advance(days=89)
    assert warned.call("in time", FAILS)
    warned.clock.advance(days=2)
    assert warned.call("too late", FAILS) == ""
    warned.fail("too late", FAILS)
    assert f"`{WORKS}`" in warned.call("again", FAILS)


# What transcripts tell


def told(shop: Shop, *calls: tuple[str, str, bool], session: str = "s-1", cwd: str = "") -> str:
    """Write the transcript of a conversation with these commands, their outputs and whether they failed."""
    at = datetime.fromtimestamp((shop.began - HOUR_MS) / 1000, UTC).isoformat()
    common = {"cwd": cwd or str(shop.project), "timestamp": at, "sessionId": session}
    records = [claude("user", "Deploy it.", **common)]
    for number, (command, output, failed) in enumerate(calls):
        records.append(used("Bash", {"command": command}, id=f"t{number}", **common))
        records.append(answered(output, id=f"t{number}", is_error=failed, **common))
    records.append(claude("assistant", [{"type": "text", "text": "Done."}], **common))
    return written(shop.project.parent / f"{session}.jsonl", records)


RETRY = ((FAILS, f"Exit code 1\n{ERROR}", True), (WORKS, "done", False))
MISSING = (("deploi now", "bash: deploi: command not found", True), ("./bin/deploi now", "done", False))


REMEDIES = (
    "source .venv/bin/activate && deploi now",
    ". ./env.sh; deploi now",
    "npm i -g deploi && deploi now",
    "pip install -r needs.txt && deploi now",
    "PATH=/opt/bin:$PATH deploi now",
    "export PATH=/opt/bin:$PATH && deploi now",
    "deploi now || ./bin/deploi now",
    "deploi now | tail -3 || ./bin/deploi now",
    "if command -v deploi; then deploi now; fi",
    '[ -x "$(which deploi)" ] && deploi now',
    "sudo deploi now",
)
NO_REMEDIES = (
    "cd deploi && deploi now",
    "cat deploi.yml && git add . && deploi now",
    "deploi now || true",
    "deploi now || exit 1",
    "deploi now; ./bin/other || ls",
    "CI=1 deploi now",
    "deploi install",
)


def test_what_a_transcript_tells_is_warned_of_like_what_hooks_saw(shop: Shop) -> None:
    shop.memory.transcripts.debrief(told(shop, *RETRY))

    (misstep,) = shop.rows("misstep")

    assert (misstep["command"], misstep["worked"], misstep["failures"]) == (FAILS, WORKS, 1)
    assert misstep["error"] == ERROR
    warning = shop.call("next", FAILS)
    assert ERROR in warning
    assert f"`{WORKS}`" in warning


def test_a_transcript_that_is_read_again_tells_nothing_twice(shop: Shop) -> None:
    shop.memory.transcripts.debrief(told(shop, *RETRY))
    shop.memory.transcripts.debrief(told(shop, *RETRY, ("ls", "a", False)))

    assert [row["failures"] for row in shop.rows("misstep")] == [1]


def test_what_hooks_saw_is_not_counted_again_from_the_transcript(warned: Shop) -> None:
    warned.memory.transcripts.debrief(told(warned, *RETRY))

    (misstep,) = warned.rows("misstep")

    assert (misstep["worked"], misstep["failures"]) == (WORKS, 1)


def test_a_transcript_of_another_project_warns_of_nothing(shop: Shop) -> None:
    shop.memory.transcripts.debrief(told(shop, *RETRY, cwd="/elsewhere"))

    assert shop.rows("misstep") == []


def test_a_command_that_works_again_is_not_warned_of_because_of_an_old_transcript(warned: Shop) -> None:
    warned.work("other", FAILS)
    warned.memory.transcripts.debrief(told(warned, *RETRY))

    assert warned.call("next", FAILS) == ""


def test_no_secret_of_a_transcript_stands_in_a_warning(shop: Shop) -> None:
    failed, worked = (f"{command} --token {TOKEN}" for command in (FAILS, WORKS))
    shop.memory.transcripts.debrief(told(shop, (failed, f"{ERROR} {TOKEN}", True), (worked, "done", False)))

    (misstep,) = shop.rows("misstep")

    assert misstep["worked"].startswith(WORKS)
    assert TOKEN not in str(misstep)


@pytest.mark.parametrize("is_live", [True, False], ids=["hooks", "transcript"])
def test_a_program_that_is_missing_is_warned_of_at_every_call(is_live: bool, shop: Shop) -> None:
    (failed, error, _), (worked, _, _) = MISSING
    if is_live:
        shop.fail("earlier", failed, error)
        shop.work("earlier", worked)
    else:
        shop.memory.transcripts.debrief(told(shop, *MISSING))
        shop.memory.worker.catch_up()

    assert "./bin/deploi" in shop.call("one", "deploi --dry-run tomorrow")
    assert shop.call("other", "./bin/deploi tomorrow") == ""
    assert shop.call("third", "ls deploi") == ""
    for number, remedy in enumerate(REMEDIES):
        assert shop.call(f"remedy {number}", remedy) == "", remedy
    for number, none in enumerate(NO_REMEDIES):
        assert "./bin/deploi" in shop.call(f"none {number}", none), none


def test_a_check_that_was_called_wrongly_is_warned_of(shop: Shop) -> None:
    shop.fail("earlier", "pytest tests", "bash: pytest: command not found")
    shop.work("earlier", "uv run pytest tests")

    assert "uv run pytest" in shop.call("next", "pytest tests/test_till.py")


def test_a_network_that_failed_is_not_warned_of(shop: Shop) -> None:
    shop.fail("earlier", FAILS, "deploy: error: connection timed out")
    shop.work("earlier", WORKS)

    assert shop.call("next", FAILS) == ""


# Warnings


def test_a_warning_after_a_compaction_inherits_nothing_from_the_first(warned: Shop) -> None:
    assert warned.call("long", FAILS)
    warned.fail("long", FAILS)
    warned.fail("long", FAILS)
    assert [(one["failures"], one["needless"]) for one in warned.rows("warning")] == [(2, 0)]
    warned.hear("long", "SessionStart", source="compact")

    assert warned.call("long", FAILS)

    (warning,) = warned.rows("warning")
    assert [warning[name] for name in ("failures", "needless", "made", "seen_at")] == [0, 0, 0, None]
    assert warned.memory.reports.activity().outcomes["ignored"] == 0


def test_an_earlier_warning_that_comes_late_changes_nothing_of_a_later_one(warned: Shop) -> None:
    first = warned.warning("long")
    warned.hear("long", "SessionStart", source="compact")
    second = warned.warning("long")
    store = warned.memory.context.store
    given = {"task": None, "brief": {**warned.memory.explain(first).as_dict(), "text": "", "injections": []}}
    (row,) = warned.rows("warning")
    late = {name: row[name] for name in ("task", "sign", "agent", "denied")}
    warning = {**late, "brief": first, "failures": 1, "warned_at": 1}
    store.record(Raw("warning", {"given": given, "warning": warning}))

    (warning,) = warned.rows("warning")
    assert (warning["brief"], warning["failures"]) == (second, 0)


# Secrets


@pytest.mark.parametrize("length", [430, 448, 449, 450, 18_000 // 4])
def test_no_part_of_a_secret_is_kept_wherever_a_command_is_cut(length: int, shop: Shop) -> None:
    jwt = "eyJ" + "hbGc" * 20 + ".eyJ" + "zdWI" * length + "." + "sig_" * 10
    command = f"curl -H 'Authorization: Bearer {jwt}' -H 'X-T: {TOKEN}' https://x --nope"
    shop.fail("s1", command, f"{'x' * 280} {TOKEN}: option --nope is unknown")

    (misstep,) = shop.rows("misstep")

    assert TOKEN[:8] not in str(misstep)
    assert "zdWI" not in str(misstep)
    assert misstep["command"].startswith("curl -H")
    assert len(misstep["command"]) <= 500
    assert len(misstep["error"]) <= 300


@pytest.mark.parametrize("cut", [19_970, 19_985, 20_000])
def test_a_word_that_is_torn_is_not_kept(cut: int, shop: Shop) -> None:
    # What shrinks most when it is redacted brings the torn word near the beginning.
    keys = f"export KEY={'sk-ant-api03-' + 'Ab1_' * 4_900} "
    filler = "y" * (cut - len(keys) - 1)
    shop.fail("s1", f"{keys}{filler} {TOKEN} ; deploy now")

    assert TOKEN[:8] not in str(shop.rows("misstep"))


def test_a_very_long_command_is_remembered_by_its_beginning(shop: Shop) -> None:
    shop.fail("s1", f"deploy --with {'part ' * 200_000}")

    (misstep,) = shop.rows("misstep")

    assert misstep["command"].startswith("deploy --with part part")
    assert len(misstep["command"]) <= 500


def test_paths_are_kept_without_secrets(shop: Shop) -> None:
    shop.memory.add("Never edit x.env by hand", polarity="avoid", triggers={"files": ["x.env"]})
    shop.memory.worker.catch_up()
    path = f"{shop.project}/{TOKEN}/x.env"

    assert "x.env" in shop.hear("s1", "PreToolUse", tool_name="Edit", tool_input={"file_path": path})
    asked = shop.memory.brief("edit x.env by hand", paths=[path])

    assert len(shop.rows("brief")) == 2
    assert TOKEN not in str(shop.rows("brief"))
    assert "[redacted: " in asked.receipt["paths"][0]


def test_a_path_that_is_no_text_does_not_cost_the_warning(shop: Shop) -> None:
    shop.memory.add("Never edit x.env by hand", polarity="avoid", triggers={"files": ["x.env"]})
    shop.memory.worker.catch_up()

    assert "x.env" in shop.hear("s1", "PreToolUse", tool_name="Edit", tool_input={"file_path": "\ud800/x.env"})


# Sub-agents


def test_what_a_sub_agent_could_not_do_is_not_told_as_unfinished_work(shop: Shop) -> None:
    failed = "<task-failed>{} is broken</task-failed>"
    of_agent = {"agent_id": "a1", "agent_type": "general-purpose"}
    shop.memory.add("Speak of shops, not of stores")
    shop.memory.worker.catch_up()
    errand = {"prompt": "Speak of shops, not of stores", "subagent_type": "general-purpose"}
    shop.hear("main", "PreToolUse", tool_name="Agent", tool_input=errand)
    assert shop.hear("main", "SubagentStart", **of_agent)
    shop.hear("main", "SubagentStop", last_assistant_message=failed.format("the cellar"), **of_agent)
    shop.hear("main", "SubagentStop", last_assistant_message=failed.format("the attic"), agent_id="a2", agent_type="x")
    shop.memory.worker.catch_up()
    assert len(shop.rows("failure")) == 2
    assert "is broken" not in shop.hear("next", "SessionStart", source="startup")

    # One that a person talks to may be an agent of a certain kind, too.
    shop.hear("main", "Stop", last_assistant_message=failed.format("the till"), agent_type="engineer")
    shop.memory.worker.catch_up()

    said = shop.hear("last", "SessionStart", source="startup")
    assert "the till is broken" in said
    assert "the cellar" not in said
    parents = {task["parent"] for task in shop.rows("task") if task["parent"]}
    (main,) = [attempt["task"] for attempt in shop.rows("attempt") if attempt["task"] in parents]
    assert parents == {main}, "each belongs to the conversation that it works for"


# Forgetting


def test_a_misstep_that_a_person_hides_is_told_of_only_when_it_happens_anew(warned: Shop) -> None:
    warning = warned.warning()

    forgotten = warned.memory.warnings.dismiss(warning)

    assert forgotten is not None
    assert forgotten.command == FAILS
    assert warned.call("next", FAILS) == ""
    assert warned.memory.warnings.dismiss(warning) is None
    warned.fail("next", FAILS)
    warned.memory.worker.catch_up()
    assert warned.call("after", FAILS) == "", "nothing worked in its place since"
    warned.work("next", WORKS)
    assert f"`{WORKS}`" in warned.call("again", FAILS)
    assert len(warned.rows("warning")) == 2, "what came of warnings stays"


def test_of_a_warning_that_a_person_hid_the_activity_tells_the_command(warned: Shop) -> None:
    warning = warned.warning()
    warned.memory.warnings.dismiss(warning)

    (entry,) = warned.memory.reports.activity(what="warning").entries

    assert (entry.id, entry.command) == (warning, FAILS)


def test_a_warning_that_a_later_one_replaced_can_be_hidden_too(warned: Shop) -> None:
    first = warned.warning("long")
    warned.hear("long", "SessionStart", source="compact")
    assert warned.warning("long") != first

    assert warned.memory.warnings.dismiss(first)

    assert warned.call("next", FAILS) == ""


@pytest.mark.parametrize("engine", ["postgres"])
def test_what_was_hidden_elsewhere_leaves_the_mirror_with_the_next_refresh(warned: Shop, tmp_path: Path) -> None:
    warning = warned.warning()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "learnt.toml").write_text((warned.project / "learnt.toml").read_text())
    with Memory.open(elsewhere, clock=warned.clock) as other:
        assert other.warnings.dismiss(warning)
    warned.fail("here", "ship --fast now", "ship: error: unknown option --fast")
    warned.work("here", "ship --safe now")
    assert warned.call("meanwhile", FAILS)

    mirror.refresh(warned.memory.context.store)

    assert not warned.memory.context.store.spool.is_empty()
    assert warned.call("next", FAILS) == ""
    assert warned.call("next", "ship --fast now"), "what the server does not know yet is kept"


def test_only_a_brief_that_warned_of_a_command_can_be_forgotten(shop: Shop) -> None:
    brief = shop.memory.brief("mend the till")
    for act in (shop.memory.warnings.dismiss, shop.memory.warnings.purge, shop.memory.warnings.command_of):
        with pytest.raises(WrongRequest, match="did not warn about a command"):
            act(brief.id)
        with pytest.raises(NotFound):
            act("brief_0")
    for act_on_learning in (shop.memory.hide, shop.memory.purge):
        with pytest.raises(NotFound):
            act_on_learning(brief.id)


# Deleting for good


def holding(folder: Path, *secrets: str) -> list[str]:
    """Return the files below a folder that hold one of the secrets."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(one.encode() in path.read_bytes() for one in secrets)]


def leak(shop: Shop) -> str:
    """Let a secret stand in all that is kept of a command, also in copies; return the id of a warning of it."""
    wrong, right = f"pay --as {SECRET} -x", f"pay --as {SECRET}"
    for error in (f"pay: error: unknown option -x of {SECRET}", f"pay: error: no {SECRET}"):
        shop.fail("earlier", wrong, error)
        shop.work("earlier", right)
        shop.warning(f"after {len(error)}", wrong)
    shop.hear(f"after {len(error)}", "SessionStart", source="compact")
    shop.memory.transfer.backup()
    warning = shop.warning(f"after {len(error)}", wrong)
    for sign in [row["sign"] for row in shop.rows("misstep")]:
        body = {
            "sign": "other",
            "command": SECRET,
            "repeats": [],
            "task": "task_1",
            "at": 9,
            "replaces": {sign: ["", []]},
        }
        shop.memory.context.store.spool.append(SpoolRecord("op_1", "success", 9, body))
    return warning


def test_a_purge_leaves_nothing_of_what_a_brief_warned_of(shop: Shop) -> None:
    warning = leak(shop)
    shop.memory.add("Keep this")

    assert shop.memory.warnings.purge(warning) == 1

    tables = ("misstep", "warning", "brief", "task", "operation")
    assert SECRET not in str([shop.rows(table) for table in tables])
    assert shop.rows("misstep") == shop.rows("warning") == []
    assert len(shop.rows("brief")) == 5, "that there were briefs is no secret"
    assert "[purged]" in str(shop.memory.explain(warning).receipt["failed"])
    shop.memory.context.store.close()
    assert holding(shop.project / ".learnt", SECRET) == []
    assert shop.memory.warnings.purge(warning) == 0, "it can be repeated"
    assert shop.memory.warnings.dismiss(warning) is None


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_mirror_that_is_refreshed_while_the_server_is_purged_is_thrown_away(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = leak(shop)
    discard, folder = mirror.discard, shop.project / ".learnt"
    refreshes = iter([mirror.refresh])

    def and_refresh_once(place: Place) -> None:
        discard(place)
        for refresh in refreshes:
            refresh(shop.memory.context.store)
            assert holding(folder, SECRET)

    monkeypatch.setattr(mirror, "discard", and_refresh_once)

    shop.memory.warnings.purge(warning)

    assert holding(folder, SECRET) == []


def test_an_interrupted_purge_is_finished_by_repeating_it(shop: Shop) -> None:
    warning = leak(shop)
    damaged = shop.project / ".learnt" / "backups" / "zz.db"
    damaged.write_bytes(b"not a database, but of some length" * 100)
    with pytest.raises(Exception, match="cannot be read"):
        shop.memory.warnings.purge(warning)
    damaged.unlink()

    shop.memory.warnings.purge(warning)

    shop.memory.context.store.close()
    assert holding(shop.project / ".learnt", SECRET) == []


def test_what_is_too_short_to_be_looked_for_leaves_the_receipts_too(shop: Shop) -> None:
    shop.fail("earlier", "pay -x", "no: pw7")
    shop.work("earlier", "pay -y")
    warning = shop.warning(command="pay -x")

    shop.memory.warnings.purge(warning)

    assert "pw7" not in str(shop.rows("brief"))
    assert "pay -" not in str(shop.rows("brief"))


def test_a_purge_leaves_other_missteps_and_tasks_as_they_are(shop: Shop) -> None:
    wrong, right, other = "npm run serv:web", "npm run serve:web", "npm run serve:web -- --prot 3"
    missing = 'npm error Missing script: "serv:web"'
    shop.fail("earlier", wrong, missing)
    shop.work("earlier", right)
    shop.fail("other", other, "error: unknown option --prot")
    shop.work("other", "npm run serve:web -- --port 3")
    shop.memory.brief("Let npm run serve:web start faster", task="task_1")
    shop.memory.brief(f"Find out about {missing}", task="task_2")
    shop.memory.brief("Let npm run serv:web work as well", task="task_3")
    warning, kept = shop.warning(command=wrong), shop.warning("later", other)

    shop.memory.warnings.purge(warning)

    (left,) = shop.rows("misstep")
    assert (left["command"], left["worked"]) == (other, "npm run serve:web -- --port 3")
    assert [row["brief"] for row in shop.rows("warning")] == [kept]
    assert shop.call("last", other)
    titles = {row["id"]: row["title"] for row in shop.rows("task")}
    assert titles["task_1"] == "Let npm run serve:web start faster"
    assert titles["task_2"] == f"Find out about {missing}"
    assert titles["task_3"] == "Let [purged] work as well"
    assert {*shop.memory.explain(warning).receipt["failed"][0].values()} >= {"[purged]"}
    assert right not in str(shop.memory.explain(warning).receipt)
    assert shop.memory.explain(kept).receipt["failed"][0]["command"] == other


def test_a_command_that_was_purged_is_no_advice_for_another_misstep(shop: Shop) -> None:
    shop.fail("earlier", FAILS)
    shop.work("earlier", WORKS)
    shop.fail("later", WORKS, "deploy: error: unknown option --retry")
    shop.work("later", "deploy --again now")
    warning = shop.warning(command=WORKS)
    assert shop.call("before", FAILS)

    shop.memory.warnings.purge(warning)

    assert [(row["command"], row["worked"]) for row in shop.rows("misstep")] == [(FAILS, "")]
    assert shop.call("after", FAILS) == ""


def test_a_purge_of_a_learning_reaches_missteps_with_its_text(shop: Shop) -> None:
    learning = shop.memory.add(f"pay --as {SECRET} -x")
    shop.fail("earlier", f"pay --as {SECRET} -x")
    assert SECRET in str(shop.rows("misstep"))

    shop.memory.purge(learning.id)

    assert SECRET not in str(shop.rows("misstep"))


def test_on_the_command_line_a_warning_is_hidden_and_purged_by_the_id_of_its_brief(
    shop: Shop, learnt: Callable[..., Done]
) -> None:
    warning = leak(shop)

    shown = learnt("activity", "--ids")
    hidden = learnt("hide", warning)
    again = learnt("hide", warning, "--json")
    reasoned = learnt("hide", warning, "--reason", "no")
    purged = learnt("purge", warning, "--yes", "--json")

    assert warning in shown.out
    assert (hidden.code, hidden.out) == (0, f"Dismissed the warning about: pay --as {SECRET} -x\n")
    assert json.loads(again.out) == {"id": warning, "command": None}
    assert reasoned.code == 2
    assert json.loads(purged.out) == {"id": warning, "backups": 1}
    assert SECRET not in learnt("activity", "--ids").out + learnt("explain", warning).out
    assert holding(shop.project / ".learnt", SECRET) == []
    assert "brief that warned" in learnt("hide", "--help").out


# The spool, while others take it up


def test_the_size_of_a_spool_can_be_asked_for_while_it_is_taken_up(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    record = SpoolRecord("op_1", "brief", 1, {})

    def take_up() -> None:
        for _ in range(300):
            spool.append(record)
            spool.replay(lambda _: None)

    taking = Thread(target=take_up)
    taking.start()
    while taking.is_alive():
        assert spool.size() % len(record.line()) == 0
    taking.join()
    assert spool.is_empty()


def test_a_spool_that_cannot_be_looked_at_stops_nobody(sqlite_memory: Memory) -> None:
    folder = Path(sqlite_memory.context.store.place.folder)
    os.symlink("spool.jsonl", folder / "spool.jsonl")  # leads to itself

    assert sqlite_memory.context.store.replay_spool() == 0
