"""Read the templates of prompts: a project's own file, or the one that comes with learnt."""

from __future__ import annotations

import os
import re

from learnt.errors import LearntError
from learnt.text.clean import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def read_template(name: str, folders: Sequence[str]) -> str:
    """Return the template from the first folder that has it; empty when none has one of this name."""
    if fold(name) != name or not re.fullmatch(r"[\w-]+", name):
        return ""
    for folder in folders:
        path = os.path.join(folder, f"{name}.md")
        if folder and os.path.isfile(path):
            try:
                with open(path, encoding="utf-8") as file:
                    return file.read()
            except (OSError, UnicodeDecodeError) as error:
                raise LearntError(f"cannot read the template {path}: {error}", hint="mend or remove the file") from None
    return ""
