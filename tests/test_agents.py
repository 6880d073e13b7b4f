"""Whatever an agent does, its run ends, nothing of it stays alive, and the account is true.

The agents here are small programs that misbehave in one way each. They tell the numbers of their processes, and a test
judges by those.
"""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from learnt.clients.kit import run as programs
from learnt.clients.kit.run import Call, RunReport, RunRequest
from learnt.errors import LearntError
from learnt.loop import agents
from learnt.loop.agents import AgentRun
from learnt.system import family
from learnt.system.run import Stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# Of this process alone: whatever carries the mark is ended, also by the tests that run beside these.
TASK = f"task_under_test_{os.getpid()}"
LONG_S = 60.0
# What the agents' programs share: `child` starts one, also in a session of its own and without its parent; `ready`
# tells the numbers of all.
PRELUDE = """
import os, signal, subprocess, sys, time
pids = [os.getpid()]
def child(work, detached=False):
    reading, writing = os.pipe()
    first = os.fork()
    if first == 0:
        if detached:
            os.setsid()
            if os.fork():
                os._exit(0)
        os.write(writing, str(os.getpid()).encode())
        os.close(writing)
        work()
        os._exit(0)
    os.close(writing)
    pids.append(int(os.read(reading, 20)))
    if detached:
        os.waitpid(first, 0)
def forever():
    while True:
        signal.pause()
def ready():
    print("pids", *pids, flush=True)
"""


@pytest.fixture
def agent(tmp_path: Path) -> Callable[[str], Call]:
    """Make an agent of a program's text."""

    def make(text: str) -> Call:
        path = tmp_path / "agent.py"
        path.write_text(PRELUDE + textwrap.dedent(text))
        return command(f"{sys.executable} -S {path}", tmp_path)

    return make


def command(line: str, tmp_path: Path, prompt: str = "Do the work") -> Call:
    request = RunRequest(
        prompt=prompt, folder=str(tmp_path), scratch=str(tmp_path / "scratch"), command=line, model="small"
    )
    return programs.build_call("command", request)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., AgentRun]:
    """AgentRun an agent in a folder of its own, for long unless a test says otherwise."""
    folder = tmp_path / "work"
    folder.mkdir()

    def start(call: Call, **options: Any) -> AgentRun:
        settled: dict[str, Any] = {
            "folder": str(folder),
            "environ": {**os.environ, "LEARNT_ATTEMPT": TASK},
            "time_limit_s": LONG_S,
            "output_limit_bytes": 1_000_000,
            "log_folder": str(tmp_path / "log"),
            "grace_s": 0.2,
        }
        return agents.run(call, **{**settled, **options})

    return start


def stop_when_ready(stop: Stop) -> Callable[[str], None]:
    return lambda line: stop.now() if line.startswith("pids ") else None


def told(run: AgentRun) -> list[int]:
    """Return the numbers that the agent told."""
    first = Path(run.output.stdout).read_text(errors="replace").partition("\n")[0]
    return [int(word) for word in first.split()[1:]]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_all_dead(run: AgentRun, *, least: int = 1) -> None:
    pids = told(run)
    assert len(pids) >= least
    assert [pid for pid in pids if alive(pid)] == []
    assert run.exit.survivors == ()


def answer(run: AgentRun) -> RunReport:
    return programs.read_report(run.output)


def test_an_agent_reads_its_prompt_and_its_words_are_read(run: Callable[..., AgentRun], tmp_path: Path) -> None:
    done = run(command("cat", tmp_path, prompt="Überlege gut\n" * 30_000))

    assert (done.exit.ending, done.exit.exit_code, done.exit.error) == ("exited", 0, "")
    assert answer(done).text == "Überlege gut\n" * 30_000
    assert answer(done).model == "small"


def test_a_prompt_can_come_as_a_file_and_the_model_as_a_word(run: Callable[..., AgentRun], tmp_path: Path) -> None:
    done = run(command("sh -c 'cat \"$1\"; echo; echo $2; cat' - {prompt_file} model={model}", tmp_path, "In a file"))
    assert answer(done).text == "In a file\nmodel=small\n"


