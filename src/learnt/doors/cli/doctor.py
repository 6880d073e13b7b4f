"""The command `doctor`, which examines the project. Only this command loads the examination."""

from __future__ import annotations

import os

from learnt.doctor import examine
from learnt.doors.cli.arguments import Arguments
from learnt.doors.output import now_ms, paint, say, show_json
from learnt.loop.prompt import find_problems
from learnt.trust import PROMPTS


def doctor_run(arguments: Arguments) -> int:
    findings = list(
        examine(
            ".", clock=now_ms, check_prompts=lambda store, types: find_problems(os.path.join(store, PROMPTS), types)
        )
    )
    fine = all(finding.fine for finding in findings)
    if arguments.json:
        show_json({"fine": fine, "findings": [finding.as_dict() for finding in findings]})
    for finding in findings if not arguments.json else ():
        mark = paint("ok", "green") if finding.fine else paint("!!", "red")
        say(f"{mark}  {finding.subject}: {finding.detail}")
        if finding.remedy:
            say(f"    {finding.remedy}")
    return 0 if fine else 1
