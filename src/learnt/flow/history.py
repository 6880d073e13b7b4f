"""Learning from what is there already: the transcripts that clients wrote, and the history of the project in git.

Each source is read once: of a transcript that has grown since, the conversation is read anew, and what was learnt from
it before is known. A conversation is one task; its agent's own words are debriefed as those of any other.
"""

from __future__ import annotations

import os
from itertools import chain

from learnt.errors import WrongRequest
from learnt.flow.background import refuse_without_project
from learnt.flow.debriefs import Output, keep
from learnt.flow.debriefs import debrief as debrief_output
from learnt.flow.mining import LONGEST_READ, NO_HURRY_S, Mined, Mining, Reading
from learnt.flow.turns import record_turn, source_of
from learnt.model import Task, Value, text_id
from learnt.store import mined, session_database, tasks
from learnt.text.clean import clean
from learnt.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from learnt.clients.kit.steps import About
    from learnt.clients.kit.transcript import TranscriptFile
    from learnt.model import Debrief, Discovery
    from learnt.store.database import Database
    from learnt.system.git import Commit

_LONGEST_SAID = 1_000_000
_LONGEST_QUESTION = 1_000
_TOKENS_OF_A_PROMPT = 2_000
_TOKENS_OF_AN_ANSWER = 2_000
_LETTERS_OF_A_TOKEN = 4


class Past(Value):
    """What could be learnt from, and what that would cost."""

    transcripts: tuple[TranscriptFile, ...] = ()
    """Those that were not read yet, or have grown since; the oldest first."""
    commits: tuple[Commit, ...] = ()
    read_before: int = 0
    """How many transcripts were read already."""
    calls: int = 0
    """How many times the model would be asked."""
    forecast_usd: float | None = None
    """What that would cost about; None when nobody knows."""


