"""The part of `learnt import` that takes over the rules in CLAUDE.md, AGENTS.md, .cursor/rules and the like.

A preview shows everything that would be taken over in full, because the person who agrees vouches for it.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from learnt.doors.cli.arguments import Arguments, open_memory, report_redactions
from learnt.doors.cli.terminal import confirm
from learnt.doors.output import format_count, is_terminal, note, paint, say, show_json
from learnt.errors import WrongRequest
from learnt.flow.rules_files import ADDED, KEPT, UNCHANGED, UPDATED, RulesFiles, RulesImport, TakenRule
from learnt.learnings_file.lines import heading_of

RULES = "rules"
_SIGNS = {ADDED: "+", UPDATED: "~", KEPT: "="}
_MAX_EXAMPLES = 3
_EXAMPLE_LENGTH = 60


def is_rules_name(path: str) -> bool:
    """Return whether a file with this name usually has rules."""
    return RulesFiles.recognises(path)


def has_rules(content: bytes, name: str, format: str | None) -> bool:
    """Return whether the content of a file is rules, and not exported learnings."""
    if format is not None:
        return format == RULES
    if content.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return False
    return RulesFiles.recognises(name, content[:1_000_000].decode("utf-8", "replace"))


def suggest_files(folder: str) -> str:
    """Return a hint that names the files with rules in a folder."""
    found = RulesFiles.find(folder)
    return f"here: {', '.join(f'`learnt import {name}`' for name in found)}" if found else "`learnt import --help`"


def import_rules(arguments: Arguments, content: bytes | None) -> None:
    """Show what would be taken over, ask, and take it over; `content` is what came on stdin."""
    if arguments.as_is:
        raise WrongRequest("--as-is is for files that `learnt export` wrote", hint="leave it out: rules claim nothing")
    with open_memory(arguments) as memory:
        rules = memory.transfer.rules
        sources = rules.read(arguments.file) if content is None else rules.read_text(content, "stdin")
        preview = rules.preview(sources)
        if not arguments.json:
            for line in _describe(preview):
                say(line)
        if arguments.dry_run or not preview.changes_something:
            _finish(arguments, preview)
            return
        if not _is_agreed(arguments, preview):
            note("Nothing was imported.")
            return
        imported = rules.import_all(sources)
    report_redactions(memory)
    _finish(arguments, imported)


def _is_agreed(arguments: Arguments, preview: RulesImport) -> bool:
    if arguments.yes:
        return True
    if not is_terminal(sys.stdin):
        raise WrongRequest(
            "an import needs your answer, and nobody can be asked here",
            hint="`--yes` takes over what `--dry-run` shows",
        )
    return confirm(f"Take over {format_count(preview.count(ADDED) + preview.count(UPDATED), 'rule')}?")


def _finish(arguments: Arguments, imported: RulesImport) -> None:
    if arguments.json:
        show_json(_as_record(imported))
    elif imported.id:
        say(f"Imported: {imported.count(ADDED)} added, {imported.count(UPDATED)} updated")
        say(f"`learnt undo {imported.id}` takes it back")
    elif not imported.changes_something:
        say("Nothing new to take over.")


def _describe(preview: RulesImport) -> Iterator[str]:
    """Yield the preview: each rule in full, what is left out and why, and what the import means."""
    shown = [taken for taken in preview.taken if taken.what != UNCHANGED]
    for (file, category), group in groupby(shown, key=lambda taken: (taken.file, taken.rule.category)):
        yield paint(f"{file}: {heading_of(category)}", "bold")
        for taken in group:
            yield from _describe_rule(taken)
    if known := preview.count(UNCHANGED):
        yield f"{format_count(known, 'rule')} known already, or repeated here"
    yield from _describe_left_out(preview)
    for gone in preview.gone:
        yield f"no longer in {gone.file}: {gone.id} {gone.title} (`learnt archive {gone.id}` retires it)"
    if preview.loaded_by and preview.changes_something:
        yield f"Briefs in {' and '.join(preview.loaded_by)} leave these out: the file is loaded there anyway"
    if preview.changes_something:
        yield (
            "You vouch for what you take over."
            if preview.vouched
            else "This is an agent's shell: what is taken over is on trial until a person decides."
        )


def _describe_rule(taken: TakenRule) -> Iterator[str]:
    rule = taken.rule
    remarks = [
        "reworded" if taken.before == rule.title else f"was: {taken.before}" if taken.before else "",
        taken.reason,
        "on trial" if rule.on_trial else "",
        f"on {', '.join(rule.files)}" if rule.files else "",
    ]
    remark = "; ".join(filter(None, remarks))
    avoid = "Avoid: " if rule.polarity == "avoid" else ""
    yield f"  {_SIGNS[taken.what]} {avoid}{rule.title}" + (f"  ({remark})" if remark else "")
    if rule.text.rstrip(" .") != rule.title:
        yield from (paint(f"      {line}", "dim") for line in rule.text.split("\n") if line.strip())


def _describe_left_out(preview: RulesImport) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for _, left_out in preview.left_out:
        by_reason.setdefault(left_out.reason, []).append(left_out.text[:_EXAMPLE_LENGTH])
    if by_reason:
        yield paint(f"Left out: {len(preview.left_out)}", "bold")
    for reason, texts in by_reason.items():
        examples = "; ".join(f"“{text}”" for text in texts[:_MAX_EXAMPLES])
        yield f"  {len(texts)} × {reason}: {examples}{' …' if len(texts) > _MAX_EXAMPLES else ''}"


def _as_record(imported: RulesImport) -> dict[str, Any]:
    return {
        "id": imported.id,
        "files": list(imported.files),
        **{what: imported.count(what) for what in (ADDED, UPDATED, UNCHANGED, KEPT)},
        "learnings": [
            {
                "id": taken.id if imported.id or taken.what != ADDED else "",
                "what": taken.what,
                "title": taken.rule.title,
                "text": taken.rule.text,
                "context": taken.rule.context,
                "category": taken.rule.category,
                "polarity": taken.rule.polarity,
                "on_files": list(taken.rule.files),
                "on_trial": taken.rule.on_trial,
                "file": taken.file,
                "line": taken.rule.line,
                "before": taken.before,
                "reason": taken.reason,
            }
            for taken in imported.taken
        ],
        "left_out": [
            {"text": text.text, "reason": text.reason, "file": file, "line": text.line}
            for file, text in imported.left_out
        ],
        "gone": [gone.as_dict() for gone in imported.gone],
        "loaded_by": list(imported.loaded_by),
        "vouched": imported.vouched,
    }
