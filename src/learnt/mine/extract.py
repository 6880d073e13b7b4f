"""Make a learning of a discovery: a title that stands for itself, what was observed, what follows, and when to show it.

What was observed of corrections is already general (see `complaint.general`); here it is only put into words. The
same discovery always gives the same draft, so that it is recognised when it comes again. Where confidence starts is
for the caller to say.
"""

from __future__ import annotations

import re

from learnt.debrief.sigils import kind_of
from learnt.debrief.tags import tags_in
from learnt.mine.complaint import stable
from learnt.mine.shell import parts
from learnt.model import TITLE_LIMIT, TRIGGER_LIMIT, Triggers, Value
from learnt.text.clean import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.model import Discovery

_LONGEST_PARAGRAPH = 1_000
_CODE = re.compile(r"`([^`]+)`")
_LEAST_REASON = 20
_LEAST_STATEMENT = 60
_SPAN_LENGTHS = (48, 40, 32, 24)
_CATEGORIES = {
    "command": "pitfall",
    "edit": "tools",
    "call": "tools",
    "verification": "code_structure",
    "review": "review",
    "revert": "pitfall",
}
_WRONG_FOLDER = "in the wrong folder"
_SAID_IN_THE_WRONG_FOLDER = {
    "go": ("directory not found", "no Go files in", "cannot find main module"),
    "npm": ("Could not read package.json",),
    "cargo": ("could not find `Cargo.toml`",),
}
_MARKS_EXCEPTION = re.compile(r"^`(?://|#|/\*|@)")
_PROJECT_FILE = re.compile(r"[\w.@+/-]+")


class Draft(Value):
    """A learning before it is weighed and stored."""

    title: str
    context: str = ""
    observation: str = ""
    implication: str = ""
    action: str = ""
    tags: tuple[str, ...] = ()
    category: str = ""
    kind: str = "solution"
    triggers: Triggers = Triggers()


class Skipped(Value):
    """A discovery that makes no learning."""

    reason: str


def extract(discovery: Discovery, *, task_title: str = "", goal: str = "") -> Draft | Skipped:
    """Return the learning that a discovery makes, or why it makes none."""
    if discovery.type == "dependency":
        return Skipped(reason="a dependency holds for its task only")
    text = fold(discovery.text)
    title = fold(_title(text, fold(discovery.error)))
    if not title:
        return Skipped(reason="the discovery says nothing")
    observation, action = _told(discovery, text)
    return Draft(
        title=title,
        context=_context(discovery, task_title, goal),
        observation=observation[:_LONGEST_PARAGRAPH],
        implication=_implication(discovery),
        action=action[:_LONGEST_PARAGRAPH],
        tags=tags_in(" ".join((text, discovery.worked, *discovery.files))),
        category=_CATEGORIES.get(discovery.rule, "decision" if discovery.type == "decision" else "pitfall"),
        kind=kind_of(discovery.type),
        triggers=_triggers(discovery),
    )


def _title(text: str, error: str) -> str:
    """Return a text as a title: first with a shorter reason, then without it, then with shorter code."""
    if len(text) <= TITLE_LIMIT:
        return text.rstrip(" :;,.")
    head = text.removesuffix(error).rstrip(" :") if error else text
    if head != text and len(head) + _LEAST_REASON <= TITLE_LIMIT:
        return _cut_words(text)
    candidate = head if head != text else _without_reason(text)
    if candidate == text and "`" not in text[_LEAST_STATEMENT:]:
        return _cut_words(text)
    if len(candidate) <= TITLE_LIMIT:
        return candidate.rstrip(" :;,.")
    for length in _SPAN_LENGTHS:
        shorter = "`".join(
            _cut(piece, length) if place % 2 else piece for place, piece in enumerate(candidate.split("`"))
        )
        if len(shorter) <= TITLE_LIMIT:
            return shorter
    return _cut_words(shorter)


def _without_reason(text: str) -> str:
    """Cut a text at its last colon outside of code, unless little would be left."""
    plain = _CODE.sub(lambda found: "`" + "x" * len(found[1]) + "`", text)
    place = plain.rfind(": ")
    while place > TITLE_LIMIT:
        place = plain.rfind(": ", 0, place)
    return text[:place] if place >= _LEAST_STATEMENT else text


