"""The command that checks the stores and says what to do."""

from __future__ import annotations

import os

from learnt.doors.cli.screen import paint, say, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments of its own."""


def doctor_run(arguments: argparse.Namespace) -> int:
    from learnt.doctor import examine
    from learnt.flow.context import now_ms
    from learnt.loop.prompt import OVERRIDES, flaws

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
