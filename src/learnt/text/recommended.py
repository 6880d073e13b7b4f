"""Find the commands that a learning recommends in its own words."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.model import Learning

# Compiled when first needed, because most hooks need none of them.
_CODE = r"`([^`\n]{2,300})`"
_CLAUSE_END = r"[.;:!?]\s|`[^`]*`|\n"
_NEGATION = r"(?i)\b(?:not|never|no|without|avoid|instead of|rather than|stop|cannot|\w+n't)\b"
# A single word in code may as well be a name.
_WITH_WORDS = r"[\w./-]+ +\S"


def list_recommended_commands(learning: Learning) -> list[str]:
    """Return the commands that a learning recommends: the code in its action, or else in its title and observation.

    Code in a clause with a negation is not recommended.
    """
    if learning.polarity == "avoid" or "`" not in f"{learning.action}{learning.title}{learning.observation}":
        return []
    text = learning.action if re.search(_CODE, learning.action) else f"{learning.title}\n{learning.observation}"
    clauses = ((re.split(_CLAUSE_END, text[: code.start()])[-1], code[1].strip()) for code in re.finditer(_CODE, text))
    return list(dict.fromkeys(command for clause, command in clauses if not re.search(_NEGATION, clause)))


def recommends_command(learning: Learning) -> bool:
    """Return whether a learning clearly recommends a command, so that its use can be seen."""
    return any(re.match(_WITH_WORDS, command) for command in list_recommended_commands(learning))
