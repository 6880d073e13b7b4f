"""What learnt shows to the outside stays as it is: JSON answers, briefs and receipts, files, and clients' settings.

Each test talks with the real command line and compares the transcript with a file in `tests/golden`. Prose on
stderr and on a terminal is not held: it may be worded anew.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from tests.support.golden import FOLDER, Golden, Outside, files_in, masked
from tests.support.repository import Repository, entry

CLIENTS = ("claude-code", "codex", "copilot", "gemini", "opencode", "aider")
AGENT = """
import sys
prompt = sys.stdin.read()
if "Repair the scanner" in prompt:
    print("Traceback: ScannerError: the lamp is cold")
    print("<task-failed>the lamp is cold</task-failed>")
else:
    print("<learning>Close the drawer before counting the till. It jams otherwise.</learning>")
    print("<task-done>counted</task-done>")
"""
MODEL = """
import json, re, sys
prompt = sys.stdin.read()
known = dict(re.findall(r"(learn_[0-9a-z]+)\\W+(.*)", prompt))
lint = next((id for id, title in known.items() if "lint" in title), "")
scale = next((id for id, title in known.items() if "scale" in title), "")
changes = [{"do": "ADD", "type": "constraint", "title": "Run the migrations with `bin/migrate --safe`",
            "action": "bin/migrate --safe", "category": "database", "reason": "the plain one locks the table"}]
if lint:
    changes.append({"do": "REVISE", "id": lint, "title": "Run `make lint` before each push", "reason": "pushes run it"})
if scale:
    changes.append({"do": "REMOVE", "id": scale, "reason": "the scale was replaced"})
