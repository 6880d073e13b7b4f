"""Set up clients: which files are edited and how, and what a client's settings say about our hooks and our server.

A client's `setup` module provides `targets`, `next_step`, `find_switch` and `find_trust`, and can provide
`find_faults`, `other_settings` and `user_folder`. An `Edit` works on a file's bytes: `add` inserts our settings, or
changes nothing if the file already has them, and `remove` removes them without changing any other byte. A file that
cannot be edited safely raises Unfit, and `by_hand` returns the text for a person to add.
Nothing here writes, starts a process, or reads the environment.
"""

from __future__ import annotations

import os
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
_IN_SHELL = ("sh", "-c")
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
    to be found on PATH, or its path. `own_program` is the path of the learnt that runs now; empty if it has none.
    `start` is the folder that the person is in; empty if that does not matter.
    """

    root: str
    user: bool = False
    start: str = ""
    variables: Mapping[str, str] = {}
    program: tuple[str, ...] = (NAME,)
    own_program: str = ""
    windows: bool = False

    def home(self, variable: str, *below: str) -> str:
        """Return the folder in a variable, or the default below the home folder."""
        folder = find_folder(self.variables, variable, *below)
        if not folder:
            raise WrongRequest("your home folder is unknown", hint=f"set HOME, or {variable}")
        return folder


class Commands(Value):
    """The command lines of ours in a settings file, as its client starts them."""

    hooks: tuple[tuple[str, ...], ...] = ()
    server: tuple[str, ...] = ()
    """Empty if the file has no server."""


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

    def commands(self, content: bytes, /) -> Commands:
        """Return the command lines of our hooks and our server in the file, without those that are unknown."""


class Target(Value):
    """A client's settings file, and the change to it."""

    path: str
    edit: Edit


class Question(Value):
    """A JSON-RPC request to a client's program, which answers on stdout.

    The program is started with copies of its files in a folder of its own, because it writes into its folder. Where
    such a file or the reply has the path of an original, it stands for the copy, and the other way round.
    """

    words: tuple[str, ...]
    """The command line that starts the program."""
    folder: str
    messages: tuple[Mapping[str, Any], ...]
    reply_id: int
    """The id of the message that is the reply."""
    home_variable: str = ""
    """The variable that names the client's folder."""
    home: str = ""
    """The client's folder."""
    files: Mapping[str, bytes] = {}
    """The content of the files that the program needs there, by their names."""


AskClient = Callable[[Question], Mapping[str, Any] | None]


class Trial(Value):
    """What came of a command line of ours that was started as a client starts it."""

    fault: str = ""
    """Why it does not work; empty if it works."""
    remedy: str = ""
    wrong_program: str = ""
    """The program that was started, if another one should be started instead."""
    version: str = ""
    """The version of learnt that answered."""


Try = Callable[[tuple[str, ...], str], Trial]
"""Starts a command line in a folder."""


class Disk(Value):
    """Access to the machine's files and programs, and to a client's program."""

    read: Read
    has_program: Callable[[str], bool]
    names: Callable[[str], Sequence[str]]
    """Returns the names in a folder."""
    wrote: Callable[[str], bool] = lambda _path: False
    """Returns whether `learnt install` is known to have written a file."""
    ask_client: AskClient | None = None
    """Returns the client's reply, None if there is none. It is not set if clients must not be started."""
    try_hook: Try | None = None
    """Sends a harmless event to a hook. It is not set if nothing must be started."""
    try_server: Try | None = None
    """Asks an MCP server for its tools. It is not set if nothing must be started."""


class Fault(Value):
    """A fault and its remedy."""

    detail: str
    remedy: str
    files: tuple[str, ...] = ()
    """The files that it was read from, if a hook that has fired since they were written disproves it."""


class Trust(Value):
    """Whether a client trusts our hooks."""

    trusted: bool | None = None
    """None if this cannot be determined."""
    reason: str = ""
    """Why the client would not run our hooks; empty if it would."""
    runs_none: bool = False
    """Whether the client would run none of our hooks."""
    record: str = ""
    """The file in which the client keeps what it trusts."""
    refused: bool = False
    """Whether the user has said no, so that a hook which fired before does not show that the client trusts it."""
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


def find_faults(client: str, location: Location, disk: Disk) -> Iterator[Fault]:
    """Yield what prevents a client from using our settings, apart from the switch and the trust for hooks."""
    find = getattr(module_of(client), "find_faults", None)
    try:
        yield from find(location, disk) if find else ()
    except LearntError:
        return  # the home folder is unknown


def other_settings(client: str, location: Location) -> list[Target]:
    """Return the other files that decide whether a client uses our settings; nothing is written into them."""
    find = getattr(module_of(client), "other_settings", None)
    try:
        return find(location) if find else []
    except LearntError:
        return []  # the home folder is unknown


