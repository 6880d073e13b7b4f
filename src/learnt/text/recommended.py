"""Find the commands that a learning recommends in its own words."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.model import Learning

_CODE = re.compile(r"`([^`\n]{2,300})`")
_CLAUSE_END = re.compile(r"[.;:!?]\s|`[^`]*`|\n")
_NEGATION = re.compile(r"\b(?:not|never|no|without|avoid|instead of|rather than|stop|cannot|\w+n't)\b", re.IGNORECASE)
# A single word in code may as well be a name.
_WITH_WORDS = re.compile(r"[\w./-]+ +\S")


def list_recommended_commands(learning: Learning) -> list[str]:
    """Return the commands that a learning recommends: the code in its action, or else in its title and observation.

    Code in a clause with a negation is not recommended.
    """
    if learning.polarity == "avoid":
        return []
    text = learning.action if _CODE.search(learning.action) else f"{learning.title}\n{learning.observation}"
    clauses = ((_CLAUSE_END.split(text[: code.start()])[-1], code[1].strip()) for code in _CODE.finditer(text))
    return list(dict.fromkeys(command for clause, command in clauses if not _NEGATION.search(clause)))


def recommends_command(learning: Learning) -> bool:
    """Return whether a learning clearly recommends a command, so that its use can be seen."""
    return any(map(_WITH_WORDS.match, list_recommended_commands(learning)))