print(json.dumps({"changes": changes}))
"""
WRONG, RIGHT = "./ship --fast", "./ship --safe"
COMPLAINT = "ship: unknown option --fast"


@pytest.fixture
def shop(outside: Outside) -> Outside:
    """A project that knows something."""
    outside.quietly("init")
    lint = ("--action", "make lint", "--tag", "git", "--category", "git", "--on-command", "git commit", "--pin")
    outside.quietly("add", "Run make lint before each commit", *lint)
    outside.quietly("add", "Count the till with the drawer closed", "--observation", "It jams.", "--on-file", "till/*")
    outside.quietly("add", "Weigh apples on the left scale", "--kind", "gotcha", "--avoid", "--on-tool", "Edit")
    outside.quietly("add", "-", stdin=json.dumps({"title": "The scanner needs a warm lamp", "origin": "agent"}))
    return outside


def program(outside: Outside, name: str, content: str) -> str:
    """Write a program beside the project; return the command that runs it."""
    path = outside.project.parent / f"{name}.py"
    path.write_text(content)
    return f"{sys.executable} {path}"


# JSON answers


def test_the_answers_about_learnings_keep_their_shape(outside: Outside, golden: Golden) -> None:
    outside.json("init")
    outside.json("init", "--template", "list", varying=("about",))
    outside.json("init", "--template", "go")
    first = outside.json(
        "add", "Run make lint before each commit", "--context", "commits", "--observation", "The hook rejects others",
        "--implication", "Time is lost", "--action", "make lint", "--tag", "git", "--tag", "ci", "--domain", "tooling",
        "--category", "git", "--kind", "best-practice", "--do", "--on-file", "src/*.py", "--on-command", "git commit",
        "--on-error", "lint failed", "--on-tool", "Bash", "--on-task-type", "implement", "--goal", "release",
        "--commit", "abc1234", "--confidence", "0.9", "--pin",
    )["id"]  # fmt: skip
    second = outside.json("add", "Count the till with the drawer closed", "--kind", "gotcha", "--avoid")["id"]
    two = [{"title": "Ask Bert about the barcode reader"}, {"title": "The lamp is cold", "origin": "agent"}]
    third, fourth = (one["id"] for one in outside.json("add", "-", stdin=json.dumps(two)))
    outside.json(
        "edit", first, "--title", "Run `make lint` before each commit", "--add-tag", "lint", "--reason", "ticks"
    )
    outside.json("like", fourth)
    outside.json("pin", second)
    outside.json("pin", second, "--off")
    outside.json("hide", third, "--reason", "Bert has left")
    outside.json("undo", third)
    outside.json("archive", third)
    outside.json("restore", third)
    outside.json("supersede", third, second)
    outside.json("list", "--tag", "git")
    outside.json("list", "--status", "all", "--limit", "2", "--offset", "1")
    outside.json("show", second)
    outside.json("show", first)
    outside.json("search", "run make lint before the commit", "--command", "git commit -m x", "--limit", "2")
    outside.json("search", "nothing of this kind at all")
    outside.json("similar", first)
    outside.json("cues", first)
    outside.json("cues", "--dry-run")
    outside.json("history", first)
    outside.json("history", third)
    outside.json("purge", fourth, "--yes")
    outside.json("tidy")
    assert outside.quietly("show", "learn_000", "--json", code=2).out == ""
    golden.check("learnings.txt", outside.transcript())


def test_the_answers_about_the_user_wide_store_keep_their_shape(outside: Outside, golden: Golden) -> None:
    outside.quietly("init")
    outside.json("init", "--user")
    known = outside.json("add", "Write tests first", "--user")["id"]
    outside.json("list", "--user")
    outside.json("list", "--scope", "user")
    outside.json("hide", known, "--user")
    outside.json("review", "--list", "--user")
    golden.check("user.txt", outside.transcript())


def test_the_answers_about_tasks_keep_their_shape(shop: Outside, golden: Golden) -> None:
    base = shop.json("task", "add", "Count the till", "--text", "All of it.", "--type", "implement", "--goal", "sale")[
        "id"
    ]
    more = ("--agent", "engineer", "--model", "small", "--verify", "true", "--after", base, "--no-learnings")
    later = shop.json("task", "add", "Close the shop", *more)["id"]
    shop.json("task", "edit", later, "--title", "Close the shop early", "--learnings")
    shop.json("task", "list")
    parts = shop.json("task", "split", base, "Count the coins", "Count the notes", "--in-order")
    shop.json("task", "graph", "--all")
    shop.json("task", "prompt", parts[0]["id"])
    shop.json("task", "cancel", later)
    shop.json("task", "retry", later)
    shop.json("task", "show", later)
    shop.json("task", "list", "--status", "waiting")
    shop.json("task", "list", "--all", "--goal", "sale")
    shop.json("escalations")
    golden.check("tasks.txt", shop.transcript())


def test_the_answers_about_the_loop_keep_their_shape(shop: Outside, golden: Golden) -> None:
    settings = ["[work]", 'agent = "command"', f"command = {json.dumps(program(shop, 'agent', AGENT))}"]
    models = ['[[models]]\nname = "small"\nprice = 1', '[[models]]\nname = "large"\nprice = 2']
    (shop.project / "learnt.toml").write_text(
        "\n".join(['strategy = "escalate"', "stuck_after = 2", *settings, *models, ""])
    )
    shop.json("status")
    counted = shop.json("task", "add", "Count the till")["id"]
    shop.json("work")
    scanner = shop.json("task", "add", "Repair the scanner", "--agent", "engineer")["id"]
    shop.json("work", "--all", "--max-iterations", "5", code=1)
    shop.json("task", "show", counted)
    shop.json("task", "show", scanner)
    shop.json("log", counted)
    shop.json("strategy")
    (asked,) = shop.json("escalations")
    shop.json("resolve", asked["id"], "Warm the lamp first")
    shop.json("escalations", "--all")
    shop.text("task", "prompt", scanner)
    shop.json("status")
    shop.json("stop")
    golden.check("loop.txt", shop.transcript())


def test_the_answers_around_an_agents_work_keep_their_shape(shop: Outside, golden: Golden) -> None:
    brief = shop.json("brief", "count the till with the drawer closed", "--agent", "engineer", "--goal", "sale")
    task, given = brief["task"], brief["learning_ids"][0]
    figures = (
        "--model",
        "small",
        "--duration-ms",
        "1200000",
        "--cost-usd",
        "0.5",
        "--tokens-in",
        "900",
        "--tokens-out",
        "80",
    )
    said = [
        "Traceback: TillError: drawer open",
        f"LEARNING_NOT_HELPFUL: {given}",
        "<learning>The drawer needs a push. Push it with both hands.</learning>",
        "<difficulty>hard</difficulty>",
        "<task-failed>the drawer stays open\n<tried>pushing</tried></task-failed>",
    ]
    failed = shop.json("debrief", "--task", task, "--agent", "engineer", *figures, stdin="\n".join(said))
    shop.json("explain", failed["id"])
    again = shop.json("brief", "count the till with the drawer closed", "--task", task, "--path", "till/count.py")
    shop.json("debrief", "--task", task, "--verbose", stdin="<task-done>counted</task-done>")
    shop.json("debrief", "--result", "interrupted", stdin="I was called away.")
    shop.json("explain")
    shop.json("explain", task)
    shop.json("explain", again["id"], "--replay")
    other = shop.json("brief", "run make lint before the commit", "--command", "git commit -m x", "--type", "implement")
    shop.json("feedback", other["learning_ids"][0], "--task", other["task"], "--helpful")
    shop.json("brief", "sing a song in the rain", "--budget-tokens", "50")
    shop.json("task", "show", task)
    shop.json("activity", varying=("ago",))
    shop.json("activity", "--what", "debriefs", "--limit", "1")
    shop.json("activity", "--line")
    shop.json("stats", "--weeks", "2", varying=("mean", "total"))
    golden.check("work.txt", shop.transcript())


def test_the_answers_about_mining_and_review_keep_their_shape(shop: Outside, golden: Golden) -> None:
    shop.quietly("add", "-", stdin=json.dumps({"title": "The old scale weighs too much", "origin": "agent"}))
    settings = shop.home / ".config/learnt/learnt.toml"
    settings.parent.mkdir(parents=True)
    command = json.dumps(program(shop, "model", MODEL))
    settings.write_text(f'[model]\nprovider = "command"\ncommand = {command}\nname = "stub"\ncall_price = 0.02\n')
    said = "Never run `bin/count` with `STAGE=prod`: it deletes the data of the old scale; lint first.\n<task-done/>"
    shop.quietly("debrief", stdin=said)
    shop.json("update", "--dry-run")
    shop.json("update")
    shop.json("usage", "--calls", "5")
    shop.json("review", "--list")
    shop.json("review", stdin="y\nn\n")
    shop.json("show")
    shop.json("history", "--internal")
    shop.json("escalations")
    shop.json("learn", "--dry-run", "--no-git")
    shop.json("learn", "--yes", "--since", "7d")
    shop.json("stats", "--weeks", "1", varying=("mean", "total"))
    shop.json("clear")
    golden.check("review.txt", shop.transcript())


def test_the_answers_about_upkeep_keep_their_shape(shop: Outside, golden: Golden) -> None:
    (shop.project / "learnt.toml").write_text('person = "bert"\nwork.agent = "command"\nwork.command = "true"\n')
    shop.json("config", varying=("meaning",))
    shop.json("config", "person", varying=("meaning",))
    shop.json("doctor", varying=("detail", "remedy"))
    saved = shop.json("backup")["path"]
    shop.json("backup", "--output", str(shop.project.parent / "saved.db"))
    shop.json("backup", "--restore", saved)
    shop.json("usage")
    shop.json("stats", "--weeks", "1", "--limit", "2")
    shop.json("trust", "--yes")
    shop.json("untrust")
    golden.check("upkeep.txt", shop.transcript())


def test_the_answers_about_consolidation_keep_their_shape(outside: Outside, golden: Golden) -> None:
    repository = Repository(outside.project)
    outside.quietly("init")
    repository.append("# New\n\n" + entry("Count the till first", id="learn_till"))
    repository.commit("2026-01-01T12:00:00+0000")
    repository.append(entry("Close the drawer"))
    repository.commit("2026-01-02T12:00:00+0000")
    outside.json("ages")
    outside.json("ages", "--summary")
    outside.text("ages")
    outside.json("ages", "--store")
    for name, body in {"base": "first", "ours": "second", "theirs": "third"}.items():
        repository.write(entry("Count the till first", body=body), name)
    outside.json("merge-file", "base", "ours", "theirs", "learnings-staging.md", code=1)
    outside.json("install", "--git")
    outside.json("uninstall", "--git")
    repository.write("# Till\n\n## Count it twice\n<!-- learn_till -->\n\nText.\n", "docs/learnings/till.md")
    outside.json("index", "--check", code=1)
    outside.json("index", "--fix")
    outside.text("index")
    outside.json("handoff", stdin="- Count the coins before closing\n- Be careful\n")
    outside.json("consolidate", "--force", "--dry-run")
    for day in range(3, 12):
        repository.commit(f"2026-01-{day:02d}T12:00:00+0000")
    outside.json("consolidate", "--force", "--yes")
    outside.json("consolidate", "--undo")
    outside.json("install", "--agents")
    outside.json("uninstall", "--agents")
    golden.check("consolidation.txt", outside.transcript())


def test_the_answer_of_the_demo_keeps_its_shape(outside: Outside, golden: Golden) -> None:
    outside.json("demo")
    golden.check("demo.txt", outside.transcript())


# In and out


def test_exports_keep_their_form_and_can_be_read_again(
    shop: Outside, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    jsonl = shop.text("export")
    shop.text("export", "--format", "markdown")
    shop.json("export", "--output", str(shop.project / "all.jsonl"))
    shop.json("import", str(shop.project / "all.jsonl"))
    elsewhere = shop.project.parent / "elsewhere"
    elsewhere.mkdir()
    other = Outside(elsewhere, shop.home, monkeypatch)
    other.quietly("init")
    told = other.quietly("import", "-", "--as-is", "--json", stdin=jsonl).out
    shop.write(f"$ cd elsewhere; learnt import - --as-is --json\n{told}")
    assert other.quietly("export").out == jsonl
    golden.check("transfer.txt", shop.transcript())


# The learnings file


def test_the_learnings_file_is_written_with_its_comments_and_trailer(shop: Outside, golden: Golden) -> None:
    for title, category in (("Use fixtures", "testing"), ("Name the ticket", "git"), ("Keep functions short", "style")):
        shop.quietly("add", title, "--category", category)
    shop.quietly("update")
    path = shop.project / ".learnt/learnings.md"
    shop.write(f"=== learnings.md\n{path.read_text()}")
    text = path.read_text()
    (removed,) = [line for line in text.splitlines(keepends=True) if "Keep functions short" in line]
    path.write_text(text.replace(removed, "- Written by hand\n").replace("Use fixtures", "Use pytest fixtures"))
    shop.json("update")
    shop.write(f"=== learnings.md, edited by a person\n{path.read_text()}")
    shop.json("list", "--status", "all")
    shop.text("show")
    golden.check("learnings-file.txt", shop.transcript())


# Briefs


def test_a_brief_and_its_receipt_stay_as_they_are(shop: Outside, golden: Golden) -> None:
    shop.text("brief", "count the till with the drawer closed", "--agent", "engineer", "--task", "task_till")
    shop.quietly("debrief", "--task", "task_till", stdin="TillError: jam\n<task-failed>the drawer jams</task-failed>")
    shop.text("brief", "count the till with the drawer closed", "--agent", "engineer", "--task", "task_till")
    shop.text("brief", "is the scanner lamp warm?", "--task", "task_scanner")
    shop.json("explain", "task_till")
    replays_every_brief(shop)
    golden.check("briefs.txt", shop.transcript())


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode"])
def test_a_conversation_is_told_the_same_at_every_event(client: str, shop: Outside, golden: Golden) -> None:
    names = {"UserPromptSubmit": "BeforeAgent", "PreToolUse": "BeforeTool", "PostToolUse": "AfterTool"}

    def send(name: str, session: str = "s1", **fields: Any) -> None:
        own = names.get(name, name) if client == "gemini" else name
        shop.hook(own, client=client, session=session, **fields)

    def run(command: str, session: str = "s1") -> None:
        name, fields = result_of(client, command, shop.project)
        send(name, session, **fields)

    send("SessionStart", source="startup")
    send("UserPromptSubmit", prompt="count the till with the drawer closed")
    send("PreToolUse", tool_name="Edit", tool_input={"file_path": "till/count.py"}, tool_use_id="call_0")
    run(WRONG)
    run(RIGHT)
    send("PreToolUse", "s2", **call_of(client, WRONG))
    run(WRONG, "s3")
    errand = {"prompt": "count the till with the drawer closed", "subagent_type": "engineer"}
    send("PreToolUse", tool_name="Agent", tool_input=errand, tool_use_id="call_9")
    send("SubagentStart", agent_id="a48b", agent_type="engineer")
    send("PreCompact", trigger="auto")
    send("SessionStart", source="compact")
    replays_every_brief(shop)
    shop.json("activity")
    golden.check(f"hooks-{client}.txt", shop.transcript())


def call_of(client: str, command: str) -> dict[str, Any]:
    """Return a call of the shell as a client tells it."""
    tool = "run_shell_command" if client == "gemini" else "Bash"
    return {"tool_name": tool, "tool_input": {"command": command}, "tool_use_id": "call_1"}


def result_of(client: str, command: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the event with the result of a command as a client tells it; the wrong one fails."""
    call = call_of(client, command)
    fails = command == WRONG
    if client == "gemini":
        told = f"Output: {COMPLAINT}\nExit Code: 2\n" if fails else "Output: shipped\nExit Code: 0\n"
        return "PostToolUse", {**call, "tool_response": {"llmContent": told}}
    if client == "codex":
        rollout = folder.parent / "rollout-1.jsonl"
        item = {"id": "call_1", "exit_code": 2 if fails else 0, "status": "failed" if fails else "completed"}
        rollout.write_text(json.dumps({"type": "item_completed", "payload": {"item": item}}) + "\n")
        answer = COMPLAINT if fails else "shipped"
        return "PostToolUse", {**call, "tool_response": answer, "transcript_path": str(rollout)}
    if fails:
        return "PostToolUseFailure", {**call, "error": f"Exit code 2\n{COMPLAINT}"}
    return "PostToolUse", {**call, "tool_response": {"stdout": "shipped", "stderr": ""}}


