"""Keep what a sub-agent is to do, without secrets, until it starts; only needed at such events.

If several errands are kept for a kind of sub-agent, the transcript may tell whose they are: a call's result names the
sub-agent that it started, or that it failed. Otherwise all remaining ones are returned, and a learning must fit each of
them to be given: it is then right whichever the errand is. To guess would be wrong for half of those that start at
once, and what fits one of them only may be foreign to the others.
"""

from __future__ import annotations

from learnt.store import errands
from learnt.system.files import read_transcript_end
from learnt.text.clean import clean
from learnt.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.clients.kit.events import HookEvent
    from learnt.flow.context import Context

# A hook has little time, so it compares only a few errands.
_MAX_COMPARED = 4


def keep(context: Context, event: HookEvent) -> None:
    """Keep what a sub-agent is to do until it starts."""
    agent, errand = context.redact_line(event.errand_for), redact(clean(event.errand))[0]
    call = context.redact_line(event.errand_call)
    errands.keep(context.store.place.folder, _whole(event), agent, errand, call=call, at=context.clock())


def take(context: Context, event: HookEvent) -> list[str]:
    """Return what a sub-agent that starts may have to do; empty if it is not known, or too much is possible."""
    folder, whole, agent = context.store.place.folder, _whole(event), context.redact_line(event.agent)
    calls = errands.list_calls(folder, whole, agent, now=context.clock())
    if len(calls) > 1:
        calls = _list_possible(event, calls)
    possible = errands.take(folder, whole, agent, calls=calls, now=context.clock())
    return possible if len(possible) <= _MAX_COMPARED else []


def drop(context: Context, event: HookEvent) -> None:
    """Drop the errand of a call that is over; at the end of a turn, all errands of the conversation."""
    errands.drop(context.store.place.folder, _whole(event), call=event.errand_call)


def _whole(event: HookEvent) -> str:
    """Return the conversation in which a sub-agent is started, by the agent or by another sub-agent."""
    return event.replace(agent_id="").conversation


def _list_possible(event: HookEvent, calls: list[str]) -> list[str]:
    """Return which of these calls may have started a sub-agent, by their results in the conversation's transcript."""
    results = [line for line in read_transcript_end(event.transcript).split(b"\n") if b'"tool_use_id"' in line]
    possible = []
    for call in calls:
        result = next((line for line in results if call and f'"{call}"'.encode(errors="replace") in line), b"")
        if f'"{event.agent_id}"'.encode(errors="replace") in result:
            return [call]
        if b'"agentId"' not in result and b'"is_error":true' not in result.replace(b" ", b""):
            possible.append(call)
    return possible
