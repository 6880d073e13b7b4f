"""Consolidate: make a plan, try it on the briefs of the past, and apply it to the files and the store, or undo it.

The files are changed through a journal, the staging file last. Then one transaction records what became of each entry.
If the process is killed in between, the next command completes the change, or takes it back if a person has edited one
of the files since. Nothing is guessed afterwards from what a file lacks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from learnt.consolidate.ages import AgedEntry
from learnt.consolidate.due import SIZE, DueDecision
from learnt.consolidate.pairs import Overlaps, Pair, StagedEntry
from learnt.consolidate.plan import (
    ASKED,
    CHANGING,
    DROPPED,
    MOVED,
    ConsolidationPlan,
    PlannedEntry,
    StaleEntries,
    WaitingEntry,
    make_plan,
)
from learnt.consolidate.questions import OpenQuestion, Regression, ask_to_shorten, digest_sides
from learnt.consolidate.report import render_report
from learnt.consolidate.staging import remove_entries
from learnt.consolidate.stale_entries import EDITED, REVISED
from learnt.errors import LearntError, TryAgain, WrongRequest, cannot_write, make_writable
from learnt.flow.both_hold import list_both_hold
from learnt.flow.consolidation import AgesReport, Consolidation, digest_entries
from learnt.flow.consolidation_record import (
    make_journal,
    make_merge_back,
    merge_back,
    record,
    record_entries,
    record_written,
    recover,
    recover_locked,
)
from learnt.flow.context import Context
from learnt.flow.decisions import MAX_OPEN, find_answer, find_escalation, list_open, still_waits, withdraw
from learnt.flow.documents import (
    ENCODING,
    Documents,
    list_stored,
    note_places,
    read_documents,
    update_index,
    update_pointers,
)
from learnt.flow.judging import judge_pairs
from learnt.flow.learnings import refuse_agent
from learnt.flow.replay import Replay, ReplayedChange, replay
from learnt.flow.staged import StagedFile, StagedReader
from learnt.flow.staging_file import LOCK, read_staging, staging_path
from learnt.flow.topic_entries import find_stale_entries
from learnt.model import Learning, Value, digest, new_id
from learnt.store import consolidations, learnings
from learnt.store.consolidations import ConsolidationRun
from learnt.system.files import Locked
from learnt.system.journal import Intent, JournaledFile
from learnt.text.entries import find_id
from learnt.text.records import as_record
from learnt.weigh.compare import Verdict

# The causes of a loss are found in one round, as a rule; after so many, everything that is left is withheld.
_MAX_ROUNDS = 5
_RUNS_REMEMBERED = 20


class ConsolidationReport(Value):
    """What a consolidation does, or has done."""

    id: str = ""
    """The id of the run; empty as long as nothing was done."""
    decision: DueDecision
    plan: ConsolidationPlan = ConsolidationPlan()
    replay: Replay = Replay()
    asked: tuple[str, ...] = ()
    """The ids of the escalations that are new."""
    waiting: int = 0
    """How many questions wait until fewer are open."""
    is_applied: bool = False
    path: str = ""
    """The report; empty if none was written."""
    text: str = ""
    """The plan in Markdown."""
    remarks: tuple[str, ...] = ()

    @property
    def changes_something(self) -> bool:
        """Whether there is anything to apply."""
        return bool(self.plan.of(*CHANGING))

    @property
    def needs_consent(self) -> bool:
        """Whether applying it does more than to remember what was judged."""
        return self.changes_something or bool(self.asked)


class _PlanInput(Value):
    """Everything that a plan is made of."""

    ages: AgesReport
    decision: DueDecision
    staged: StagedFile
    documents: Documents
    overlaps: Overlaps
    verdicts: Mapping[Pair, Verdict]
    settled: Mapping[str, WaitingEntry]
    judged: Mapping[str, dict[str, Any]]
    """What was last recorded about each entry that waits, by its id."""
    stale: StaleEntries


class ConsolidationRuns:
    """Consolidations of the staging file of a project."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._path = staging_path(context.root, context.settings)
        self._journal = make_journal(context)

    def plan(self, *, force: bool = False, asks: bool = False) -> tuple[ConsolidationReport, Intent | None]:
        """Return the plan, and what applying it would change; nothing is changed. `asks` lets a model judge, too."""
        recover(self._context)
        if asks:
            withdraw(self._context)
        prepared = self._prepare(force=force, asks=asks)
        plan = self._make_plan(prepared, {})
        while more := self._find_more(prepared, plan):
            prepared = self._take_more(prepared, more, asks=asks)
            plan = self._make_plan(prepared, {})
        plan, intent, replayed = self._spare_briefs(prepared, plan)
        intent = intent.replace(detail={**intent.detail, "replay": replayed.as_dict()})
        open_ids = {escalation.id for escalation in list_open(self._context)}
        new = [question.id for question in self._list_questions(prepared, plan) if self._is_new(question)]
        room = max(0, MAX_OPEN - len(open_ids))
        report = ConsolidationReport(
            decision=prepared.decision,
            plan=plan,
            replay=replayed,
            asked=tuple(new[:room]),
            waiting=len(new[room:]),
            remarks=(*prepared.ages.remarks, *prepared.staged.remarks, *_list_edited(plan)),
            text=render_report("", intent.detail, waiting=len(new[room:])),
        )
        has_effect = report.needs_consent or _has_judged(intent, prepared)
        return report, intent if has_effect else None

    def _spare_briefs(self, prepared: _PlanInput, plan: ConsolidationPlan) -> tuple[ConsolidationPlan, Intent, Replay]:
        """Withhold what briefs of the past would miss, until they miss nothing without a person's consent."""
        withheld: dict[str, Regression] = {}
        intent = self._make_intent(prepared, plan)
        replayed, causes = self._replay(prepared, plan, intent)
        lost = replayed.lost
        for number in range(_MAX_ROUNDS + 1):
            new = {id: regression for id, regression in causes.items() if id not in withheld}
            if not new:
                break
            if number == _MAX_ROUNDS:
                whole = next(iter(new.values()))
                new = {entry.id: whole for entry in plan.of(MOVED, DROPPED) if entry.id not in withheld}
            withheld |= new
            plan = self._make_plan(prepared, withheld)
            intent = self._make_intent(prepared, plan)
            replayed, causes = self._replay(prepared, plan, intent)
        return plan, intent, replayed.replace(lost=lost)

    def apply(self, report: ConsolidationReport, intent: Intent) -> ConsolidationReport:
        """Apply a plan; raise TryAgain if somebody has changed one of the files since, and then change nothing."""
        self._store.make_folder()
        with Locked(os.path.join(self._store.place.folder, LOCK)):
            recover_locked(self._context)
            title = self._find_changed(intent)
            if title:
                raise TryAgain(
                    f"“{title}” was changed meanwhile, so nothing was consolidated", hint="run the same command again"
                )
            if intent.changes:
                changed = self._change_files(intent)
                if changed:
                    self._journal.end()
                    self._record_failure(report, intent)
                    raise TryAgain(
                        f"{changed} was changed meanwhile, so nothing was consolidated",
                        hint="save it, then run the same command again",
                    )
            path = record(self._context, intent)
            if intent.changes:
                self._journal.end()
        self._note_state()
        return report.replace(id=intent.id, is_applied=True, path=path)

    def undo(self) -> ConsolidationRun:
        """Undo the last consolidation: the entries stand in the staging file again; later edits stay."""
        refuse_agent(self._context, "consolidate --undo")
        recover(self._context)
        run, done = self._find_last_run()
        with Locked(os.path.join(self._store.place.folder, LOCK)):
            changes = self._undo_files(done)
            intent = Intent(id=new_id("cons", self._context.clock()), changes=changes, detail={"undoes": run.id})
            changed = self._change_files(intent)
            if changed:
                self._journal.end()
                raise TryAgain(f"{changed} was changed meanwhile, so nothing was undone", hint="run it again")
            record(self._context, intent)
            self._journal.end()
        self._note_state()
        return consolidations.get(self._store.database, run.id)

    def _find_last_run(self) -> tuple[ConsolidationRun, Intent]:
        """Return the last run in this working tree that can be undone, with what it changed."""
        elsewhere = gone = ""
        for run in consolidations.latest(self._store.database, limit=100):
            if not _can_be_undone(run):
                continue
            try:
                done = self._journal.read(run.id)
            except (OSError, ValueError, KeyError, TypeError):
                gone = run.id
                break
            root = str(done.detail.get("root", self._context.root))
            if root == self._context.root:
                return run, done
            elsewhere = elsewhere or root
        if gone:
            raise WrongRequest(f"the backup of {gone} is gone", hint="git has the files from before")
        if elsewhere:
            raise WrongRequest(
                f"the last consolidation changed the files in {elsewhere}", hint=f"undo it there: `cd {elsewhere}`"
            )
        raise WrongRequest("there is no consolidation to undo", hint="`learnt consolidate --dry-run` shows the next")

    def _find_changed(self, intent: Intent) -> str:
        """Return the title of a learning that was changed since the plan was made; empty if there is none."""
        known = intent.detail.get("known", {})
        found = learnings.get_all(self._store.database, sorted(known)) if known else {}
        changed = (id for id, state in known.items() if id not in found or _digest_learning(found[id]) != state)
        id = next(changed, "")
        return found[id].title if id in found else id

    def _change_files(self, intent: Intent) -> str:
        """Change the files; return the path of one that somebody else has changed, and then change nothing."""
        try:
            self._journal.begin(intent)
            return self._journal.apply(intent, merge_back=make_merge_back(self._context))
        except OSError as error:
            folder = os.path.dirname(str(error.filename or self._path))
            what = os.path.relpath(folder, self._context.root)
            raise cannot_write(f"to {what}, so nothing was changed", error, hint=make_writable(folder)) from None

    def _undo_files(self, done: Intent) -> tuple[JournaledFile, ...]:
        """Return the changes of files that take a consolidation out of them; what people wrote since stays."""
        changes = {change.path: self._undo_file(change) for change in reversed(done.changes)}
        written = {change.path: change.after for change in done.changes}
        documents = read_documents(self._context)
        index = changes.get(documents.index_path)
        if index is None or all(change.before == written[path] for path, change in changes.items()):
            return tuple(changes.values())
        left = {path: change.after.decode(*ENCODING) for path, change in changes.items() if change.after is not None}
        topics = [topic for topic in documents.topics if topic.path in left or topic.path not in changes]
        files = {topic.path: left[topic.path] for topic in topics if topic.path in left}
        documents = documents.replace(index=left.get(index.path), topics=tuple(topics))
        repaired = update_index(documents, files, {})
        if repaired is not None:
            changes[index.path] = index.replace(after=repaired.encode(*ENCODING))
        return tuple(changes.values())

    def _undo_file(self, change: JournaledFile) -> JournaledFile:
        """Return the change of a file that takes a consolidation out of it."""
        present = self._journal.read_file(change.path)
        is_deleted = present is None and change.before is None
        if present == change.after or is_deleted:
            return JournaledFile(path=change.path, before=present, after=change.before)
        merged = merge_back(self._context, change.path, change.after or b"", present or b"", change.before)
        if merged is None:
            raise WrongRequest(
                f"{change.path} was edited where the consolidation wrote, so it cannot be undone by itself",
                hint="undo the edit, or take the file from git",
            )
        return JournaledFile(path=change.path, before=present, after=merged)

    def _prepare(self, *, force: bool, asks: bool) -> _PlanInput:
        ages = Consolidation(self._context).ages()
        decision = ages.decision
        if force and not decision.is_due:
            decision = decision.replace(is_due=bool(ages.aged), batch=ages.aged)
        text = read_staging(self._path) or ""
        batch = (*decision.batch, *ages.waiting) if decision.is_due else ()
        staged = StagedReader(self._context, self._path, text).read(ages.entries, batch, aged=ages.aged)
        documents = read_documents(self._context)
        stored = list_stored(self._context, documents)
        by_id = {entry.learning.id: entry.learning for entry in staged.entries}
        stale = find_stale_entries(self._context, documents.topics, stored, by_id)
        in_force = {id: learning for id, learning in stored.items() if not _is_edited(id, stale)}
        prepared = _PlanInput(
            ages=ages,
            decision=decision,
            staged=staged,
            documents=documents,
            overlaps=Overlaps(staged.entries, documents.topics, in_force),
            verdicts={},
            settled={},
            judged=self._list_judged(),
            stale=stale,
        )
        return self._judge_overlaps(prepared, asks=asks)

    def _judge_overlaps(self, prepared: _PlanInput, *, asks: bool) -> _PlanInput:
        """Return the same with the verdicts on the pairs that neither rules nor a person have judged yet."""
        overlaps = prepared.overlaps
        settled = {**self._find_asked(), **self._find_settled(overlaps, prepared.judged)}
        known = prepared.verdicts
        decided = list_both_hold(self._context)
        pairs = [
            (older, newer)
            for older, newer in overlaps.pairs
            if (older.id, newer.id) not in known
            and frozenset((older.id, newer.id)) not in decided
            and not _is_settled((older, newer), overlaps, settled)
        ]
        found = judge_pairs(self._context, pairs, asks=asks) if pairs else []
        verdicts = {(older.id, newer.id): verdict for (older, newer), verdict in zip(pairs, found, strict=True)}
        return prepared.replace(settled=settled, verdicts={**known, **verdicts})

    def _find_more(self, prepared: _PlanInput, plan: ConsolidationPlan) -> list[AgedEntry]:
        """Return further aged entries to take because too many of the batch wait for a person; empty if there are none.

        Only a file that is too long is emptied by a part of its aged entries.
        """
        decision, settings = prepared.decision, self._context.settings
        if not decision.is_due or decision.cause != SIZE:
            return []
        taken = {staged.entry.line for staged in prepared.staged.entries if staged.is_in_batch}
        rest = [aged for aged in prepared.ages.aged if aged.line not in taken]
        going = [planned.staged.entry for planned in plan.of(MOVED, DROPPED)]
        lines_left = prepared.ages.lines - sum(entry.lines for entry in going)
        if lines_left < settings.consolidate_size_lines and len(going) >= settings.consolidate_batch_entries:
            return []
        if not any(planned.waits for planned in plan.entries):
            return []  # the batch is as large as it was to be
        more: list[AgedEntry] = []
        for aged in rest:
            # At least as many again: each of them may turn out to wait as well.
            if lines_left < settings.consolidate_size_lines and len(more) >= len(taken):
                break
            more.append(aged)
            lines_left -= aged.lines
        return more

    def _take_more(self, prepared: _PlanInput, more: list[AgedEntry], *, asks: bool) -> _PlanInput:
        lines = {aged.line for aged in more}
        entries = tuple(
            staged.replace(is_in_batch=True) if staged.entry.line in lines else staged
            for staged in prepared.staged.entries
        )
        overlaps = prepared.overlaps.with_batch(entries)
        staged = prepared.staged.replace(entries=entries)
        return self._judge_overlaps(prepared.replace(staged=staged, overlaps=overlaps), asks=asks)

    def _find_asked(self) -> dict[str, WaitingEntry]:
        """Return the learnings that an open question concerns, with the reason why they wait."""
        return {
            id: WaitingEntry(reason=f"a question about it is open: {escalation.id}", escalation=escalation.id)
            for escalation in list_open(self._context)
            for id in (escalation.subject, str(escalation.detail.get("older", "")))
            if id
        }

    def _find_settled(self, overlaps: Overlaps, judged: Mapping[str, dict[str, Any]]) -> dict[str, WaitingEntry]:
        """Return the entries that wait as before, with the reason: neither they nor their neighbours have changed."""
        settled = {}
        for staged in overlaps.staged:
            entry = judged.get(staged.learning.id)
            if not entry or not staged.is_in_batch or entry["state"] != _describe_state(staged, overlaps):
                continue
            escalation = str(entry.get("escalation", ""))
            if self._still_waits(escalation):
                settled[staged.learning.id] = WaitingEntry(reason=str(entry.get("reason", "")), escalation=escalation)
        return settled

    def _list_judged(self) -> dict[str, dict[str, Any]]:
        runs = consolidations.latest(self._store.database, limit=_RUNS_REMEMBERED)
        return {str(entry.get("entry")): entry for run in reversed(runs) for entry in run.entries if entry.get("state")}

    def _still_waits(self, escalation: str) -> bool:
        found = find_escalation(self._context, escalation) if escalation else None
        return found is not None and still_waits(found)

    def _make_plan(self, prepared: _PlanInput, withheld: Mapping[str, Regression]) -> ConsolidationPlan:
        documents = prepared.documents
        return make_plan(
            prepared.overlaps,
            prepared.verdicts,
            documents.topics,
            calling=documents.calling,
            folder=documents.folder,
            reserved=documents.reserved,
            decided=self._find_answer,
            withheld=withheld,
            settled=prepared.settled,
            stale=prepared.stale,
            limit_lines=self._context.settings.consolidate_topic_lines,
        )

    def _find_answer(self, question: OpenQuestion) -> str:
        answer = find_answer(self._context, question)
        return "" if answer is None else answer or ASKED

    def _is_new(self, question: OpenQuestion) -> bool:
        return find_answer(self._context, question) is None

    def _list_questions(self, prepared: _PlanInput, plan: ConsolidationPlan) -> list[OpenQuestion]:
        asked = [entry.question for entry in plan.entries if entry.question] + list(plan.questions)
        if prepared.decision.needs_person:
            path = self._context.settings.consolidate_staging_file
            runs = consolidations.latest(self._store.database, limit=_RUNS_REMEMBERED)
            last = next((run.id for run in runs if _can_be_undone(run)), "")
            asked.append(ask_to_shorten(path, prepared.decision.reason, last))
        return list({question.id: question for question in asked}.values())

    def _make_intent(self, prepared: _PlanInput, plan: ConsolidationPlan) -> Intent:
        """Return the changes of the files, the staging file last, and what has to be recorded."""
        staged, documents = prepared.staged, prepared.documents
        known = {entry.id: entry.staged.learning for entry in plan.entries}
        texts = {**plan.files, **(update_pointers(documents, plan.files) if plan.files else {})}
        changes = [_change(path, documents.text_of(path), text) for path, text in texts.items()]
        if plan.files:
            # A line of an entry that is written anew still has the title and the words of the old one.
            revised = {id for entry in plan.of(REVISED) for id in (entry.id, entry.other)}
            index = _without_lines(documents.index, revised)
            index = update_index(documents.replace(index=index), plan.files, known) or index
            if index is not None and index != documents.index:
                changes.append(_change(documents.index_path, documents.index, index))
        gone = {entry.staged.entry.line for entry in plan.of(MOVED, DROPPED)}
        if gone:
            path = self._context.settings.consolidate_staging_file.replace(os.sep, "/")
            changes.append(_change(path, staged.text, remove_entries(staged.text, gone)))
        return Intent(
            id=new_id("cons", self._context.clock()),
            changes=tuple(changes),
            detail=self._describe(prepared, plan),
        )

    def _describe(self, prepared: _PlanInput, plan: ConsolidationPlan) -> dict[str, Any]:
        """Return everything that the store has to know about a run, so that it can be recorded after a crash, too."""
        texts = digest_entries(prepared.staged.text)
        concerned = {entry.id for entry in plan.entries}
        going = [staged.learning for staged in prepared.staged.entries if staged.learning.id in concerned]
        stored = learnings.get_all(self._store.database, [one.id for one in going]) if going else {}
        return {
            "cause": prepared.decision.cause or "person",
            "root": self._context.root,
            "entries": [self._describe_entry(prepared, entry, texts) for entry in plan.entries],
            "known": {id: _digest_learning(learning) for id, learning in stored.items()},
            "new": {id: as_record(one) for id, one in prepared.staged.new.items() if id in concerned},
            "edits": {id: dict(changes) for id, changes in prepared.staged.edits.items() if id in concerned},
            "questions": [question.as_dict() for question in self._list_questions(prepared, plan)],
            "refused": [refused.as_dict() for refused in plan.refused],
            "split": list(plan.split),
        }

    def _describe_entry(self, prepared: _PlanInput, entry: PlannedEntry, texts: Mapping[int, str]) -> dict[str, Any]:
        return {
            "entry": entry.id,
            "title": entry.staged.learning.title,
            "verdict": entry.verdict,
            "reason": entry.reason,
            "target": entry.target,
            "other": entry.other,
            "state": _describe_state(entry.staged, prepared.overlaps) if entry.waits else "",
            "text": texts.get(entry.staged.entry.line, "") if entry.waits else "",
            "escalation": entry.waits_for,
        }

    def _replay(
        self, prepared: _PlanInput, plan: ConsolidationPlan, intent: Intent
    ) -> tuple[Replay, dict[str, Regression]]:
        """Return what the plan would do to the briefs of the past."""
        successors = {entry.id: entry.other for entry in plan.of(DROPPED) if entry.other}
        change = ReplayedChange(
            going=tuple(entry.id for entry in plan.of(MOVED, DROPPED)),
            successors={id: _follow(id, successors) for id in successors},
            has_written=bool(intent.detail["new"] or intent.detail["edits"]),
        )
        return replay(
            self._context,
            change,
            take_over=lambda: record_written(self._context, intent),
            make_changes=lambda: record_entries(self._context, intent),
        )

    def _record_failure(self, report: ConsolidationReport, intent: Intent) -> None:
        now = self._context.clock()
        cause = report.decision.cause or "person"
        run = ConsolidationRun(id=intent.id, cause=cause, started_at=now, finished_at=now, result="failed")
        with self._store.transaction():
            consolidations.put(self._store.database, run)

    def _note_state(self) -> None:
        try:
            note_places(self._context, read_documents(self._context))
            Consolidation(self._context).note_due()
        except (LearntError, OSError):
            return  # the worker will do it


