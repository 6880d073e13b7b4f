"""The real programs do a task without a person and without a network: only the model is ours.

What a client is given must arrive at the model, and what it tells must be read: words, tokens, cost, transcript.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import learnt
from learnt import Memory
from learnt.clients.kit import run as programs
from learnt.clients.kit import transcript
from learnt.clients.kit.run import RunReport, RunRequest
from learnt.loop import agents
from learnt.loop.agents import AgentRun
from learnt.store import session_database
from learnt.system.run import Stop
from learnt.text.fence import fenced
from tests.conftest import command_line
from tests.support import model_stub, real_clients
from tests.support.model_stub import ModelStub, Reply
from tests.support.shop import Shop
from tests.support.stories import MODELS, PATIENCE_S, SHELLS

pytestmark = pytest.mark.clients

MARKER = "MARKER-4711: never run the tests on a Friday"
FINAL = "It is written.\n<task-done/>"
INPUT_PRICE, OUTPUT_PRICE = 3, 15
FRESH = model_stub.TOKENS_IN - model_stub.TOKENS_CACHED
# The cost of two turns, as the clients state it that do. Claude Code knows the price of its model; opencode is told by
# `settle` that a million costs a dollar read, two written, and nothing from a cache.
COSTS_USD = {
    "claude": 2 * (3 * FRESH + 0.3 * model_stub.TOKENS_CACHED + 15 * model_stub.TOKENS_OUT) / 1_000_000,
    "opencode": 2 * (FRESH + 2 * model_stub.TOKENS_OUT) / 1_000_000,
}


class Done:
    """What a client did with a task."""

    def __init__(self, run: AgentRun, stub: ModelStub, progress: list[str]) -> None:
        self.run = run
        self.answer: RunReport = programs.read_report(run.output)
        self.asked = [asked.body for asked in stub.asked]
        self.progress = progress


def environment(client: str, folder: Path, stub: ModelStub, *, trusted: Path) -> dict[str, str]:
    """Return all that a client finds around it: its program, a home of its own, and no model but ours."""
    program = real_clients.program(client)
    if isinstance(program, real_clients.Unavailable):
        pytest.skip(f"no {client}: {program}")
    home, temporary = folder / "their-home", folder / "tmp"
    for made in (home, temporary):
        made.mkdir(exist_ok=True)
    settings = home / ".config" / "learnt" / "learnt.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"trusted = [{json.dumps(str(folder))}]\n")  # the stores were made in another home
    return {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        **real_clients.settle(client, home, stub.address, trusted),
    }


def work(
    client: str,
    folder: Path,
    *replies: Reply,
    prompt: str = MARKER,
    stop: Stop | None = None,
    arguments: tuple[str, ...] = (),
) -> Done:
    work_folder = folder / "work"
    work_folder.mkdir(exist_ok=True)
    request = RunRequest(
        prompt=prompt,
        folder=str(work_folder),
        scratch=str(folder / "scratch"),
        model=MODELS[client],
        arguments=arguments,
    )
    progress: list[str] = []
    with ModelStub(*replies) as stub:
        run = agents.run(
            programs.build_call(client, request),
            folder=str(work_folder),
            environ={
                **environment(client, folder, stub, trusted=work_folder),
                "LEARNT_ATTEMPT": f"task_of_{client}",
            },
            time_limit_s=PATIENCE_S,
            output_limit_bytes=10_000_000,
            log_folder=str(folder / "log"),
            on_progress=progress.append,
            stop=stop,
        )
        return Done(run, stub, progress)


def writes(client: str, folder: Path) -> Reply:
    """The call with which each client's model writes a file into the folder that it works in."""
    path = str(folder / "made.txt")
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "claude": ("Write", {"file_path": path, "content": "made\n"}),
        "codex": ("exec_command", {"cmd": "echo made > made.txt"}),
        "copilot": ("create", {"path": path, "file_text": "made\n"}),
        "gemini": ("write_file", {"file_path": path, "content": "made\n"}),
        "opencode": ("write", {"filePath": path, "content": "made\n"}),
    }
    tool, arguments = calls[client]
    return Reply(tool=tool, arguments=arguments)


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_a_real_client_does_a_task_and_is_read(client: str, tmp_path: Path) -> None:
    done = work(client, tmp_path, writes(client, tmp_path / "work"), Reply(FINAL))

    assert (done.run.exit.ending, done.run.exit.exit_code, done.answer.error) == ("exited", 0, "")
    assert any(MARKER in body for body in done.asked)
    assert done.answer.text == FINAL
    assert done.answer.said.endswith(FINAL)
    assert done.answer.model == MODELS[client]
    assert (tmp_path / "work" / "made.txt").read_text() == "made\n"
    # Two turns, each with the same figures.
    assert done.answer.tokens_in == 2 * model_stub.TOKENS_IN
    assert done.answer.tokens_cached == 2 * model_stub.TOKENS_CACHED
    assert done.answer.tokens_out == 2 * model_stub.TOKENS_OUT
    assert done.answer.cost_usd == (pytest.approx(COSTS_USD[client]) if client in COSTS_USD else None)
    assert Path(done.answer.transcript.partition("#")[0]).is_file()
    assert any("made.txt" in line for line in done.progress)
    assert done.progress[-1] == "It is written. <task-done/>"
    assert done.run.exit.survivors == ()


