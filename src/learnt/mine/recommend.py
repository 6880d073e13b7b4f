"""Find the signs of the commands that a learning recommends, to recognise later that one of them succeeded."""

from __future__ import annotations

from learnt.mine.missteps import list_signs
from learnt.model import Learning
from learnt.text.recommended import list_recommended_commands


def list_recommended_signs(learning: Learning) -> list[str]:
    """Return the signs of the commands that a learning recommends."""
    return list(dict.fromkeys(sign for command in list_recommended_commands(learning) for sign in list_signs(command)))