def find_trace(client: str, location: Location, disk: Disk) -> str:
    """Return what shows that a client is used on this machine: its program, or its own folder; empty if nothing."""
    name = registry.get(client, "setup").name
    if disk.has_program(name):
        return f"`{name}` is on PATH"
    try:
        files = targets(client, location.replace(user=True))
        find = getattr(module_of(client), "user_folder", None)
        folder = find(location) if find else os.path.dirname(files[0].path)
    except LearntError:
        return ""  # it has no settings for the user, or the home folder is unknown
    return f"{folder} exists" if _has_other_files(folder, files, disk) else ""


def _has_other_files(folder: str, files: Sequence[Target], disk: Disk) -> bool:
    """Return whether a client's folder has anything that is not ours."""
    ours = {os.path.relpath(target.path, folder): target for target in files}
    if set(disk.names(folder)) - {path.partition(os.sep)[0] for path in ours}:
        return True
    return any(_has_other_settings(target, disk) for target in ours.values())


def _has_other_settings(target: Target, disk: Disk) -> bool:
    try:
        content = disk.read(target.path)
        return content is not None and bool(target.edit.remove(content, None))
    except (Unfit, LearntError):
        return True  # we did not write this file


def program_of(words: Sequence[str]) -> str:
    """Return the program that a command line starts, in a shell or not; empty if it is unknown."""
    try:
        while tuple(words[:2]) == _IN_SHELL:
            words = shlex.split(words[2])
        return words[0]
    except (ValueError, IndexError):
        return ""


def folders_up(folder: str) -> Iterator[str]:
    """Yield a folder and all folders above it."""
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def start_at_root(title: str, location: Location) -> str:
    """Return what to say about a client that reads a project's settings only in the folder in which it is started."""
    return f"; start it in {location.root}: in a folder below, {title} does not read these settings"


def below_root(title: str, location: Location, *, again: str) -> Iterator[Fault]:
    """Yield the fault of a client that reads a project's settings only in the folder in which it is started."""
    start = location.start or location.root
    if not location.user and start != location.root:
        detail = f"{title} reads them only if it is started in {location.root}, and this is {start}"
        yield Fault(detail=detail, remedy=f"start {title} in {location.root}, or use `{again} --user` instead")


def server_off(title: str, switch: str, path: str, *, remedy: str) -> Fault:
    """Return the fault for a client whose settings keep it from starting our server."""
    return Fault(detail=f"{title} does not start our server here ({switch} in {path})", remedy=remedy)


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
    return f"sh -c {shlex.quote(shell_line(words))}"


def shell_line(words: Sequence[str]) -> str:
    """Return words as a line for a POSIX shell that prints nothing and succeeds if their program is missing."""
    return f"{' '.join(shlex.quote(word) for word in words)} 2>/dev/null || exit 0"


def hook(command: str, timeout: int) -> dict[str, Any]:
    """Return a hook in the clients' format. The timeout's unit depends on the client."""
    return {"type": "command", "command": command, "timeout": timeout}


def hook_words(handler: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command line of a hook in the clients' format: a line for a shell, or a program with arguments."""
    command, words = str(handler.get("command", "")), handler.get("args")
    return (command, *map(str, words)) if isinstance(words, list) else (*_IN_SHELL, command)


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
                if isinstance(handler, dict) and _OUR_HOOK.search(" ".join(hook_words(handler))):
                    yield event, number, position


def is_our_server(entry: object) -> bool:
    """Return whether an MCP server is ours."""
    return bool(_OUR_SERVER.search(" ".join(server_words(entry))))


def server_words(entry: object) -> tuple[str, ...]:
    """Return the command line of an MCP server in a client's settings; empty if there is none."""
    if not isinstance(entry, dict):
        return ()
    command, words = entry.get("command"), entry.get("args")
    line = [*(command if isinstance(command, list) else [command]), *(words if isinstance(words, list) else [])]
    return tuple(map(str, line))


def decode(content: bytes) -> tuple[str, str]:
    """Return a file's byte order mark (empty if it has none) and its text."""
    try:
        text = content.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unfit(f"it is not UTF-8 at byte {error.start}") from None
    return ("\ufeff" if content.startswith(_BOM) else ""), text


class WholeFile(Value):
    """Writes and removes a file that is entirely ours. The first line of its text says so, wherever it is."""

    text: str
    find_commands: Callable[[bytes], Commands] = lambda _content: Commands()

    def add(self, content: bytes | None) -> bytes:
        if content and content.strip() and not self.has_settings(content):
            raise Unfit("the file exists and is not ours", remedy="move it out of its folder")
        return self.text.encode()

    def remove(self, content: bytes, before: bytes | None) -> bytes | None:
        return before if self.has_settings(content) else content

    def has_settings(self, content: bytes) -> bool:
        mark = self.text.partition("\n")[0]
        return any(line.strip() == mark for line in content.decode("utf-8", "replace").splitlines())

    def by_hand(self, _content: bytes | None, /) -> str:
        """Return an empty string: a plugin is too long to write by hand."""
        return ""

    def commands(self, content: bytes, /) -> Commands:
        return self.find_commands(content)
