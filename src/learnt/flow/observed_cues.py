"""Observed cues: what a person asked for when a learning helped becomes a situation in which it matters.

A learning helped if it was marked as helpful, if what it recommends was done and worked, or if a warning about the same
misstep prevented an error. The prompt is the one that the learning was given with, or the last one before that. Nothing
is taken from the conversation that taught the learning, from what agents ask for or tell sub-agents, or from what looks
pasted. A learning in another store keeps no words of this project.
"""

from __future__ import annotations

from learnt.mine.pasted import MAX_OWN_LENGTH
from learnt.mine.situations import add_observed, find_situation
from learnt.store import evidence, tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from learnt.flow.context import Context
    from learnt.model import Learning
    from learnt.store.database import Database
    from learnt.store.evidence import Prompt


def observe_cue(context: Context, database: Database, learning: Learning, task: str) -> dict[str, Any]:
    """Within a transaction: return the change that adds a cue from the prompt of a task in which a learning helped."""
    own = context.store.database
    if database is not own or _has_taught(own, learning, task):
        return {}
    prompt = evidence.find_prompt(own, learning.id, task)
    return {} if prompt is None else _add(learning, prompt)


def observe_cue_before(database: Database, learning: Learning, *, task: str, at: int) -> dict[str, Any]:
    """Within a transaction: return the change that adds a cue from the last prompt in a task before a time."""
    prompt = None if _has_taught(database, learning, task) else evidence.find_prompt_before(database, task, at=at)
    return {} if prompt is None else _add(learning, prompt)


def _add(learning: Learning, prompt: Prompt) -> dict[str, Any]:
    if prompt.length > MAX_OWN_LENGTH:
        return {}
    situation = find_situation(prompt.text, learning, must_share=not prompt.is_own)
    return {"observed_cues": add_observed(learning, situation)}


def _has_taught(database: Database, learning: Learning, task: str) -> bool:
    """Return whether a task belongs to the conversation that taught a learning."""
    if not learning.task:
        return False
    conversation = tasks.conversation_of(database, task)
    return conversation in (learning.task, tasks.conversation_of(database, learning.task)) or task == learning.task
