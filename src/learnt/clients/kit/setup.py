"""Set up clients: which files are edited and how, and whether a setup works.

A client's `setup` module provides `targets`, `next_step`, `find_switch` and `find_trust`. An `Edit` works on the bytes
of a file: `add` inserts our settings, or changes nothing if they are there, and `remove` removes them and leaves every
other byte. A file that cannot be edited safely raises Unfit, and `by_hand` returns the text for a person to add.
Nothing here writes, starts a process, or reads the environment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from learnt.clients import registry
from learnt.clients.kit.run import find_folder
from learnt.errors import LearntError, WrongRequest
from learnt.model import Value

# Longer than any hook takes, unless the interpreter hangs.
TIMEOUT_S = 5
NAME = "learnt"
_OUR_HOOK = re.compile(r"(?<![\w.-])learnt(?:\.exe|\.cmd)?[\"'\\]*\s+hook\b")
_OUR_SERVER = re.compile(r"(?<![\w.-])learnt(?:\.exe|\.cmd)?[\"'\\]*\s+mcp$")
_BOM = b"\xef\xbb\xbf"
Read = Callable[[str], bytes | None]


class Unfit(Exception):
    """The reason why a file cannot be edited safely, and a remedy if adding our settings by hand would not help."""

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class Location(Value):
    """Where a client is set up: in a project, or for the user.

    `variables` holds those of `registry.FOLDER_VARIABLES` that are set. `program` holds the words that start learnt:
    its name, to be found on PATH, or its path.
    """

    root: str
    user: bool = False
    variables: Mapping[str, str] = {}
    program: tuple[str, ...] = (NAME,)
    windows: bool = False

    def home(self, variable: str, *below: str) -> str:
        """Return the folder that the variable names, or the default below the home folder."""
        folder = find_folder(self.variables, variable, *below)
        if not folder:
            raise WrongRequest("your home folder is not known", hint=f"set HOME, or {variable}")
        return folder


class Edit(Protocol):
    """The changes to one file, as functions of its content."""

    def add(self, content: bytes | None) -> bytes:
        """Return the file with our settings; None means no file."""

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        """Return the file without our settings, None if nothing is left; `before` is the original file."""

    def holds(self, content: bytes) -> bool:
        """Return whether the file holds any of our settings."""

    def by_hand(self, content: bytes | None, /) -> str:
        """Return the text that a person can add to the file; empty if only `add` can write it."""

    def starts(self, content: bytes, /) -> str:
        """Return the program that our hooks in the file start; empty if it is not known or there are none."""


class Target(Value):
    """A file of a client, and its changes."""

    path: str
    edit: Edit


class Question(Value):
    """A JSON-RPC request to a client's own program, which answers on stdout."""

    words: tuple[str, ...]
    """The command line that starts the program."""
    folder: str
    messages: tuple[Mapping[str, Any], ...]
    reply_id: int
    """The id of the message that is the reply."""


AskClient = Callable[[Question], Mapping[str, Any] | None]


class Disk(Value):
    """Access to the machine: files, programs, and a client's own program."""

    read: Read
    is_there: Callable[[str], bool]
    names: Callable[[str], Sequence[str]]
    """The names in a folder."""
    ask_client: AskClient | None = None
    """Returns the client's reply, None if there is none. Not set if no client may be started."""


class Fault(Value):
    """A fault and its remedy."""

    detail: str
    remedy: str


class Trust(Value):
    """Whether a client trusts our hooks."""

    trusted: bool | None = None
    """None if it cannot be known."""
    reason: str = ""
    """Why the client would not run our hooks; empty if it would."""
    whole: bool = False
    """Whether it would run none of our hooks."""
    matters: bool = True
    """Whether the client is used on this machine: a project has settings for everyone who works in it."""


