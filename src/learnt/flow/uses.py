"""Briefs that turn out to be delivered: their learnings are counted, wherever they are stored."""

from __future__ import annotations

from learnt.flow.briefs import count_elsewhere
from learnt.store import happened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.flow.context import Context


def confirm_delivery(context: Context, id: str) -> list[str]:
    """Within a transaction: record that a brief was delivered; return the learnings that are new to the agent."""
    brief, counted = happened.deliver(context.store.database, id)
    count_elsewhere(context, brief, counted)
    return counted
