"""Learning from what is there already: the transcripts that clients wrote, and the history of the project in git.

Each source is read once: of a transcript that has grown since, the conversation is read anew, and what was learnt from
it before is known. A conversation is one task; its agent's own words are debriefed as those of any other.
"""

from __future__ import annotations

import os
import time
from itertools import chain

from learnt.errors import WrongRequest
from learnt.memory.mining import Mined, Mining, Reading
from learnt.model import Task, Value, text_id
from learnt.store import mined, opencode, tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from learnt.clients.transcript import Found
    from learnt.git import Commit
    from learnt.model import Debrief, Discovery

_NO_HURRY_S = 24 * 3600.0
_LONGEST_SAID = 1_000_000
_LONGEST_QUESTION = 1_000
_TOKENS_OF_A_PROMPT = 2_000
_TOKENS_OF_AN_ANSWER = 2_000
_LETTERS_READ = 24_000
_LETTERS_OF_A_TOKEN = 4


class Past(Value):
    """What could be learnt from, and what that would cost."""

    transcripts: tuple[Found, ...] = ()
    """Those that were not read yet, or have grown since; the oldest first."""
    commits: tuple[Commit, ...] = ()
    read_before: int = 0
    """How many transcripts were read already."""
    calls: int = 0
    """How many times the model would be asked."""
    forecast_usd: float | None = None
    """What that would cost about; None when nobody knows."""


class LookingBack(Mining):
    """What is learnt from the past."""

    def past(self, *, since_ms: int) -> Past:
        """Return what there is to learn from since a moment."""
        from learnt.clients.shapes import PLACES
        from learnt.clients.transcript import found
        from learnt.git import commits

        places = {name: os.environ[name] for name in PLACES if name in os.environ}
        there = list(found(places, folder=self.root, since_ms=since_ms, database=opencode))
        new = [one for one in there if mined.size_read(self.store.database, _source(one.path)) != one.size]
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

    def debrief_transcript(
        self, path: str, *, task: str = "", result: str | None = None, agent: str = "", model: str = ""
    ) -> tuple[Debrief, Mined]:
        """Debrief the agent's own words in a transcript, and learn from what it did."""
        from learnt.clients.transcript import about

        told = about(path, opencode)
        size = _size(path)
        source = _source(path)
        if mined.size_read(self.store.database, source) == size:
            raise WrongRequest(f"{path} was read already", hint="it is read again when it has grown")
        asked, said = self._words(path)
        id = task or text_id("task", source)
        self._know(id, asked)
        debrief = self.memory.debrief(
            id, said, result=result, agent=agent, model=model or told.model, task_type="session", transcript=path
        )
        if debrief.spooled:
            return debrief, Mined(task=id)
        known = tasks.get(self.store.database, id)
        found = tuple(self._safe(one, known) for one in self._seen(path, said, folder=told.folder))
        reading = Reading(task=known, said=said, found=() if known.skip_learnings else found)
        reading = reading if known.skip_learnings else self._understood(reading, "", _NO_HURRY_S)
        with self.store.transaction():
            learnt = self._take_in(self.store.database, reading)
            mined.note_read(self.store.database, source, size=size, task=id, at=self._clock())
        return debrief, learnt

    def learn_from_commit(self, commit: Commit) -> Mined:
        """Learn from what a commit says: what was taken back and why, and lessons in its own words."""
        from learnt.debrief.lessons import observe_commit

        task = Task(id=text_id("task", commit.id), title=commit.subject.strip() or commit.id, type="commit")
        found = observe_commit(commit.subject, commit.body, commit.files)
        safe = () if found is None else (self._safe(found.replace(commit=commit.id), task),)
        reading = Reading(task=task, found=safe)
        with self.store.transaction():
            learnt = self._take_in(self.store.database, reading)
            mined.note_read(self.store.database, commit.id, size=1, task="", at=self._clock())
        return learnt

    def _know(self, id: str, asked: str) -> None:
        """Keep a conversation as a task, named by what was asked first."""
        title = self._line(asked) or id
        now = self._clock()
        with self.store.transaction():
            tasks.ensure(self.store.database, Task(id=id, title=title, type="session", created_at=now, updated_at=now))

    def _words(self, path: str) -> tuple[str, str]:
        """Return what a person asked first, and the agent's own words; of very many, the last."""
        from learnt.clients.transcript import steps

        asked = ""
        kept: list[str] = []
        length = 0
        for step in steps(path, opencode):
            if step.kind == "prompt" and not step.aside:
                asked = asked or step.text[:_LONGEST_QUESTION]
            elif step.kind == "said" and not step.aside:
                kept.append(step.text)
                length += len(step.text)
                while length > _LONGEST_SAID and len(kept) > 1:
                    length -= len(kept.pop(0))
        return asked, "\n\n".join(kept)

    def _seen(self, path: str, said: str, *, folder: str) -> Iterator[Discovery]:
        from learnt.clients.transcript import steps
        from learnt.debrief.lessons import observe_words
        from learnt.debrief.observe import observe_steps

        return chain(observe_steps(steps(path, opencode), folder=folder or self.root), observe_words(said))

    def _forecast(self, sizes: Sequence[int]) -> float | None:
        """Return what it costs about to let the model read transcripts of these sizes."""
        from learnt.llm.spend import cost_usd

        provider = self._provider(time.monotonic())
        read = sum(min(size, _LETTERS_READ) // _LETTERS_OF_A_TOKEN + _TOKENS_OF_A_PROMPT for size in sizes)
        each = cost_usd(provider, read, _TOKENS_OF_AN_ANSWER * len(sizes))
        priced = provider.input_price is not None or provider.output_price is not None
        if each is None or not sizes:
            return None if sizes else 0.0
        return each if priced and provider.name != "command" else each * len(sizes)


def _source(path: str) -> str:
    file, mark, session = path.rpartition("#")
    return f"{os.path.realpath(file)}#{session}" if mark and not os.path.exists(path) else os.path.realpath(path)


def _size(path: str) -> int:
    """Return how long a transcript is, also of one that lies in a database."""
    if os.path.exists(path):
        return os.path.getsize(path)
    file, _, session = path.rpartition("#")
    return int(opencode.session(file, session).get("size") or 0)