def runs(client: str, line: str) -> Reply:
    """The call with which each client's model runs a command."""
    return Reply(tool=SHELLS[client], arguments={"cmd" if client == "codex" else "command": line, "description": "run"})


# What lets a client run commands without a person; Gemini otherwise does not even offer them to its model.
ALLOWED = {"claude": ("--allowedTools=Bash",), "copilot": ("--allow-all-tools",), "gemini": ("--approval-mode", "yolo")}
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch"


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_what_a_real_client_did_is_read_from_its_transcript(client: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    edit = runs(client, f"apply_patch <<'EOF'\n{PATCH}\nEOF") if client == "codex" else writes(client, folder)
    replies = (runs(client, "echo no >&2; exit 3"), runs(client, "echo yes"), edit, Reply(FINAL))
    prompt = f"{fenced('Nobody wrote this', 'brief_1')}\n{MARKER}"
    done = work(client, tmp_path, *replies, prompt=prompt, arguments=ALLOWED.get(client, ()))

    steps = list(transcript.steps(done.answer.transcript, session_database))
    assert [(step.kind, step.does) for step in steps] == [
        ("prompt", ""), *[("call", "run"), ("result", "")] * 2, ("call", "edit"), ("result", ""), ("said", ""),
    ]  # fmt: skip
    prompted, failing, failed, working, worked, edited, _, said = steps
    assert (prompted.text, said.text) == (MARKER, FINAL)
    assert (failing.text, working.text) == ("echo no >&2; exit 3", "echo yes")
    assert failed.text.strip().removeprefix("Exit code 3\n") == "no", "Claude Code begins with the exit code"
    assert (failed.failed, worked.text.strip(), worked.failed) == (True, "yes", False)
    assert (Path(edited.path).name, edited.text.strip()) == ("made.txt", "made")
    assert all(step.at > 0 for step in steps)
    told = transcript.about(done.answer.transcript, session_database)
    assert (told.client, told.folder, told.model) == (client, str(folder), MODELS[client].removeprefix("stub/"))
    places = {"HOME": str(tmp_path / "their-home")}
    (found,) = transcript.find(places, folder=str(tmp_path), since_ms=0, database=session_database)
    assert (found.path, found.session) == (done.answer.transcript, told.session)


LEARNT = "Write made.txt in one go. Half of it is worse than none."


@pytest.mark.parametrize("isolation", ["none", "worktree"])
@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_learnt_work_has_a_real_client_do_a_task(client: str, isolation: str, project: Path, tmp_path: Path) -> None:
    shop = Shop(project, command_line(project))
    shop.repository()
    shop.settle(agent=client, isolation=isolation)
    shop.model(MODELS[client], input_price=INPUT_PRICE, output_price=OUTPUT_PRICE)
    given = shop.learn("Never write made.txt by hand")
    task = shop.add("Write made.txt", "--verify", 'test "$(cat made.txt)" = made')
    folder = project if isolation == "none" else project / ".learnt" / "worktrees" / task
    answer = f"LEARNING_HELPFUL: {given['id']}\n<learning>{LEARNT}</learning>\n<task-done>made it so</task-done>"

    with ModelStub(writes(client, folder), Reply(answer)) as stub:
        shop.learnt = command_line(project, environment(client, tmp_path, stub, trusted=project))
        summary = shop.work()

    shown = shop.show(task)
    assert (summary["done"], shown["status"]) == (1, "done")
    (attempt,) = shown["attempts"]
    assert (attempt["result"], attempt["summary"], attempt["model"]) == ("done", "made it so", MODELS[client])
    tokens_in, tokens_out = 2 * model_stub.TOKENS_IN, 2 * model_stub.TOKENS_OUT
    assert (attempt["tokens_in"], attempt["tokens_out"]) == (tokens_in, tokens_out)
    read = tokens_in - 0.9 * 2 * model_stub.TOKENS_CACHED  # what comes from a cache costs a tenth
    by_price = (read * INPUT_PRICE + tokens_out * OUTPUT_PRICE) / 1_000_000
    assert attempt["cost_usd"] == pytest.approx(COSTS_USD.get(client, by_price))
    assert summary["cost_usd"] == attempt["cost_usd"]
    assert Path(attempt["transcript"].partition("#")[0]).is_file()
    brief = brief_in(stub.asked[-1].body, shop)
    assert given["title"] in brief
    assert given["id"] in brief
    (marked,) = [one for one in shop.learnings() if one["id"] == given["id"]]
    assert marked["confidence"] > given["confidence"]
    (stored,) = [one for one in shop.learnings() if one["origin"] == "agent"]
    assert (stored["observation"], stored["task"]) == (LEARNT, task)
    if shown["branch"]:
        assert shop.git("show", f"{shown['branch']}:made.txt") == "made\n"
        assert shop.git("ls-tree", "--name-only", shown["branch"]).split() == [".gitignore", "made.txt"]
    else:
        assert (folder / "made.txt").read_text() == "made\n"
        assert shop.git("status", "--short", "--untracked-files=all").split() == ["??", "made.txt"]
    assert (project / "made.txt").exists() == (isolation == "none")


# How each client names our tool to its model.
RECALLS = {
    "claude": Reply(tool="mcp__learnt__recall", arguments={"query": "how is the shop painted?"}),
    "codex": Reply(tool="recall", namespace="mcp__learnt", arguments={"query": "how is the shop painted?"}),
    "copilot": Reply(tool="learnt-recall", arguments={"query": "how is the shop painted?"}),
    "gemini": Reply(
        tool="mcp_learnt_recall", arguments={"query": "how is the shop painted?", "wait_for_previous": False}
    ),
    "opencode": Reply(tool="learnt_recall", arguments={"query": "how is the shop painted?"}),
}


def attach(client: str, folder: Path) -> tuple[str, ...]:
    """Let a client in a folder start `learnt mcp`, as docs/mcp.md says; return the arguments that it takes."""
    # Clients hand few variables on to a server: where this learnt is found stands in the command.
    source = str(Path(learnt.__file__).parents[1])
    start = f"import sys; sys.path.insert(0, {source!r}); from learnt.__main__ import main; sys.exit(main())"
    command, words = sys.executable, ["-c", start, "mcp"]
    if client == "codex":
        tables = {"command": command, "args": words, "required": True}
        settings = [("-c", f"mcp_servers.learnt.{name}={json.dumps(value)}") for name, value in tables.items()]
        return tuple(word for pair in settings for word in pair)
    if client == "gemini":
        server = {"command": command, "args": words, "trust": True}
        (folder / ".gemini").mkdir()
        (folder / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": {"learnt": server}}))
        return ()
    if client in ("claude", "copilot"):
        (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"learnt": {"command": command, "args": words}}}))
        return ("--allowedTools=mcp__learnt__*",) if client == "claude" else ()
    started = {"type": "local", "command": [command, *words], "enabled": True}
    (folder / "opencode.json").write_text(json.dumps({"mcp": {"learnt": started}}))
    return ()


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_a_real_client_recalls_over_mcp(client: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with Memory.open(folder) as memory:
        memory.add("Paint the shop green", action="ask MARKER-0815 for the colour")

    done = work(client, tmp_path, RECALLS[client], Reply(FINAL), arguments=attach(client, folder))

    assert (done.run.exit.ending, done.answer.error) == ("exited", "")
    first, last = done.asked[0], done.asked[-1]
    if client != "copilot":  # it passes on the instructions of few servers
        assert "learnt remembers what agents learnt in this project" in first
    assert "it finds what was learnt about it" in first
    assert "ask MARKER-0815 for the colour" in last
    assert "ignored, not a parameter" not in last


def test_gemini_in_a_folder_that_was_never_trusted_says_what_to_do(project: Path, tmp_path: Path) -> None:
    shop = Shop(project, command_line(project))
    shop.settle(agent="gemini")
    task = shop.add("Write made.txt")

    with ModelStub(Reply(FINAL)) as stub:
        shop.learnt = command_line(project, environment("gemini", tmp_path, stub, trusted=tmp_path / "elsewhere"))
        shop.work("--max-iterations", "1", code=1)

    (attempt,) = shop.show(task)["attempts"]
    assert attempt["failure"]["reason"].startswith("the agent ended with exit code 55")
    assert "--skip-trust" in attempt["failure"]["error"]
    assert stub.asked == []


def brief_in(body: str, shop: Shop) -> str:
    """Return the brief that stands in what the model was sent, word for word as it was recorded."""
    told = "\n".join(texts(json.loads(body)))
    found = re.search(r'<learnt-brief id="(brief_\w+)">.*?</learnt-brief>', told, re.DOTALL)
    assert found, told
    brief = found[0]
    assert brief == shop.learnt("explain", found[1], "--replay").out.strip()
    return brief


def texts(found: object) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict | list):
        for inner in found.values() if isinstance(found, dict) else found:
            yield from texts(inner)


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_a_prompt_longer_than_any_argument_arrives_whole(client: str, tmp_path: Path) -> None:
    end = 'the very "end" of it'
    done = work(client, tmp_path, Reply(FINAL), prompt=f"{MARKER}\n{'All of this matters. ' * 10_000}\n{end}")

    body = done.asked[-1]
    assert MARKER in body
    assert end.replace('"', '\\"') in body


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_a_client_whose_model_refuses_says_so(client: str, tmp_path: Path) -> None:
    done = work(client, tmp_path, Reply(refusal="the quota is used up"))

    assert done.run.exit.ending == "exited"
    assert done.run.exit.exit_code != 0
    assert "the quota is used up" in done.answer.error


