"""`learnings.md`, a file that people and the program share: read, written and merged without losing anybody's text.

    # Project Learnings

    Last updated: 2026-02-19 (from 15 recent tasks)

    ## Testing
    - Use pytest fixtures for database setup to avoid repetition <!-- learn_0abc… -->

    <!-- learnt: r_… -->

Nothing here touches the disk, the store or the clock. Any text can be read; what was written reads back as it was
meant; a merge that was applied changes nothing when it is repeated. When in doubt no learning is hidden.
"""

from learnt.learnings_file.lines import (
    category_of,
    edit_fields,
    fields_of,
    heading_of,
    line_of,
    same_text,
    says_otherwise,
)
from learnt.learnings_file.merge import Edits, merge
from learnt.learnings_file.purge import remove_learning
from learnt.learnings_file.read import Bullet, LooseText, ParsedFile, lines_for_prompt, parse
from learnt.learnings_file.write import Delta, Rendering, compare_renderings, diff, render, select

__all__ = [
    "Bullet",
    "Delta",
    "Edits",
    "LooseText",
    "ParsedFile",
    "Rendering",
    "category_of",
    "compare_renderings",
    "diff",
    "edit_fields",
    "fields_of",
    "heading_of",
    "line_of",
    "lines_for_prompt",
    "merge",
    "parse",
    "remove_learning",
    "render",
    "same_text",
    "says_otherwise",
    "select",
]