def test_the_end_of_a_turn_is_debriefed(shop: Outside, golden: Golden) -> None:
    answer = shop.hook("UserPromptSubmit", prompt="count the till with the drawer closed")
    (given,) = set(re.findall(r"learn_[0-9a-z]{14}", answer))
    said = f"LEARNING_HELPFUL: {given}\n<learning>The drawer needs a push.</learning>\n<task-done>counted</task-done>"
    shop.hook("Stop", stop_hook_active=False, last_assistant_message=said)
    shop.wait_for_workers()
    (entry,) = shop.json("activity", "--what", "debriefs")["activity"]
    shop.json("explain", entry["id"])
    shop.json("show", given)
    shop.json("list")
    golden.check("turn.txt", shop.transcript())


def test_before_tool_can_stop_a_call_once(shop: Outside, golden: Golden) -> None:
    for command in (WRONG, RIGHT):
        name, fields = result_of("claude", command, shop.project)
        shop.hook(name, **fields)
    for client in ("claude", "gemini"):
        name = "BeforeTool" if client == "gemini" else "PreToolUse"
        call = call_of(client, WRONG)
        assert "stopped this call once" in shop.hook(name, client=client, session="s2", **call)
        assert shop.hook(name, client=client, session="s2", **call) == ""
    shop.json("activity", "--what", "warnings")
    (warned, *_) = json.loads(shop.quietly("activity", "--what", "warnings", "--json").out)["activity"]
    shop.json("hide", warned["id"])
    golden.check("stopped.txt", shop.transcript())


