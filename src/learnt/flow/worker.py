"""What the worker does between turns: takes up what waits, and reads what was said since.

Each part is done on its own: what one cannot do is told, and waits. A conversation's words are debriefed before anybody
is asked about them, so that a model that fails keeps nothing back that the agent said itself. Records that arrive while
it ends are not missed: it looks once more when others can see that it has ended.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from learnt.errors import LearntError, ModelFailed, NoModel, SpendingCap, TryAgain
from learnt.flow import background
from learnt.flow.debriefs import keep
from learnt.flow.history import Transcripts, size_of
from learnt.flow.learnings_file import LearningsFile
from learnt.flow.mining import NO_HURRY_S, Reading
from learnt.flow.turns import record_turn, words_of
from learnt.model import Attempt, Task, Value
from learnt.store import mined, tasks
from learnt.system.locks import Locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from learnt.clients.kit.steps import About

_LONG_AGO_MS = 30 * 24 * 3600 * 1000
_TRIES = 2
_TRIES_TO_BEGIN = 20
_BETWEEN_TRIES_S = 0.05


class CaughtUp(Value):
    """What was done, and what could not be."""

    records: int = 0
    """How many records were taken up."""
    conversations: int = 0
    """How many conversations were debriefed anew."""
    learnings: tuple[str, ...] = ()
    """What they taught that is new, beyond what their agents said themselves."""
    remarks: tuple[str, ...] = ()
    """What waits for the next time, and why."""


class Worker(Transcripts):
    """What is done in the background."""

    def start(self) -> None:
        """Start the worker in a process of its own, unless one is running; never fails."""
        background.start_worker(self.context)

    def catch_up(self, *, limit_s: float = NO_HURRY_S) -> CaughtUp:
        """Do what there is to do, alone; return at once when somebody else is at it."""
        deadline = time.monotonic() + limit_s
        folder = self.store.place.folder
        done = CaughtUp()
        self.store.make_folder()
        while True:
            with _at_work(folder) as alone:
                if not alone:
                    return done
                background.tell_state(folder, "begun")
                before = self._waiting_records()
                done = self._done_once(done, deadline)
                background.tell_state(folder, "failed" if done.remarks else "done")
            if not self._waiting_records() - before or time.monotonic() > deadline:
                return done

    def _waiting_records(self) -> set[str]:
        return {record.op for record in self.store.spool.waiting()}

    def _done_once(self, done: CaughtUp, deadline: float) -> CaughtUp:
        remarks: list[str] = []
        done = done.replace(records=done.records + self._take_up_all(remarks))
        self._refresh_mirror(remarks, examine=True)
        if not self.store.spool.is_empty():
            return done.replace(remarks=tuple(remarks))  # what cannot take these takes nothing else either
        done = self._read_conversations(done, remarks, deadline)
        try:
            # Others may finish as many tasks meanwhile.
            while self.root and background.state(self.store, self.settings).is_due and time.monotonic() < deadline:
                LearningsFile(self.context).update(cause="count", limit_s=deadline - time.monotonic())
        except LearntError as error:
            remarks.append(_told(error))
        self._refresh_mirror(remarks, examine=False)
        return done.replace(remarks=tuple(remarks))

    def _refresh_mirror(self, remarks: list[str], *, examine: bool) -> None:
        """Beside a server, bring the copy for hooks up to date: first, so that they need not wait, and last."""
        if not self.store.place.address:
            return
        from learnt.store.mirror import refresh

        try:
            refresh(self.store, examine=examine)
        except LearntError as error:
            remarks.append(_told(error))

    def _take_up_all(self, remarks: list[str]) -> int:
        """Bring what waits into the database; others may be writing."""
        taken = 0
        for _ in range(_TRIES):
            taken += self.store.take_up_spool(wait=True)
            if self.store.spool.is_empty():
                return taken
        remarks.append("records wait in the spool: the database cannot take them now")
        return taken

    def _read_conversations(self, done: CaughtUp, remarks: list[str], deadline: float) -> CaughtUp:
        """Read the transcripts that have grown; when the model fails, only their words."""
        asks = True
        latest = tasks.conversations(self.store.database, since=self._clock() - _LONG_AGO_MS)
        sources = [source for one in latest for source in (one.transcript, words_of(one.transcript))]
        read = mined.sizes_read(self.store.database, sources)
        for attempt in reversed(latest):
            if time.monotonic() > deadline:
                break
            try:
                size = _size_or_0(attempt.transcript)
                if size and read.get(words_of(attempt.transcript)) != size:
                    done = done.replace(conversations=done.conversations + self._debrief(attempt, size))
                if asks and size and read.get(attempt.transcript) != size and self._may_be_mined(attempt):
                    learnt = self._mine(attempt, size, deadline - time.monotonic())
                    done = done.replace(learnings=(*done.learnings, *learnt))
            except (ModelFailed, NoModel, SpendingCap) as error:
                asks = False  # a model that fails now fails the next time, too, and is paid for it
                remarks.append(_told(error))
            except LearntError as error:
                remarks.append(_told(error))
        return done

    def _may_be_mined(self, attempt: Attempt) -> bool:
        task = tasks.get(self.store.database, attempt.task)
        return self.settings.learnings_enabled and not task.skip_learnings and not self._was_asked_lately(task)

    def _debrief(self, attempt: Attempt, size: int) -> bool:
        """Replace the debrief of a conversation by one of all its agent's words; False if there are none yet."""
        told = self._told_of(attempt, size)
        asked, messages = self._all_words(attempt) if told else ("", [])
        if told is None or not messages:
            self._note_read(attempt, size, words_of(attempt.transcript))
            return False
        now = self._clock()
        task = tasks.get(self.store.database, attempt.task)
        body = record_turn(
            self.context,
            task.replace(client=task.client or told.client),
            "\n\n".join(messages),
            transcript=attempt.transcript,
            branch=attempt.branch or told.branch,
            result=attempt.result if attempt.result != "incomplete" else _last_result(messages),
            model=told.model,
            ended_at=min(told.ended_at or now, now),
            read={"size": size, "last": messages[-1], "asked": self._line(asked)},
        )
        return not keep(self.context, body).spooled

    def _mine(self, attempt: Attempt, size: int, limit_s: float) -> tuple[str, ...]:
        """Learn from what was done in a conversation; return what is new."""
        told = self._told_of(attempt, size)
        if told is None:
            return ()
        task: Task = tasks.get(self.store.database, attempt.task)
        messages = self._all_words(attempt)[1]
        seen = self._seen(attempt.transcript, messages[-1] if messages else "", folder=told.folder)
        reading = Reading(task=task, said="\n\n".join(messages), found=tuple(self._safe(one, task) for one in seen))
        reading = self._understood(reading, "", limit_s)
        return self._mined(reading, attempt.id, attempt.transcript, size).learnings

    def _told_of(self, attempt: Attempt, size: int) -> About | None:
        """Return what a transcript tells of itself; None for what is none, and not tried again until it changes."""
        from learnt.clients.kit.transcript import about
        from learnt.store import session_database

        try:
            return about(attempt.transcript, session_database)
        except TryAgain:
            raise  # its client is writing it
        except (LearntError, OSError):
            self._note_read(attempt, size, attempt.transcript)
            return None

    def _note_read(self, attempt: Attempt, size: int, source: str) -> None:
        with self.store.transaction():
            mined.note_read(self.store.database, source, size=size, task=attempt.task, at=self._clock())

    def _all_words(self, attempt: Attempt) -> tuple[str, list[str]]:
        """Return what was asked first and what the agent said, also what is not written down yet."""
        asked, messages = self._words(attempt.transcript)
        kept = [one.text for one in mined.material_of(self.store.database, attempt.task) if one.attempt == attempt.id]
        late = [text for text in kept if text.strip() and not any(text.strip() in said for said in messages)]
        return asked, [*messages, *late]


@contextmanager
def _at_work(folder: str) -> Iterator[bool]:
    """Be the one worker of a store; False when there is another one."""
    for _ in range(_TRIES_TO_BEGIN):
        with Locked(os.path.join(folder, background.WORKER_LOCK), wait=False) as alone:
            if alone:
                yield True
                return
        time.sleep(_BETWEEN_TRIES_S)  # whoever only asks whether somebody is at work has the lock for an instant, too
    yield False


def _last_result(messages: list[str]) -> str | None:
    """Return how the work ended, in the words of the last message that tells."""
    from learnt.debrief.sigils import read_sigils

    return next((result for text in reversed(messages) if (result := read_sigils(text).result)), None)


def _size_or_0(transcript: str) -> int:
    """Return how long a transcript is; 0 for one that is gone."""
    try:
        return size_of(transcript)
    except (LearntError, OSError):
        return 0


def _told(error: LearntError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
