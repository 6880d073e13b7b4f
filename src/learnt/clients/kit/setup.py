"""Set up clients: which files are edited and how, and whether a setup works.

A client's `setup` module provides `targets`, `next_step`, `find_switch` and `find_trust`. An `Edit` works on a file's
bytes: `add` inserts our settings, or changes nothing if the file already has them, and `remove` removes them without
changing any other byte. A file that cannot be edited safely raises Unfit, and `by_hand` returns the text for a person
to add.
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

# Every hook finishes sooner, unless the interpreter hangs.
TIMEOUT_S = 5
NAME = "learnt"
_OUR_HOOK = re.compile(r"(?<![\w.-])learnt(?:\.exe|\.cmd)?[\"'\\]*\s+hook\b")
_OUR_SERVER = re.compile(r"(?<![\w.-])learnt(?:\.exe|\.cmd)?[\"'\\]*\s+mcp$")
_BOM = b"\xef\xbb\xbf"
Read = Callable[[str], bytes | None]


class Unfit(Exception):
    """A file cannot be edited safely. `remedy` is set if adding our settings by hand would not help."""

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class Location(Value):
    """Where a client is set up, which is a project or the user's own settings.

    `variables` has the `registry.FOLDER_VARIABLES` that are set. `program` has the words that start learnt: its name,
    to be found on PATH, or its path.
    """

    root: str
    user: bool = False
    variables: Mapping[str, str] = {}
    program: tuple[str, ...] = (NAME,)
    windows: bool = False

    def home(self, variable: str, *below: str) -> str:
        """Return the folder in a variable, or the default below the home folder."""
        folder = find_folder(self.variables, variable, *below)
        if not folder:
            raise WrongRequest("your home folder is unknown", hint=f"set HOME, or {variable}")
        return folder


class Edit(Protocol):
    """The changes to one file, as functions of its content."""

    def add(self, content: bytes | None) -> bytes:
        """Return the file's content with our settings. `content` is None if the file does not exist."""

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        """Return the content without our settings, None if nothing is left. `before` is the original content."""

    def has_settings(self, content: bytes) -> bool:
        """Return whether the file has any of our settings."""

    def by_hand(self, content: bytes | None, /) -> str:
        """Return the text that a person can add to the file; empty if only `add` can write it."""

    def hook_program(self, content: bytes, /) -> str:
        """Return the program that our hooks in the file start; empty if it is unknown or there are no hooks."""


class Target(Value):
    """A client's settings file, and the change to it."""

    path: str
    edit: Edit


class Question(Value):
    """A JSON-RPC request to a client's program, which answers on stdout."""

    words: tuple[str, ...]
    """The command line that starts the program."""
    folder: str
    messages: tuple[Mapping[str, Any], ...]
    reply_id: int
    """The id of the message that is the reply."""


AskClient = Callable[[Question], Mapping[str, Any] | None]


class Disk(Value):
    """Access to the machine's files and programs, and to a client's program."""

    read: Read
    has_program: Callable[[str], bool]
    names: Callable[[str], Sequence[str]]
    """Returns the names in a folder."""
    ask_client: AskClient | None = None
    """Returns the client's reply, None if there is none. It is not set if clients must not be started."""


class Fault(Value):
    """A fault and its remedy."""

    detail: str
    remedy: str


class Trust(Value):
    """Whether a client trusts our hooks."""

    trusted: bool | None = None
    """None if this cannot be determined."""
    reason: str = ""
    """Why the client would not run our hooks; empty if it would."""
    runs_none: bool = False
    """Whether the client would run none of our hooks."""
    matters: bool = True
    """Whether the client is used on this machine. A project can have settings for clients that are not used here."""


class SetupModule(Protocol):
    """A client's `setup` module."""

    def targets(self, location: Location) -> list[Target]:
        """Return the client's settings files and the change to each."""

    def next_step(self, location: Location) -> str:
        """Return the next step for the user after the files are written."""

    def find_switch(self, location: Location, read: Read) -> Fault | None:
        """Return the setting that prevents the client from running our hooks; None if there is none.

        If two files have such a setting, the file nearer to the project decides. Administrators' settings and command
        line options are not considered.
        """

    def find_trust(self, location: Location, targets: Sequence[Target], disk: Disk) -> Trust:
        """Return whether the client trusts our hooks. `targets` are the client's files that have our settings."""


class ClientState(Value):
    """The state of a client that is set up in a project or for the user."""

    client: str
    fine: bool
    detail: str
    remedy: str = ""
    twice: bool = False
    """Whether the problem is that the client is set up both here and for the user."""
    next_step: str = ""
    """What the user has to do before the client runs our hooks."""
    trusted: bool | None = None
    """Whether the client trusts our hooks; None if this cannot be determined."""
    ignored_files: tuple[str, ...] = ()
    """The files whose hooks the client would not run. A hook that has fired since they were written disproves this."""


