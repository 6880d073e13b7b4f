"""The command that finds learnings."""

from __future__ import annotations

from learnt.doors.cli.arguments import add_situation, add_user, open_memory
from learnt.doors.cli.screen import note, paint, say, show_json
from learnt.model import STATUSES
from learnt.text.records import as_record
from learnt.weigh.confidence import impact

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from learnt.model import Hit


def search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="TEXT", nargs="+", help="any text: words, a task, an error message, a path")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="how many to show (default: 10)")
    parser.add_argument("--min-confidence", type=float, default=0.5, metavar="N", help="default: 0.5")
    parser.add_argument("--status", default="active", choices=(*STATUSES, "all"), help="default: active")
    parser.add_argument("--domain", metavar="NAME", help="only those of this domain")
    parser.add_argument("--category", metavar="NAME", help="only those of this category")
    parser.add_argument("--exclude-goal", metavar="NAME", help="leave out learnings of this goal")
    add_situation(parser)
    parser.add_argument("--why", action="store_true", help="show how each score comes about")
    add_user(parser)


def search_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        hits = memory.search(
            " ".join(arguments.query),
            limit=arguments.limit,
            min_confidence=arguments.min_confidence,
            status=None if arguments.status == "all" else arguments.status,
            domain=arguments.domain,
            category=arguments.category,
            exclude_goal=arguments.exclude_goal,
            paths=arguments.path,
            command=arguments.command,
            tools=arguments.tool,
            task_type=arguments.type,
            asked_by="person",
        )
    if arguments.json:
        show_json([_record(hit) for hit in hits])
        return
    if not hits:
        note("Nothing matches. `--min-confidence 0` and `--status all` search more.")
    for hit in hits:
        _show_hit(hit, why=arguments.why)


def _show_hit(hit: Hit, *, why: bool) -> None:
    learning = hit.learning
    place = "" if learning.scope == "project" else f"  [{learning.scope}]"
    score = "trigger" if hit.trigger else f"{hit.score:.2f}"
    say(f"{paint(learning.id, 'yellow')}  {score:>7}  {learning.title}{place}")
    if not why:
        return
    fields = ", ".join(hit.matched_fields) or "no words"
    figures = f"confidence {learning.confidence:.2f}; impact {impact(learning):g}"
    say(f"    relevance {hit.relevance:.2f}; {figures}; matched {fields}")
    if hit.trigger:
        say(f"    trigger matches: {hit.trigger}")
    for word, share in sorted(hit.words.items(), key=lambda item: -item[1]):
        say(f"    {share:7.2f}  {word}")


def _record(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.learning.id,
        "score": hit.score,
        "relevance": hit.relevance,
        "impact": impact(hit.learning),
        "trigger": hit.trigger,
        "matched_fields": list(hit.matched_fields),
        "highlights": dict(hit.highlights),
        "words": dict(hit.words),
        "learning": as_record(hit.learning),
    }
