"""The real programs do a task without a person and without a network: only the model is ours.

What a client is given must arrive at the model, and what it tells must be read: words, tokens, cost, transcript.
"""

from __future__ import annotations

import os
import shlex
import threading
from pathlib import Path
from typing import Any

import pytest

from learnt import clients
from learnt.clients import Answer, Request
from learnt.loop import agents
from learnt.loop.agents import Run, Stop
from tests.support import model_stub, real_clients
from tests.support.model_stub import ModelStub, Reply

pytestmark = pytest.mark.clients

MARKER = "MARKER-4711: never run the tests on a Friday"
FINAL = "It is written.\n<task-done/>"
# As `settle` prices it: a dollar for a million read, two for a million written, nothing for what was cached.
COST_USD = 2 * (model_stub.TOKENS_IN - model_stub.TOKENS_CACHED + 2 * model_stub.TOKENS_OUT) / 1_000_000
MODELS = {"codex": "gpt-5-codex", "gemini": "gemini-2.5-flash", "opencode": "stub/stub-model"}


class Done:
    """What a client did with a task."""

    def __init__(self, run: Run, stub: ModelStub, progress: list[str]) -> None:
        self.run = run
        self.answer: Answer = clients.read(run.output)
        self.asked = [asked.body for asked in stub.asked]
        self.progress = progress


def work(client: str, folder: Path, *replies: Reply, prompt: str = MARKER, stop: Stop | None = None) -> Done:
    program = real_clients.program(client)
    if isinstance(program, real_clients.Unavailable):
        pytest.skip(f"no {client}: {program}")
    home, work_folder, temporary = folder / "their-home", folder / "work", folder / "tmp"
    for made in (home, work_folder, temporary):
        made.mkdir(exist_ok=True)
    request = Request(
        prompt=prompt,
        folder=str(work_folder),
        scratch=str(folder / "scratch"),
        model=MODELS[client],
        command=shlex.quote(str(program)),
    )
    progress: list[str] = []
    with ModelStub(*replies) as stub:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "LEARNT_ATTEMPT": f"task_of_{client}",
            **real_clients.settle(client, home, stub.address),
        }
        run = agents.run(
            clients.call(client, request),
            folder=str(work_folder),
            environ=environ,
            time_limit_s=120,
            output_limit_bytes=10_000_000,
            log_folder=str(folder / "log"),
            on_progress=progress.append,
            stop=stop,
        )
        return Done(run, stub, progress)


def writes(client: str, folder: Path) -> Reply:
    """The call with which each client's model writes a file."""
    path = str(folder / "work" / "made.txt")
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "codex": ("exec_command", {"cmd": "echo made > made.txt"}),
        "gemini": ("write_file", {"file_path": path, "content": "made\n"}),
        "opencode": ("write", {"filePath": path, "content": "made\n"}),
    }
    tool, arguments = calls[client]
    return Reply(tool=tool, arguments=arguments)


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_a_real_client_does_a_task_and_is_read(client: str, tmp_path: Path) -> None:
    done = work(client, tmp_path, writes(client, tmp_path), Reply(FINAL))

    assert (done.run.ending, done.run.exit_code, done.answer.error) == ("exited", 0, "")
    assert any(MARKER in body for body in done.asked)
    assert done.answer.text == FINAL
    assert done.answer.said.endswith(FINAL)
    assert done.answer.model == MODELS[client]
    assert (tmp_path / "work" / "made.txt").read_text() == "made\n"
    # Two turns, each with the same figures.
    assert done.answer.tokens_in == 2 * model_stub.TOKENS_IN
    assert done.answer.tokens_cached == 2 * model_stub.TOKENS_CACHED
    assert done.answer.tokens_out == 2 * model_stub.TOKENS_OUT
    assert done.answer.cost_usd == (pytest.approx(COST_USD) if client == "opencode" else None)
    assert Path(done.answer.transcript.partition("#")[0]).is_file()
    assert any("made.txt" in line for line in done.progress)
    assert done.progress[-1] == "It is written. <task-done/>"
    assert done.run.left == ()


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

    assert done.run.ending == "exited"
    assert done.run.exit_code != 0
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

    assert done.run.ending == "interrupted"
    assert done.run.outlived > 0
    assert done.run.left == ()
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
