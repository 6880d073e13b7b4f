"""Find why a change was taken back, or decided, in commit messages.

A message teaches something only if it gives a reason that outlasts the commit. Whole paragraphs are read: lists of
changes, quotations, code, tables and trailers are left out, and so are releases, merges, updates of dependencies and
other commits that only keep things tidy. Subject and body belong together: the subject says what was decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from learnt.mine.passages import Lesson, Passage, find_lesson, read_passages
from learnt.mine.rating import hide_code, rate, stands_alone
from learnt.model import TITLE_LIMIT, Discovery
from learnt.text.clean import clean, fold
from learnt.text.sentences import ITEM, is_whole

_MAX_BODY_LENGTH = 20_000
_MAX_REASON_LENGTH = 450
_MIN_RATING = 3.5
_PREFIX = re.compile(r"^(?:\[[\w ./-]+\]\s*|[\w./-]+(?:\([^()]*\))?!?:\s+)(?=\S)")
_NUMBER = re.compile(r"\s*\((?:GH-|PR )?#?\d+\)$|\s+#\d+$")
_NOTHING_TO_LEARN = re.compile(
    r"^(?:(?:merge|bump|release|prepare|version|v?\d+[.\d]*\w*|wip\b|fixup!|squash!|initial commit|upgrade|update|lint|format|"
    r"reformat|re-?word|translat\w+|typos?|polish|address|apply|clean ?up|tidy|whitespace|changelog|back to development|"
    r"start (?:of )?\d|add (?:changelog|docs?|tests?|release notes)|autosquash|sync|tests? for|document|docs?)\b"
    r"(?! (?:in|of|with|only|instead|not|never)\b)|"
    r"(?:docs?|style|chore|release|deps|build\(deps|ci\(deps|i18n|typo|changelog)(?:\([^)]*\))?!?: )|"
    r"\b(?:typos?|changelog|release notes|spelling|dependabot|renovate|bump version)\b",
    re.IGNORECASE,
)
_REVERT = re.compile(
    r"^\s*(?:revert(?:s|ed|ing)?|back(?:s|ed)? out|roll(?:s|ed)? back|undo(?:es)?)\b[:\s]*(?P<what>.+?)\s*$", re.IGNORECASE
)
_BOILERPLATE = re.compile(
    r"^(?:this )?revert(?:s|ed|ing)? (?:commit|[\w.-]+/[\w.-]+#\d|pull request|PR|#|[0-9a-f]{7,40})|^\(?cherry picked", re.IGNORECASE
)
_UNNAMED_CHANGE = re.compile(
    r"^(?:(?:the|my|this|that|last|previous|latest|some|all|these|those|a|of|to|accidental|unwanted) )*(?:commits?|changes?|"
    r"merge|pr|pull request|patch|fix|it|this|that|version|bump|#?\d+|[0-9a-f]{7,40}|revert\b.*)?[.\"'”]*$",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"\b(?:br(?:oke|eaks|eaking|oken)|caus(?:es?|ed|ing)|fail(?:s|ed|ing|ures?)?|crash\w*|regress\w*|slow(?:er|ed|s)?|wrong|"
    r"missing|hangs?|hung|leak\w*|lost|los(?:es|ing)|doubled?|twice|unable|conflict\w*|incompatib\w+|worse|deadlock\w*|"
    r"corrupt\w*|leads? to|led to|made|makes|too (?:many|much|long|large|often)|lücken|kaputt|scheitert|échoue|falla)\b",
    re.IGNORECASE,
)
_REASONS = frozenset("cause consequence effect limit demand prohibition choice advice".split())
# What a commit does, put as an order.
_CHANGE_VERB = re.compile(
    r"^(?:add|fix|remove|rename|move|update|bump|refactor|implement|introduce|replace|drop|change|clean|convert|extract|"
    r"split|improve|support|allow|handle|ensure|check|test|make|merge|delete|create|extend|adjust|mention|document|"
    r"simplify|rework|rewrite|switch|adapt|expose|enable|pass|set|return|raise|emit|also|include|import|put|call|apply|"
    r"run|skip|mark|bring|provide|reorder|tweak|correct|reduce|expand|enhance|modify|upgrade|port|build|show|print|log|"
    r"this (?:commit|change|patch|pr|adds?|fix(?:es)?|removes?|makes?|is an?|updates?|moves?|implements?|introduces?|"
    r"allows?|changes?|enables?|prevents?|ensures?|should|will|reverts?))\b",
    re.IGNORECASE,
)
_MORE_THAN_CHANGE = frozenset("demand prohibition choice".split())
_DECIDES = re.compile(
    r"\b(?:never|not|don['’]t|instead of|rather than|only|until|keep|pin|avoid|always|must|disable|skip|without|stop|again|"
    r"no longer|stay|separate|nicht|nie|statt)\b",
    re.IGNORECASE,
)
_DECISION = 1.0


def observe_commit(subject: str, body: str, files: Iterable[str] = ()) -> Discovery | None:
    """Return why a commit took a change back, or why it made one; None if its message gives no lasting reason."""
    subject = fold(subject)
    passages = list(_read_reasons(clean(body[:_MAX_BODY_LENGTH])))
    evidence = Discovery(type="decision", rule="words", text="", files=tuple(files)[:20])
    if reverted := _REVERT.match(subject):
        return _learn_from_revert(_name_change(reverted["what"]), passages, evidence)
    if not passages or _NOTHING_TO_LEARN.search(subject):
        return None
    return _learn_from_decision(_strip_subject(subject), passages, evidence)


def _read_reasons(body: str) -> Iterator[Passage]:
    """Yield the paragraphs of a message, without lists and without what git or a platform added."""
    for passage in read_passages(body):
        sentences = tuple(sentence for sentence in passage.sentences if not _BOILERPLATE.match(sentence))
        if passage.kind != ITEM and sentences:
            yield passage.replace(sentences=sentences)


def _strip_subject(subject: str) -> str:
    bare = _NUMBER.sub("", _PREFIX.sub("", subject)).rstrip(" .")
    return bare[:1].upper() + bare[1:]


def _name_change(what: str) -> str:
    """Return which change was taken back; empty if the subject does not say."""
    what = _NUMBER.sub("", what).strip()
    if what[:1] in "\"'“‘":
        what = what[1:].rstrip("\"'”’.")
    what = _NUMBER.sub("", _PREFIX.sub("", what)).rstrip(" .…")
    return "" if _UNNAMED_CHANGE.match(what) or "revert" in what.lower() or len(what.split()) < 2 else what


def _learn_from_revert(change: str, passages: list[Passage], evidence: Discovery) -> Discovery | None:
    """Return what is not to be done again, and why."""
    reason = next(filter(None, map(_find_reason, passages)), "")
    if not change or not reason:
        return None
    lessons = filter(None, (find_lesson(passage) for passage in passages))
    rule = next((lesson.action or lesson.title for lesson in lessons if lesson.is_order), "")
    avoid = f"Do not redo “{change}”"
    first = reason.partition(". ")[0] if len(reason) + len(avoid) > TITLE_LIMIT else reason
    title = f"{avoid}: {first}" if len(avoid) + len(first) + 2 <= TITLE_LIMIT + 1 else avoid
    return evidence.replace(rule="revert", text=title, failed=change, worked=rule.rstrip("."), excerpt=reason)


def _find_reason(passage: Passage) -> str:
    """Return the sentences of a paragraph that say why a change was taken back; empty if it does not say so."""
    whole = [sentence for sentence in passage.sentences if is_whole(sentence) and not _is_plan(sentence)]
    if not any(_gives_reason(sentence) for sentence in whole):
        return ""
    return _take(whole, _MAX_REASON_LENGTH)


def _take(sentences: Iterable[str], limit: int) -> str:
    """Return as many of the first sentences as the limit allows, at least one."""
    taken = ""
    for sentence in sentences:
        if taken and len(taken) + len(sentence) >= limit:
            break
        taken = f"{taken} {sentence}".strip()
    return taken


def _gives_reason(sentence: str) -> bool:
    prose = hide_code(sentence)
    return _TROUBLE.search(prose) is not None or any(name in _REASONS for name in rate(sentence).features)


def _is_plan(sentence: str) -> bool:
    return any(name in ("plan", "question", "guess") for name in rate(sentence).features)


def _learn_from_decision(subject: str, passages: list[Passage], evidence: Discovery) -> Discovery | None:
    """Return the lesson in the best paragraph of a message."""
    decides = _DECIDES.search(subject) is not None
    least = _MIN_RATING - _DECISION * decides
    lessons = [lesson for lesson in (find_lesson(_without_changes(one), least=least) for one in passages) if lesson]
    if not lessons:
        return None
    best = max(lessons, key=lambda lesson: lesson.rating)
    title = subject if decides and not best.is_order and _is_title(subject) else best.title
    return evidence.replace(
        type="pattern" if best.is_order else "constraint",
        text=title,
        worked=_find_action(best, title),
        excerpt=f"{subject}. {best.observation}" if title != subject else best.observation,
    )


def _without_changes(passage: Passage) -> Passage:
    """Return a paragraph without the sentences that only say what the commit does."""
    kept = [sentence for sentence in passage.sentences if not _is_change(sentence)]
    return passage.replace(sentences=tuple(kept))


def _is_change(sentence: str) -> bool:
    return _CHANGE_VERB.match(sentence) is not None and not any(
        name in _MORE_THAN_CHANGE for name in rate(sentence).features
    )


def _is_title(subject: str) -> bool:
    return len(subject) <= TITLE_LIMIT and is_whole(subject) and stands_alone(subject)


def _find_action(lesson: Lesson, title: str) -> str:
    if lesson.action:
        return lesson.action
    return lesson.title if lesson.title != title else ""
