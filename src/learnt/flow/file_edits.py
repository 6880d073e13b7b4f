"""Edits to the learnings files by people or an agent.

A file is compared with its last rendering. Additions, changes, moves and removals by a person are applied to the
learnings in one transaction, and the person vouches for what he wrote. Additions by an agent are on trial; its other
edits are reverted. Lines that somebody else committed are on trial, too, and change nothing that a person vouches for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from learnt.errors import WrongRequest
from learnt.flow import disk
from learnt.flow.context import GOAL_FILES, Context
from learnt.flow.learnings import new_learning, to_status
from learnt.learnings_file.lines import (
    bullet_key,
    category_of,
    changes_meaning,
    edit_fields,
    fields_of,
    fields_of_rendering,
    line_of,
    split_line,
    statement_of,
)
from learnt.learnings_file.merge import Edits, merge
from learnt.learnings_file.read import Bullet, LooseText, ParsedFile, bullets_by_line, parse, split_lines
from learnt.learnings_file.write import Rendering
from learnt.model import AVOID, TEXT_LIMIT, Learning, Value
from learnt.store import learnings, regenerations
from learnt.store.database import Database
from learnt.store.regenerations import Regeneration
from learnt.system.git_lines import LineOwners, find_owners
from learnt.text.redact import redact
from learnt.weigh.confidence import PERSON, after_agents_edit, is_persons, vouch_by_person


class FileEdit(Value):
    """An edit to a file that was applied to the learnings: a bullet was `added`, `changed`, `moved` or `hidden`."""

    what: str
    id: str
    text: str


class FileOnDisk:
    """A learnings file as read from the disk, its last rendering, and the edits in it."""

    def __init__(self, goal: str, path: str, content: bytes | None) -> None:
        self.goal = goal
        self.path = path
        self.content = content
        """The file's bytes; None if there was no file."""
        self.text = (content or b"").decode("utf-8")
        # Stored text contains no secrets, so the file's secrets are redacted before the two are compared.
        self.safe, self.redactions = redact(self.text)
        self.parsed: ParsedFile = parse(self.safe)
        self.base: Rendering | None = None
        """The file's last recorded rendering."""
        self._owners: LineOwners | None = None
        self.edits = Edits()
        self.taken: list[FileEdit] = []

    def owners(self, root: str) -> LineOwners:
        """Return whose the lines of the file are."""
        if self._owners is None:
            self._owners = find_owners(root, self.path, os.environ)
        return self._owners

    def is_own(self, root: str, *, text: str, id: str = "") -> bool:
        """Return whether the user wrote a bullet: every bullet with this text and, if it is known, this id."""
        owners = self.owners(root)
        return all(
            owners.are_own(numbers)
            for numbers, bullet in bullets_by_line(split_lines(self.safe))
            if bullet.text == text and (not id or bullet.id in ("", id))
        )

    def is_as_written(self, database: Database) -> bool:
        """Return whether the file is unchanged since an update wrote it."""
        regeneration = _find_regeneration(database, self)
        return regeneration is not None and regeneration.text == self.text


def read_files(context: Context) -> list[FileOnDisk]:
    """Read the learnings files that exist; the project's own file is always included."""
    files = []
    for goal in ("", *disk.goals(context.root)):
        path = disk.path_of(context.root, goal)
        file = FileOnDisk(goal, path, disk.read(path))
        if file.parsed.conflict:
            raise WrongRequest(
                f"{path} contains merge conflict markers",
                hint="resolve the conflict and keep one of the two last lines",
            )
        disk.check_not_in_editor(path)
        files.append(file)
    return files


def has_goal_files(context: Context) -> bool:
    """Return whether goals' files are written; existing files are always read."""
    return context.settings.learnings_injection_strategy in GOAL_FILES


def apply_edits(context: Context, files: Sequence[FileOnDisk], *, agent: str = "") -> list[str]:
    """Within a transaction: apply the edits in the files to the learnings; return remarks for people."""
    database = context.store.database
    remarks: list[str] = []
    goals = {bullet.id: file.goal for file in files for bullet in file.parsed.bullets if bullet.id}
    for file in files:
        regeneration = _find_regeneration(database, file)
        file.base = _rendering_of(regeneration) if regeneration else None
        ids = {bullet.id for bullet in (*file.parsed.bullets, *(file.base.bullets if file.base else ()))}
        file.edits = merge(
            file.parsed,
            file.base,
            store=learnings.get_all(database, sorted(ids - {""})),
            known_text=partial(regenerations.was_shown, database),
            find=partial(_find_by_line, database),
        )
        context.redactions += file.redactions
        _add_bullets(context, file, agent=agent)
        if not agent:
            _apply_edits(context, file, goals)
        remarks += file.edits.remarks
        if agent and (file.edits.changed or file.edits.moved or file.edits.removed):
            remarks.append(f"an agent's changes and removals in {file.path} were reverted")
    return remarks


