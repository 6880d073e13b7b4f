"""What the operating system is asked for: programs within limits, detached processes, locks, files that are whole."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt.system import detached, files
from learnt.system.files import Locked
from learnt.system.replacements import Replacement, replace_all
from learnt.system.run import Exit, Stop, run
from learnt.text.templates import fill_in, takes_prompt_file

LONG_S = 60.0

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and modes")


class Program:
    """Runs Python programs of a few words, and has what they printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = {"stdout": b"", "stderr": b""}

    def keep(self, name: str, chunk: bytes) -> bool:
        self.output[name] += chunk
        return True

    def run(self, text: str, *, stdin: str = os.devnull, **options: Any) -> Exit:
        known: dict[str, Any] = {
            "folder": str(self.folder),
            "environ": dict(os.environ),
            "keep": self.keep,
            "time_limit_s": LONG_S,
        }
        with open(stdin, "rb") as file:
            return run([sys.executable, "-c", text], stdin=file, **{**known, **options})


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def until_gone(pid: int) -> bool:
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
    return False


class TestRun:
    def test_a_program_reads_its_input_and_all_that_it_prints_is_kept(self, program: Program) -> None:
        asked = program.folder / "asked"
        asked.write_text("word " * 100_000)
        text = "import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write('oops'); sys.exit(3)"
        done = program.run(text, stdin=str(asked))

        assert (done.ending, done.exit_code, done.error) == ("exited", 3, "")
        assert program.output == {"stdout": b"word " * 100_000, "stderr": b"oops"}

    def test_no_more_output_than_the_caller_wants(self, program: Program) -> None:
        done = program.run("while True: print('x' * 1000)", keep=lambda *_: False)
        assert done.ending == "output limit"

    @posix
    def test_a_program_that_ignores_requests_is_killed_at_the_time_limit(self, program: Program) -> None:
        text = "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"
        done = program.run(text, time_limit_s=1.0)
        assert (done.ending, done.exit_code) == ("time limit", 137)

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_what_the_program_left_in_its_group_is_killed_with_it(self, program: Program) -> None:
        text = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
        assert program.run(text).ending == "exited"
        assert until_gone(int(program.output["stdout"]))

    @posix
    def test_a_pipe_that_nobody_closes_is_not_waited_for(self, program: Program) -> None:
        text = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
        done = program.run(text, patience_s=0.2)

        assert (done.ending, done.exit_code) == ("exited", 0)
        os.kill(int(program.output["stdout"]), signal.SIGKILL)

    def test_the_caller_is_told_in_its_own_thread_that_something_was_printed(self, program: Program) -> None:
        threads = []
        stop = Stop()

        def look() -> None:
            threads.append(threading.current_thread())
            stop.now()

        done = program.run("import time; print('begun', flush=True); time.sleep(600)", on_output=look, stop=stop)
        assert done.ending == "interrupted"
        assert set(threads) == {threading.current_thread()}
        assert program.output["stdout"].strip() == b"begun"

    def test_a_program_whose_output_cannot_be_kept_is_ended(self, program: Program) -> None:
        def keep(*_: object) -> bool:
            raise OSError("no room")

        done = program.run("import time; print('begun', flush=True); time.sleep(600)", keep=keep)
        assert (done.ending, done.error) == ("interrupted", "the output could not be saved: no room")

    def test_nothing_starts_in_a_folder_that_is_gone(self, program: Program) -> None:
        done = program.run("", folder=str(program.folder / "gone"))
        assert (done.ending, done.pid, done.exit_code) == ("not started", 0, None)


