"""aider: it has neither hooks nor MCP, but reads a file along with every prompt: learnings.md."""

from __future__ import annotations

import os

from learnt.clients.setup.shapes import Setting, Target
from learnt.clients.setup.yaml_file import YamlFile
from learnt.errors import WrongRequest

_FILE = ".learnt/learnings.md"


def targets(setting: Setting) -> list[Target]:
    """Return the files that aider reads."""
    if setting.user:
        raise WrongRequest("aider reads the learnings of one project", hint="use `learnt install aider` in the project")
    return [Target(path=os.path.join(setting.root, ".aider.conf.yml"), edit=YamlFile(key="read", word=_FILE))]


def wants(setting: Setting) -> str:
    """Return what the client still wants from the user."""
    return f"start aider in {setting.root}; `learnt update` writes {_FILE}"