def _add_bullets(context: Context, file: FileOnDisk, *, agent: str) -> None:
    now = context.clock()
    change = context.change("add", at=now, reason=os.path.basename(file.path))
    for section, text, id in file.edits.added:
        fields = fields_of_rendering(text) if id else fields_of(text)
        record = {**fields, "category": category_of(section), "goal": file.goal}
        is_own = not agent and not id and file.is_own(context.root, text=text)
        record |= {"origin": "agent"} if agent else {} if is_own else {"origin": "import"}
        by = PERSON if is_own else "agent" if agent else "import"
        learning = new_learning(context, record, created_at=now, by=by)
        learning = learning.replace(id=id) if id else learning
        learnings.add(context.store.database, learning, change)
        file.taken.append(FileEdit(what="added", id=learning.id, text=text))


def _apply_edits(context: Context, file: FileOnDisk, goals: dict[str, str]) -> None:
    """Apply a person's edits to the bullets in a file; `goals` maps each learning to the goal of its current file."""
    now, database, name = context.clock(), context.store.database, os.path.basename(file.path)
    changed = {id: file.is_own(context.root, text=text, id=id) for id, text in file.edits.changed}
    seen = {bullet.id: bullet.text for bullet in (file.base.bullets if file.base else ())}
    edits = [
        ("changed", id, _reword(context.redact_line(text, TEXT_LIMIT), seen.get(id), is_own=changed[id]))
        for id, text in file.edits.changed
    ]
    is_own = (
        not (file.edits.moved or file.edits.removed or file.edits.accepted)
        or file.owners(context.root).last_change_is_own
    )
    edits += [("moved", id, _set(category=category)) for id, category in file.edits.moved]
    if is_own:
        edits += [("moved", id, vouch_by_person) for id in file.edits.accepted]
    # A file that is no longer written keeps its old rendering, so a bullet missing from it may not be a removal.
    if not file.goal or has_goal_files(context):
        edits += [("moved", id, _set(goal=goals[id])) for id in file.edits.removed if id in goals]
        edits += [("hidden", id, to_status("hidden")) for id in file.edits.removed if id not in goals]
    foreign: list[str] = []
    for what, id, decide in edits:
        base = file.base.id if file.base else ""
        verb, reason = ("hide", f"removed from {name} ({base})") if what == "hidden" else ("edit", name)
        if what == "hidden" and any(event.reason == reason for event in learnings.history(database, id)):
            continue  # this removal was applied before, and the learning has been restored since
        if not changed.get(id, is_own) and is_persons(learnings.get(database, id)):
            foreign.append(id)
            continue
        before, after = learnings.change(database, id, decide, context.change(verb, at=now, reason=reason))
        if after.version != before.version:
            file.taken.append(FileEdit(what=what, id=id, text=line_of(after)))
    if foreign:
        remark = f"somebody else's commit changed {', '.join(foreign)} in {name}, which a person vouches for"
        context.remarks.append(f"{remark}; nothing was changed: `learnt edit` does it")


def _set(**fields: str) -> Callable[[Learning], dict[str, Any]]:
    return lambda _: fields


def _reword(text: str, seen: str | None, *, is_own: bool) -> Callable[[Learning], dict[str, Any]]:
    """Return the change that gives a learning the text of a bullet; advice for the old text is removed.

    The user vouches for the text if the line is the user's own; otherwise it has to prove itself again.
    """

    def decide(learning: Learning) -> dict[str, Any]:
        changes: dict[str, Any] = dict(edit_fields(learning, text, seen=seen))
        if changes and changes_meaning(statement_of(learning), split_line(text)[0]):
            changes = {"implication": "", "action": "", **changes}
        if not changes:
            return {}
        if is_own:
            return vouch_by_person(learning, changes)
        changes.pop("origin", None)
        return after_agents_edit(learning, changes)

    return decide


def _find_regeneration(database: Database, file: FileOnDisk) -> Regeneration | None:
    """Return a file's last recorded regeneration."""
    return regenerations.find(database, file.parsed.rendering) if file.parsed.rendering else None


def _rendering_of(regeneration: Regeneration) -> Rendering:
    """Return the rendering of a recorded regeneration."""
    return Rendering(
        id=regeneration.id,
        goal=regeneration.goal,
        bullets=tuple(Bullet(id=id, text=text, section=section) for id, text, section in regeneration.bullets),
        loose=tuple(LooseText(section=section, text=text, below=below) for section, text, below in regeneration.loose),
        text=regeneration.text,
    )


def _find_by_line(database: Database, text: str) -> Learning | None:
    """Return a learning that a file would show as this line, preferably an active learning."""
    lines = dict.fromkeys((text, split_line(text)[0]))
    titles = dict.fromkeys(
        fields_of(start)["title"] for line in lines for start in (line, line.removeprefix(AVOID)) if start.strip()
    )
    candidates = [learning for title in titles for learning in learnings.find_by_title(database, title)]
    matches = [
        learning
        for learning in candidates
        if bullet_key(text) in map(bullet_key, (line_of(learning), statement_of(learning)))
        or regenerations.was_shown(database, learning.id, text)
    ]
    return min(matches, key=lambda learning: learning.status != "active", default=None)