class TestDetached:
    @posix
    def test_a_detached_process_has_its_own_session_and_a_private_log(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        for append in (False, True, True, False):
            words = [sys.executable, "-c", "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"]
            process = detached.start(words, environ=dict(os.environ), log=str(log), append=append)
            os.waitpid(process.pid, 0)
            if append:
                assert log.read_text().startswith("True ''\nTrue ''\n")
        assert log.read_text() == "True ''\n"
        assert mode(log) == 0o600


class TestLocks:
    def test_of_two_one_has_the_lock(self, tmp_path: Path) -> None:
        path = str(tmp_path / "lock")
        with Locked(path) as first, Locked(path, wait=False) as second:
            assert (first, second) == (True, False)
        with Locked(path, wait=False) as free:
            assert free

    @posix
    def test_many_share_a_lock_that_then_nobody_has_alone(self, tmp_path: Path) -> None:
        path = str(tmp_path / "lock")
        shared: dict[str, Any] = {"wait": False, "shared": True}
        with Locked(path, **shared) as first, Locked(path, **shared) as second, Locked(path, wait=False) as alone:
            assert (first, second, alone) == (True, True, False)

    @posix
    def test_a_lock_is_lost_when_its_file_is_removed_or_another_is_there(self, tmp_path: Path) -> None:
        path = tmp_path / "lock"
        lock = Locked(str(path))
        with lock:
            assert not lock.is_lost()
            path.unlink()
            assert lock.is_lost()
            path.touch()
            assert lock.is_lost()


class TestFiles:
    @posix
    @pytest.mark.parametrize(
        "write",
        [
            lambda path: files.write_private(path, "new\n"),
            lambda path: files.append_private(path, "new\n"),
            lambda path: files.append_line(path, b"new\n"),
            lambda path: files.replace_file(path, b"new\n"),
        ],
    )
    def test_what_is_ours_is_for_its_owner_only(self, write: Callable[[str], None], tmp_path: Path) -> None:
        folder = tmp_path / "ours"
        folder.mkdir()
        before = os.umask(0)
        try:
            write(str(folder / "file"))
        finally:
            os.umask(before)
        assert mode(folder / "file") == 0o600
        assert [path.name for path in folder.iterdir()] == ["file"]

    def test_a_line_after_a_torn_one_begins_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "lines"
        path.write_bytes(b"whole\nto")
        files.append_line(str(path), b"next\n")
        assert path.read_bytes() == b"whole\nto\nnext\n"

    def test_a_line_that_does_not_reach_the_disk_is_taken_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "lines"
        path.write_bytes(b"whole\n")
        monkeypatch.setattr(os, "fsync", _fail)
        with pytest.raises(OSError, match="no room"):
            files.append_line(str(path), b"next\n")
        assert path.read_bytes() == b"whole\n"

    def test_a_file_that_cannot_be_written_anew_stays_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"old")
        monkeypatch.setattr(os, "fsync", _fail)
        with pytest.raises(OSError, match="no room"):
            files.replace_file(str(path), b"new")
        assert path.read_bytes() == b"old"

    def test_a_log_that_has_grown_too_long_makes_room(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        for _ in range(3):
            files.rotate(str(path), max_bytes=5)
            files.append_private(str(path), "line\n")
        assert (path.read_text(), (tmp_path / "log.old").read_text()) == ("line\n", "line\nline\n")

    def test_of_several_files_all_change_or_none(self, tmp_path: Path) -> None:
        folder = tmp_path / "several"
        folder.mkdir()
        first, second, third = (folder / name for name in ("first", "second", "third"))
        second.write_bytes(b"somebody's")
        changes = [
            Replacement(path=str(first), before=None, after=b"new"),
            Replacement(path=str(second), before=b"old", after=b"new"),
            Replacement(path=str(third), before=None, after=b"new"),
        ]
        with pytest.raises(Exception, match="changed by another program"):
            replace_all(changes)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"second": b"somebody's"}


def test_a_command_line_says_where_the_prompt_and_the_model_go() -> None:
    words = ("ask", "--model={model}", "<{prompt_file}>")
    assert takes_prompt_file(words)
    assert not takes_prompt_file(words[:2])
    assert fill_in(words, prompt_file="prompt.md", model="small") == ("ask", "--model=small", "<prompt.md>")


def _fail(*_: object) -> None:
    raise OSError("no room")