def replays_every_brief(outside: Outside) -> None:
    """Render every brief again from its history, and put its receipt into the transcript."""
    entries = json.loads(outside.quietly("activity", "--limit", "100", "--json").out)["activity"]
    briefs = [entry["id"] for entry in entries if entry["id"].startswith("brief_")]
    assert briefs
    for id in reversed(briefs):
        replayed = json.loads(outside.quietly("explain", id, "--replay", "--json").out)
        assert replayed["as_said"] is True
        assert outside.has_heard(replayed["text"])
        outside.json("explain", id)


# Model Context Protocol


def test_agents_are_told_the_same_over_mcp(shop: Outside, golden: Golden) -> None:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    with subprocess.Popen(
        [sys.executable, "-m", "learnt", "mcp"],
        cwd=shop.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout

        def tell(method: str, **params: Any) -> None:
            assert server.stdin
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}) + "\n")
            server.stdin.flush()

        def ask(method: str, **params: Any) -> Any:
            assert server.stdout
            tell(method, **params)
            return json.loads(server.stdout.readline())["result"]

        def call(tool: str, **arguments: Any) -> str:
            result = ask("tools/call", name=tool, arguments=arguments)
            text = "\n".join(part["text"] for part in result["content"])
            shop.write(f"> {tool} {json.dumps(arguments)}\n{text}\n")
            return text

        ask("initialize", **params)
        server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        tools = {one["name"]: one["inputSchema"] for one in ask("tools/list")["tools"]}
        shapes = {name: sorted(schema.get("properties", {})) for name, schema in tools.items()}
        shop.write(f"tools: {json.dumps(shapes, indent=2)}")
        shop.write(
            f"required: {json.dumps({name: schema.get('required', []) for name, schema in tools.items()}, indent=2)}"
        )
        shop.write(f"prompts: {[one['name'] for one in ask('prompts/list')['prompts']]}")
        shop.write(f"resources: {[one['uri'] for one in ask('resources/list')['resources']]}")
        templates = ask("resources/templates/list")["resourceTemplates"]
        shop.write(f"templates: {[one['uriTemplate'] for one in templates]}\n")
        call("brief", text="count the till with the drawer closed", task="task_till")
        call("recall", query="run make lint before the commit")
        call("learn", title="The drawer needs a push", action="Push it")
        call("debrief", task="task_till", output="<task-done>counted</task-done>", result="done")
        for uri in ("learnt://standing/engineer", "learnt://learnings.md"):
            read = ask("resources/read", uri=uri)["contents"][0]["text"]
            shop.write(f"> {uri}\n{read}\n")
        server.stdin.close()
        assert server.wait() == 0
    replays_every_brief(shop)
    golden.check("mcp.txt", shop.transcript())


