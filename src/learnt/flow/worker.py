"""The background worker: applies pending records, reads transcripts that have grown, and updates the learnings files.

It also decides which briefs reached the agent, counts observed successes and does the daily upkeep.

The steps are independent: a failed step is reported and retried by the next worker. A conversation is debriefed before
a model reads it, so a failing model does not delay the agent's own learnings; after a few failures the rules read it.
Records that arrive while the worker is finishing are not missed: it checks again after it has released its lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from learnt.clients.kit.transcript import About, about
from learnt.debrief.sigils import read_sigils
from learnt.errors import LearntError, TryAgain
from learnt.flow import background
from learnt.flow.asks import ask_if_worth
from learnt.flow.common_names import update_common_names
from learnt.flow.consolidation import Consolidation
from learnt.flow.context import Context, is_upkeep_due, take_over_edits
from learnt.flow.cues import Cues
from learnt.flow.debriefs import store_debrief
from learnt.flow.deliveries import decide_deliveries
from learnt.flow.history import learn_from_transcript, read_conversation, read_words, size_or_0
from learnt.flow.learnings_file import LearningsFile
from learnt.flow.mining import ModelReader, note_read, was_asked_recently
from learnt.flow.model_calls import LONG_LIMIT_S
from learnt.flow.rules_files import refresh_marks
from learnt.flow.successes import count_successes, observe_prevented_errors
from learnt.flow.tidy import Upkeep
from learnt.flow.turns import debriefed_source, record_turn
from learnt.flow.vectors import Vectors
from learnt.flow.warnings import WatchedCalls
from learnt.model import Attempt, Value
from learnt.store import mined, mirror, session_database, tasks
from learnt.system.files import Locked
from learnt.text.clean import join_messages
from learnt.text.times import MONTH_MS

_SPOOL_TRIES = 2
_LOCK_TRIES = 20
_LOCK_PAUSE_S = 0.05
_UPKEEP_LIMIT_S = 30.0
_VECTORS_LIMIT_S = 300.0


class WorkerReport(Value):
    """What the worker did, and what failed."""

    records: int = 0
    """How many records were applied."""
    conversations: int = 0
    """How many conversations were debriefed again."""
    learnings: tuple[str, ...] = ()
    """The new learnings from these conversations, without the learnings that the agents reported themselves."""
    remarks: tuple[str, ...] = ()
    """What was left for the next worker, and why."""


class Worker:
    """Does the pending work of a store; only one worker runs at a time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def start(self) -> None:
        """Start the worker in a separate process, unless one is running; never raise."""
        background.start_worker(self._context)

    def catch_up(self, *, limit_s: float = LONG_LIMIT_S) -> WorkerReport:
        """Do the pending work; return at once if another worker is running."""
        deadline = time.monotonic() + limit_s
        folder = self._store.place.folder
        report = WorkerReport()
        self._store.make_folder()
        while True:
            with _hold_worker_lock(folder) as acquired:
                if not acquired:
                    return report
                background.record_worker_state(folder, "begun")
                before = self._pending_records()
                report = self._catch_up_once(report, deadline)
                background.record_worker_state(folder, "failed" if report.remarks else "done")
            if not self._pending_records() - before or time.monotonic() > deadline:
                return report

    def _pending_records(self) -> set[str]:
        return {record.op for record in self._store.spool.pending()}

    def _catch_up_once(self, report: WorkerReport, deadline: float) -> WorkerReport:
        remarks: list[str] = []
        report = report.replace(records=report.records + self._apply_spool(remarks))
        self._refresh_mirror(remarks, examine=True)
        if not self._store.spool.is_empty():
            # A database that rejects the pending records would reject all further writes as well, so stop here.
            return report.replace(remarks=tuple(remarks))
        take_over_edits(self._context)
        reached = self._decide_deliveries(remarks, deadline)
        report = self._read_conversations(report, remarks, deadline)
        self._count_successes(remarks, reached)
        self._ask_for_cues(remarks, deadline)
        self._make_vectors(remarks, deadline)
        self._refresh_marks(remarks)
        self._tidy(remarks, deadline)
        self._update_files(remarks, deadline)
        self._note_due(remarks)
        self._refresh_mirror(remarks, examine=False)
        self._watch_calls(remarks)
        return report.replace(remarks=tuple(remarks))

    def _apply_spool(self, remarks: list[str]) -> int:
        """Apply the pending records; try again if other processes have added records meanwhile."""
        applied = 0
        for _ in range(_SPOOL_TRIES):
            applied += self._store.replay_spool(wait=True)
            if self._store.spool.is_empty():
                return applied
        remarks.append("records are pending in the spool: the database cannot be written to at the moment")
        return applied

    def _refresh_mirror(self, remarks: list[str], *, examine: bool) -> None:
        """With a database server, update the mirror that hooks read; this is done before and after the other steps."""
        if not self._store.place.address:
            return
        try:
            mirror.refresh(self._store, examine=examine)
        except LearntError as error:
            remarks.append(_format_error(error))

    def _update_files(self, remarks: list[str], deadline: float) -> None:
        """Update the learnings files until no update is due, because more tasks may be finished meanwhile."""
        file = LearningsFile(self._context)
        try:
            while self._context.root and file.state().is_due and time.monotonic() < deadline:
                file.update(cause="count", limit_s=deadline - time.monotonic())
        except LearntError as error:
            remarks.append(_format_error(error))

    def _decide_deliveries(self, remarks: list[str], deadline: float) -> list[str]:
        """Decide which briefs reached the agent, before its marks on them are read; return their learnings."""
        try:
            reached, unread = decide_deliveries(self._context, deadline=deadline)
        except LearntError as error:
            remarks.append(_format_error(error))
            return []
        remarks += unread
        return reached

    def _count_successes(self, remarks: list[str], reached: Sequence[str]) -> None:
        try:
            count_successes(self._context, reached=reached)
            observe_prevented_errors(self._context)
        except LearntError as error:
            remarks.append(_format_error(error))

    def _ask_for_cues(self, remarks: list[str], deadline: float) -> None:
        """Ask the model for cues, if the settings let the worker do so."""
        try:
            Cues(self._context).ask_by_itself(limit_s=max(0.1, deadline - time.monotonic()))
        except LearntError as error:
            remarks.append(_format_error(error))

    def _make_vectors(self, remarks: list[str], deadline: float) -> None:
        """Make the vectors that learnings lack; what remains is left for the next worker."""
        try:
            Vectors(self._context).build(limit_s=min(_VECTORS_LIMIT_S, deadline - time.monotonic()))
        except LearntError as error:
            remarks.append(_format_error(error))

    def _watch_calls(self, remarks: list[str]) -> None:
        """Let hooks before calls that concern nothing end early."""
        try:
            update_common_names(self._context)
            WatchedCalls(self._context).update()
        except (LearntError, OSError) as error:
            remarks.append(_format_error(error) if isinstance(error, LearntError) else str(error.strerror or error))

    def _note_due(self, remarks: list[str]) -> None:
        """Leave word for the next conversation if consolidation is due."""
        try:
            Consolidation(self._context).note_due()
        except (LearntError, OSError) as error:
            remarks.append(_format_error(error) if isinstance(error, LearntError) else str(error.strerror or error))

    def _refresh_marks(self, remarks: list[str]) -> None:
        """Let briefs show again what CLAUDE.md and the like do not contain any more."""
        try:
            refresh_marks(self._context)
        except LearntError as error:
            remarks.append(_format_error(error))

    def _tidy(self, remarks: list[str], deadline: float) -> None:
        """Do the daily upkeep, which nothing else does where only hooks are used."""
        try:
            if not is_upkeep_due(self._context):
                return
            report = Upkeep(self._context).tidy(limit_s=min(_UPKEEP_LIMIT_S, deadline - time.monotonic()))
            file = LearningsFile(self._context)
            if report.archived and self._context.root and os.path.exists(file.path()):
                file.update(cause="count", limit_s=deadline - time.monotonic())  # so that they leave the file
        except (LearntError, OSError) as error:
            remarks.append(_format_error(error) if isinstance(error, LearntError) else str(error.strerror or error))

    def _read_conversations(self, report: WorkerReport, remarks: list[str], deadline: float) -> WorkerReport:
        """Debrief and mine the transcripts that have grown."""
        model = ModelReader(self._context)
        database = self._store.database
        latest = tasks.conversations(database, since=self._context.clock() - MONTH_MS)
        sources = [
            source for attempt in latest for source in (attempt.transcript, debriefed_source(attempt.transcript))
        ]
        sizes_read = mined.sizes_read(database, sources)
        for attempt in reversed(latest):
            if time.monotonic() > deadline:
                break
            try:
                size = size_or_0(attempt.transcript)
                if size and sizes_read.get(debriefed_source(attempt.transcript)) != size:
                    report = report.replace(conversations=report.conversations + self._debrief(attempt, size))
                if size and sizes_read.get(attempt.transcript) != size and self._may_be_mined(attempt):
                    new = self._mine(attempt, size, model, deadline - time.monotonic())
                    report = report.replace(learnings=(*report.learnings, *new))
            except LearntError as error:
                remarks.append(_format_error(error))
        remarks += model.remarks
        return report

    def _may_be_mined(self, attempt: Attempt) -> bool:
        task = tasks.get(self._store.database, attempt.task)
        is_enabled = self._context.settings.learnings_enabled
        return is_enabled and not task.skip_learnings and not was_asked_recently(self._context, task)

    def _debrief(self, attempt: Attempt, size: int) -> bool:
        """Replace a conversation's debrief with one of the whole transcript; return False if the agent said nothing."""
        header = self._read_header(attempt, size)
        first_prompt, messages = self._read_words(attempt) if header else ("", [])
        if header is None or not messages:
            note_read(self._context, debriefed_source(attempt.transcript), size=size, task=attempt.task)
            return False
        now = self._context.clock()
        task = tasks.get(self._store.database, attempt.task)
        turn = record_turn(
            self._context,
            task.replace(client=task.client or header.client),
            join_messages(messages),
            transcript=attempt.transcript,
            branch=attempt.branch or header.branch,
            result=attempt.result if attempt.result != "incomplete" else _last_result(messages),
            model=header.model,
            ended_at=min(header.ended_at or now, now),
            read={"size": size, "last": messages[-1], "asked": self._context.redact_line(first_prompt)},
        )
        return not store_debrief(self._context, turn).spooled

    def _mine(self, attempt: Attempt, size: int, model: ModelReader, limit_s: float) -> tuple[str, ...]:
        """Mine a conversation; return the new learnings. If the model cannot be reached, it is mined later."""
        header = self._read_header(attempt, size)
        if header is None:
            return ()
        task = tasks.get(self._store.database, attempt.task)
        messages = self._read_words(attempt)[1]
        reading = read_conversation(self._context, task, attempt.transcript, messages, folder=header.folder)
        ask_if_worth(self._context, task, is_unwritten=reading.is_unwritten)
        answered = model.read(reading, limit_s=limit_s)
        if answered is None:
            return ()
        return learn_from_transcript(self._context, answered, attempt.id, attempt.transcript, size).learnings

    def _read_header(self, attempt: Attempt, size: int) -> About | None:
        """Return a transcript's header; a file without a header is not read again until it changes."""
        try:
            return about(attempt.transcript, session_database)
        except TryAgain:
            raise  # the client is writing to the transcript
        except (LearntError, OSError):
            note_read(self._context, attempt.transcript, size=size, task=attempt.task)
            return None

    def _read_words(self, attempt: Attempt) -> tuple[str, list[str]]:
        """Return the first prompt and the agent's messages, including those that are not in the transcript yet."""
        first_prompt, messages = read_words(attempt.transcript)
        material = mined.material_of(self._store.database, attempt.task)
        texts = [part.text for part in material if part.attempt == attempt.id]
        not_in_transcript = [
            text for text in texts if text.strip() and not any(text.strip() in message for message in messages)
        ]
        return first_prompt, [*messages, *not_in_transcript]


@contextmanager
def _hold_worker_lock(folder: str) -> Iterator[bool]:
    """Hold the worker's lock. Yield True if it was acquired, False if another worker is running."""
    for _ in range(_LOCK_TRIES):
        with Locked(os.path.join(folder, background.WORKER_LOCK), wait=False) as acquired:
            if acquired:
                yield True
                return
        time.sleep(_LOCK_PAUSE_S)  # a process that checks whether a worker is running takes the lock for an instant
    yield False


def _last_result(messages: list[str]) -> str | None:
    """Return the last result that a message reports; None if no message reports one."""
    return next((result for text in reversed(messages) if (result := read_sigils(text).result)), None)


def _format_error(error: LearntError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
