"""Where the stores of a project are, and who is asking."""

from __future__ import annotations

import os
import sys
import time

from learnt import config, project
from learnt.errors import LearntError, WrongRequest
from learnt.store import Place
from learnt.text.clean import fold


def now_ms() -> int:
    """Return the time in UTC milliseconds."""
    return time.time_ns() // 1_000_000


def login_name() -> str:
    """Return the name of whoever runs this."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if os.environ.get(variable):
            return fold(os.environ[variable])
    if sys.platform != "win32":
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            pass  # a container's user may have no name
    return "somebody"


def settings_files(root: str | None) -> list[str]:
    """Return the files that hold settings for a project, in rising rank."""
    files = [project.user_settings_file(dict(os.environ))]
    return files if root is None else [*files, os.path.join(root, project.SETTINGS_FILE)]


def own_place(here: project.Project, settings: config.Settings) -> Place:
    """Return where a project's own store is."""
    return Place(
        folder=here.folder,
        address=settings.database,
        project=settings.project or here.name,
        wait_ms=settings.wait_ms,
    )


def user_place(settings: config.Settings) -> Place:
    """Return where the user-wide store is."""
    folder = project.user_data_folder(dict(os.environ))
    return Place(folder=folder, scope="user", wait_ms=settings.wait_ms)


def read_along(settings: config.Settings) -> tuple[list[Place], list[str]]:
    """Return the stores that are read along with the project's, the user's first, and why others cannot be."""
    user = user_place(settings)
    places = [user] if settings.user_store and user.exists() else []
    remarks = []
    for path in settings.sources:
        try:
            places.append(source_place(path))
        except LearntError as error:
            remarks.append(f"left out: {error.message}; {error.hint}")
    return places, remarks


def source_place(path: str) -> Place:
    """Return where the store of another project is that is read along."""
    found = project.find_project(path) if os.path.isdir(path) else None
    if found is None:
        raise WrongRequest(
            f"`sources` names {path}, where there is no project", hint="correct the setting, or get that project"
        )
    settings = config.load(settings_files(found.root), {}).settings
    place = own_place(found, settings).replace(scope=found.name, read_only=True)
    if not place.exists():
        raise WrongRequest(
            f"`sources` names {path}, which has no store that can be read",
            hint=f"look there with `learnt -C {path} doctor`",
        )
    return place
