"""What the worker does between turns: applies the records that wait, and reads what was said since.

Each part is done independently: what cannot be done is reported, and waits. A conversation's words are debriefed before
a model is asked about them, so that a model that fails holds back nothing that the agent said itself. Records that
arrive while the worker ends are not missed: it looks once more after others can see that it has ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from learnt.clients.kit.transcript import About, about
from learnt.debrief.sigils import read_sigils
from learnt.errors import LearntError, ModelFailed, NoModel, SpendingCap, TryAgain
from learnt.flow import background
from learnt.flow.context import Context
from learnt.flow.debriefs import keep
from learnt.flow.history import read_conversation, read_words, size_of, take_in_transcript
from learnt.flow.learnings_file import LearningsFile
from learnt.flow.mining import ask_about, note_read, was_asked_lately
from learnt.flow.model_calls import NO_HURRY_S
from learnt.flow.turns import debriefed_words_source, record_turn
from learnt.model import Attempt, Value
from learnt.store import mined, mirror, session_database, tasks
from learnt.system.files import Locked
from learnt.text.times import MONTH_MS

_TRIES = 2
_TRIES_TO_BEGIN = 20
_BETWEEN_TRIES_S = 0.05


class WorkerReport(Value):
    """What was done, and what could not be."""

    records: int = 0
    """How many records were applied."""
    conversations: int = 0
    """How many conversations were debriefed again."""
    learnings: tuple[str, ...] = ()
    """What they taught that is new, beyond what their agents said themselves."""
    remarks: tuple[str, ...] = ()
    """What waits for the next time, and why."""


class Worker:
    """Catches up with what waits, alone in its store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def start(self) -> None:
        """Start the worker in a process of its own, unless one is running; never fails."""
        background.start_worker(self._context)

    def catch_up(self, *, limit_s: float = NO_HURRY_S) -> WorkerReport:
        """Do what there is to do, alone; return at once if another worker is running."""
        deadline = time.monotonic() + limit_s
        folder = self._store.place.folder
        report = WorkerReport()
        self._store.make_folder()
        while True:
            with _hold_worker_lock(folder) as is_alone:
                if not is_alone:
                    return report
                background.tell_state(folder, "begun")
                before = self._waiting_records()
                report = self._catch_up_once(report, deadline)
                background.tell_state(folder, "failed" if report.remarks else "done")
            if not self._waiting_records() - before or time.monotonic() > deadline:
                return report

    def _waiting_records(self) -> set[str]:
        return {record.op for record in self._store.spool.waiting()}

    def _catch_up_once(self, report: WorkerReport, deadline: float) -> WorkerReport:
        remarks: list[str] = []
        report = report.replace(records=report.records + self._apply_spool(remarks))
        self._refresh_mirror(remarks, examine=True)
        if not self._store.spool.is_empty():
            return report.replace(remarks=tuple(remarks))  # what cannot take these takes nothing else either
        report = self._read_conversations(report, remarks, deadline)
        self._update_files(remarks, deadline)
        self._refresh_mirror(remarks, examine=False)
        return report.replace(remarks=tuple(remarks))

    def _apply_spool(self, remarks: list[str]) -> int:
        """Bring what waits into the database; others may be writing."""
        applied = 0
        for _ in range(_TRIES):
            applied += self._store.take_up_spool(wait=True)
            if self._store.spool.is_empty():
                return applied
        remarks.append("records wait in the spool: the database cannot take them now")
        return applied

    def _refresh_mirror(self, remarks: list[str], *, examine: bool) -> None:
        """Beside a server, update the copy for hooks: first, so that they need not wait, and last."""
        if not self._store.place.address:
            return
        try:
            mirror.refresh(self._store, examine=examine)
        except LearntError as error:
            remarks.append(_format_error(error))

    def _update_files(self, remarks: list[str], deadline: float) -> None:
        """Update the learnings files as long as that is due: others may finish as many tasks meanwhile."""
        file = LearningsFile(self._context)
        try:
            while self._context.root and file.state().is_due and time.monotonic() < deadline:
                file.update(cause="count", limit_s=deadline - time.monotonic())
        except LearntError as error:
            remarks.append(_format_error(error))

    def _read_conversations(self, report: WorkerReport, remarks: list[str], deadline: float) -> WorkerReport:
        """Read the transcripts that have grown; after the model failed, only their words."""
        asks = True
        database = self._store.database
        latest = tasks.conversations(database, since=self._context.clock() - MONTH_MS)
        sources = [
            source for attempt in latest for source in (attempt.transcript, debriefed_words_source(attempt.transcript))
        ]
        sizes_read = mined.sizes_read(database, sources)
        for attempt in reversed(latest):
            if time.monotonic() > deadline:
                break
            try:
                size = _size_or_0(attempt.transcript)
                if size and sizes_read.get(debriefed_words_source(attempt.transcript)) != size:
                    report = report.replace(conversations=report.conversations + self._debrief(attempt, size))
                if asks and size and sizes_read.get(attempt.transcript) != size and self._may_be_mined(attempt):
                    new = self._mine(attempt, size, deadline - time.monotonic())
                    report = report.replace(learnings=(*report.learnings, *new))
            except (ModelFailed, NoModel, SpendingCap) as error:
                asks = False  # a model that fails now fails the next time, too, and is paid for it
                remarks.append(_format_error(error))
            except LearntError as error:
                remarks.append(_format_error(error))
        return report

    def _may_be_mined(self, attempt: Attempt) -> bool:
        task = tasks.get(self._store.database, attempt.task)
        is_enabled = self._context.settings.learnings_enabled
        return is_enabled and not task.skip_learnings and not was_asked_lately(self._context, task)

    def _debrief(self, attempt: Attempt, size: int) -> bool:
        """Replace the debrief of a conversation by one of all its agent's words; False if there are none yet."""
        header = self._read_header(attempt, size)
        question, messages = self._read_words(attempt) if header else ("", [])
        if header is None or not messages:
            note_read(self._context, debriefed_words_source(attempt.transcript), size=size, task=attempt.task)
            return False
        now = self._context.clock()
        task = tasks.get(self._store.database, attempt.task)
        turn = record_turn(
            self._context,
            task.replace(client=task.client or header.client),
            "\n\n".join(messages),
            transcript=attempt.transcript,
            branch=attempt.branch or header.branch,
            result=attempt.result if attempt.result != "incomplete" else _last_result(messages),
            model=header.model,
            ended_at=min(header.ended_at or now, now),
            read={"size": size, "last": messages[-1], "asked": self._context.redact_line(question)},
        )
        return not keep(self._context, turn).spooled

    def _mine(self, attempt: Attempt, size: int, limit_s: float) -> tuple[str, ...]:
        """Learn from what was done in a conversation; return the new learnings."""
        header = self._read_header(attempt, size)
        if header is None:
            return ()
        task = tasks.get(self._store.database, attempt.task)
        messages = self._read_words(attempt)[1]
        reading = read_conversation(self._context, task, attempt.transcript, messages, folder=header.folder)
        reading = ask_about(self._context, reading, limit_s=limit_s)
        return take_in_transcript(self._context, reading, attempt.id, attempt.transcript, size).learnings

    def _read_header(self, attempt: Attempt, size: int) -> About | None:
        """Return what a transcript says about itself; what is none is not tried again until it changes."""
        try:
            return about(attempt.transcript, session_database)
        except TryAgain:
            raise  # its client is writing it
        except (LearntError, OSError):
            note_read(self._context, attempt.transcript, size=size, task=attempt.task)
            return None

    def _read_words(self, attempt: Attempt) -> tuple[str, list[str]]:
        """Return what was asked first and what the agent said, also what is not in the transcript yet."""
        question, messages = read_words(attempt.transcript)
        material = mined.material_of(self._store.database, attempt.task)
        texts = [part.text for part in material if part.attempt == attempt.id]
        late = [text for text in texts if text.strip() and not any(text.strip() in message for message in messages)]
        return question, [*messages, *late]


@contextmanager
def _hold_worker_lock(folder: str) -> Iterator[bool]:
    """Be the only worker of a store; False if another one is running."""
    for _ in range(_TRIES_TO_BEGIN):
        with Locked(os.path.join(folder, background.WORKER_LOCK), wait=False) as is_alone:
            if is_alone:
                yield True
                return
        time.sleep(_BETWEEN_TRIES_S)  # asking whether a worker runs holds the lock for an instant, too
    yield False


def _last_result(messages: list[str]) -> str | None:
    """Return how the work ended, by the last message that says so."""
    return next((result for text in reversed(messages) if (result := read_sigils(text).result)), None)


def _size_or_0(transcript: str) -> int:
    """Return the size of a transcript; 0 if it is gone."""
    try:
        return size_of(transcript)
    except (LearntError, OSError):
        return 0


def _format_error(error: LearntError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
