"""Read templates: prompts that come with learnt, and that a project can replace.

A project's own template is a file of the store's folder, so it is read as such: no link is followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from learnt.errors import LearntError
from learnt.system.files import exists, read_own
from learnt.text.clean import fold

_MAX_BYTES = 1_000_000


def read_template(name: str, folders: Sequence[str], *, own: str = "") -> str:
    """Return the template in the project's `own` folder, or else in the first of learnt's; empty if there is none."""
    if fold(name) != name or not re.fullmatch(r"[\w-]+", name):
        return ""
    file = f"{name}.md"
    path = os.path.join(own, file)
    try:
        if own and exists(path):
            return read_own(path, max_bytes=_MAX_BYTES).decode("utf-8")
        for path in (os.path.join(folder, file) for folder in folders):
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as template:
                    return template.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise LearntError(f"cannot read the template {path}: {why}", hint="fix or remove the file") from None
    return ""
