"""Say in plain words what a brief contains and why, and why a learning is given or not: for people and for agents."""

from __future__ import annotations

from learnt.doors.output import PURGED, join_parts, paint
from learnt.model import MISSED
from learnt.recall.reasons import list_reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from learnt.flow.why import Remedy, WhyNot
    from learnt.model import Brief
    from learnt.recall.reasons import Reason

_NAMES = {
    "words": "words in common",
    "rarest": "the rarest of them",
    "meaning": "like its whole text",
    "self_meaning": "like its title and cues",
    "cued": "has cues, so more is asked of it",
    "trigger": "a trigger matches",
    "margin": "compared with the best other one",
}
_MIN_EFFECT = 0.01
_ASKED = {
    "start": "to keep what it finds out (a line outside the budget)",
    "found": "to write down what an error taught (a line outside the budget)",
}


def list_mentioned(brief: Brief) -> list[str]:
    """Return the ids of the learnings that `describe_receipt` names."""
    receipt = brief.receipt
    entries = (*receipt["considered"], *receipt.get("index", ()))
    return [*(entry["id"] for entry in entries), *receipt.get("beside", ())]


def describe_receipt(
    brief: Brief, titles: Mapping[str, str], cues: Mapping[str, tuple[str, str]] | None = None
) -> list[str]:
    """Return why a brief contains what it does: the request, and each learning that was considered.

    `cues` are the learnings' cues that share most words with the request, and where they come from.
    """
    receipt = brief.receipt
    warning = ", including a stuck warning outside the budget" if receipt["stuck"] else ""
    budget = receipt["settings"]["budget_tokens"]
    lines = [f"{paint(brief.id, 'bold')} for {brief.task}: {brief.tokens} tokens of {budget}{warning}"]
    lines.append(join_parts({"occasion": brief.occasion, "agent": brief.agent, "client": brief.client}))
    if brief.delivery == MISSED:
        lines.append("not delivered: it is not in the client's transcript of what the agent was given")
    lines += _describe_request(receipt)
    if "mirror_age_s" in receipt:
        lines.append(f"from the server's mirror, {receipt['mirror_age_s']:,} s old")
    lines += _describe_conversation(receipt)
    if receipt["query"] and receipt["considered"] and "min_relevance" in receipt["settings"]:
        lines.append(f"bar: relevance {receipt['settings']['min_relevance']:.2f}, unless a trigger matches")
    if receipt.get("attempts_left_out"):
        lines.append(f"attempts left out: {', '.join(map(str, receipt['attempts_left_out']))}")
    for entry in receipt["considered"]:
        lines += _describe_entry(entry, titles.get(entry["id"], PURGED), receipt)
        if entry["id"] in (cues or {}):
            cue, origin = (cues or {})[entry["id"]]
            lines.append(f"    cue ({origin}): {cue}")
    for entry in receipt.get("index", ()):
        lines.append(f"{entry['id']}  {paint('listed', 'green')}: {titles.get(entry['id'], PURGED)}")
    if receipt.get("index_more"):
        lines.append(f"not listed: {receipt['index_more']:,} more")
    for id in receipt.get("beside", ()):
        source = paint("given by the learnings file in the prompt", "green")
        lines.append(f"{id}  {source}: {titles.get(id, PURGED)}")
    if receipt["query"] and not receipt["considered"]:
        lines.append("no learning shares a word or a trigger with it")
    return lines