def test_the_answer_of_the_server_over_http_keeps_its_shape(shop: Outside) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "learnt", "mcp", "--http", "--port", "0", "--json"],
        cwd=shop.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout
        lines = [server.stdout.readline() for _ in range(5)]
        server.send_signal(signal.SIGTERM)
    told = json.loads("".join(lines))
    assert told.keys() == {"id", "url", "token"}
    assert told["id"] == "mcp"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", told["url"])
    assert len(told["token"]) > 20


# Python


def test_the_promised_verbs_of_a_memory_answer_as_before(outside: Outside, golden: Golden) -> None:
    with Memory.open(outside.project) as memory:
        lint = memory.add(
            "Run make  lint\nbefore each commit",
            context="commits",
            observation="The hook rejects others",
            implication="Time is lost",
            action="make lint",
            tags=["git"],
            created_at=1_700_000_000_000,
        )
        till = memory.add("Count the till with the drawer closed")
        changed = [
            memory.edit(lint.id, title="Run `make lint` before each commit"),
            memory.hide(lint.id),
            memory.undo(lint.id),
            memory.archive(lint.id),
            memory.restore(lint.id),
            memory.like(lint.id),
            memory.pin(lint.id),
        ]
        hits = memory.search("count the till", limit=10, min_confidence=0.5, strategy="hybrid")
        brief = memory.brief(
            "Count the till with the drawer closed", agent="engineer", task="task_till", goal="sale", budget_tokens=500
        )
        marked = memory.mark(till.id, "task_till", True)
        said = "<learning>Push the drawer.</learning>\n<task-done>counted</task-done>"
        debrief = memory.debrief("task_till", said, result="done", model="small", cost_usd=0.12)
        superseded = memory.supersede(lint.id, till.id)
        for learning in (lint, *changed, marked, superseded, memory.get(till.id)):
            outside.write(f"{learning.id} v{learning.version} {learning.status} {learning.confidence} {learning.title}")
        for event in memory.history(lint.id):
            outside.write(f"{event.what} by {event.who}: {event.old} -> {event.new}")
        for hit in hits:
            outside.write(f"found {hit.learning.id} in {hit.matched_fields}, {hit.score > 0}")
    outside.write(f"{brief.id} with {brief.learning_ids}\n{brief.text}")
    outside.write(json.dumps(brief.receipt, indent=2, sort_keys=True))
    outside.write(f"{debrief.task} {debrief.result} {len(debrief.learnings)}")
    golden.check("python.txt", outside.transcript())


