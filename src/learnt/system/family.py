"""A program's family: find the processes that belong to it, and end them.

A process belongs to the family if it descends from the program, is in its process group or session, or has its mark,
which is `LEARNT_ATTEMPT=…` in the environment that the process was started with. The mark also identifies processes
that left the group and the session and whose parents have exited. Only a process that did all of this and also cleared
its environment can escape.

A process is identified by its id and its start time, because ids are reused. Our own process and its ancestors are
never part of a family.

The mark can be read on Linux only. Elsewhere `ps` lists groups and parents, and on Windows `taskkill` ends a tree.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

from learnt.model import Value

ATTEMPT_VARIABLE = "LEARNT_ATTEMPT"
GRACE_S = 2.0
# How long to wait for killed processes to disappear. A process that hangs in the kernel is reported.
PATIENCE_S = 10.0
_PROC = "/proc"


class Process(Value):
    """A living process, as the system lists it."""

    pid: int
    parent: int
    group: int
    session: int
    started: str


def kill_group(process: subprocess.Popen[bytes]) -> tuple[int, ...]:
    """Kill a program and its process group, which it leads; on Windows, the program and its descendants."""
    if sys.platform == "win32":
        subprocess.run(
            ("taskkill", "/T", "/F", "/PID", str(process.pid)),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # no process is left, or only processes of another user
            process.kill()
    return ()


def end_family(process: subprocess.Popen[bytes], mark: str = "", *, grace_s: float = GRACE_S) -> tuple[int, ...]:
    """End a program that has not been reaped yet, and its family: send SIGTERM, and after `grace_s` SIGKILL.

    Return the ids of the processes that could not be ended.
    """
    if sys.platform == "win32":
        return kill_group(process)
    return _end(lambda: _find_family(process.pid, mark), grace_s)


def end_orphans(pid: int, started: str, *, mark: str = "") -> tuple[int, ...]:
    """End the remaining processes of a program that another process started; return the ids of the ended processes.

    The id alone proves nothing, because it may have been reused. The group is ended if its leader still has this start
    time, or if a member has the mark. Outside the group, only processes with the mark are ended.
    """
    before = {process.pid for process in _find_family(pid, mark, started)}
    survivors = _end(lambda: _find_family(pid, mark, started), GRACE_S)
    return tuple(sorted(before - set(survivors)))


def start_time(pid: int) -> str:
    """Return when a process started, as a string that differs for a later process with the same id; empty if none."""
    if sys.platform == "linux":
        process = _read_proc(pid, ended_too=True)  # includes a process that has exited but has not been reaped
        return process.started if process else ""
    return _ask_ps("-o", "lstart=", "-p", str(pid)).strip()


def _find_family(pid: int, mark: str, started: str | None = None) -> list[Process]:
    """Return the processes of a program's family that are alive.

    Without `started`, the id must still belong to the program: it is alive, or it has not been reaped yet.
    """
    processes = _living()
    group = [other for other in processes if pid in (other.pid, other.group, other.session)]
    marked = [other for other in processes if _carries(other, mark)]
    is_ours = started is None or any(
        other in marked or (started and (other.pid, other.started) == (pid, started)) for other in group
    )
    return _with_descendants(processes, [*marked, *(group if is_ours else ())])


def _end(family: Callable[[], list[Process]], grace_s: float) -> tuple[int, ...]:
    """Ask a family to end, then kill it; return the ids of the processes that survived."""
    members = family()
    if not members:
        return ()
    _send_signal(members, signal.SIGTERM)
    _await(members, grace_s)
    deadline = time.monotonic() + PATIENCE_S
    # Repeated, because a member may start another process between the listing and the signal.
    while (members := family()) and time.monotonic() < deadline:
        if sys.platform != "win32":
            _send_signal(members, signal.SIGKILL)
        _await(members, min(1.0, PATIENCE_S))
    return tuple(member.pid for member in members)


def _with_descendants(processes: list[Process], roots: Iterable[Process]) -> list[Process]:
    children: dict[int, list[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    spared = _ourselves({process.pid: process.parent for process in processes})
    members: dict[int, Process] = {}
    unvisited = list(roots)
    while unvisited:
        process = unvisited.pop()
        if process.pid not in members and process.pid not in spared:
            members[process.pid] = process
            unvisited += children.get(process.pid, ())
    return list(members.values())


def _ourselves(parents: dict[int, int]) -> set[int]:
    pid, ours = os.getpid(), {0, 1}
    while pid not in ours:
        ours.add(pid)
        pid = parents.get(pid, 1)
    return ours


def _living() -> list[Process]:
    if sys.platform == "linux":
        return [process for name in os.listdir(_PROC) if name.isdecimal() and (process := _read_proc(int(name)))]
    return _list_by_ps()


def _read_proc(pid: int, *, ended_too: bool = False) -> Process | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            # The name in brackets may itself contain brackets, so the fields start after the last one.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in (b"Z", b"X") and not ended_too:
        return None
    parent, group, session = map(int, fields[1:4])
    return Process(pid=pid, parent=parent, group=group, session=session, started=f"{_boot()}:{int(fields[19])}")


def _boot() -> str:
    # Start times are counted from the machine's boot, so they are unique only together with the boot's id.
    try:
        with open(f"{_PROC}/sys/kernel/random/boot_id") as file:
            return file.read().strip()[:8]
    except OSError:
        return ""


def _list_by_ps() -> list[Process]:
    processes = []
    for line in _ask_ps("-axo", "pid=,ppid=,pgid=,stat=,lstart=").splitlines():
        pid, parent, group, state, started = [*line.split(None, 4), ""][:5]
        if not state.startswith("Z"):
            processes.append(
                Process(pid=int(pid), parent=int(parent), group=int(group), session=0, started=started.strip())
            )
    return processes


def _ask_ps(*words: str) -> str:
    # The format of times must not depend on the locale or the time zone.
    command = ("env", "LC_ALL=C", "TZ=UTC", "ps", *words)
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
        ).stdout
    except OSError:
        return ""


def _carries(process: Process, mark: str) -> bool:
    if not mark or sys.platform != "linux":
        return False
    try:
        with open(f"{_PROC}/{process.pid}/environ", "rb") as file:
            return os.fsencode(f"{ATTEMPT_VARIABLE}={mark}") in file.read().split(b"\0")
    except OSError:  # it belongs to another user, or has exited
        return False


def _send_signal(members: Iterable[Process], number: int) -> None:
    for member in members:
        try:
            os.kill(member.pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _await(members: list[Process], limit_s: float) -> None:
    """Wait until all processes have exited or the limit is reached."""
    deadline = time.monotonic() + limit_s
    for member in members:
        _await_one(member, deadline)


def _await_one(member: Process, deadline: float) -> None:
    if sys.platform == "linux":
        try:
            handle = os.pidfd_open(member.pid)
        except ProcessLookupError:
            return
        except OSError:  # too many open files, or an old kernel
            pass
        else:
            try:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            finally:
                os.close(handle)
            return
    while time.monotonic() < deadline and any(other == member for other in _living()):
        time.sleep(0.02)