def _describe_request(receipt: Mapping[str, Any]) -> list[str]:
    lines = []
    if receipt["query"]:
        cut = receipt.get("query_length", 0) - len(receipt["query"])
        lines.append(f"query: {receipt['query']}{f' … and {cut:,} more characters' if cut > 0 else ''}")
    for part in receipt.get("parts", ()):
        of = f" {part['source']}" if part["source"] else ""
        lines.append(f"with its {part['part']}{of}: {part['length']:,} characters")
    for name in ("paths", "command", "tools", "task_type", "goal", "exclude_goal"):
        value = receipt.get(name)
        if value:
            lines.append(f"{name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    return lines


def _describe_conversation(receipt: Mapping[str, Any]) -> list[str]:
    """Return the parts of a conversation's brief other than learnings: failures, unfinished tasks, notes, asks."""
    lines = []
    for failure in receipt.get("failed", ()):
        lines.append(f"failed before: {failure['command']}" + (f": {failure['error']}" if failure["error"] else ""))
        if failure["worked"]:
            lines.append(f"    then worked: {failure['worked']}")
    for task in receipt.get("unfinished", ()):
        lines.append(f"unfinished: {task['task']}: {task['title']}")
        lines += [f"    {text}" for text in (task["reason"], task["suggestion"]) if text]
    lines += [f"note: {note}" for note in receipt.get("notes", ())]
    lines += [f"asked for: {_ASKED[receipt['ask']]}"] if receipt.get("ask") in _ASKED else []
    return [line.rstrip().replace("\n", " ") for line in lines]


def _describe_entry(entry: Mapping[str, Any], title: str, receipt: Mapping[str, Any]) -> list[str]:
    verdict = f"left out: {entry['left_out']}" if entry["left_out"] else paint("chosen", "green")
    trigger = f"; trigger {entry['trigger']}" if entry["trigger"] else ""
    scores = f"confidence {entry['confidence']:.2f}"
    if receipt["query"]:
        scores = f"relevance {entry['relevance']:.2f}, score {entry['score']:.2f}, {scores}"
    part = [f"    fits the task's {entry['part']}"] if entry.get("part") else []
    figures = [f"    {line}" for line in describe_figures(entry.get("features", {}))]
    return [f"{entry['id']}  {verdict}", f"    {scores}{trigger}: {title}", *part, *figures]


def describe_figures(figures: Mapping[str, float]) -> list[str]:
    """Return in a line what adds to a learning's probability and what takes from it; nothing without figures."""
    reasons = sorted(list_reasons(figures), key=lambda one: -abs(one.effect)) if figures else []
    telling = [one for one in reasons if abs(one.effect) >= _MIN_EFFECT]
    if not any(one.effect > 0 for one in telling):
        return ["because: little in common"] if figures else []
    return [f"because: {', '.join(f'{_name_briefly(one)} {one.effect:+.2f}' for one in telling)}"]


def _name_briefly(reason: Reason) -> str:
    if reason.name != "margin":
        return _NAMES[reason.name].partition(",")[0]
    return "others fit better" if reason.value < 0 else "others fit less"


def describe_bar(relevance: float, bar: float, trigger: str = "") -> str:
    """Return on which side of a brief's bar a probability is."""
    if trigger:
        return f"a brief gives it, because a trigger matches (the bar is {bar:.2f})"
    side = f"{bar - relevance:.2f} below" if relevance < bar else f"{relevance - bar:.2f} above"
    return f"probability {relevance:.2f}, {side} a brief's bar of {bar:.2f}"


def describe_why_not(answer: WhyNot, titles: Mapping[str, str], where: str) -> list[str]:
    """Return why a learning is in a brief or among the results of a search, or is not, and what would change it."""
    reason = f": {answer.reason}" if answer.reason else ""
    lines = [f"{answer.learning.id}  {answer.learning.title}", f"{answer.verdict} {where}{reason}"]
    if answer.relevance is not None and answer.reasons:
        lines += [describe_bar(answer.relevance, answer.bar, answer.trigger), *_list_remarks(answer)]
        lines += ["", *_list_rows(answer.reasons)]
    if answer.rival and answer.reasons:
        lines += ["", f"best other one: {answer.rival} ({answer.rival_relevance:.2f}): {titles.get(answer.rival, '')}"]
    if answer.remedies:
        heading = "What would bring it into a brief" if answer.is_of_search else "What would have changed it"
        lines += ["", f"{heading}:", *map(_describe_remedy, answer.remedies)]
    return lines


def _list_remarks(answer: WhyNot) -> list[str]:
    fits = [f"it fits the task's {answer.part}"] if answer.part else []
    return [*fits, *(["measured now: the receipt has no figures for it"] if answer.is_measured_now else [])]


def _list_rows(reasons: Sequence[Reason]) -> list[str]:
    """Return a table of the figures: what, how much of it, and what it adds to the probability."""
    rows = [("", "how much", "adds"), *((_NAMES[one.name], _format(one), f"{one.effect:+.2f}") for one in reasons)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {name.ljust(widths[0])}  {value.rjust(widths[1])}  {effect:>5}" for name, value, effect in rows]


def _format(reason: Reason) -> str:
    if reason.name in ("cued", "trigger"):
        return "yes" if reason.value else "no"
    if reason.name == "margin":
        return f"{abs(reason.value):.2f} {'behind' if reason.value < 0 else 'ahead'}"
    return f"{reason.value:.2f}" if reason.name == "words" else f"{reason.value:.2f} of 1"


def _describe_remedy(remedy: Remedy) -> str:
    to = "" if remedy.relevance is None else f" (about {remedy.relevance:.2f})"
    return f"  - {remedy.what}{to}{f': `{remedy.command}`' if remedy.command else ''}"
