"""Decide whether an agent is asked to write down what it found out.

It is asked once in a conversation, at the next prompt, if an error was overcome or the user corrected the agent, and
nothing was written down since: no `<learning>`, no call of the MCP tool `learn`, no `learnt add`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from learnt.clients.kit.transcript import Step
from learnt.debrief.sigils import read_sigils
from learnt.flow.context import Context
from learnt.model import Discovery, Task
from learnt.store import happened

_WRITING_TOOLS = ("learn", "debrief")
_WRITING_COMMANDS = ("learnt add", "learnt debrief")


class StepWatch:
    """Watches the steps of a conversation go by, and remembers what the agent found out and has not written down."""

    def __init__(self, heard: Sequence[object] = ()) -> None:
        """`heard` grows while the steps go by: with every rule and correction that the user states."""
        self.is_unwritten = False
        self._heard = heard

    def follow(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps, in which the agent may write something down."""
        count = 0
        for step in steps:
            if _writes_down(step):
                self.is_unwritten = False
            if len(self._heard) > count:
                self.is_unwritten, count = True, len(self._heard)
            yield step

    def note(self, discoveries: Iterable[Discovery]) -> Iterator[Discovery]:
        """Yield the errors that were overcome, each found while its last step goes by."""
        for discovery in discoveries:
            self.is_unwritten = True
            yield discovery


def states_learning(said: str) -> bool:
    """Return whether a message contains a learning."""
    return "<learning" in said.lower() and bool(read_sigils(said).learnings)


def ask_if_worth(context: Context, task: Task, *, is_unwritten: bool) -> bool:
    """Leave a notice for the next prompt of a conversation, if there is something to write down."""
    if not is_unwritten or task.parent or task.skip_learnings or context.settings.ask_agent == "never":
        return False
    with context.store.transaction():
        return happened.add_notice(context.store.database, task.id, happened.ASK, at=context.clock())


def _writes_down(step: Step) -> bool:
    if step.kind == "said":
        return states_learning(step.text)
    if step.kind != "call":
        return False
    if step.does == "run":
        return any(command in step.text for command in _WRITING_COMMANDS)
    # Clients name the tools of a server in different ways: `mcp__learnt__learn`, `learnt_learn`, `learn`.
    tool = step.tool.lower()
    return tool == "learn" or ("learnt" in tool and tool.endswith(_WRITING_TOOLS))
