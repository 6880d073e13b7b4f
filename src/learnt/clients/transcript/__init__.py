"""A conversation that a client wrote down, as steps: what was asked, what the agent said and did, what came of it.

Each client's own module reads its format; which it is, a file tells by its content. A transcript is read as a stream:
however long it is, only one step at a time is in memory, and a step keeps the beginning and the end of a long text.
What a client or we ourselves put into the conversation (reminders, hook output, briefs, synthetic prompts) is no step,
and in none.

opencode keeps its conversations in a database: `<database>#<session>` names one, and `opencode` reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import ModuleType

from learnt.clients.transcript import claude_code, codex, gemini, opencode
from learnt.clients.transcript.files import document_frame, first_records
from learnt.clients.transcript.opencode import Database
from learnt.clients.transcript.places import Found, found
from learnt.clients.transcript.step import LONGEST_TEXT, About, Step
from learnt.errors import WrongRequest

__all__ = ["LONGEST_TEXT", "About", "Database", "Found", "Step", "about", "found", "steps"]


def steps(path: str, database: Database | None = None) -> Iterator[Step]:
    """Yield the steps of a transcript: a file, or a conversation in opencode's database, which `database` reads."""
    if reference := _in_database(path, database):
        reader, file, session = reference
        return opencode.steps_of(_session(reader, file, session), reader.messages(file, session))
    steps_of_file: Iterator[Step] = _reader(path).steps(path)
    return steps_of_file


def about(path: str, database: Database | None = None) -> About:
    """Return what a transcript tells of its conversation as a whole."""
    if reference := _in_database(path, database):
        return opencode.about_of(_session(*reference))
    told: About = _reader(path).about(path)
    return told


def _in_database(path: str, database: Database | None) -> tuple[Database, str, str] | None:
    """Return what reads a conversation out of a database, the file and the session; nothing for a plain file."""
    file, mark, session = path.rpartition("#")
    if database is None or not mark or os.path.exists(path):
        return None
    return database, file, session


def _session(database: Database, file: str, session: str) -> object:
    info = database.session(file, session)
    if not info:
        raise WrongRequest(
            f"there is no conversation `{session}` in {file}", hint="`opencode session list` shows those that there are"
        )
    return info


def _reader(path: str) -> ModuleType:
    """Return what reads the format of a file."""
    if not os.path.isfile(path):
        raise WrongRequest(f"there is no file {path}", hint="name the transcript that a client wrote")
    frame = document_frame(path)
    if opencode.recognised(frame):
        return opencode
    if gemini.recognised(frame):
        return gemini
    for record in first_records(path):
        for reader in (claude_code, codex, gemini):
            if reader.recognised(record):
                return reader
    raise WrongRequest(
        f"{path} is no transcript that can be read",
        hint="known are the transcripts of Claude Code, Codex and Gemini CLI, what `opencode export` prints, and "
        "`opencode.db#<session>`",
    )