class Transcripts(Mining):
    """Learns from transcripts and commits."""

    def find(self, *, since_ms: int) -> Past:
        """Return the transcripts and commits since a moment that nobody has learnt from, and what that would cost."""
        refuse_without_project(self.context)
        from learnt.clients.kit.transcript import find
        from learnt.clients.registry import PLACES
        from learnt.system.git import commits

        places = {name: os.environ[name] for name in PLACES if name in os.environ}
        there = list(find(places, folder=self.root, since_ms=since_ms, database=session_database))
        of_the_loop = tasks.transcripts(self.store.database)  # mined with their tasks, or not to be
        there = [one for one in there if one.path not in of_the_loop]
        new = [one for one in there if mined.size_read(self.store.database, source_of(one.path)) != one.size]
        made = [
            commit
            for commit in commits(self.root, since_ms=since_ms, environ=os.environ)
            if not mined.size_read(self.store.database, commit.id)
        ]
        return Past(
            transcripts=tuple(reversed(new)),
            commits=tuple(made),
            read_before=len(there) - len(new),
            calls=len(new) if self.asks_a_model else 0,
            forecast_usd=self._forecast([one.size for one in new]) if self.asks_a_model else 0.0,
        )

    def debrief(
        self, path: str, *, task: str = "", result: str | None = None, agent: str = "", model: str = ""
    ) -> tuple[Debrief, Mined]:
        """Debrief the agent's own words in a transcript, and learn from what it did."""
        told = self._about(path)
        size = size_of(path)
        source = source_of(path)
        if mined.size_read(self.store.database, source) == size:
            raise WrongRequest(f"{path} was read already", hint="it is read again when it has grown")
        asked, messages = self._words(path)
        said, last = "\n\n".join(messages), messages[-1] if messages else ""
        id = task or self._conversation(source)
        now = self._clock()
        new = Task(id=id, title=self._line(asked) or id, type="session", created_at=now, updated_at=now)
        known = tasks.find(self.store.database, id) or new
        reading = Reading(task=known)
        if not known.skip_learnings:
            found = tuple(self._safe(one, known) for one in self._seen(path, last, folder=told.folder))
            # First what may fail: then nothing is kept, and the transcript is read the next time.
            reading = self._understood(reading.replace(said=said, found=found), "", NO_HURRY_S)
        with self.store.transaction():
            tasks.ensure(self.store.database, known)
        how: dict[str, Any] = {"result": result, "model": model or told.model, "transcript": source}
        how["ended_at"] = min(told.ended_at or now, now)
        if known.type == "session":
            new = known.replace(agent=self._line(agent), client=known.client or told.client)
            read = {"size": size, "last": last}
            debrief = keep(self.context, record_turn(self.context, new, said, branch=told.branch, read=read, **how))
        else:
            debrief = debrief_output(self.context, Output(task=id, text=said, agent=agent, **how))
        if debrief.spooled:
            return debrief, Mined(task=id)
        return debrief, self._mined(reading, debrief.attempt, source, size)

    def _conversation(self, source: str) -> str:
        """Return the task of the conversation that is written down there: the known one, or a new one."""
        known = tasks.conversations(self.store.database, transcript=source, limit=1)
        return known[0].task if known else text_id("task", source)

    def _mined(self, reading: Reading, attempt: str, source: str, size: int) -> Mined:
        """Keep what a reading of a transcript teaches, and how much of it was read."""
        database = self.store.database
        with self.store.transaction():
            found = [one.replace(attempt=attempt) for one in reading.found if self._is_there_still(database, one)]
            learnt = self._take_in(database, reading.replace(found=tuple(found)))
            mined.note_read(database, source, size=size, task=reading.task.id, at=self._clock())
        return learnt

    def _is_there_still(self, database: Database, one: Discovery) -> bool:
        """Say whether a discovery is new, or still kept: of what was purged, a transcript brings nothing back."""
        is_first = self.store.is_first(text_id("op", f"found {one.task} {mined.sign_of(one)}"))
        return is_first or mined.is_kept(database, one)

    def _about(self, path: str) -> About:
        """Return what a transcript tells of itself; what is none is not tried again until it changes."""
        from learnt.clients.kit.transcript import about

        try:
            return about(path, session_database)
        except WrongRequest:
            if os.path.isfile(path):
                with self.store.transaction():
                    mined.note_read(self.store.database, source_of(path), size=size_of(path), task="", at=self._clock())
            raise

    def learn_from_commit(self, commit: Commit) -> Mined:
        """Learn from what a commit says: what was taken back and why, and lessons in its own words."""
        from learnt.mine.lessons import observe_commit

        task = Task(id=text_id("task", commit.id), title=commit.subject.strip() or commit.id, type="commit")
        found = observe_commit(commit.subject, commit.body, commit.files)
        safe = () if found is None else (self._safe(found.replace(commit=commit.id), task),)
        reading = Reading(task=task, found=safe)
        with self.store.transaction():
            learnt = self._take_in(self.store.database, reading)
            mined.note_read(self.store.database, commit.id, size=1, task="", at=self._clock())
        return learnt

    def _words(self, path: str) -> tuple[str, list[str]]:
        """Return what a person asked first, and the agent's own messages (of very many, the last), without secrets."""
        from learnt.clients.kit.transcript import steps

        asked = ""
        own, aside = _Words(), _Words()
        for step in steps(path, session_database):
            if step.kind == "prompt" and not step.aside:
                asked = asked or step.text[:_LONGEST_QUESTION]
            elif step.kind == "said":
                (aside if step.aside else own).add(step.text)
        # Where all was said by a sub-agent, it is its own conversation.
        kept = own.kept if own.kept or asked else aside.kept
        safe = [redact(clean(text))[0] for text in (asked, *kept)]
        return safe[0], safe[1:]

    def _seen(self, path: str, last: str, *, folder: str) -> Iterator[Discovery]:
        from learnt.clients.kit.transcript import steps
        from learnt.debrief.sigils import remove_sigils
        from learnt.mine.lessons import observe_words
        from learnt.mine.observe import observe_steps

        # What is said on the way is mostly a plan or a guess; what is said last is what was found.
        words = observe_words(remove_sigils(last))
        return chain(observe_steps(steps(path, session_database), folder=folder or self.root), words)

    def _forecast(self, sizes: Sequence[int]) -> float | None:
        """Return what it costs about to let the model read transcripts of these sizes."""
        from learnt.llm.spend import cost_usd

        provider = self._provider(NO_HURRY_S)
        read = sum(min(size, LONGEST_READ) // _LETTERS_OF_A_TOKEN + _TOKENS_OF_A_PROMPT for size in sizes)
        each = cost_usd(provider, read, _TOKENS_OF_AN_ANSWER * len(sizes))
        priced = provider.input_price is not None or provider.output_price is not None
        if each is None or not sizes:
            return None if sizes else 0.0
        return each if priced and provider.name != "command" else each * len(sizes)


class _Words:
    """What was said, of very much the last."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        self.kept.append(text)
        self._length += len(text)
        while self._length > _LONGEST_SAID and len(self.kept) > 1:
            self._length -= len(self.kept.pop(0))


def size_of(path: str) -> int:
    """Return how long a transcript is, also of one that lies in a database."""
    if os.path.exists(path):
        return os.path.getsize(path)
    file, _, session = path.rpartition("#")
    return int(session_database.session(file, session).get("size") or 0)