# Agents' templates


def test_a_template_is_filled_in_as_before(shop: Outside, golden: Golden) -> None:
    template = "You are an {{ role }}.\n\n{{ learnings }}\nYour task: {{ task }}\n"
    with Memory.open(shop.project) as memory:
        for inject in (True, False):
            filled = memory.render_agent(
                template,
                agent="engineer",
                context={"role": "engineer", "task": "Count the till"},
                inject_learnings=inject,
                task="task_till",
            )
            shop.write(filled)
    shop.json("explain", "task_till", "--replay")
    golden.check("template.txt", shop.transcript())


# Clients


@pytest.mark.parametrize(
    ("client", "scope"),
    # aider has no settings for all projects.
    [
        (client, scope)
        for client in CLIENTS
        for scope in ("--project", "--user")
        if (client, scope) != ("aider", "--user")
    ],
)
def test_a_client_is_set_up_and_taken_out_byte_for_byte(
    client: str, scope: str, outside: Outside, golden: Golden
) -> None:
    outside.quietly("init")
    (outside.project / "learnt.toml").unlink()
    outside.json("install", client, scope, "--dry-run", varying=("wants",))
    assert files_in(outside.project, outside.home) == ""
    outside.json("install", client, scope, varying=("wants",))
    files = files_in(outside.project, outside.home)
    outside.write(files)
    outside.json("uninstall", client, scope, varying=("wants",))
    assert files_in(outside.project, outside.home) == ""
    golden.check(f"install-{client}{scope}.txt", outside.transcript())


