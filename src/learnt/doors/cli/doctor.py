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
    subjects: dict[tuple[bool, str, str], list[str]] = {}
    for finding in findings if not arguments.json else ():  # what several clients have in common is said once
        subjects.setdefault((finding.fine, finding.detail, finding.remedy), []).append(finding.subject)
    for (is_fine, detail, remedy), names in subjects.items():
        mark = paint("ok", "green") if is_fine else paint("!!", "red")
        say(f"{mark}  {', '.join(names)}: {detail}")
        if remedy:
            say(f"    {remedy}")
    return 0 if fine else 1
