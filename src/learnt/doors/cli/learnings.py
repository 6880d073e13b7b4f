"""Commands that write and read learnings: add, list, show, search, edit, history."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from learnt.doors.cli.arguments import (
    Arguments,
    Parser,
    add_fields,
    add_id,
    add_reason,
    add_situation,
    add_user,
    open_memory,
    print_result,
    read_fields,
    read_situation,
    report_redactions,
    watch_calls,
)
from learnt.doors.cli.files import show_file, show_regenerations
from learnt.doors.cli.review import format_diff, show_evidence
from learnt.doors.cli.terminal import edit_learning, find_changes, select_editable
from learnt.doors.cli.transfer import read_json
from learnt.doors.output import format_field, format_time, is_terminal, note, paint, say, show_json, show_table
from learnt.doors.reasons import describe_bar, describe_figures, describe_why_not
from learnt.errors import WrongRequest
from learnt.flow.briefs import SearchRequest
from learnt.flow.folding import Similar
from learnt.model import KINDS, PARAGRAPHS, STATUSES, Event, Hit, Learning
from learnt.text.records import as_record
from learnt.text.words import spell_words
from learnt.weigh.confidence import EVIDENCE, NOBODY, PERSON, impact, is_persons, stage

_FILTERS = ("domain", "category", "tag", "goal", "kind", "min_confidence", "scope", "limit", "offset")
_MAX_EXAMINED = 20
_NEAREST = {"repeats": "is known already as", "supersedes": "goes beyond", "contradicts": "contradicts"}
_MAX_SIMILAR = 3
_STAGES = {"trial": "unproven", "proven": "proven", "retired": "retired"}
_VOUCHERS = {PERSON: "vouched by a person", EVIDENCE: "vouched by evidence", NOBODY: "vouched by nobody yet: on trial"}


def add_arguments(parser: Parser) -> None:
    title = "the learning in one sentence, or `-` for JSON on stdin"
    parser.add_argument("title", metavar="TITLE", nargs="?", help=title)
    add_fields(parser)
    parser.add_argument("--pin", action="store_true", help="show it first where it is relevant")
    parser.add_argument("--edit", action="store_true", help="write it in $EDITOR")
    add_user(parser, "keep it in the user-wide store, for all projects")


def add_run(arguments: Arguments) -> None:
    fields = read_fields(arguments) | ({"pinned": True} if arguments.pin else {})
    with open_memory(arguments) as memory:
        if arguments.edit:
            added = edit_learning({"title": arguments.title or "", **fields}, lambda new: memory.add_all([new]))
        elif arguments.title in (None, "-"):
            added = memory.add_all([{**fields, **record} for record in _read_stdin(arguments.title)])
        else:
            added = memory.add_all([{"title": arguments.title, **fields}])
        known = [(learning, memory.similar(learning, limit=len(added) + 1)) for learning in added[:_MAX_EXAMINED]]
        if not arguments.user:
            watch_calls(memory)
    report_redactions(memory)
    new = {learning.id for learning in added}
    records = [as_record(learning) for learning in added]
    lines = [f"Added {learning.id}: {learning.title}{_describe_occasions(learning)}" for learning in added]
    print_result(arguments, records[0] if len(records) == 1 else records, "\n".join(lines))
    for learning, similar in known:
        _note_nearest(learning, [one for one in similar if one.learning.id not in new])


def _describe_occasions(learning: Learning) -> str:
    """Return at which calls a learning will be shown, as a line of its own; empty if at none."""
    if not is_persons(learning):
        return ""
    triggers = learning.triggers
    kinds = (
        (triggers.commands, "is called"),
        (triggers.files, "is edited"),
        (triggers.tools, "is used"),
        (triggers.errors, "is reported after a call"),
    )
    occasions = [f"{' or '.join(f'`{word}`' for word in words)} {happens}" for words, happens in kinds if words]
    return f"\n  It will be shown when {', or when '.join(occasions)}, once in a conversation." if occasions else ""


def _note_nearest(added: Learning, similar: Sequence[Similar]) -> None:
    """Say which learning says the same as one that was added, more, less, or the contrary."""
    nearest = next((one for one in similar if one.verdict in _NEAREST), None)
    if nearest is not None:
        other = nearest.learning
        known = f"{other.id} ({other.status}; {nearest.verdict.reason}): {other.title}"
        note(f"{added.id} {_NEAREST[nearest.verdict]} {known}")
        if nearest.verdict != "contradicts":
            note(f"`learnt supersede {other.id} {added.id}` keeps only the new one")


def list_arguments(parser: Parser) -> None:
    parser.add_argument("--status", default="active", choices=(*STATUSES, "all"), help="default: active")
    for name in ("domain", "category", "tag", "goal"):
        parser.add_argument(f"--{name}", metavar="NAME", help=f"only learnings with this {name}")
    parser.add_argument("--kind", choices=KINDS, help="only learnings of this kind")
    parser.add_argument(
        "--min-confidence", type=float, metavar="N", help="only learnings with at least this confidence"
    )
    parser.add_argument("--scope", metavar="NAME", help="only learnings from `project`, `user`, or the source NAME")
    parser.add_argument("--limit", type=int, metavar="N", help="how many to show (setting `page_size`)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="how many to skip")
    add_user(parser)


def list_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        page = memory.learnings(
            status=None if arguments.status == "all" else arguments.status,
            **{name: getattr(arguments, name) for name in _FILTERS},
        )
    if arguments.json:
        show_json({"learnings": [as_record(learning) for learning in page.learnings], "total": page.total})
        return
    if not page.total:
        note('No learnings match. `learnt add "…"` adds one; `learnt list --status all` without filters shows all.')
        return
    show_table(("id", "confidence", "title"), [_table_row(learning) for learning in page.learnings], wide=2)
    end = arguments.offset + len(page.learnings)
    if not page.learnings:
        note(f"This page is empty; there are {page.total:,} learnings in total.")
    elif end < page.total or arguments.offset:
        more = f"; `--offset {end}` shows more" if end < page.total else ""
        note(f"{arguments.offset + 1} to {end} of {page.total:,}{more}")


def show_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="a learning; default: learnings.md")
    parser.add_argument("--goal", metavar="NAME", help="show this goal's learnings file")
    parser.add_argument("--pager", action="store_true", help="show learnings.md in a pager")
    add_user(parser)


def show_run(arguments: Arguments) -> None:
    if arguments.id is None:
        show_file(arguments)
        return
    with open_memory(arguments) as memory:
        learning = memory.get(arguments.id)
        supersedes = memory.supersedes(arguments.id)
        evidence = memory.review.evidence(arguments.id)
        similar = memory.similar(arguments.id, _MAX_SIMILAR)
    if arguments.json:
        discoveries = [stored.as_record() for stored in evidence]
        record = {**as_record(learning), "supersedes": supersedes, "impact": impact(learning)}
        show_json({**record, "evidence": discoveries, "similar": [_similar_record(one) for one in similar]})
        return
    say(paint(learning.title, "bold"))
    say(paint(_summarize(learning), "dim"))
    for name in PARAGRAPHS:
        if getattr(learning, name):
            say(f"\n{paint(name.capitalize(), 'cyan')}: {getattr(learning, name)}")
    say()
    for name, value in _list_details(learning, supersedes).items():
        if value:
            say(f"{name + ':':<15}{value}")
    for number, one in enumerate(similar):
        say(f"{'' if number else 'similar:':<15}{one.learning.id}, {one.verdict}: {one.learning.title}")
    if evidence:
        say()
        show_evidence(evidence)


def similar_arguments(parser: Parser) -> None:
    add_id(parser)
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="how many to show (default: 10)")
    parser.add_argument("--all", action="store_true", help="also show the nearest ones that say something else")
    add_user(parser)


def similar_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        similar = memory.similar(arguments.id, arguments.limit, near_too=arguments.all)
    if arguments.json:
        show_json([{**_similar_record(one), "learning": as_record(one.learning)} for one in similar])
        return
    if not similar:
        note("No learning says much the same." + ("" if arguments.all else " `--all` shows the nearest ones."))
    for one in similar:
        learning = one.learning
        status = "" if learning.status == "active" else f"  [{learning.status}]"
        say(f"{paint(learning.id, 'yellow')}  {one.score:.2f}  {one.verdict:<11}  {learning.title}{status}")
        say(f"    {one.verdict.reason}")


def _similar_record(similar: Similar) -> dict[str, Any]:
    verdict = similar.verdict
    return {
        "id": similar.learning.id,
        "verdict": str(verdict),
        "score": verdict.score,
        "reason": verdict.reason,
        "estimate": verdict.is_estimate,
    }


def search_arguments(parser: Parser) -> None:
    parser.add_argument("query", metavar="TEXT", nargs="+", help="any text: words, a task, an error message, a path")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="how many to show (default: 10)")
    parser.add_argument("--min-confidence", type=float, default=0.5, metavar="N", help="default: 0.5")
    parser.add_argument("--status", default="active", choices=(*STATUSES, "all"), help="default: active")
    parser.add_argument("--domain", metavar="NAME", help="only learnings with this domain")
    parser.add_argument("--category", metavar="NAME", help="only learnings with this category")
    add_situation(parser)
    parser.add_argument(
        "--strategy",
        choices=("hybrid", "bm25", "semantic"),
        help="by words and meaning, by words, or by meaning (default: the setting `search.strategy`)",
    )
    parser.add_argument("--why", action="store_true", help="show how each score is calculated")
    parser.add_argument("--why-not", metavar="ID", help="tell why this learning is not found")
    add_user(parser)


def search_run(arguments: Arguments) -> None:
    request = {
        "query": " ".join(arguments.query),
        "strategy": arguments.strategy or "",
        "limit": arguments.limit,
        "min_confidence": arguments.min_confidence,
        "status": None if arguments.status == "all" else arguments.status,
        "domain": arguments.domain,
        "category": arguments.category,
        **read_situation(arguments),
    }
    with open_memory(arguments) as memory:
        if arguments.why_not:
            answer = memory.why.not_in_search(SearchRequest(**request), arguments.why_not)
            lines = describe_why_not(answer, memory.titles([answer.rival]), "by this search")
            print_result(arguments, answer.as_record(), "\n".join(lines))
            return
        printed = len(memory.remarks)
        hits = memory.search(**request, asked_by="person")
        for remark in memory.remarks[printed:]:
            note(remark)
        bar = memory.settings.brief_relevance
    if arguments.json:
        show_json([_hit_record(hit) for hit in hits])
        return
    if not hits:
        note("Nothing matches. `--min-confidence 0` and `--status all` search more.")
    for hit in hits:
        _show_hit(hit, " ".join(arguments.query), bar=bar if arguments.why else None)


def _show_hit(hit: Hit, query: str, *, bar: float | None) -> None:
    learning = hit.learning
    place = "" if learning.scope == "project" else f"  [{learning.scope}]"
    score = "trigger" if hit.trigger else f"{hit.score:.2f}"
    say(f"{paint(learning.id, 'yellow')}  {score:>7}  {learning.title}{place}")
    if bar is None:
        return
    weights = f"confidence {learning.confidence:.2f}; impact {impact(learning):g}"
    say(f"    relevance {hit.relevance:.2f}; {weights}; matched {', '.join(hit.matched_fields) or 'no words'}")
    say(f"    {describe_bar(hit.relevance, bar, hit.trigger)}")
    for line in describe_figures(hit.features):
        say(f"    {line}")
    if hit.trigger:
        say(f"    trigger matches: {hit.trigger}")
    spelled = spell_words(query)
    for word, share in sorted(hit.words.items(), key=lambda item: -item[1]):
        say(f"    {share:7.2f}  {spelled.get(word, word)}")


def _hit_record(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.learning.id,
        "score": hit.score,
        "relevance": hit.relevance,
        "features": dict(hit.features),
        "impact": impact(hit.learning),
        "trigger": hit.trigger,
        "matched_fields": list(hit.matched_fields),
        "highlights": dict(hit.highlights),
        "words": dict(hit.words),
        "learning": as_record(hit.learning),
    }


def edit_arguments(parser: Parser) -> None:
    add_id(parser)
    parser.add_argument("--title", metavar="TEXT", help="the learning in one sentence")
    add_fields(parser)
    parser.add_argument("--no-tags", dest="tags", action="store_const", const=[], help="remove all tags")
    parser.add_argument("--no-when", dest="cues", action="store_const", const=[], help="remove all situations")
    parser.add_argument("--no-triggers", action="store_true", help="remove all triggers")
    parser.add_argument("--add-tag", action="append", metavar="TAG", help="a tag to add; repeatable")
    parser.add_argument("--drop-tag", action="append", metavar="TAG", help="a tag to remove; repeatable")
    parser.add_argument("--add-when", action="append", metavar="TEXT", help="a situation to add; repeatable")
    parser.add_argument("--drop-when", action="append", metavar="TEXT", help="a situation to remove; repeatable")
    parser.add_argument("--edit", action="store_true", help="change it in $EDITOR; the default without options")
    add_reason(parser)
    add_user(parser)


def edit_run(arguments: Arguments) -> None:
    fields = read_fields(arguments) | ({} if arguments.title is None else {"title": arguments.title})
    if arguments.no_triggers:
        fields["triggers"] = {}
    entries: dict[str, Any] = {
        "add_tags": arguments.add_tag or (),
        "drop_tags": arguments.drop_tag or (),
        "add_cues": arguments.add_when or (),
        "drop_cues": arguments.drop_when or (),
    }
    removes_cues = arguments.cues == []
    changes_something = bool(fields or any(entries.values()))
    in_editor = arguments.edit or (not changes_something and is_terminal(sys.stdin))
    with open_memory(arguments) as memory:
        before = memory.get(arguments.id)
        if removes_cues:
            entries["drop_cues"] = (*entries["drop_cues"], *before.model_cues, *before.observed_cues)

        def save(edited: dict[str, Any]) -> Learning:
            changes = find_changes(before, edited) if in_editor else edited
            _refuse_changed_meanwhile(before, memory.get(arguments.id), changes)
            return memory.edit(arguments.id, reason=arguments.reason, **entries, **changes)

        if in_editor:
            after = edit_learning({**select_editable(before), **fields}, save)
        elif changes_something:
            after = save(fields)
        else:
            raise WrongRequest("nothing to change", hint="set a field, as in `--title TEXT`, or use --edit")
    report_redactions(memory)
    what = "Nothing changed:" if after.version == before.version else "Edited"
    print_result(arguments, as_record(after), f"{what} {after.id}: {after.title}")


def history_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="the learning's id")
    parser.add_argument("--internal", action="store_true", help="show the updates to learnings.md instead")
    add_user(parser)


def history_run(arguments: Arguments) -> None:
    if arguments.internal:
        show_regenerations(arguments)
        return
    if arguments.id is None:
        raise WrongRequest("the learning's id is missing", hint="`learnt list` shows the ids; or use --internal")
    with open_memory(arguments) as memory:
        history = memory.history(arguments.id)
    if arguments.json:
        show_json([event.as_dict() for event in history])
        return
    for event in history:
        reason = f" ({event.reason})" if event.reason else ""
        undoes = f" {event.undoes}" if event.undoes else ""
        who = f"{event.who} (role {event.role})" if event.role else event.who
        say(f"{paint(event.id, 'yellow')}  {format_time(event.at)}  {who}  {event.what}{undoes}{reason}")
        for line in _diff(event):
            say(f"    {line}")


def _table_row(learning: Learning) -> tuple[str, str, str]:
    notes = [learning.status] if learning.status != "active" else []
    notes += ["pinned"] if learning.pinned else []
    notes += [learning.scope] if learning.scope != "project" else []
    notes += [f"#{tag}" for tag in learning.tags]
    title = learning.advise(learning.title)
    return learning.id, f"{learning.confidence:.2f}", f"{title}  [{', '.join(notes)}]" if notes else title


def _summarize(learning: Learning) -> str:
    facts = [learning.id, learning.status, learning.kind, learning.polarity, f"confidence {learning.confidence:.2f}"]
    facts += [f"shown {learning.times_injected}×, helpful {learning.times_helpful}×", _STAGES[stage(learning)]]
    facts += [_VOUCHERS[learning.vouched]]
    facts += [f"impact {impact(learning):g}"]
    facts += ["pinned"] if learning.pinned else []
    facts += [f"from {learning.scope}"] if learning.scope != "project" else []
    return " · ".join(facts)


def _list_details(learning: Learning, supersedes: list[str]) -> dict[str, str]:
    triggers = [f"{field} {', '.join(words)}" for field, words in learning.triggers.as_dict().items() if words]
    return {
        "tags": ", ".join(learning.tags),
        "when": "; ".join(learning.cues),
        "when (model)": "; ".join(learning.model_cues),
        "observed": "; ".join(learning.observed_cues),
        "domain": learning.domain,
        "category": learning.category,
        "shown on": "; ".join(triggers),
        "goal": learning.goal,
        "task": learning.task,
        "commit": learning.commit,
        "loaded from": learning.loaded_from,
        "topic file": learning.topic_file,
        "superseded by": learning.superseded_by,
        "supersedes": ", ".join(supersedes),
        "would replace": ", ".join(learning.replaces) if learning.status == "proposed" else "",
        "added": f"{format_time(learning.created_at)}, by {learning.origin}",
        "changed": format_time(learning.updated_at) if learning.updated_at != learning.created_at else "",
    }


def _diff(event: Event) -> list[str]:
    """Return the lines of a diff that shows what an event changed."""
    lines = []
    for name, value in event.new.items():
        if name != "created_at":  # it is the same as the event's time
            old = _split_lines(format_field(name, event.old.get(name)))
            lines += format_diff(name, old, _split_lines(format_field(name, value)))
    return lines


def _split_lines(value: Any) -> list[str]:
    if value is None or value in ("", [], {}):
        return []
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, list):
        return [", ".join(map(str, value))]
    if isinstance(value, dict):
        return ["; ".join(f"{name} {', '.join(words)}" for name, words in value.items())]
    return str(value).split("\n")


def _read_stdin(title: str | None) -> list[dict[str, Any]]:
    example = '`learnt add "Run make lint before each commit"`'
    if title is None and is_terminal(sys.stdin):
        raise WrongRequest("a learning needs a title", hint=f"{example}, or --edit")
    records = list(read_json(sys.stdin.buffer.read(), "stdin"))
    if not records:
        raise WrongRequest("there is no title, and no learning on stdin", hint=example)
    return records


def _refuse_changed_meanwhile(before: Learning, now: Learning, changes: dict[str, Any]) -> None:
    for name in changes:
        if getattr(now, name) != getattr(before, name):
            raise WrongRequest(
                f"{now.id} was changed by someone else in the meantime ({name})",
                hint=f"see `learnt history {now.id}`, then edit it again",
            )