def _cut(text: str, most: int) -> str:
    """Cut out the middle: of paths and commands the end says most."""
    return text if len(text) <= most else text[: most // 3].rstrip() + "…" + text[-(most - most // 3 - 1) :].lstrip()


def _cut_words(text: str) -> str:
    space = text.rfind(" ", TITLE_LIMIT // 2, TITLE_LIMIT)
    cut = text[: space if space > 0 else TITLE_LIMIT - 1].rstrip(" ,;:(")
    return (cut + "`" if cut.count("`") % 2 else cut)[: TITLE_LIMIT - 1] + "…"


def _told(discovery: Discovery, text: str) -> tuple[str, str]:
    """Return the observation and the action."""
    failed, error, worked = discovery.failed, discovery.error, discovery.worked
    if discovery.rule == "command" and failed and worked:
        if text.startswith("When `"):
            seen = f"`{failed}` failed: {error}. After `{worked}` it passed."
            return seen, f"When it says so again, run `{worked}`, then `{failed}`."
        seen = f"`{failed}` failed: {error}. `{worked}` worked."
        if _WRONG_FOLDER in text:
            return seen, f"Give paths from where the shell is, or `cd` to the root first: `{worked}`."
        return seen, f"Use `{worked}`."
    if discovery.rule == "verification":
        return _told_by_check(discovery, text)
    if discovery.rule in ("edit", "call") and worked:
        advice = text if not discovery.files or worked.startswith("`") else f"Use `{worked}` instead of `{failed}`"
        return f"`{failed}` failed: {error}.", advice + "."
    if discovery.rule == "words":
        # The title says it all, unless it is cut or the sentence had more to it.
        is_whole = fold(discovery.excerpt) == text and len(text) <= TITLE_LIMIT
        return "" if is_whole else fold(discovery.excerpt), ""
    seen = f"{failed}: {error}. " if failed and error else f"{error}. " if error else ""
    return fold(seen + (discovery.excerpt or text)), f"{worked}." if worked else text


def _told_by_check(discovery: Discovery, text: str) -> tuple[str, str]:
    failed, error, worked = discovery.failed, discovery.error, discovery.worked
    seen = f"`{failed}` complained"
    if discovery.files:
        seen += f" in `{discovery.files[0]}`"
    seen += f": {error}."
    if not worked:
        rejects = text.startswith(f"`{failed}` rejects")
        return seen, f"Mind this in new code, before `{failed}` says so: {error}." if rejects else f"{text}."
    seen = f"{seen} It passed with {worked}."
    if _MARKS_EXCEPTION.search(worked):
        return seen, f"Avoid it, or mark it where it is meant, with the reason: {worked}."
    if worked.startswith("the import"):
        return seen, f"Add {worked} in the same edit."
    return seen, f"Write it so from the start, for example {worked}."


def _context(discovery: Discovery, task_title: str, goal: str) -> str:
    where = {
        "command": "When running `{}`.",
        "verification": "When changing code that `{}` checks.",
        "edit": "When changing files with `{}`.",
        "call": "When looking for `{}`.",
    }.get(discovery.rule, "")
    subject = " ".join(_command(discovery)) or discovery.failed
    told = [where.format(subject)] if where and subject else []
    if task_title:
        told.append(f"Seen while working on: {fold(task_title)}" + (f" ({fold(goal)})" if goal else "") + ".")
    return " ".join(told)[:_LONGEST_PARAGRAPH]


def _implication(discovery: Discovery) -> str:
    return {
        "command": "The first form fails again, whoever runs it.",
        "verification": "The same code is rejected wherever it is written.",
        "edit": "The call is refused until then.",
        "call": "The call fails again.",
        "review": "A review finds it again.",
        "revert": "The change would have to be taken back again.",
    }.get(discovery.rule, "")


def _command(discovery: Discovery) -> tuple[str, ...]:
    if discovery.rule not in ("command", "verification"):
        return ()
    ran = parts(discovery.failed)
    return ran[-1].intent if ran else ()


def _triggers(discovery: Discovery) -> Triggers:
    # Every command may be run in the wrong folder: only a `cd` is told apart.
    moved = tuple(discovery.failed.split()[:2]) if discovery.failed.startswith("cd ") else ()
    command = moved if _WRONG_FOLDER in discovery.text else _command(discovery)
    # One word alone (`grep`) would match too often: with the option that failed it is told apart.
    if discovery.rule == "command" and len(command) == 1 and not moved:
        words = parts(discovery.failed)[-1].words
        command = (*command, words[1]) if len(words) > 1 and words[1].startswith("-") else command
    files = [path for path in discovery.files if _PROJECT_FILE.fullmatch(path) and not path.startswith(("/", "~"))]
    missing = discovery.failed if discovery.rule == "call" and _PROJECT_FILE.fullmatch(discovery.failed) else ""
    errors = _signs(discovery)
    return Triggers(
        commands=_kept(" ".join(command)),
        files=_kept(*([missing] if "/" in missing or "." in missing else []), *files)
        if discovery.rule == "call"
        else (),
        errors=_kept(*errors),
    )


def _signs(discovery: Discovery) -> tuple[str, ...]:
    """Return by which words of an output the error is known when it comes again."""
    if _WRONG_FOLDER in discovery.text:
        program = next(iter(_command(discovery)), "")
        return (*_SAID_IN_THE_WRONG_FOLDER.get(program, ()), stable(discovery.error) or discovery.error)
    return (stable(discovery.error),)


def _kept(*words: str) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(words) if word.strip() and len(word) <= TRIGGER_LIMIT)
