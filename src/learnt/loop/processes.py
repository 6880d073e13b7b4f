"""An agent's family of processes: who belongs to it, and how all of it is ended.

A process belongs to the family when it descends from the agent, is in its process group or session, or carries its
mark, the entry `LEARNT_ATTEMPT=…` in the environment that it was started with. The mark also finds what has left group
and session and whose parents are gone. Only a process that did all of this and cleared its environment as well can
escape.

A process is known by its number and its start time together: numbers are given out again. We ourselves and the
processes that we descend from are never part of a family.

The mark can be read on Linux only; elsewhere `ps` tells of groups and descent, and on Windows `taskkill` ends a tree.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

from learnt.model import Value

MARK = "LEARNT_ATTEMPT"
GRACE_S = 2.0
# How long killed processes may take to vanish; one that hangs in the kernel is reported, not waited for.
PATIENCE_S = 10.0
_PROC = "/proc"


class Process(Value):
    """A living process, as the system lists it."""

    pid: int
    parent: int
    group: int
    session: int
    started: str


def start_time(pid: int) -> str:
    """Return when the process started, as a text that no later one of this number shares; empty for none."""
    if sys.platform == "linux":
        found = _from_proc(pid, ended_too=True)  # one that ended at once is recorded all the same
        return found.started if found else ""
    return _ask("ps", "-o", "lstart=", "-p", str(pid)).strip()


def end_group(pid: int, started: str, *, mark: str = "", grace_s: float = GRACE_S) -> tuple[int, ...]:
    """End what is left of an agent that somebody else started; return the numbers of the processes that were ended.

    The number alone proves nothing: the group is ended when its leader still is the process that started then, or
    when a member carries the mark; beyond that, only what carries the mark.
    """

    def family() -> list[Process]:
        return _recorded(pid, started, mark)

    before = {process.pid for process in family()}
    left = end(family, grace_s=grace_s)
    return tuple(sorted(before - set(left)))


def family_of(pid: int, mark: str = "") -> list[Process]:
    """Return the living family of an agent whose number is still its own: alive, or not waited for yet."""
    everyone = _living()
    return _with_descendants(
        everyone,
        (other for other in everyone if pid in (other.pid, other.group, other.session) or _carries(other, mark)),
    )


def end(family: Callable[[], list[Process]], *, grace_s: float = GRACE_S) -> tuple[int, ...]:
    """Ask a family to end, then make it; return the numbers of those that would not go."""
    members = family()
    if not members:
        return ()
    _tell(members, signal.SIGTERM)
    _await(members, grace_s)
    deadline = time.monotonic() + PATIENCE_S
    # More than once: between the listing and the signal, a member may have started another.
    while (members := family()) and time.monotonic() < deadline:
        if sys.platform != "win32":
            _tell(members, signal.SIGKILL)
        _await(members, min(1.0, PATIENCE_S))
    return tuple(member.pid for member in members)


def end_tree(pid: int) -> None:
    """End a process and its descendants where there are no groups (Windows)."""
    _ask("taskkill", "/T", "/F", "/PID", str(pid))


def _recorded(pid: int, started: str, mark: str) -> list[Process]:
    everyone = _living()
    group = [other for other in everyone if pid in (other.pid, other.group, other.session)]
    is_ours = any(started and other.pid == pid and other.started == started for other in group) or any(
        _carries(other, mark) for other in group
    )
    marked = [other for other in everyone if _carries(other, mark)]
    return _with_descendants(everyone, [*marked, *(group if is_ours else ())])


def _with_descendants(everyone: list[Process], roots: Iterable[Process]) -> list[Process]:
    children: dict[int, list[Process]] = {}
    for process in everyone:
        children.setdefault(process.parent, []).append(process)
    spared = _ourselves({process.pid: process.parent for process in everyone})
    found: dict[int, Process] = {}
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        if process.pid not in found and process.pid not in spared:
            found[process.pid] = process
            waiting += children.get(process.pid, ())
    return list(found.values())


def _ourselves(parents: dict[int, int]) -> set[int]:
    pid, found = os.getpid(), {0, 1}
    while pid not in found:
        found.add(pid)
        pid = parents.get(pid, 1)
    return found


def _living() -> list[Process]:
    if sys.platform == "linux":
        return [found for name in os.listdir(_PROC) if name.isdecimal() and (found := _from_proc(int(name)))]
    return _from_ps()


def _from_proc(pid: int, *, ended_too: bool = False) -> Process | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            # The name in brackets may hold anything, brackets included.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in (b"Z", b"X") and not ended_too:
        return None
    parent, group, session = map(int, fields[1:4])
    return Process(pid=pid, parent=parent, group=group, session=session, started=f"{_boot()}:{int(fields[19])}")


def _boot() -> str:
    # Ticks are counted from the start of the machine, so the start of the machine belongs to them.
    try:
        with open(f"{_PROC}/sys/kernel/random/boot_id") as file:
            return file.read().strip()[:8]
    except OSError:
        return ""


def _from_ps() -> list[Process]:
    found = []
    for line in _ask("ps", "-axo", "pid=,ppid=,pgid=,stat=,lstart=").splitlines():
        pid, parent, group, state, started = [*line.split(None, 4), ""][:5]
        if not state.startswith("Z"):
            found.append(
                Process(pid=int(pid), parent=int(parent), group=int(group), session=0, started=started.strip())
            )
    return found


def _carries(process: Process, mark: str) -> bool:
    if not mark or sys.platform != "linux":
        return False
    try:
        with open(f"{_PROC}/{process.pid}/environ", "rb") as file:
            return os.fsencode(f"{MARK}={mark}") in file.read().split(b"\0")
    except OSError:  # another user's, or gone
        return False


def _tell(members: Iterable[Process], number: int) -> None:
    for member in members:
        try:
            os.kill(member.pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _await(members: list[Process], limit_s: float) -> None:
    """Wait until all of them are gone, but no longer than this."""
    deadline = time.monotonic() + limit_s
    for member in members:
        _await_one(member, deadline)


def _await_one(member: Process, deadline: float) -> None:
    if sys.platform == "linux":
        try:
            handle = os.pidfd_open(member.pid)
        except ProcessLookupError:
            return
        except OSError:  # no more files may be opened, or an old kernel
            pass
        else:
            import select

            try:
                waiting = select.poll()
                waiting.register(handle, select.POLLIN)
                waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
            finally:
                os.close(handle)
            return
    while time.monotonic() < deadline and any(other == member for other in _living()):
        time.sleep(0.02)


def _ask(*words: str) -> str:
    # Times must read the same for everybody who compares them.
    environ = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        return subprocess.run(
            words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, env=environ, check=False
        ).stdout
    except OSError:
        return ""
