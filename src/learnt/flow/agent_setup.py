"""Lay out the agents and the skill for consolidation in a project, for clients that know such files, and remove them.

A file that does not bear our mark is somebody else's: it is neither overwritten nor removed.
"""

from __future__ import annotations

import os

from learnt.consolidate.agents import MARK, AgentRules, render_files
from learnt.errors import WrongRequest
from learnt.flow.consolidation import thresholds_of
from learnt.flow.context import load_configuration
from learnt.flow.install import FileChange, SetupOutcome
from learnt.project import find_project
from learnt.settings import Settings
from learnt.system.replacements import Replacement, content_of, remove_folder_if_empty, replace_all

_FOLDER = ".claude"


class AgentSetup:
    """Sets agents up in the project that contains a folder."""

    def __init__(self, start: str = ".") -> None:
        here = find_project(start)
        self._root = here.root if here else os.path.abspath(start)

    def install(self, *, dry_run: bool = False) -> SetupOutcome:
        """Write the files."""
        settings = load_configuration(self._root).settings
        return self._change(dict(render_files(_read_rules(settings))), dry_run=dry_run)

    def uninstall(self, *, dry_run: bool = False) -> SetupOutcome:
        """Remove the files."""
        settings = load_configuration(self._root).settings
        return self._change(dict.fromkeys(render_files(_read_rules(settings))), dry_run=dry_run)

    def _change(self, files: dict[str, str | None], *, dry_run: bool) -> SetupOutcome:
        changes = [self._plan(name, text) for name, text in files.items()]
        if not dry_run:
            replace_all(
                [
                    Replacement(path=change.path, before=change.before, after=change.after, closed=self._root)
                    for change in changes
                    if change.kind != "unchanged"
                ]
            )
            for change in changes:
                folder = os.path.dirname(change.path)
                while change.after is None and folder != self._root:
                    remove_folder_if_empty(folder)
                    folder = os.path.dirname(folder)
        return SetupOutcome(
            client="agents", user=False, changes=tuple(change.replace(done=not dry_run) for change in changes)
        )

    def _plan(self, name: str, text: str | None) -> FileChange:
        path = os.path.join(self._root, _FOLDER, *name.split("/"))
        before = content_of(path, self._root)
        after = None if text is None else text.encode()
        if before is not None and MARK.encode() not in before:
            if text is None:
                return FileChange(path=path, before=before, after=before)
            raise WrongRequest(f"{path} is somebody else's file", hint="rename it, then install again")
        return FileChange(path=path, before=before, after=after)


def _read_rules(settings: Settings) -> AgentRules:
    return AgentRules(
        thresholds=thresholds_of(settings),
        staging_file=settings.consolidate_staging_file,
        index_file=settings.consolidate_index_file,
        topics_folder=settings.consolidate_topics_folder,
        topic_lines=settings.consolidate_topic_lines,
    )
