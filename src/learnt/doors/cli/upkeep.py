"""Commands that look after the store: tidy and doctor."""

from __future__ import annotations

import os

from learnt.doctor import examine
from learnt.doors.cli.arguments import add_user, open_memory
from learnt.doors.cli.screen import now_ms, paint, say, show_json
from learnt.loop.prompt import OVERRIDES, flaws

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def tidy_arguments(parser: argparse.ArgumentParser) -> None:
    add_user(parser)


def tidy_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        tidied = memory.tidy()
        titles = memory.titles(tidied.proposed)
    if arguments.json:
        show_json(tidied.as_dict())
        return
    say(f"Lowered confidence: {tidied.decayed}; archived as old and unused: {tidied.archived}")
    if tidied.failures_archived:
        say(f"Archived failure reports of finished tasks: {tidied.failures_archived}")
    for id, title in titles.items():
        say(f"Proposed {id}: {title}")
    if titles:
        say(
            "`learnt show ID` shows what it would replace; `learnt restore ID` accepts, `learnt archive ID` rejects it."
        )


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def doctor_run(arguments: argparse.Namespace) -> int:
    findings = list(
        examine(".", clock=now_ms, prompts=lambda store, types: flaws(os.path.join(store, OVERRIDES), types))
    )
    fine = all(finding.fine for finding in findings)
    if arguments.json:
        show_json({"fine": fine, "findings": [finding.as_dict() for finding in findings]})
        return 0 if fine else 1
    for finding in findings:
        mark = paint("ok", "green") if finding.fine else paint("!!", "red")
        say(f"{mark}  {finding.subject}: {finding.detail}")
        if finding.remedy:
            say(f"    {finding.remedy}")
    return 0 if fine else 1
