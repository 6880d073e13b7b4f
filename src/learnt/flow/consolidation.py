"""How old the entries of the staging file are, and whether their consolidation is due.

The ages come from git, which a hook must not start. So the worker decides whether consolidation is due and leaves a
line beside the store; at the start of a conversation the hook only reads it. Each worktree has a staging file, and so a
line, of its own.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from learnt.consolidate.ages import (
    AgedEntry,
    day_of,
    find_ages,
    read_blame,
    read_log,
    since_consolidation,
)
from learnt.consolidate.due import DueDecision, Thresholds, decide, find_aged
from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.flow.context import Context, due_note, load_configuration
from learnt.flow.decisions import still_waits
from learnt.flow.staging_file import staging_path
from learnt.model import Value, digest
from learnt.project import find_project, head_commit
from learnt.settings import Settings
from learnt.store import consolidations, reviews
from learnt.system.files import make_folders, read_own, read_regular, remove_file, replace_file
from learnt.system.git_history import FileHistory, read_history
from learnt.text.entries import split_entries

_MAX_BYTES = 20_000_000
_MAX_NOTE_BYTES = 10_000
_RUNS_REMEMBERED = 20
# If git took longer than this, the worker asks again only after so many times as long, because each commit is a reason.
_LONG_MS, _SHARE = 1_000, 100
_SHALLOW = "older commits are missing in this clone, so ages may be too low; `git fetch --unshallow` brings them"


class AgesReport(Value):
    """The entries of a file with their ages, and whether their consolidation is due."""

    path: str
    lines: int = 0
    entries: tuple[AgedEntry, ...] = ()
    """In the order of the file."""
    aged: tuple[AgedEntry, ...] = ()
    """The entries that are old enough to be consolidated, oldest first."""
    waiting: tuple[AgedEntry, ...] = ()
    """Those of them that cannot be consolidated before a person has answered a question."""
    last_consolidation: str = ""
    """The day of the last consolidation; empty if there was none."""
    since_consolidation: int = 0
    """The active days since then or, if there was none, since the oldest entry was written."""
    decision: DueDecision
    remarks: tuple[str, ...] = ()
    """What git could not tell."""


class StoredAges(Value):
    """The learnings that are only in the store, with their ages, oldest first."""

    entries: tuple[AgedEntry, ...] = ()
    remarks: tuple[str, ...] = ()
    """What git could not tell."""


class Consolidation:
    """Consolidation of the staging file of a project."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def ages(self, path: str | os.PathLike[str] | None = None) -> AgesReport:
        """Return the ages of the entries of a file, by default of the staging file, and whether it is due."""
        last = consolidations.last_finished_at(self._context.store.database)
        waiting = find_waiting(self._context) if path is None else frozenset()
        return _make_report(path, self._context.root, self._context.settings, last_finished_at=last, waiting=waiting)

    @staticmethod
    def ages_without_store(start: str, path: str | os.PathLike[str] | None = None) -> AgesReport:
        """Return the same where there is no store, in which consolidations would be recorded."""
        here = find_project(start)
        return _make_report(path, here.root if here else start, load_configuration(start).settings)

    def ages_in_store(self) -> StoredAges:
        """Return the ages of the active learnings that stand neither in the staging file nor in a topic file.

        They count from the (UTC) day on which the learning was added.
        """
        history = read_history(os.path.join(self._context.root, ""), environ=os.environ)
        days = read_log(history.log)
        content = _read_staging(staging_path(self._context.root, self._context.settings))
        staged = {entry.id for entry in split_entries(content.decode("utf-8", "replace"))[1]}
        entries = [
            AgedEntry(title=title, id=id, day=day_of(created_at), active_days=days.since(day_of(created_at)))
            for id, title, created_at in consolidations.list_unconsolidated(self._context.store.database)
            if id not in staged
        ]
        return StoredAges(entries=tuple(entries), remarks=_list_remarks(history, has_entries=bool(entries)))

    def note_due(self) -> None:
        """Leave the line for the next conversation, or remove it; nothing is done if nothing has changed."""
        note = due_note(self._context)
        if not self._context.root or not os.path.lexists(staging_path(self._context.root, self._context.settings)):
            if os.path.lexists(note):
                remove_file(note)
            return
        before, state = _read_note(note), self._describe_state()
        if state == before.get("state") and not self._should_ask_again(before):
            return
        began = time.monotonic()
        line = _announce(self.ages())
        took_ms = round((time.monotonic() - began) * 1000)
        commit, now = head_commit(self._context.root), self._context.clock()
        content = {"state": state, "commit": commit, "line": line, "at": now, "took_ms": took_ms}
        make_folders(os.path.dirname(note))
        replace_file(note, json.dumps(content).encode(), durable=False)

    def _describe_state(self) -> str:
        """Return what changes whenever the decision can change, except for the commit."""
        settings = self._context.settings
        file = os.stat(staging_path(self._context.root, settings))
        last = consolidations.last_finished_at(self._context.store.database)
        return digest(repr((file.st_size, file.st_mtime_ns, last, thresholds_of(settings))))

    def _should_ask_again(self, before: Mapping[str, Any]) -> bool:
        """Return whether there is another commit; with a history that takes git long, wait before asking again."""
        commit = head_commit(self._context.root)
        if commit and commit == before.get("commit"):
            return False
        took_ms, since_ms = int(before.get("took_ms", 0)), self._context.clock() - int(before.get("at", 0))
        return took_ms < _LONG_MS or not 0 <= since_ms < took_ms * _SHARE


