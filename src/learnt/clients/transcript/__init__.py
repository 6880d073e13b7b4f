"""A conversation that a client wrote down, as steps: what was asked, what the agent said and did, what came of it.

Each client's own module reads its format; which it is, a file tells by its content. A transcript is read as a stream:
however long it is, only one step at a time is in memory, and a step keeps the beginning and the end of a long text.
What a client or we ourselves put into the conversation (reminders, hook output, briefs, synthetic prompts) is no step,
and in none.
"""

from __future__ import annotations

from collections.abc import Iterator

from learnt.clients.transcript import claude_code
from learnt.clients.transcript.step import LONGEST_TEXT, About, Step

__all__ = ["LONGEST_TEXT", "About", "Step", "about", "steps"]


def steps(path: str) -> Iterator[Step]:
    """Yield the steps of a transcript."""
    return claude_code.steps(path)


def about(path: str) -> About:
    """Return what a transcript tells of its conversation."""
    return claude_code.about(path)