@pytest.mark.parametrize("client", ["codex", "opencode"])
def test_a_command_that_a_client_runs_ends_with_the_client(client: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    signpost = tmp_path / "work" / "signpost"
    os.mkfifo(signpost)
    # A number by which the command can be found again, whatever it is wrapped in.
    line = f"echo running > signpost; sleep 98765.{os.getpid()}"
    tool, argument = {"codex": ("exec_command", "cmd"), "opencode": ("bash", "command")}[client]
    call = Reply(tool=tool, arguments={argument: line, "description": "wait"})
    stop = Stop()

    def when_running() -> None:
        with signpost.open() as file:
            file.read()
        stop.now()

    waiting = threading.Thread(target=when_running, daemon=True)
    waiting.start()
    done = work(client, tmp_path, call, Reply(FINAL), stop=stop)

    assert done.run.exit.ending == "interrupted"
    assert done.run.exit.survivors == ()
    assert running(f"98765.{os.getpid()}") == []


def running(word: str) -> list[str]:
    """Return the command lines of all processes that hold the word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        found += [line] if word in line else []
    return found


# Stands for learnt: keeps what it is given, and answers a prompt with words that the model must get to see.
SHIM = """#!{python} -IS
import json, sys
event = json.load(sys.stdin) if sys.argv[1] == "hook" else {{"hook_event_name": "started"}}
with open({told!r}, "a") as file:
    file.write(json.dumps({{**event, "words": sys.argv[1:]}}) + "\\n")
if event["hook_event_name"] in ("UserPromptSubmit", "BeforeAgent"):
    said = {{"hookEventName": event["hook_event_name"], "additionalContext": "BRIEFED-4711"}}
    top = {{"additionalContext": "BRIEFED-4711"}} if "copilot" in sys.argv else {{}}
    print(json.dumps({{"hookSpecificOutput": said, **top}}))
"""


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_a_client_that_was_set_up_serves_its_events_to_learnt(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, told = tmp_path / "work", tmp_path / "told"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    shim = tmp_path / "bin" / "learnt"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(python=sys.executable, told=str(told)))
    shim.chmod(0o755)
    assert command_line(folder)("install", client).code == 0
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    allowed = {
        **ALLOWED,
        "codex": ("--dangerously-bypass-hook-trust", "-c", f'projects."{folder}".trust_level="trusted"'),
    }

    done = work(client, tmp_path, runs(client, "echo yes"), Reply(FINAL), arguments=allowed.get(client, ()))

    assert (done.run.exit.exit_code, done.answer.error) == (0, "")
    everything = [json.loads(line) for line in told.read_text().splitlines()]
    events = [event for event in everything if event["hook_event_name"] != "started"]
    names = {"gemini": ("BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent")}
    usual = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    wanted = ("SessionStart", *names.get(client, usual), "SessionEnd")
    served = [name for event in events if (name := event["hook_event_name"]) in wanted]
    # Copilot does not wait for the first event's answer before it sends the second.
    assert [*sorted(served[:2], key=wanted.index), *served[2:]] == list(wanted)
    assert {event["session_id"] for event in events} == {events[0]["session_id"]}
    by_name = {event["hook_event_name"]: event for event in events}
    assert MARKER in by_name[wanted[1]]["prompt"]
    assert by_name[wanted[2]]["tool_input"]
    assert "yes" in json.dumps(by_name[wanted[3]]["tool_result" if client == "copilot" else "tool_response"])
    assert any("BRIEFED-4711" in body for body in done.asked)
    assert {tuple(event["words"]) for event in everything} == {("hook", "--client", client), ("mcp",)}


OPENED = """#!{python}
import sys
sys.path.insert(0, {source!r})
from learnt.__main__ import main
sys.exit(main())
"""


class Installed:
    """A client with our hooks and our MCP server in a project with a learning, and the requests to its model."""

    def __init__(self, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client = client
        self.folder = tmp_path / "work"
        self.folder.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)
        with Memory.open(self.folder) as memory:
            self.learning = memory.pin(memory.add("Paint the shop green").id)
        shim = tmp_path / "bin" / "learnt"
        shim.parent.mkdir()
        shim.write_text(OPENED.format(python=sys.executable, source=str(Path(learnt.__file__).parents[1])))
        shim.chmod(0o755)
        assert command_line(self.folder)("install", client).code == 0
        settings = self.folder / ".codex" / "config.toml"
        if client == "codex" and "required" not in settings.read_text():
            settings.write_text(settings.read_text() + "required = true\n")  # the first turn waits for the server
        monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
        self._tmp_path = tmp_path

    def run(self, *words: str, replies: tuple[Reply, ...]) -> tuple[str, list[str]]:
        """Run the client with these words; return what it prints, and what its model was sent."""
        with ModelStub(*replies) as stub:
            environ = {
                **environment(self.client, self._tmp_path, stub, trusted=self.folder),
                "LEARNT_HOOK_DEADLINE_MS": "5000",
            }
            if self.client == "codex":
                with (self._tmp_path / "their-home" / ".codex" / "config.toml").open("a") as file:
                    file.write(f'\n[projects."{self.folder}"]\ntrust_level = "trusted"\n')
            options = ("--dangerously-bypass-hook-trust",) if self.client == "codex" else ALLOWED.get(self.client, ())
            first = 1 if self.client == "codex" else 0  # the options of a subcommand
            done = subprocess.run(
                [str(real_clients.program(self.client)), *words[:first], *options, *words[first:]],
                cwd=self.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout + done.stderr, [asked.body for asked in stub.asked]


def test_gemini_has_both_prompts_and_the_brief_after_it_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemini = Installed("gemini", tmp_path, monkeypatch)

    gemini.run("-p", "FIRST-PROMPT: paint it", replies=(Reply("First done."),))
    _, asked = gemini.run("--resume", "latest", "-p", "SECOND-PROMPT: and now?", replies=(Reply("Second done."),))

    turn = asked[-1]
    assert "FIRST-PROMPT" in turn
    assert "SECOND-PROMPT" in turn
    assert turn.count(gemini.learning.id) == 1


def test_claude_code_is_told_nothing_twice_when_it_resumes_compacts_and_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = Installed("claude", tmp_path, monkeypatch)
    prompt, done, go_on = "Paint the shop green", Reply("Done."), "--continue"
    told = f"{claude.learning.title} ["

    for words in (("-p", prompt), (go_on, "-p", prompt), (go_on, "--fork-session", "-p", prompt)):
        _, asked = claude.run(*words, replies=(done,))
        assert [body.count(told) for body in asked] == [1], words
    claude.run(go_on, "-p", "/compact", replies=(Reply("We paint."),))
    for words in ((go_on, "-p", prompt), (go_on, "--fork-session", "-p", prompt)):
        _, asked = claude.run(*words, replies=(done,))
        assert [body.count(told) for body in asked] == [1], words
    with Memory.open(claude.folder) as memory:
        memory.worker.catch_up()
        briefs = [entry for entry in memory.reports.activity().entries if entry.what == "brief"]
    assert [(entry.occasion, entry.delivery) for entry in reversed(briefs)] == [
        (occasion, "delivered") for occasion in ("session", "prompt", "compaction")
    ]


def test_opencode_gives_briefs_to_the_model_of_its_agent_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opencode = Installed("opencode", tmp_path, monkeypatch)
    with Memory.open(opencode.folder) as memory:
        at_call = memory.add("Say it twice", kind="gotcha", triggers={"commands": ["echo yes"]})
    words = ("run", "-m", MODELS["opencode"])

    printed, asked = opencode.run(*words, MARKER, replies=(runs("opencode", "echo yes"), Reply("Done.")))
    _, resumed = opencode.run(*words, "-c", "and now?", replies=(Reply("Done."),))

    (title,) = [body for body in asked if "Generate a title" in body]
    for told in (title, printed):
        assert "learnt-brief" not in told
    assert "yes" in printed
    for turn in (asked[-1], resumed[-1]):
        assert turn.count(opencode.learning.id) == turn.count(f"({at_call.id})") == 1, "in the index"
        assert turn.count(f"ID: {at_call.id} ") == 1, "at the call"


HEADLESS = {
    "claude": ("-p",),
    "codex": ("exec", "--skip-git-repo-check"),
    "copilot": ("-p",),
    "gemini": ("-p",),
    "opencode": ("run", "-m", MODELS["opencode"]),
}


def tool(client: str, name: str, **arguments: Any) -> Reply:
    """The call with which each client's model uses one of our tools."""
    if client == "codex":
        return Reply(tool=name, namespace="mcp__learnt", arguments=arguments)
    names = {"claude": f"mcp__learnt__{name}", "copilot": f"learnt-{name}", "gemini": f"mcp_learnt_{name}"}
    return Reply(tool=names.get(client, f"learnt_{name}"), arguments=arguments)


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_hooks_and_tools_of_one_conversation_are_one_task(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = Installed(client, tmp_path, monkeypatch)
    id = installed.learning.id
    replies = (
        tool(client, "brief", text="paint the shop green"),
        tool(client, "mark", learning=id, helpful=True),
        Reply(f"Painted.\nLEARNING_HELPFUL: {id}"),
    )

    _, asked = installed.run(*HEADLESS[client], "Paint the shop green", replies=replies)

    assert f"has been given already what fits: {id}" in asked[-1]
    assert asked[-1].count("Paint the shop green [") == 1, "the learning itself is told once"
    with Memory.open(installed.folder) as memory:
        memory.worker.catch_up()
        assert len({entry.task for entry in memory.reports.activity().entries if entry.task}) == 1
        assert memory.get(id).times_helpful == 1
