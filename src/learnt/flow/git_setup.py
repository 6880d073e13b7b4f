"""Let git merge the files that learnt writes with `learnt merge-file`, and take that back.

The project's `.gitattributes`, which is committed, says for which files; git's configuration, which is not, says how,
in each clone. Where learnt is missing or fails, the command falls back to git's own merge.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable

from learnt.errors import LearntError, WrongRequest
from learnt.flow.context import GOALS_FOLDER, LEARNINGS_FILE, load_configuration
from learnt.flow.install import FileChange, SetupOutcome
from learnt.model import Value
from learnt.project import STORE_FOLDER, find_project
from learnt.system.git import git
from learnt.system.installation import own_program
from learnt.system.replacements import Replacement, content_of, replace_all

_DRIVER = "learnt"
_REMARK = "# Entry by entry, by `learnt merge-file`: `learnt install --git` sets it up in a clone"
_OWN_LINES = re.compile(
    rf"^{re.escape(_REMARK)}[ \t]*\r?(?:\n|\Z)(?:\S.* merge={_DRIVER}[ \t]*\r?(?:\n|\Z))*", re.MULTILINE
)
_NAMES_DRIVER = re.compile(rf"^\S.*\smerge={_DRIVER}\b", re.MULTILINE)
_NAME = "learnt merges entry by entry"
# 1 means that conflicts are marked in the file; without any mark, the program itself has failed. Above 1, it says so.
_COMMAND = (
    "{program} merge-file %O %A %B %P; s=$?; test $s = 0 && exit; test $s = 1 && grep -q '^<<<<<<< ' %A && exit 1; "
    "git merge-file -L ours -L base -L theirs %A %O %B"
)
_Edit = Callable[[str], str]
_NEXT = "commit .gitattributes; everybody else runs `learnt install --git` once in their clone"


class GitState(Value):
    """How git merges the files of a project."""

    files: bool = False
    """Whether `.gitattributes` names our driver."""
    is_current: bool = False
    """Whether it does so for all files that the settings name."""
    program: str = ""
    """The program that git's configuration starts for it; empty if it starts none."""


class GitSetup:
    """Sets git up in the project that contains a folder."""

    def __init__(self, start: str = ".") -> None:
        here = find_project(start)
        self._root = here.root if here else os.path.abspath(start)
        self._attributes = os.path.join(self._root, ".gitattributes")

    def install(self, *, dry_run: bool = False) -> SetupOutcome:
        """Set the merge driver up."""
        lines = [_REMARK, *self._list_lines()]
        command = _COMMAND.format(program=shlex.join(own_program()).replace("%", "%%"))
        outcome = self._change(lines, {"name": _NAME, "driver": command}, dry_run=dry_run)
        return outcome.replace(wants=(_NEXT,)) if outcome.changes_something() else outcome

    def uninstall(self, *, dry_run: bool = False) -> SetupOutcome:
        """Remove the merge driver."""
        return self._change([], {}, dry_run=dry_run)

    def state(self) -> GitState:
        """Return whether the merge driver is set up."""
        attributes = (content_of(self._attributes, self._root) or b"").decode("utf-8", "surrogateescape")
        if not _NAMES_DRIVER.search(attributes):
            return GitState()
        driver = git(self._root, "config", f"merge.{_DRIVER}.driver", environ=os.environ, check=False)
        is_current = {*self._list_lines()} <= {line.rstrip() for line in attributes.split("\n")}
        return GitState(
            files=True, is_current=is_current, program=next(iter(shlex.split(driver or "")), "").replace("%%", "%")
        )

    def _list_lines(self) -> list[str]:
        """Return the lines of `.gitattributes` for the files that the settings name."""
        settings = load_configuration(self._root).settings
        topics = _make_pattern(f"{settings.consolidate_topics_folder.rstrip('/')}/", "*.md")
        files = settings.consolidate_staging_file, settings.consolidate_index_file
        own = f"/{STORE_FOLDER}/{LEARNINGS_FILE}", f"/{STORE_FOLDER}/{GOALS_FOLDER}/*.md"
        patterns = dict.fromkeys((topics, *map(_make_pattern, files), *own))
        return [f"{pattern} merge={_DRIVER}" for pattern in patterns]

    def _change(self, lines: list[str], entries: dict[str, str], *, dry_run: bool) -> SetupOutcome:
        attributes = _plan(self._attributes, self._root, lambda text: _with_lines(text, lines))
        own = _plan(self._find_configuration(), "", lambda text: self._with_entries(text, entries))
        wanted = [(attributes, self._root), (own, "")]
        if not dry_run:
            replace_all(
                [
                    Replacement(path=change.path, before=change.before, after=change.after, closed=closed)
                    for change, closed in wanted
                    if change.kind != "unchanged"
                ]
            )
        changes = tuple(change.replace(done=not dry_run) for change, _ in wanted)
        return SetupOutcome(client="git", user=False, changes=changes)

    def _find_configuration(self) -> str:
        try:
            folder = git(self._root, "rev-parse", "--git-common-dir", environ=os.environ) or ""
        except LearntError as error:
            message = f"git cannot be set up in {self._root}: {error.message}"
            raise WrongRequest(message, hint="go to a git repository, or make one with `git init`") from None
        return os.path.join(os.path.realpath(os.path.join(self._root, folder)), "config")

    def _with_entries(self, text: str, entries: dict[str, str]) -> str:
        """Return git's configuration with exactly these entries for our driver."""
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "config")
            with open(copy, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(text)
            change = ("config", "--file", copy)
            listed = git(self._root, *change, "--get-regexp", rf"^merge\.{_DRIVER}\.", environ=os.environ, check=False)
            known = dict(line.split(" ", 1) for line in (listed or "").splitlines())
            if known == {f"merge.{_DRIVER}.{name}": value for name, value in entries.items()}:
                return text
            if known:
                git(self._root, *change, "--remove-section", f"merge.{_DRIVER}", environ=os.environ)
            for name, value in entries.items():
                git(self._root, *change, f"merge.{_DRIVER}.{name}", value, environ=os.environ)
            with open(copy, encoding="utf-8", errors="surrogateescape", newline="") as file:
                return file.read()


def _plan(path: str, closed: str, edit: _Edit) -> FileChange:
    """Return the change of a file; an empty one is removed. No link is followed below the folder `closed`."""
    before = content_of(path, closed)
    after = edit((before or b"").decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return FileChange(path=path, before=before, after=after if after or before == b"" else None)


def _with_lines(text: str, lines: list[str]) -> str:
    """Return the attributes with these lines, and without others of our own."""
    rest = _OWN_LINES.sub("", text)
    end = "\r\n" if "\r\n" in text else "\n"
    if lines and "".join(line + end for line in lines) == "".join(_OWN_LINES.findall(text)):
        return text
    gap = "" if not rest or rest.endswith("\n") or not lines else end
    return rest + gap + "".join(line + end for line in lines)


def _make_pattern(path: str, names: str = "") -> str:
    """Return the pattern of `.gitattributes` that fits a path alone or, in a folder, files with such names."""
    pattern = "/" + re.sub(r"([\\*?\[])", r"\\\1", path.replace(os.sep, "/").removeprefix("./")) + names
    if not re.search(r'[\s"]', pattern):
        return pattern
    quoted = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