def _change(path: str, before: str | None, after: str) -> JournaledFile:
    old = None if before is None else before.encode("utf-8", "surrogateescape")
    return JournaledFile(path=path, before=old, after=after.encode("utf-8", "surrogateescape"))


def _without_lines(index: str | None, ids: Collection[str]) -> str | None:
    """Return an index without the lines of some entries."""
    if index is None or not ids:
        return index
    return "\n".join(line for line in index.split("\n") if find_id(line) not in ids)


def _can_be_undone(run: ConsolidationRun) -> bool:
    return run.result == "done" and run.undone_at is None and any(map(run.count, CHANGING))


def _is_edited(id: str, stale: StaleEntries) -> bool:
    """Return whether somebody has edited an entry in its topic file, so that the file says something of its own."""
    entry = stale.find(id)
    return entry is not None and entry.verdict == EDITED


def _has_judged(intent: Intent, prepared: _PlanInput) -> bool:
    """Return whether an entry was judged that waits for another reason than the one that is recorded."""
    names = ("state", "escalation")
    judged = [entry for entry in intent.detail["entries"] if entry["state"] and entry["entry"] not in prepared.settled]
    recorded = [prepared.judged.get(entry["entry"], {}) for entry in judged]
    return any(
        [entry[name] for name in names] != [before.get(name) for name in names]
        for entry, before in zip(judged, recorded, strict=True)
    )


