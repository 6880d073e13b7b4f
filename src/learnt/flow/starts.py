"""What is needed only where a conversation or a sub-agent starts: what it is to do, and what it continues.

Clients can continue a conversation under a new name: what the old one was given, the new one has, too. Its briefs stand
in the new transcript.
"""

from __future__ import annotations

import os
import re

from learnt.store import errands, happened
from learnt.system.files import open_to_read
from learnt.text.clean import clean
from learnt.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.clients.kit.events import HookEvent
    from learnt.flow.context import Context

# A hook has little time, so it reads only the end of a longer transcript.
_MAX_BYTES = 1_000_000
_MAX_BRIEFS = 20


def keep_errand(context: Context, event: HookEvent) -> None:
    """Keep what a sub-agent is to do until it starts."""
    agent, errand = context.redact_line(event.errand_for), redact(clean(event.errand))[0]
    errands.keep(context.store.place.folder, _whole(event), agent, errand, at=context.clock())


def take_errand(context: Context, event: HookEvent) -> str:
    """Return what a sub-agent that starts is to do; empty if it is not known."""
    agent = context.redact_line(event.agent)
    return errands.take(context.store.place.folder, _whole(event), agent, now=context.clock())


def _whole(event: HookEvent) -> str:
    """Return the conversation in which a sub-agent is started, by the agent or by another sub-agent."""
    return event.replace(agent_id="").conversation


def find_origin(context: Context, task: str, transcript: str) -> str:
    """Return the other conversation that was given the last brief in a transcript; empty if there is none."""
    briefs = _list_briefs(transcript)
    tasks = happened.tasks_of(context.store.database, briefs) if briefs else {}
    return next((tasks[brief] for brief in briefs if tasks.get(brief, task) != task), "")


def _list_briefs(transcript: str) -> list[str]:
    """Return the ids of the last briefs in a transcript, the last one first."""
    try:
        with open(transcript, "rb", opener=open_to_read) as file:
            file.seek(max(0, os.path.getsize(transcript) - _MAX_BYTES))
            end = file.read(_MAX_BYTES)
    except (OSError, ValueError):
        return []
    found = re.findall(rb'learnt-brief id=\\*"(brief_\w{1,60})', end)
    return list(dict.fromkeys(id.decode() for id in reversed(found)))[:_MAX_BRIEFS]
