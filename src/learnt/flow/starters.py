"""The templates that come along: common learnings to start a project with, as Markdown entries in `templates/`."""

from __future__ import annotations

import os

from learnt.errors import WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
_ENDING = ".md"


def templates() -> dict[str, str]:
    """Return what there is: the name of each template, and what it is about."""
    names = sorted(name.removesuffix(_ENDING) for name in os.listdir(_FOLDER) if name.endswith(_ENDING))
    return {name: _read(name).partition("\n")[0].removeprefix("# ") for name in names}


def template(name: str) -> list[dict[str, Any]]:
    """Return the records of a template, or raise with the names of those that there are."""
    from learnt.text.entries import read_entries

    known = templates()
    if name not in known:
        raise WrongRequest(
            f"there is no template `{name[:100]}`",
            hint=f"choose one of: {', '.join(known)}; or name a file of your own, as in `--template ./team.md`",
        )
    return list(read_entries(_read(name)))


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, name + _ENDING), encoding="utf-8") as file:
        return file.read()