def module_of(client: str) -> SetupModule:
    """Return a client's `setup` module."""
    module: SetupModule = registry.load(registry.get(client, "setup"), "setup")
    return module


def targets(client: str, location: Location) -> list[Target]:
    """Return a client's settings files and the change to each."""
    return module_of(client).targets(location)


def find_switch(client: str, location: Location, read: Read) -> Fault | None:
    """Return the setting that prevents a client from running our hooks; None if there is none."""
    try:
        return module_of(client).find_switch(location, read)
    except LearntError:
        return None  # the home folder is unknown


def has_hooks(client: str) -> bool:
    """Return whether a client runs hooks. Other clients only read a file."""
    return bool(registry.get(client, "setup").events)


def examine(locations: Sequence[Location], disk: Disk) -> Iterator[ClientState]:
    """Yield the state of each client that is set up in one of the locations. Nothing is changed."""
    for client in registry.setup_names():
        paths: dict[str, Location] = {}
        for location in locations:
            try:
                files = targets(client, location)
            except LearntError:
                continue
            ours = [target for target in files if _has_settings(target, disk)]
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
            ignored_files=tuple(target.path for target in ours) if trust.runs_none else (),
        )
    detail = f"in {where}{', and trusted' if trust.trusted else ''}"
    return ClientState(client=client, fine=True, detail=detail, next_step=next_step, trusted=trust.trusted)


def _find_gap(client: str, location: Location, ours: list[Target], disk: Disk) -> Fault | None:
    """Return what is missing in a client's setup; None if it is complete and learnt can be started."""
    again = f"`learnt install {client}{' --user' if location.user else ''}`"
    programs = (target.edit.hook_program(disk.read(target.path) or b"") for target in ours)
    program = next(filter(None, programs), location.program[0])
    if has_hooks(client) and not disk.has_program(program):
        if program == NAME:
            return Fault(detail=f"{program} is not on PATH", remedy=f"put {NAME} on PATH")
        return Fault(detail=f"{program} does not exist", remedy=again)
    as_written = location.replace(program=(program, *location.program[1:]))
    if any(_is_stale(target, disk) for target in targets(client, as_written)):
        return Fault(detail="the setup is incomplete, or from an older version", remedy=again)
    return None


def _has_settings(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is not None and target.edit.has_settings(content)
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
    """Return the fault for a client whose hooks are switched off in a file."""
    return Fault(detail=f"{title} does not run our hooks here ({switch} in {path})", remedy=remedy)


def hook_command(location: Location, client: str, *, cmd_on_windows: bool = False) -> str:
    """Return the command line that serves an event. If learnt is missing, it prints nothing and succeeds.

    Clients ask the user for trust again when a hook's command changes, so the command must not change.
    """
    words = [*location.program, "hook", "--client", client]
    if location.windows and cmd_on_windows:
        line = " ".join(f'"{word}"' if " " in word else word for word in words)
        return f'cmd /d /c "{line} 2>nul || exit /b 0"'
    line = " ".join(shlex.quote(word) for word in words)
    return f"sh -c {shlex.quote(f'{line} 2>/dev/null || exit 0')}"


def hook(command: str, timeout: int) -> dict[str, Any]:
    """Return a hook in the clients' format. The timeout's unit depends on the client."""
    return {"type": "command", "command": command, "timeout": timeout}


def server(location: Location) -> dict[str, Any]:
    """Return how the MCP server is started, in the format that most clients use."""
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
    """Return a file's byte order mark (empty if it has none) and its text."""
    try:
        text = content.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unfit(f"it is not UTF-8 at byte {error.start}") from None
    return ("\ufeff" if content.startswith(_BOM) else ""), text


class WholeFile(Value):
    """Writes and removes a file that is entirely ours. Its first line says so."""

    text: str

    def add(self, content: bytes | None) -> bytes:
        if content and content.strip() and not self.has_settings(content):
            raise Unfit("the file exists and is not ours", remedy="rename it")
        return self.text.encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        return before if self.has_settings(content) else content

    def has_settings(self, content: bytes) -> bool:
        return content.decode("utf-8", "replace").partition("\n")[0].rstrip() == self.text.partition("\n")[0]

    def by_hand(self, _content: bytes | None, /) -> str:
        """Return an empty string: a plugin is too long to write by hand."""
        return ""

    def hook_program(self, _content: bytes, /) -> str:
        """Return an empty string: the file has no hooks in a client's format."""
        return ""
