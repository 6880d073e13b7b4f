"""The skill `remember` and the agents `remember` and `memory-refactor`, worded from the rules that the program follows.

The thresholds are the project's settings. An agent refers to the skill instead of repeating it.
"""

from __future__ import annotations

import os
from string import Template

from learnt.consolidate.due import Thresholds
from learnt.consolidate.questions import CHOICES
from learnt.model import Value
from learnt.system.templates import read_template

MARK = "<!-- written by `learnt install --agents`; edits are overwritten -->"
SKILL = "skills/remember/SKILL.md"
_FILES = {SKILL: "skill", "agents/remember.md": "remember", "agents/memory-refactor.md": "memory-refactor"}
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent_files")


class AgentRules(Value):
    """The settings that the texts state."""

    thresholds: Thresholds
    staging_file: str
    index_file: str
    topics_folder: str
    topic_lines: int


def render_files(rules: AgentRules) -> dict[str, str]:
    """Return the texts by their paths in the folder of a client."""
    values = {**rules.thresholds.as_dict(), **rules.as_dict(), "mark": MARK, "skill": SKILL}
    values["choices"] = ", ".join(CHOICES)
    return {path: Template(read_template(name, (_FOLDER,))).substitute(values) for path, name in _FILES.items()}
