"""Record a consolidation in the store, and complete or take back one that was interrupted.

What is recorded comes from the journal alone, so that it is the same right after the files were changed and after a
crash. Recording is done once: a run that is in the store is not recorded again.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from typing import Any

from learnt.consolidate.merge import add_up
from learnt.consolidate.merge_entries import merge_entries, merge_index
from learnt.consolidate.plan import DROPPED, MOVED
from learnt.consolidate.questions import PATCH, OpenQuestion
from learnt.consolidate.report import render_report
from learnt.consolidate.stale_entries import REMOVED, REVISED
from learnt.errors import LearntError, NotFound
from learnt.flow.context import Context, journal_note
from learnt.flow.decisions import REPORTS, patch_path, propose
from learnt.flow.documents import is_loaded
from learnt.flow.merging import supersede, undo_event
from learnt.flow.staging_file import LOCK
from learnt.flow.topic_entries import MOVED_BY
from learnt.model import Learning
from learnt.store import consolidations, cues, evidence, learnings
from learnt.store.consolidations import ConsolidationRun
from learnt.store.learnings import Change
from learnt.system.files import Locked, make_folders, replace_file
from learnt.system.journal import Content, Intent, Journal, MergeBack
from learnt.text.entries import split_entries
from learnt.text.records import read_fields
from learnt.text.three_way import merge_files

_BACKUPS = "consolidations"


def make_journal(context: Context) -> Journal:
    """Return the journal of a project's working tree."""
    return Journal(os.path.join(context.store.place.folder, _BACKUPS), journal_note(context), context.root)


def recover(context: Context) -> None:
    """Complete a consolidation that was killed, or take it back; leave it alone if it is still running."""
    if not os.path.lexists(journal_note(context)) or context.store.place.read_only:
        return
    try:
        with Locked(os.path.join(context.store.place.folder, LOCK), wait=False) as acquired:
            if acquired:
                recover_locked(context)
    except (LearntError, OSError) as error:
        reason = error.message if isinstance(error, LearntError) else str(error)
        context.remarks.append(f"a consolidation that was interrupted could not be completed: {reason}")


def recover_locked(context: Context) -> None:
    """Do the same; the caller holds the lock."""
    journal = make_journal(context)
    if not journal.is_pending:
        return
    intent = journal.read_pending()
    if intent is not None:
        gone = [str(entry["entry"]) for entry in intent.detail.get("entries", ()) if _leaves(entry)]
        titles = [str(entry["title"]) for entry in intent.detail.get("entries", ()) if _leaves(entry)]

        def was_replaced(content: bytes) -> bool:
            entries = split_entries(content.decode("utf-8", "surrogateescape"))[1]
            return not any(entry.id in gone or entry.title in titles for entry in entries)

        is_staging = intent.changes[-1].path == context.settings.consolidate_staging_file.replace(os.sep, "/")
        can_tell = is_staging and bool(gone) and "undoes" not in intent.detail
        is_complete = journal.complete(
            intent, was_replaced=was_replaced if can_tell else lambda _: False, merge_back=make_merge_back(context)
        )
        if is_complete:
            record(context, intent)
            context.remarks.append("a consolidation that was interrupted has been completed")
        else:
            context.remarks.append("a consolidation that was interrupted has been taken back: a file was edited since")
    journal.end()


def _leaves(entry: Mapping[str, Any]) -> bool:
    return entry.get("verdict") in (MOVED, DROPPED)


def make_merge_back(context: Context) -> MergeBack:
    """Return the function by which the journal takes our change out of a file that somebody has edited."""

    def merge(path: str, ours: bytes, present: bytes, before: Content) -> Content:
        merged = merge_back(context, path, ours, present, before)
        return present if merged is None else merged

    return merge


def merge_back(context: Context, path: str, ours: bytes, present: bytes, before: Content) -> bytes | None:
    """Return a file that was edited after we wrote it, without what we wrote; None if that cannot be told apart."""
    texts = [content.decode("utf-8", "surrogateescape") for content in (ours, present, before or b"")]
    is_index = path == posixpath.normpath(context.settings.consolidate_index_file.replace(os.sep, "/"))
    merged = merge_files(texts[0], texts[1], texts[2], merge_index if is_index else merge_entries)
    return None if merged.conflicts else merged.text.encode("utf-8", "surrogateescape")


