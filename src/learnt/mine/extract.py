"""Turn a discovery into the draft of a learning: title, paragraphs, tags and triggers.

A discovery's texts are already in general terms (see `complaint`), and here they are only put into sentences. The same
discovery always gives the same draft, so that a repeated discovery is recognised. The caller sets the confidence.
"""

from __future__ import annotations

import re

from learnt.debrief.sigils import kind_of
from learnt.debrief.tags import find_tags
from learnt.mine.classify import find_category, find_triggers, forbids
from learnt.mine.complaint import find_stable_part
from learnt.mine.shell import split_command
from learnt.model import TITLE_LIMIT, TRIGGER_LIMIT, Discovery, Triggers, Value
from learnt.text.clean import fold
from learnt.text.shorten import shorten

_MAX_PARAGRAPH_LENGTH = 1_000
_MIN_STATEMENT_LENGTH = 20
# A learning's category, context and implication, by the rule that found it.
_CATEGORIES = {"edit": "tools", "call": "tools", "verification": "code_structure", "review": "review"}
_OBSERVED = ("command", "edit", "call", "verification")
_CONTEXTS = {
    "command": "When running `{}`.",
    "verification": "When changing code that `{}` checks.",
    "edit": "When changing files with `{}`.",
    "call": "When looking for `{}`.",
}
_IMPLICATIONS = {
    "command": "The first form fails again, whoever runs it.",
    "verification": "The same code is rejected wherever it is written.",
    "edit": "The call is refused until then.",
    "call": "The call fails again.",
    "review": "A review finds it again.",
    "revert": "The change would have to be taken back again.",
}
_MARKS_EXCEPTION = re.compile(r"^`(?://|#|/\*|@)")
_REJECTS = re.compile(r"`[^`]+`(?: \(\S+\))? rejects(?::| code) ")
_PROJECT_FILE = re.compile(r"[\w.@+/-]+")


class LearningDraft(Value):
    """A learning before it is rated and stored."""

    title: str
    context: str = ""
    observation: str = ""
    implication: str = ""
    action: str = ""
    tags: tuple[str, ...] = ()
    category: str = ""
    kind: str = "solution"
    polarity: str = "do"
    triggers: Triggers = Triggers()


class NoDraft(Value):
    """Why a discovery is not a learning."""

    reason: str


def extract(discovery: Discovery, *, task_title: str = "", goal: str = "") -> LearningDraft | NoDraft:
    """Return the draft of a learning, or why the discovery is not a learning."""
    if discovery.type == "dependency":
        return NoDraft(reason="a dependency holds for its task only")
    text = fold(discovery.text)
    title = fold(_make_title(text, fold(discovery.error)))
    if not title:
        return NoDraft(reason="the discovery says nothing")
    observation, action = _describe(discovery, text)
    texts = {
        "title": title,
        "observation": observation[:_MAX_PARAGRAPH_LENGTH],
        "action": action[:_MAX_PARAGRAPH_LENGTH],
    }
    category = _CATEGORIES.get(discovery.rule) or find_category(title, action)
    triggers = _make_triggers(discovery)
    return LearningDraft(
        **texts,
        context=_describe_context(discovery, task_title, goal),
        implication=_IMPLICATIONS.get(discovery.rule, ""),
        tags=find_tags(" ".join((text, discovery.worked, *discovery.files))),
        category=category or ("decision" if discovery.type == "decision" else "pitfall"),
        kind=kind_of(discovery.type),
        polarity="avoid" if forbids(title) else "do",
        # What failed in a call is known exactly, and triggers it again; in prose, what it names does.
        triggers=triggers if discovery.rule in _OBSERVED else find_triggers(**texts, given=triggers),
    )


def _make_title(text: str, error: str) -> str:
    """Return a text that fits into a title, if need be without the error at its end."""
    title = shorten(text)
    head = text.removesuffix(error).rstrip(" :") if error else text
    is_cut = title.endswith("…") and head != text and len(head) >= _MIN_STATEMENT_LENGTH
    return shorten(head) if is_cut else title