class SetupModule(Protocol):
    """The `setup` module of a client."""

    def targets(self, location: Location) -> list[Target]:
        """Return the files of the client, and the changes to each."""

    def next_step(self, location: Location) -> str:
        """Return the next step for the user after the files are written."""

    def find_switch(self, location: Location, read: Read) -> Fault | None:
        """Return the setting that prevents the client from running our hooks; None if there is none.

        Of two files with such a setting, the one nearer to the project counts. Settings of an administrator and options
        of a command line are not considered.
        """

    def find_trust(self, location: Location, targets: Sequence[Target], disk: Disk) -> Trust:
        """Return whether the client trusts our hooks; `targets` are its files with our settings."""


class ClientState(Value):
    """The state of a client that is set up in a project or for the user."""

    client: str
    fine: bool
    detail: str
    remedy: str = ""
    twice: bool = False
    """Whether the problem is that the client is set up both here and for the user."""
    next_step: str = ""
    """The next step for the user before the client runs our hooks."""
    trusted: bool | None = None
    """Whether the client trusts our hooks; None if it cannot be known."""
    unheard: tuple[str, ...] = ()
    """The files of which the client would run no hook; a hook that fired since disproves it."""


def module_of(client: str) -> SetupModule:
    """Return the `setup` module of a client."""
    module: SetupModule = registry.load(registry.get(client, "setup"), "setup")
    return module


def targets(client: str, location: Location) -> list[Target]:
    """Return the files of a client, and the changes to each."""
    return module_of(client).targets(location)


def find_switch(client: str, location: Location, read: Read) -> Fault | None:
    """Return the setting that prevents a client from running our hooks; None if none is known."""
    try:
        return module_of(client).find_switch(location, read)
    except LearntError:
        return None  # the user's home is not known


def has_hooks(client: str) -> bool:
    """Return whether a client runs hooks; the others only read a file."""
    return bool(registry.get(client, "setup").events)


def examine(locations: Sequence[Location], disk: Disk) -> Iterator[ClientState]:
    """Yield the state of each client that is set up in any of the locations. Changes nothing."""
    for client in registry.setup_names():
        paths: dict[str, Location] = {}
        for location in locations:
            try:
                files = targets(client, location)
            except LearntError:
                continue
            ours = [target for target in files if _holds(target, disk)]
            if ours and ours[0].path not in paths:
                paths[ours[0].path] = location
                yield _examine_one(client, location, ours, disk)
        if len(paths) > 1:
            detail = f"set up in {' and in '.join(paths)}, so that every hook runs twice"
            remedy = f"`learnt uninstall {client}`, or the same with --user"
            yield ClientState(client=client, fine=False, detail=detail, remedy=remedy, twice=True)


def _examine_one(client: str, location: Location, ours: list[Target], disk: Disk) -> ClientState:
    where = ", ".join(target.path for target in ours)
    next_step = module_of(client).next_step(location)
    possible = (find_switch(client, location, disk.read), _find_gap(client, location, ours, disk))
    if faults := [fault for fault in possible if fault is not None]:
        detail = f"in {where}, but {', and '.join(fault.detail for fault in faults)}"
        remedy = "; ".join(fault.remedy for fault in faults)
        return ClientState(client=client, fine=False, detail=detail, remedy=remedy, next_step=next_step)
    trust = module_of(client).find_trust(location, ours, disk)
    if trust.reason:
        return ClientState(
            client=client,
            fine=not trust.matters,
            detail=trust.reason,
            remedy=next_step,
            next_step=next_step,
            trusted=False,
            unheard=tuple(target.path for target in ours) if trust.whole else (),
        )
    detail = f"in {where}{', and trusted' if trust.trusted else ''}"
    return ClientState(client=client, fine=True, detail=detail, next_step=next_step, trusted=trust.trusted)


