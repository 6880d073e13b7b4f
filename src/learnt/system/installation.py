"""Where this installation of learnt came from, and so how it is installed again."""

from __future__ import annotations

import json
import os
import sys
from urllib.parse import unquote, urlsplit

NAME = "learnt"


def own_program() -> tuple[str, ...]:
    """Return the command line that starts this installation of learnt, independent of PATH."""
    script = own_script()
    return (script,) if script else (sys.executable, "-m", NAME)


def own_script() -> str:
    """Return the path of the program that starts this installation of learnt; empty if it has none."""
    name = f"{NAME}.exe" if sys.platform == "win32" else NAME
    script = os.path.join(os.path.dirname(sys.executable), name)
    return script if os.path.isfile(script) else ""


def install_command(extra: str = "") -> str:
    """Return the command that installs learnt again, with an optional part: from its folder, or from the index."""
    folder, is_editable = find_source()
    optional = f"[{extra}]" if extra else ""
    if not folder:
        return f"pip install '{NAME}{optional}'" if extra else f"pip install -U {NAME}"
    source = f"'{folder}{optional}'" if extra or " " in folder else folder
    return f"pip install {'-e ' if is_editable else ''}{source}"


def find_source() -> tuple[str, bool]:
    """Return the folder that learnt was installed from, empty if there is none any more, and whether it is editable."""
    from importlib import metadata  # slow to load, and needed only for an error

    try:
        record = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
        address = urlsplit(str(record.get("url", "")))
        folder = unquote(address.path) if address.scheme == "file" else ""
        return folder if os.path.isdir(folder) else "", bool(record.get("dir_info", {}).get("editable"))
    except (metadata.PackageNotFoundError, OSError, ValueError, AttributeError):
        return "", False