def record(context: Context, intent: Intent) -> str:
    """Record a run whose files were changed, and write its report; return the report's path."""
    if "undoes" in intent.detail:
        _record_undo(context, intent)
        return ""
    database, now = context.store.database, context.clock()
    path = os.path.join(context.store.place.folder, REPORTS, f"{intent.id}.md")
    with context.store.transaction():
        if _is_recorded(context, intent.id):
            return path
        record_written(context, intent)
        record_entries(context, intent)
        asked = [propose(context, OpenQuestion(**question), at=now) for question in intent.detail["questions"]]
        run = ConsolidationRun(
            id=intent.id,
            cause=str(intent.detail["cause"]),
            started_at=now,
            finished_at=now,
            result="done",
            entries=tuple(intent.detail["entries"]),
            report=path,
        )
        consolidations.put(database, run)
    waiting = sum(escalation is None for escalation in asked)
    _write_report(context, path, render_report(intent.id, intent.detail, waiting=waiting))
    for question in intent.detail["questions"]:
        if question["kind"] == PATCH:
            _write_report(context, patch_path(context, OpenQuestion(**question).id), question["passage"])
    return path


def _is_recorded(context: Context, id: str) -> bool:
    try:
        consolidations.get(context.store.database, id)
    except NotFound:
        return False
    return True


def record_written(context: Context, intent: Intent) -> None:
    """Within a transaction: store what people have written in the staging file, new learnings and edits."""
    database, detail, now = context.store.database, intent.detail, context.clock()
    for id, fields in detail["new"].items():
        if not learnings.exists(database, id):
            learning = Learning(**read_fields(fields, allowed=Learning.fields))
            learnings.add(database, learning, Change(what="add", who=context.person, at=now))
    for id, changes in detail["edits"].items():
        _change(context, id, changes, Change(what="edit", who=context.person, at=now))


def record_entries(context: Context, intent: Intent) -> None:
    """Within a transaction: store what became of each entry."""
    change = Change(what=MOVED_BY, who=context.person, at=context.clock(), reason=intent.id)
    for entry in intent.detail["entries"]:
        id, other, verdict = str(entry["entry"]), str(entry["other"]), entry["verdict"]
        target = str(entry["target"])
        if verdict == REMOVED:
            _leave_file(context, id, target, change)
        elif verdict == REVISED and other:
            _leave_file(context, other, target, change)
            _change(context, id, _stand_in(target), change)
        elif verdict == MOVED or (verdict == DROPPED and target and not other):
            _change(context, id, _stand_in(target), change)
        elif verdict == DROPPED and other:
            _let_stand_for(context, other, id, change)


def _leave_file(context: Context, id: str, path: str, change: Change) -> None:
    """Within a transaction: record that a topic file has a learning no more; one in force stands in another one."""
    learning = learnings.find(context.store.database, id)
    if learning is not None and learning.status != "active":
        is_loaded_here = learning.loaded_from == path
        _change(context, id, {"topic_file": "", **({"loaded_from": ""} if is_loaded_here else {})}, change)


def _stand_in(path: str) -> dict[str, str]:
    """Return the changes to a learning that a topic file has: clients that load the file need no brief of it."""
    return {"topic_file": path, **({"loaded_from": path} if is_loaded(path) else {})}


def _change(context: Context, id: str, changes: Mapping[str, Any], change: Change) -> None:
    if learnings.exists(context.store.database, id):
        learnings.change(context.store.database, id, lambda _: dict(changes), change)


def _let_stand_for(context: Context, successor: str, id: str, change: Change) -> None:
    """Within a transaction: let a learning stand for another one, with all that speaks for that one."""
    database = context.store.database
    learning = learnings.find(database, id)
    if learning is None or not learnings.exists(database, successor):
        return
    learnings.change(database, successor, lambda present: add_up((learning,), present), change)
    evidence.copy(database, id, successor, at=change.at)
    supersede(database, id, successor, change)


def _record_undo(context: Context, intent: Intent) -> None:
    """Undo the changes of a run to the learnings, once."""
    database, id = context.store.database, str(intent.detail["undoes"])
    with context.store.transaction():
        run = consolidations.get(database, id)
        if run.undone_at is not None:
            return
        for event in cues.list_changes(database, MOVED_BY, id):
            change = Change(what="undo", who=context.person, at=context.clock(), undoes=event.id)
            try:
                undo_event(database, event, change)
            except LearntError as error:
                context.remarks.append(f"{event.subject}: {error.message}")
        consolidations.put(database, run.replace(undone_at=context.clock()))


def _write_report(context: Context, path: str, text: str) -> None:
    try:
        make_folders(os.path.dirname(path))
        replace_file(path, text.encode("utf-8", "replace"), durable=False)
    except OSError as error:
        context.remarks.append(f"the report could not be written: {error.strerror}")
