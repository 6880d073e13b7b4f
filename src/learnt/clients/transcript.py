"""A conversation that a client wrote down, as steps: what was asked, what the agent said and did, what came of it.

Each client's own module reads its format; here is what they have in common. A transcript is read as a stream: however
long it is, only one step at a time is in memory, and a step keeps the beginning and the end of a long text. What a
client or we ourselves put into the conversation (reminders, hook output, briefs, synthetic prompts) is no step, and in
none.
"""

from __future__ import annotations

from learnt.model import Value

# How much of one step's text is kept: its beginning and its end.
LONGEST_TEXT = 20_000


class Step(Value):
    """One thing that happened in a conversation."""

    kind: str
    """`prompt` (a person's words), `said` (the agent's own words), `call` (of a tool) or `result` (of a call)."""
    text: str = ""
    """The words; of a call the command line or what an edit writes; of a result what the tool answered."""
    call: str = ""
    """What ties a result to its call."""
    tool: str = ""
    """The tool's name as the client has it."""
    does: str = ""
    """Of a call: `run` (a command), `edit` (a file), `read` (a file) or `other`."""
    path: str = ""
    """Of a call: the file that it is about, as the client has it."""
    before: str = ""
    """Of an edit: the text that it replaces, where the client tells."""
    failed: bool = False
    """Of a result: the client counts it as an error, or its exit code is not 0."""
    denied: bool = False
    """Of a result: a person or the permissions refused the call."""
    at: int = 0
    """When, in UTC milliseconds; 0 where the client does not tell."""
    aside: bool = False
    """It happened in a sub-agent's conversation."""


class About(Value):
    """What a transcript tells of the conversation as a whole; empty where the client does not tell."""

    client: str
    session: str = ""
    folder: str = ""
    branch: str = ""
    model: str = ""
    started_at: int = 0
    ended_at: int = 0