def _list_edited(plan: ConsolidationPlan) -> list[str]:
    return [
        f"{one.file} still has “{one.learning.title}”, which is {one.learning.status}: somebody has edited it there, "
        "so take it out yourself"
        for one in plan.edited
    ]


def _follow(id: str, successors: Mapping[str, str]) -> str:
    """Return what stands for a learning in the end: its successor may be dropped, too."""
    seen: set[str] = set()
    while id in successors and id not in seen:
        seen.add(id)
        id = successors[id]
    return id


def _digest_learning(learning: Learning) -> str:
    return digest(f"{digest_sides((learning,))} {learning.status} {learning.topic_file}")[:16]


def _is_settled(pair: tuple[Learning, Learning], overlaps: Overlaps, settled: Mapping[str, WaitingEntry]) -> bool:
    """Return whether a pair need not be judged: those of its learnings that are to be consolidated are settled."""
    batch = {staged.learning.id for staged in overlaps.staged if staged.is_in_batch}
    return all(one.id in settled for one in pair if one.id in batch)


def _describe_state(staged: StagedEntry, overlaps: Overlaps) -> str:
    """Return a digest of an entry and of what it is compared with."""
    neighbours = sorted(overlaps.neighbours(staged), key=lambda learning: learning.id)
    states = [f"{digest_sides((one,))} {one.status}" for one in (staged.learning, *neighbours)]
    return digest("\n".join((staged.flaw, *states)))[:16]