OWN = {
    "claude-code": {
        ".claude/settings.json": '{\n    "model": "opus",\n    "hooks": {"Stop": []}\n}\n',
        ".mcp.json": '{"mcpServers": {"other": {"command": "other"}}}',
    },
    "codex": {
        ".codex/hooks.json": '{"hooks": {}}\n',
        ".codex/config.toml": '# mine\nmodel = "o3"\n\n[mcp_servers.other]\ncommand = "other"\n',
    },
    "copilot": {
        ".github/hooks/learnt.json": '{"version": 1, "hooks": {}}\n',
        ".mcp.json": '{"mcpServers": {"other": {"command": "other"}}}',
    },
    "gemini": {".gemini/settings.json": '// mine\n{\n\t"theme": "dark", /* why not */\n\t"mcpServers": {}\n}\n'},
    "opencode": {"opencode.json": '{\n  "theme": "dark", // mine\n  "mcp": {},\n}\n'},
    "aider": {".aider.conf.yml": "# mine\ndark-mode: true\nread:\n  - CONVENTIONS.md\n"},
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_own_settings_are_kept_byte_for_byte(client: str, outside: Outside, golden: Golden) -> None:
    outside.quietly("init")
    (outside.project / "learnt.toml").unlink()
    for name, content in OWN[client].items():
        path = outside.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    before = files_in(outside.project)
    outside.quietly("install", client)
    outside.write(files_in(outside.project))
    outside.quietly("uninstall", client)
    assert files_in(outside.project) == before
    golden.check(f"install-{client}-own.txt", outside.transcript())


@pytest.mark.parametrize("client", CLIENTS)
def test_what_an_earlier_version_wrote_is_taken_out_without_a_note_of_it(client: str, outside: Outside) -> None:
    (outside.project / ".git/objects").mkdir(parents=True)
    (outside.project / ".git/refs").mkdir()
    (outside.project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    written = (FOLDER / f"install-{client}--project.txt").read_text().split("=== PROJECT/")[1:]
    assert written
    for part in written:
        name, _, content = part.partition("\n")
        path = outside.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.partition("\n$ learnt")[0].removesuffix("\n") + "\n")
    outside.quietly("uninstall", client)
    assert files_in(outside.project) == ""


def test_goals_and_discoveries(shop: Outside, golden: Golden) -> None:
    shop.json("goal", "add", "sale", "--title", "Sell more apples", "--text", "Before they rot.")
    task = shop.json("task", "add", "Count the till", "--goal", "sale")["id"]
    shop.json("goal", "edit", "sale", "--title", "Sell more pears")
    shop.json("goal", "list")
    shop.json("goal", "show", "sale")
    found = ("--error", "TillError: jam", "--worked", "./till --slow", "--file", "till/count.py")
    shop.json("discover", "Count the till with `--slow`: a fast count jams it", "--type", "blocker", *found)
    shop.json("discover", "The count needs the key of the drawer first", "--type", "dependency", "--task", task)
    shop.json("discoveries")
    golden.check("discoveries.txt", shop.transcript())


# All of it


def test_every_command_has_a_golden_answer(outside: Outside) -> None:
    held = set()
    for path in FOLDER.glob("*.txt"):
        held |= {line.split()[2] for line in path.read_text().splitlines() if line.startswith("$ learnt ")}
    overview = outside.quietly("--help").out
    commands = {line.split()[0] for line in overview.splitlines() if line.startswith("  ")}
    assert len(commands) > 40
    assert commands - held == {"hook", "mcp"}, "these two have answers of their own above"


def test_ids_are_numbered_as_they_appear_and_what_differs_from_run_to_run_gets_a_name() -> None:
    ids = "learn_mwifdh656w22wr task_000000000000ab learn_mwifdh656w22ws _ID: learn_mwifdh656w22wr_ learn_short"
    times = '{"at": 1794782859053, "spent_ms": 12.5} 2026-11-15T22:50:01Z 2026-11-15 2026-11 20261115T225001Z-gn43hu'
    assert masked(ids, {}) == "learn_1 task_1 learn_2 _ID: learn_1_ learn_short"
    assert masked(times, {}) == '{"at": MILLISECONDS, "spent_ms": NUMBER} TIME TIME TIME TIME'
    assert masked("learnt 0.1.0 in /srv/x/y", {"/srv/x": "PROJECT"}) == "learnt VERSION in PROJECT/y"
