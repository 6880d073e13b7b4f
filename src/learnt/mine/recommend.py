"""Find the commands that a learning recommends, to recognise later that one of them succeeded."""

from __future__ import annotations

import re
from collections.abc import Iterable

from learnt.mine.missteps import list_signs
from learnt.model import Learning

_CODE = re.compile(r"`([^`\n]{2,300})`")
_CLAUSE_END = re.compile(r"[.;:!?]\s|`[^`]*`|\n")
_NEGATION = re.compile(r"\b(?:not|never|no|without|avoid|instead of|rather than|stop|cannot|\w+n't)\b", re.IGNORECASE)


def list_recommended_commands(learning: Learning) -> list[str]:
    """Return the commands that a learning recommends: the code in its action, or else in its title and observation.

    Code in a clause with a negation is not recommended.
    """
    if learning.polarity == "avoid":
        return []
    text = learning.action if _CODE.search(learning.action) else f"{learning.title}\n{learning.observation}"
    clauses = ((_CLAUSE_END.split(text[: code.start()])[-1], code[1].strip()) for code in _CODE.finditer(text))
    return list(dict.fromkeys(command for clause, command in clauses if not _NEGATION.search(clause)))


def list_recommended_signs(learning: Learning) -> list[str]:
    """Return the signs of the commands that a learning recommends."""
    return _flatten(map(list_signs, list_recommended_commands(learning)))


def _flatten(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(sign for signs in lists for sign in signs))