def _describe(discovery: Discovery, text: str) -> tuple[str, str]:
    """Return the observation and the action."""
    failed, error, worked = discovery.failed, discovery.error, discovery.worked
    if discovery.advice:
        return discovery.observed or f"`{failed}` failed: {error}.", discovery.advice
    if discovery.rule == "command" and failed and worked:
        return f"`{failed}` failed: {error}. `{worked}` worked.", f"Use `{worked}`."
    if discovery.rule == "verification":
        return _describe_check(discovery, text)
    if discovery.rule in ("edit", "call") and worked:
        advice = text if not discovery.files or worked.startswith("`") else f"Use `{worked}` instead of `{failed}`"
        return f"`{failed}` failed: {error}.", advice + "."
    if discovery.rule == "stated":
        failed = f"`{failed}` failed{f': {error}' if error else ''}." if failed else f"{error}." if error else ""
        return fold(f"{failed} {discovery.excerpt}"), worked
    if discovery.rule in ("words", "choice", "person"):
        # An observation is needed only if the title was truncated or is part of a longer sentence.
        is_whole = fold(discovery.excerpt) == text and len(text) <= TITLE_LIMIT
        return "" if is_whole else fold(discovery.excerpt), discovery.worked
    if discovery.rule == "revert":
        return fold(discovery.excerpt), f"{worked}." if worked else ""
    observation = f"{failed}: {error}. " if failed and error else f"{error}. " if error else ""
    return fold(observation + (discovery.excerpt or text)), f"{worked}." if worked else text


def _describe_check(discovery: Discovery, text: str) -> tuple[str, str]:
    failed, error, worked = discovery.failed, discovery.error, discovery.worked
    file = f" in `{discovery.files[0]}`" if discovery.files else ""
    observation = f"`{failed}` complained{file}: {error}."
    if not worked:
        return observation, f"Mind this in new code, before `{failed}` says so: {error}." if _REJECTS.match(
            text
        ) else f"{text}."
    observation = f"{observation} It passed with {worked}."
    if _MARKS_EXCEPTION.search(worked):
        return observation, f"Avoid it, or mark it where it is meant, with the reason: {worked}."
    return observation, f"Write it so from the start, for example {worked}."


def _describe_context(discovery: Discovery, task_title: str, goal: str) -> str:
    where = _CONTEXTS.get(discovery.rule, "")
    subject = " ".join(_find_command(discovery)) or discovery.failed
    sentences = [where.format(subject)] if where and subject else []
    if task_title:
        sentences.append(f"Seen while working on: {fold(task_title)}" + (f" ({fold(goal)})" if goal else "") + ".")
    return " ".join(sentences)[:_MAX_PARAGRAPH_LENGTH]


def _find_command(discovery: Discovery) -> tuple[str, ...]:
    if discovery.rule not in ("command", "verification"):
        return ()
    parts = split_command(discovery.failed)
    return (parts[-1].words[0], *parts[-1].intent[1:]) if parts else ()


def _make_triggers(discovery: Discovery) -> Triggers:
    command = _find_command(discovery)
    # A single word (`grep`) would match too often, so the failed option is added.
    if discovery.rule == "command" and len(command) == 1:
        words = split_command(discovery.failed)[-1].words
        command = (*command, words[1]) if len(words) > 1 and words[1].startswith("-") else command
    files = [path for path in discovery.files if _PROJECT_FILE.fullmatch(path) and not path.startswith(("/", "~"))]
    if _PROJECT_FILE.fullmatch(discovery.failed) and ("/" in discovery.failed or "." in discovery.failed):
        files.insert(0, discovery.failed)
    errors = [find_stable_part(discovery.error)]
    return Triggers(
        commands=_keep_valid(" ".join(command)),
        files=_keep_valid(*files) if discovery.rule == "call" else (),
        errors=_keep_valid(*errors),
    )


def _keep_valid(*words: str) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(words) if word.strip() and len(word) <= TRIGGER_LIMIT)