def _find_gap(client: str, location: Location, ours: list[Target], disk: Disk) -> Fault | None:
    """Return what a client's setup lacks; None if it is complete and can start."""
    again = f"`learnt install {client}{' --user' if location.user else ''}`"
    written = (target.edit.starts(disk.read(target.path) or b"") for target in ours)
    program = next(filter(None, written), location.program[0])
    if has_hooks(client) and not disk.is_there(program):
        if program == NAME:
            return Fault(detail=f"{program} is not on PATH", remedy=f"put {NAME} on PATH")
        return Fault(detail=f"{program} does not exist", remedy=again)
    as_written = location.replace(program=(program, *location.program[1:]))
    if any(_is_stale(target, disk) for target in targets(client, as_written)):
        return Fault(detail="the setup is incomplete, or of an older version", remedy=again)
    return None


def _holds(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is not None and target.edit.holds(content)
    except (Unfit, LearntError):
        return False


def _is_stale(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is None or target.edit.add(content) != content
    except (Unfit, LearntError):
        return True


def first_word(command: str) -> str:
    """Return the program that a hook's command line starts."""
    try:
        words = shlex.split(command)
        return shlex.split(words[2])[0] if words[:2] == ["sh", "-c"] else words[0]
    except (ValueError, IndexError):
        return ""


def switched_off(title: str, switch: str, path: str, *, remedy: str) -> Fault:
    """Return the fault of a client whose hooks are switched off in a file."""
    return Fault(detail=f"{title} runs no hook of ours here ({switch} in {path})", remedy=remedy)


def hook_command(location: Location, client: str, *, cmd_on_windows: bool = False) -> str:
    """Return the command line that serves an event; if learnt is missing, it prints nothing and succeeds.

    Clients ask the user for trust again when the command of a hook changes, so it must not change.
    """
    words = [*location.program, "hook", "--client", client]
    if location.windows and cmd_on_windows:
        line = " ".join(f'"{word}"' if " " in word else word for word in words)
        return f'cmd /d /c "{line} 2>nul || exit /b 0"'
    line = " ".join(shlex.quote(word) for word in words)
    return f"sh -c {shlex.quote(f'{line} 2>/dev/null || exit 0')}"


def hook(command: str, timeout: int) -> dict[str, Any]:
    """Return a hook in the format of clients; the unit of the timeout depends on the client."""
    return {"type": "command", "command": command, "timeout": timeout}


def server(location: Location) -> dict[str, Any]:
    """Return how the MCP server is started, in the format of most clients."""
    program, *words = location.program
    return {"command": program, "args": [*words, "mcp"]}


def find_hooks(settings: object) -> Iterator[tuple[str, int, int]]:
    """Yield the event, the group and the position of each of our hooks in a client's settings."""
    events = settings.get("hooks") if isinstance(settings, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for position, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if isinstance(handler, dict) and _OUR_HOOK.search(str(handler.get("command", ""))):
                    yield event, number, position


def is_our_server(entry: object) -> bool:
    """Return whether an MCP server is ours."""
    if not isinstance(entry, dict):
        return False
    command, words = entry.get("command"), entry.get("args")
    line = [*(command if isinstance(command, list) else [command]), *(words if isinstance(words, list) else [])]
    return bool(_OUR_SERVER.search(" ".join(map(str, line))))


def decode(content: bytes) -> tuple[str, str]:
    """Return the byte order mark at the beginning of a file, if any, and its text."""
    try:
        text = content.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unfit(f"it is not UTF-8 at byte {error.start}") from None
    return ("\ufeff" if content.startswith(_BOM) else ""), text


class WholeFile(Value):
    """Writes a file that is entirely ours, as its first line says."""

    text: str

    def add(self, content: bytes | None) -> bytes:
        if content and content.strip() and not self.holds(content):
            raise Unfit("the file exists and is not ours", remedy="rename it")
        return self.text.encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        return before if self.holds(content) else content

    def holds(self, content: bytes) -> bool:
        return content.decode("utf-8", "replace").partition("\n")[0].rstrip() == self.text.partition("\n")[0]

    def by_hand(self, _content: bytes | None, /) -> str:
        """Return nothing: a plugin is too long to write by hand."""
        return ""

    def starts(self, _content: bytes, /) -> str:
        """Return nothing: the file has no hooks in a client's format."""
        return ""
