"""Keep what a sub-agent is to do, without secrets, until it starts; only needed at such events."""

from __future__ import annotations

from learnt.store import errands
from learnt.text.clean import clean
from learnt.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.clients.kit.events import HookEvent
    from learnt.flow.context import Context


def keep(context: Context, event: HookEvent) -> None:
    """Keep what a sub-agent is to do until it starts."""
    agent, errand = context.redact_line(event.errand_for), redact(clean(event.errand))[0]
    errands.keep(context.store.place.folder, _whole(event), agent, errand, at=context.clock())


def take(context: Context, event: HookEvent) -> str:
    """Return what a sub-agent that starts is to do; empty if it is not known."""
    agent = context.redact_line(event.agent)
    return errands.take(context.store.place.folder, _whole(event), agent, now=context.clock())


def _whole(event: HookEvent) -> str:
    """Return the conversation in which a sub-agent is started, by the agent or by another sub-agent."""
    return event.replace(agent_id="").conversation