def thresholds_of(settings: Settings) -> Thresholds:
    """Return the thresholds of the settings."""
    return Thresholds(
        size_lines=settings.consolidate_size_lines,
        staleness_days=settings.consolidate_staleness_days,
        freshness_days=settings.consolidate_freshness_days,
        batch_entries=settings.consolidate_batch_entries,
    )


def find_waiting(context: Context) -> frozenset[str]:
    """Return the digests of the texts of entries that wait for a person, as the latest runs have recorded them.

    An entry waits as long as its question is open, or if nobody answered it in time.
    """
    runs = consolidations.latest(context.store.database, limit=_RUNS_REMEMBERED)
    asked = {
        str(entry["text"]): str(entry.get("escalation", ""))
        for run in reversed(runs)
        for entry in run.entries
        if entry.get("text")
    }
    escalations = reviews.escalations(context.store.database, status=None) if asked else []
    open_ids = {one.id for one in escalations if one.is_about_consolidation and still_waits(one)}
    return frozenset(text for text, id in asked.items() if id in open_ids)


def digest_entries(text: str) -> dict[int, str]:
    """Return a digest of what each entry says, by the number of its first line."""
    return {entry.line: digest(entry.text.strip())[:16] for entry in split_entries(text)[1]}


def _make_report(
    path: str | os.PathLike[str] | None,
    root: str,
    settings: Settings,
    *,
    last_finished_at: int | None = None,
    waiting: Collection[str] = (),
) -> AgesReport:
    thresholds = thresholds_of(settings)
    if path is None:
        path = staging_path(root, settings)
        content = _read_staging(path)
    else:
        path = os.path.abspath(path)
        content = _read_file(path)
    history = read_history(path, environ=os.environ)
    days = read_log(history.log)
    text = content.decode("utf-8", "replace")
    entries = find_ages(text, read_blame(history.blame), days)
    aged = find_aged(entries, thresholds)
    digests = digest_entries(text) if waiting else {}
    stays = [entry for entry in aged if digests.get(entry.line) in waiting]
    last_day = "" if last_finished_at is None else day_of(last_finished_at)
    lines, since = content.count(b"\n"), since_consolidation(entries, last_day, days)
    return AgesReport(
        path=path,
        lines=lines,
        entries=tuple(entries),
        aged=tuple(aged),
        waiting=tuple(stays),
        last_consolidation=last_day,
        since_consolidation=since,
        decision=decide(
            [entry for entry in entries if entry not in stays],
            file_lines=lines,
            since_consolidation=since,
            thresholds=thresholds,
        ),
        remarks=(*_list_remarks(history, has_entries=bool(entries)), *_describe_waiting(stays)),
    )


def _list_remarks(history: FileHistory, *, has_entries: bool) -> tuple[str, ...]:
    """Return what git could not tell."""
    gap = [f"{history.gap}: all entries count as new"] if history.gap and has_entries else []
    return (*gap, *([_SHALLOW] if history.is_shallow else []))


def _describe_waiting(waiting: Sequence[AgedEntry]) -> list[str]:
    if not waiting:
        return []
    count = "1 entry waits" if len(waiting) == 1 else f"{len(waiting)} entries wait"
    return [f"{count} for a person's answer: `learnt escalations --all`"]


def _read_staging(path: str) -> bytes:
    """Return the content of the staging file; it is empty as long as there is no file."""
    return _read_file(path) if os.path.lexists(path) else b""


def _read_file(path: str) -> bytes:
    try:
        return read_regular(path, max_bytes=_MAX_BYTES)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", hint="name a Markdown file with `## ` entries") from None
    except ValueError as error:
        raise WrongRequest(f"cannot read {path}: {error}", hint="name a Markdown file with `## ` entries") from None
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="check the file's permissions") from None


def _read_note(path: str) -> dict[str, Any]:
    try:
        note = json.loads(read_own(path, max_bytes=_MAX_NOTE_BYTES))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _announce(report: AgesReport) -> str:
    """Return the line for the start of a conversation, which has little room; empty if nothing is due."""
    if report.decision.is_due:
        return f"Consolidation is due: {len(report.aged)} aged entries, {report.lines} lines (`learnt consolidate`)."
    if report.decision.needs_person:
        return "The staging file is too long, and too few entries are old enough (`learnt ages`)."
    return ""
