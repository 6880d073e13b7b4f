"""The report on a consolidation, in Markdown: what was moved, dropped, escalated and refused, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learnt.consolidate.plan import OF_STAGED, VERDICTS

_MAX_NAMED = 20


def render_report(id: str, detail: Mapping[str, Any], *, waiting: int = 0) -> str:
    """Return the report; `detail` is what the journal says about the run, and `waiting` counts questions unasked."""
    return "\n".join((f"# Consolidation {id}".rstrip(), "", *_list_lines(detail, waiting))).rstrip() + "\n"


def _list_lines(detail: Mapping[str, Any], waiting: int) -> Iterator[str]:
    entries = detail["entries"]
    counts = [(verdict, sum(entry["verdict"] == verdict for entry in entries)) for verdict in VERDICTS]
    yield ", ".join(f"{count} {verdict}" for verdict, count in counts if count or verdict in OF_STAGED)
    for verdict, count in counts:
        if count:
            yield from ("", f"## {verdict.capitalize()}", "")
            yield from (_format_entry(entry) for entry in entries if entry["verdict"] == verdict)
    if detail["refused"]:
        yield from ("", "## Refused", "")
        for refused in detail["refused"]:
            lost = ", ".join(f"“{text}”" for text in list(refused["lost"])[:_MAX_NAMED])
            yield f"- {refused['entry']} was not merged into {refused['other']}: it would lose {lost}"
    if detail["split"]:
        yield from ("", "## Split", "")
        yield from (f"- {path}" for path in detail["split"])
    about_files = [question for question in detail["questions"] if not question["subject"].startswith("learn_")]
    if about_files or waiting:
        yield from ("", "## For a person", "")
        yield from (f"- {question['text']}" for question in about_files)
        if waiting:
            yield f"- {waiting} more to ask when fewer questions are open"
    yield from _describe_replay(detail.get("replay") or {})


def _format_entry(entry: Mapping[str, Any]) -> str:
    target = f" → {entry['target']}" if entry["target"] else ""
    return f"- {entry['title']} ({entry['entry']}){target}: {entry['reason']}"


def _describe_replay(replay: Mapping[str, Any]) -> Iterator[str]:
    """Yield what changes in the briefs of the past."""
    if not replay.get("briefs") and not replay.get("lost"):
        return
    before, after = replay["tokens_before"], replay["tokens_after"]
    yield from ("", "## Briefs of the past, replayed", "")
    yield f"- {replay['briefs']} briefs were put together again; {replay['changed']} would give other learnings now"
    yield f"- Tokens: {before} before, {after} after ({after - before:+d})"
    for name, words in (
        ("left", "No longer given"),
        ("entered", "Given in addition"),
        ("lost", "Withheld"),
    ):
        if replay[name]:
            yield f"- {words}: {_list_counts(replay[name])}"


def _list_counts(counts: Mapping[str, int]) -> str:
    named: Sequence[str] = [f"{id} ({count} ×)" for id, count in sorted(counts.items())[:_MAX_NAMED]]
    return ", ".join(named)
