"""The staging file on the disk: it is read, appended to and replaced, and what somebody writes meanwhile stays.

No link is followed. Text that is not UTF-8 comes back as it was.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from learnt.consolidate.staging import append_entries, render_staged
from learnt.errors import TryAgain, WrongRequest, cannot_write, make_writable
from learnt.flow.context import Context
from learnt.flow.disk import check_not_in_editor
from learnt.model import Learning
from learnt.settings import Settings
from learnt.system.files import Locked, make_folders, read_own, remove_unfinished, replace_shared
from learnt.text.entries import split_entries
from learnt.text.three_way import has_conflict
from learnt.text.titles import key_of

LOCK = "staging.lock"
_TRIES = 5
_MAX_BYTES = 20_000_000


def staging_path(root: str, settings: Settings) -> str:
    """Return the path of the staging file; raise if it leads out of the project."""
    _check_files_differ(settings)
    path = os.path.join(root, settings.consolidate_staging_file)
    if not os.path.realpath(path).startswith(os.path.join(os.path.realpath(root), "")):
        raise WrongRequest(
            f"`consolidate.staging_file`, {settings.consolidate_staging_file}, is outside the project",
            hint="set it to a path in the project",
        )
    return path


def _check_files_differ(settings: Settings) -> None:
    """Raise if two files of consolidation are one, because each is written in its own way."""
    named = [
        ("consolidate.staging_file", settings.consolidate_staging_file),
        ("consolidate.index_file", settings.consolidate_index_file),
        *(("consolidate.topic_files", path) for path in settings.consolidate_topic_files),
    ]
    seen: dict[str, str] = {}
    for name, path in named:
        parts = [part for part in path.replace("\\", "/").casefold().split("/") if part not in ("", ".")]
        other = seen.setdefault("/".join(parts), name)
        if other != name:
            raise WrongRequest(f"`{name}` and {other} are the same file, {path}", hint=f"set `{name}` to another")


def stage(context: Context, taken: Sequence[Learning]) -> tuple[Learning, ...]:
    """Append those of some learnings that are in force and stand in no file yet; return them."""
    path = staging_path(context.root, context.settings)
    context.store.make_folder()
    with Locked(os.path.join(context.store.place.folder, LOCK)):
        for _ in range(_TRIES):
            check_not_in_editor(path)
            before = read_staging(path)
            present = {entry.id or key_of(entry.title) for entry in split_entries(before or "")[1]}
            wanted = [one for one in taken if one.status == "active" and not one.topic_file]
            new = [one for one in wanted if one.id not in present and key_of(one.title) not in present]
            after = append_entries(before or "", map(render_staged, new))
            if not new or _replace(path, before, after):
                return tuple(new)
    raise TryAgain(f"{path} keeps changing", hint="save it, then run the same command again")


def read_staging(path: str) -> str | None:
    """Return the text of the staging file; None if there is none. Raise if a merge has left conflicts in it."""
    try:
        text = read_own(path, max_bytes=_MAX_BYTES).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongRequest(
            f"cannot use {path}: {error.strerror}", hint="put a Markdown file of your own there"
        ) from None
    refuse_conflict(path, text)
    return text


def refuse_conflict(path: str, text: str) -> None:
    """Raise if a file has git's conflict markers: only a person knows what is right."""
    if has_conflict(text):
        hint = "choose what holds and remove the markers, then run the same command again"
        raise WrongRequest(f"{path} has the conflict markers of a merge", hint=hint)


def _replace(path: str, before: str | None, after: str) -> bool:
    """Replace the staging file if its text is still `before`; otherwise leave it alone and return False."""
    content = after.encode("utf-8", "surrogateescape")
    try:
        make_folders(os.path.dirname(path), mode=0o777)
        remove_unfinished(path, locked=True)
        return replace_shared(path, (content,), mode=0o644, is_unchanged=lambda: read_staging(path) == before)
    except OSError as error:
        raise cannot_write(path, error, hint=make_writable(os.path.dirname(path))) from None
