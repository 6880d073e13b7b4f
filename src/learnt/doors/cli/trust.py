"""Commands about trust in a project that came from others: trust, untrust."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from learnt.doors.cli.arguments import Arguments, Parser
from learnt.doors.cli.terminal import confirm
from learnt.doors.output import format_count, is_terminal, note, say, show_json
from learnt.errors import LearntError, WrongRequest
from learnt.flow.project_trust import ProjectTrust, TrustPreview
from learnt.loop import runs
from learnt.text.clean import fold


def trust_arguments(parser: Parser) -> None:
    parser.add_argument("--all", metavar="DIR", help="trust all projects below a folder")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def trust_run(arguments: Arguments) -> None:
    projects = list(ProjectTrust.below(arguments.all)) if arguments.all else [ProjectTrust.of_folder(".")]
    failures = _Failures(goes_on=bool(arguments.all))
    previews = []
    for project in projects:
        with failures.collect(project):
            previews.append((project, project.preview()))
    open_ones = [(project, preview) for project, preview in previews if not preview.trusted]
    if not arguments.json:
        for _, preview in previews:
            _show(preview)
    if open_ones and not arguments.yes:
        if not is_terminal(sys.stdin):
            raise WrongRequest("trust needs your answer", hint="run it on a terminal, or pass --yes")
        if not confirm(f"Trust {'these projects' if len(open_ones) > 1 else 'this project'}?"):
            note("Nothing was trusted.")
            return
    for project, preview in open_ones:
        with failures.collect(project):
            project.grant(preview)
            if not arguments.json:
                say(f"Trusted {preview.project.root}; `learnt untrust` takes it back")
    if arguments.json:
        show_json([_record(project.preview()) for project, _ in previews])
    failures.report()


class _Failures:
    """The projects that cannot be trusted; with `goes_on`, they do not keep the others from being trusted."""

    def __init__(self, *, goes_on: bool) -> None:
        self._goes_on = goes_on
        self._roots: list[str] = []

    @contextmanager
    def collect(self, project: ProjectTrust) -> Iterator[None]:
        """Note an error about a project instead of raising it."""
        try:
            yield
        except LearntError as error:
            if not self._goes_on:
                raise
            note(f"{project.root}: {fold(error.message)}")
            self._roots.append(project.root)

    def report(self) -> None:
        """Raise if there were errors."""
        if self._roots:
            raise WrongRequest(
                f"not trusted: {', '.join(map(fold, self._roots))}", hint="mend what is listed for it, then try again"
            )


def untrust_run(arguments: Arguments) -> None:
    project = ProjectTrust.of_folder(".")
    project.refuse_agent("untrust")
    try:
        # First, because a run needs the store to release its tasks; of a stranger's store, no process id is believed.
        stopped = runs.stop_all(project.folder) if project.is_trusted() else []
    finally:
        revoked = project.revoke()
    if stopped:
        note(f"Stopped {format_count(len(stopped), 'run')}.")
    if arguments.json:
        show_json({"id": project.root, "revoked": revoked})
    elif project.is_trusted():
        say("The project stays trusted: it is below a folder in your setting `trusted`")
    else:
        say("The project is not trusted any more: nothing of it takes effect" if revoked else "It was not trusted")


def _show(preview: TrustPreview) -> None:
    changed = "not everything is accepted" if preview.store_trusted else "not trusted"
    say(f"{preview.project.root}: {'trusted' if preview.trusted else changed}")
    if preview.is_empty:
        say("  nothing that needs trust")
    for key, value in preview.settings:
        say(f"  learnt.toml sets {fold(key)} = {fold(value)}")
    if preview.learnings:
        say(f"  {preview.learnings:,} learning{'s' * (preview.learnings != 1)} in {preview.project.folder}, for agents")
    for title in preview.pinned:
        say(f"    pinned: {fold(title)}")
    if preview.tasks:
        say(f"  {preview.tasks:,} task{'s' * (preview.tasks != 1)}, for `learnt work`")
    for command in preview.checks:
        say(f"    checked with: {fold(command)}")
    if preview.missteps:
        say(f"  {preview.missteps:,} failed command{'s' * (preview.missteps != 1)}, of which agents are warned")
    if preview.pending:
        say(f"  {preview.pending:,} pending record{'s' * (preview.pending != 1)}, to be applied")
    for name in preview.prompts:
        say(f"  prompt: {fold(name)}")
    for remark in (*preview.remarks, *preview.problems):
        say(f"  {fold(remark)}")


def _record(preview: TrustPreview) -> dict[str, object]:
    return {
        "id": preview.project.root,
        "trusted": preview.trusted,
        "settings": dict(preview.settings),
        "learnings": preview.learnings,
        "pinned": list(preview.pinned),
        "tasks": preview.tasks,
        "checks": list(preview.checks),
        "missteps": preview.missteps,
        "pending": preview.pending,
        "prompts": list(preview.prompts),
        "problems": list(preview.problems),
        "remarks": list(preview.remarks),
    }
