"""The façade: everything that learnt can do. Doors parse, call one method of `Memory`, and render.

    memory = Memory.open(".")
    brief = memory.brief("Add password reset", task="task_1")
    …the agent works…
    memory.debrief("task_1", output, result="done")

What it does stands in the modules beside this one, by occasion; they alone know the order of the flow, and import a
room inside the method that needs it, so that a hook pays only for its own.
"""

from __future__ import annotations

import os

from learnt import __version__, config, project
from learnt.errors import NoStore, WrongRequest
from learnt.flow.accumulating import Accumulating
from learnt.flow.claims import Working
from learnt.flow.context import COMPILED_SETTINGS
from learnt.flow.places import now_ms as system_clock
from learnt.flow.places import own_place, read_along, settings_files, user_place
from learnt.flow.tidy import Tidying
from learnt.flow.transfer import Transfer
from learnt.store import PATIENCE_MS, Place, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


class Memory(Accumulating, Transfer, Working, Tidying):
    """What a project has learnt."""

    @classmethod
    def open(
        cls,
        path_or_url: str | os.PathLike[str] = ".",
        *,
        create: bool = True,
        clock: Callable[[], int] | None = None,
        wait_ms: int | None = None,
    ) -> Self:
        """Open the store of the project around an existing folder, or at a PostgreSQL address; create a missing one.

        `wait_ms`: how long to wait for others that write into the same file, instead of as long as the settings say.
        """
        return cls._open(os.fspath(path_or_url), create=create, clock=clock, wait_ms=wait_ms)

    @classmethod
    def open_for_hook(cls, path: str | os.PathLike[str] = ".", *, clock: Callable[[], int] | None = None) -> Self:
        """Open the store of the project around a folder without ever waiting for a server: a mirror stands for it.

        Where there is no mirror yet, what happens can be kept for the server, and nothing can be read: whoever asks for
        the database hears that there is no store.
        """
        # What takes longer goes to the spool, while there is still time to say it.
        return cls._open(os.fspath(path), create=False, clock=clock, wait_ms=PATIENCE_MS, mirrored=True)

    @classmethod
    def _open(
        cls,
        start: str,
        *,
        create: bool,
        clock: Callable[[], int] | None,
        wait_ms: int | None,
        mirrored: bool = False,
    ) -> Self:
        is_address = start.startswith(("postgresql://", "postgres://"))
        if not is_address and not os.path.exists(start):
            raise WrongRequest(f"there is no folder {start}", hint="name an existing one: a store is made inside it")
        found = project.find_project("." if is_address else start)
        if found is None and not (create or is_address):
            raise NoStore(
                f"{os.path.abspath(start)} is not inside a project",
                hint="go to a project, or make this folder one with `learnt init`",
            )
        here = found or project.new_project("." if is_address else start)
        compiled = os.path.join(here.folder, COMPILED_SETTINGS)
        files, mistake = settings_files(here.root), ""
        if mirrored:
            configuration, mistake = config.load_last_valid(files, dict(os.environ), compiled=compiled)
        else:
            configuration = config.load(files, dict(os.environ), compiled=compiled)
        settings = configuration.settings
        address = start if is_address else settings.database
        own = own_place(here, settings).replace(address=address, create=create)
        along, remarks = read_along(settings)
        places = [own, *(place for place in along if place.folder != own.folder)]
        if wait_ms is not None:
            # Beside a mirror there is no spool to turn to: whoever waits for it has all the time of a hook.
            patience = {True: settings.hook_deadline_ms if mirrored else settings.wait_ms, False: wait_ms}
            places = [place.replace(wait_ms=patience[bool(place.address)], in_hurry=mirrored) for place in places]
        memory = cls._opened(places, configuration, clock, mirrored=mirrored)
        memory.remarks = remarks
        memory.mistake = mistake
        memory.root = here.root
        memory._settings_files = files
        return memory

    @classmethod
    def open_user(cls, *, create: bool = True, clock: Callable[[], int] | None = None) -> Self:
        """Open the user-wide store alone: what is true across all projects."""
        configuration = config.load(settings_files(None), dict(os.environ))
        place = user_place(configuration.settings).replace(create=create, read_only=False)
        if not place.exists() and not create:
            raise NoStore("there is no user-wide store yet", hint="`learnt init --user` creates it")
        return cls._opened([place], configuration, clock)

    @classmethod
    def _opened(
        cls,
        places: list[Place],
        configuration: config.Configuration,
        clock: Callable[[], int] | None,
        *,
        mirrored: bool = False,
    ) -> Self:
        clock = clock or system_clock
        memory = cls([], configuration=configuration, clock=clock)
        appliers = {"debrief": memory._apply_debrief}
        stores = [
            _kind(place, mirrored=mirrored)(place, version=__version__, clock=clock, appliers=appliers)
            for place in places
        ]
        memory._stores = tuple(stores)
        own = stores[0]
        if not own.place.exists():
            _ = own.database
        return memory


def _kind(place: Place, *, mirrored: bool) -> type[Store]:
    if not (mirrored and place.address):
        return Store
    from learnt.store.mirror import Mirror

    return Mirror