def test_an_agent_gets_the_environment_that_it_is_given(
    run: Callable[..., AgentRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTSIDE", "1")
    environ = {"PATH": os.environ["PATH"], "LEARNT_ATTEMPT": TASK, "LEARNT_INTERNAL": "1"}
    done = run(command("env", tmp_path).replace(environment={"FROM_CLIENT": "2"}), environ=environ)

    variables = dict(line.split("=", 1) for line in answer(done).text.splitlines())
    assert variables["LEARNT_ATTEMPT"] == TASK
    assert variables["FROM_CLIENT"] == "2"
    assert not {"LEARNT_INTERNAL", "OUTSIDE"} & variables.keys()


def test_the_caller_hears_of_the_start_and_of_what_is_said(
    run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    started: list[tuple[int, str]] = []
    lines: list[str] = []
    done = run(
        agent("ready(); print('\\x1b[31mred\\x1b[0m'); print(); print('last')"),
        on_started=lambda pid, time: started.append((pid, time)),
        on_progress=lines.append,
    )

    [(pid, time)] = started
    assert pid == done.exit.pid == told(done)[0]
    assert time
    assert lines[1:] == ["red", "last"]


def test_an_agent_that_hangs_ends_at_its_time_limit(run: Callable[..., AgentRun], agent: Callable[[str], Call]) -> None:
    done = run(agent("ready(); forever()"), time_limit_s=0.7)

    assert done.exit.ending == "time limit"
    assert done.exit.exit_code == 128 + signal.SIGTERM
    assert answer(done).error == "exit code 143"
    assert not alive(done.exit.pid)


def test_an_agent_that_talks_without_end_still_has_a_time_limit(
    run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    done = run(
        agent("ready()\nwhile True: print(time.monotonic(), flush=True)"),
        time_limit_s=0.7,
        output_limit_bytes=10**9,
        on_progress=lambda line: None,
    )
    assert done.exit.ending == "time limit"
    assert not alive(done.exit.pid)


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param("os.execvp('yes', ['yes'])", id="lines"),
        pytest.param("os.execvp('head', ['head', '-c', '1G', '/dev/zero'])", id="no-line-end"),
        pytest.param("os.dup2(2, 1); os.execvp('yes', ['yes'])", id="stderr"),
        pytest.param("child(lambda: os.execvp('yes', ['yes'])); ready(); forever()", id="child"),
    ],
)
def test_an_agent_that_floods_is_stopped_at_the_limit_to_the_byte(
    flood: str, run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    tracemalloc.start()
    try:
        done = run(agent(f"ready(); {flood}"), output_limit_bytes=20_000_000, on_progress=lambda line: None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert done.exit.ending == "output limit"
    assert os.path.getsize(done.output.stdout) + os.path.getsize(done.output.stderr) == 20_000_000
    assert peak < 10_000_000
    assert_all_dead(done)


def test_an_agent_that_ends_before_all_of_its_flood_is_read_is_reported_as_flooding(
    run: Callable[..., AgentRun], tmp_path: Path
) -> None:
    done = run(command("head -c 60000 /dev/zero", tmp_path), output_limit_bytes=1_000)
    assert done.exit.ending == "output limit"
    assert os.path.getsize(done.output.stdout) == 1_000


@pytest.mark.parametrize("end", ["exit 137", "kill -9 $$"])
def test_an_agent_that_is_killed_tells_exit_code_137(end: str, run: Callable[..., AgentRun], tmp_path: Path) -> None:
    done = run(command(f"sh -c 'echo begun; echo bad luck >&2; {end}'", tmp_path))

    assert (done.exit.ending, done.exit.exit_code) == ("exited", 137)
    assert answer(done).text == "begun\n"
    assert answer(done).error == "exit code 137: bad luck"


def test_invalid_text_is_read_as_well_as_it_can_be(run: Callable[..., AgentRun], tmp_path: Path) -> None:
    lines: list[str] = []
    done = run(command(r"printf 'good \377\376 bad\n<task-done/>\n'", tmp_path), on_progress=lines.append)

    assert answer(done).text == "good \ufffd\ufffd bad\n<task-done/>\n"
    assert lines == ["good \ufffd\ufffd bad", "<task-done/>"]


@pytest.mark.parametrize("detached", [False, True], ids=["in-the-group", "detached"])
def test_children_that_hold_the_output_open_end_with_the_agent(
    detached: bool, run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    done = run(agent(f"child(forever, {detached}); child(forever, {detached}); ready()"))

    assert (done.exit.ending, done.exit.exit_code) == ("exited", 0)
    assert_all_dead(done, least=3)


def test_detached_children_end_when_the_agent_is_stopped(
    run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    stop = Stop()
    done = run(
        agent("child(forever); child(forever, True); ready(); forever()"), stop=stop, on_progress=stop_when_ready(stop)
    )
    assert done.exit.ending == "interrupted"
    assert_all_dead(done, least=3)


def test_a_child_that_hides_from_group_and_mark_ends_with_its_living_parent(
    run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    stop = Stop()
    hide = "subprocess.Popen(['sleep', '1000'], env={'PATH': os.environ['PATH']}, start_new_session=True)"
    done = run(agent(f"pids.append({hide}.pid); ready(); forever()"), stop=stop, on_progress=stop_when_ready(stop))
    assert_all_dead(done, least=2)


def test_processes_that_ignore_the_request_to_end_are_killed(
    run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    stop = Stop()
    done = run(
        agent("signal.signal(15, signal.SIG_IGN); child(forever, True); ready(); forever()"),
        stop=stop,
        on_progress=stop_when_ready(stop),
    )
    assert (done.exit.ending, done.exit.exit_code) == ("interrupted", 137)
    assert_all_dead(done, least=2)


def test_a_process_that_starts_another_while_it_is_ended_takes_it_along(
    run: Callable[..., AgentRun], agent: Callable[[str], Call], tmp_path: Path
) -> None:
    heir = tmp_path / "heir"
    text = f"""
        def bequeath(*_):
            child(forever, True)
            open({str(heir)!r}, "w").write(str(pids[-1]))
            os._exit(0)
        signal.signal(15, bequeath)
        ready()
        forever()
    """
    stop = Stop()
    # Long enough for the heir to be there: it is the second round that must find it.
    done = run(agent(text), stop=stop, on_progress=stop_when_ready(stop), grace_s=LONG_S)
    assert_all_dead(done)
    assert not alive(int(heir.read_text()))


def test_an_agent_may_delete_the_folder_that_it_works_in(
    run: Callable[..., AgentRun], agent: Callable[[str], Call], tmp_path: Path
) -> None:
    done = run(agent("import shutil; ready(); shutil.rmtree(os.getcwd()); print('gone')"))

    assert (done.exit.ending, done.exit.exit_code) == ("exited", 0)
    assert answer(done).text.endswith("gone\n")
    assert not (tmp_path / "work").exists()


def test_an_agent_that_deletes_its_own_log_is_still_read(
    run: Callable[..., AgentRun], agent: Callable[[str], Call], tmp_path: Path
) -> None:
    done = run(agent(f"import shutil; ready(); shutil.rmtree({str(tmp_path / 'log')!r}); print('gone')"))
    assert answer(done).text.endswith("gone\n")


def not_executable(tmp_path: Path) -> str:
    (tmp_path / "plain").write_text("echo hello")
    return str(tmp_path / "plain")


def no_program(tmp_path: Path) -> str:
    (tmp_path / "noise").write_bytes(b"\x00\x01\x02")
    (tmp_path / "noise").chmod(0o755)
    return str(tmp_path / "noise")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (lambda _: "no-such-program --help", "`no-such-program` was not found"),
        (not_executable, "permission denied"),
        (no_program, "could not be started"),
        (lambda _: "echo nul\0nul", "could not be started"),
    ],
    ids=["missing", "not-executable", "no-program", "nul"],
)
def test_an_agent_that_cannot_be_started_says_why(
    line: Callable[[Path], str], why: str, run: Callable[..., AgentRun], tmp_path: Path
) -> None:
    done = run(command(line(tmp_path), tmp_path))

    assert (done.exit.ending, done.exit.exit_code, done.exit.pid) == ("not started", None, 0)
    assert why in done.exit.error
    assert answer(done).text == ""


def test_an_agent_cannot_start_in_a_folder_that_is_gone(run: Callable[..., AgentRun], tmp_path: Path) -> None:
    done = run(command("echo", tmp_path), folder=str(tmp_path / "nowhere"))
    assert done.exit.ending == "not started"
    assert done.exit.error == f"the folder {tmp_path / 'nowhere'} does not exist"


def test_a_log_that_cannot_be_made_is_an_error_of_ours(run: Callable[..., AgentRun], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LearntError, match="log cannot be written"):
        run(command("echo", tmp_path), log_folder=str(tmp_path / "file" / "log"))


def test_an_agent_whose_output_finds_no_room_is_ended(
    run: Callable[..., AgentRun], agent: Callable[[str], Call]
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        done = run(agent("ready(); print('x' * 500_000, flush=True); forever()"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.exit.ending == "interrupted"
    assert "could not be saved" in done.exit.error
    assert_all_dead(done)


# Stopping


def test_a_signal_handler_can_stop_the_agent(run: Callable[..., AgentRun], agent: Callable[[str], Call]) -> None:
    stop = Stop()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.now())
    try:
        done = run(agent("ready(); os.kill(os.getppid(), signal.SIGUSR1); forever()"), stop=stop)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert done.exit.ending == "interrupted"
    assert stop.is_requested
    assert_all_dead(done)


def test_one_stop_ends_all_agents_and_those_to_come(
    run: Callable[..., AgentRun], agent: Callable[[str], Call], tmp_path: Path
) -> None:
    stop, call = Stop(), agent("child(forever, True); ready(); forever()")
    both_ready = threading.Barrier(2, action=stop.now)
    done: list[AgentRun] = []

    def work(name: str) -> None:
        def on_progress(line: str) -> None:
            if line.startswith("pids "):
                both_ready.wait(LONG_S)

        environ = {**os.environ, "LEARNT_ATTEMPT": f"{TASK}_{name}"}
        done.append(run(call, stop=stop, environ=environ, log_folder=str(tmp_path / name), on_progress=on_progress))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.exit.ending for each in done] == ["interrupted", "interrupted"]
    for each in done:
        assert_all_dead(each, least=2)
    late = run(call, stop=stop)
    assert (late.exit.ending, late.exit.pid) == ("interrupted", 0)


def test_the_end_of_one_agent_leaves_its_neighbour_alone(
    run: Callable[..., AgentRun], agent: Callable[[str], Call], tmp_path: Path
) -> None:
    neighbours: list[int] = []

    def beside(line: str) -> None:
        """While the first one runs, another comes and goes."""
        other = run(
            command("true", tmp_path),
            environ={**os.environ, "LEARNT_ATTEMPT": f"{TASK}_beside"},
            log_folder=str(tmp_path / "beside"),
        )
        assert other.exit.ending == "exited"
        neighbours.extend(pid for pid in map(int, line.split()[1:]) if alive(pid))
        stop.now()

    stop = Stop()
    done = run(agent("child(forever, True); ready(); forever()"), stop=stop, on_progress=beside)
    assert neighbours == told(done)
    assert_all_dead(done, least=2)


@pytest.mark.parametrize("caller", ["on_started", "on_progress"])
def test_an_error_of_the_caller_ends_the_agent_and_goes_on(
    caller: str, run: Callable[..., AgentRun], agent: Callable[[str], Call], tmp_path: Path
) -> None:
    pids: list[int] = []

    def fail(first: object, *_: object) -> None:
        pids.extend([first] if isinstance(first, int) else map(int, str(first).split()[1:]))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(agent("child(forever, True); ready(); forever()"), **{caller: fail})
    assert pids
    assert not any(map(alive, pids))


# After a worker that was killed

WORKER = """
import os, sys
from learnt.clients.kit import run as programs
from learnt.clients.kit.run import RunRequest
from learnt.loop import agents
folder, script, task = sys.argv[1:]
request = RunRequest(prompt="", folder=folder, scratch=folder, command=f"{sys.executable} -S {script}")
agents.run(
    programs.build_call("command", request), folder=folder, environ={**os.environ, "LEARNT_ATTEMPT": task},
    time_limit_s=600, output_limit_bytes=10**6, log_folder=folder + "/log",
    on_started=lambda pid, started: print(pid, started, flush=True),
    on_progress=lambda line: print(line, flush=True),
)
"""


class Orphans:
    """The processes of an agent whose worker was killed; the first is the leader of their group."""

    def __init__(self, folder: Path, script: Path) -> None:
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder), str(script), TASK], stdout=subprocess.PIPE, text=True
        )
        with worker:
            assert worker.stdout
            leader, self.started = worker.stdout.readline().split()
            self.leader = int(leader)
            self.pids = [int(word) for word in worker.stdout.readline().split()[1:]]
            worker.kill()

    def alive(self) -> list[int]:
        return [pid for pid in self.pids if alive(pid)]

    def kill_leader(self) -> None:
        handle = os.pidfd_open(self.leader)
        os.kill(self.leader, signal.SIGKILL)
        select.select([handle], [], [], LONG_S)
        os.close(handle)


@pytest.fixture
def orphans(agent: Callable[[str], Call], tmp_path: Path) -> Iterator[Orphans]:
    # Output that nobody reads any more would end them.
    agent("signal.signal(13, signal.SIG_IGN); child(forever); child(forever, True); ready(); forever()")
    left = Orphans(tmp_path, tmp_path / "agent.py")
    assert left.alive() == left.pids
    yield left
    for pid in left.alive():
        os.kill(pid, signal.SIGKILL)


def test_the_next_worker_ends_what_a_killed_one_left(orphans: Orphans) -> None:
    ended = family.end_orphans(orphans.leader, orphans.started, mark=TASK)

    assert sorted(ended) == sorted(orphans.pids)
    assert orphans.alive() == []


def test_what_is_left_ends_although_its_leader_is_dead(orphans: Orphans) -> None:
    orphans.kill_leader()
    family.end_orphans(orphans.leader, orphans.started, mark=TASK)
    assert orphans.alive() == []


def test_the_start_time_alone_is_enough_for_the_group(orphans: Orphans) -> None:
    family.end_orphans(orphans.leader, orphans.started)
    assert orphans.alive() == orphans.pids[2:]  # the detached one is known by its mark only


def test_a_number_that_was_given_out_again_is_left_alone(orphans: Orphans) -> None:
    assert family.end_orphans(orphans.leader, "another time", mark="task_another") == ()
    assert family.end_orphans(orphans.leader, "", mark="") == ()
    assert orphans.alive() == orphans.pids


def test_ending_twice_is_ending_once(orphans: Orphans) -> None:
    family.end_orphans(orphans.leader, orphans.started, mark=TASK)
    assert family.end_orphans(orphans.leader, orphans.started, mark=TASK) == ()


def test_we_never_end_ourselves() -> None:
    us = os.getpid()
    assert family.end_orphans(us, family.start_time(us)) == ()


def test_where_there_is_no_proc_the_same_is_learnt_from_ps() -> None:
    if not shutil.which("ps"):
        pytest.skip("no `ps` here")
    us = os.getpid()
    [listed] = [process for process in family._list_by_ps() if process.pid == us]
    assert (listed.parent, listed.group) == (os.getppid(), os.getpgid(0))
    assert listed.started


def test_a_process_that_never_was_has_no_start_time() -> None:
    assert family.start_time(2**22 + 1) == ""
    assert family.start_time(os.getpid()) == family.start_time(os.getpid()) != ""
