"""Find why a change was taken back, or decided, in commit messages.

A message teaches something only if it gives a reason that outlasts the commit. Whole paragraphs are read: lists of
changes, quotations, code, tables and trailers are left out, and so are releases, merges, updates of dependencies and
other commits that only keep things tidy. Subject and body belong together: the subject says what was decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from learnt.mine.passages import Passage, can_state, find_lesson, read_passages
from learnt.mine.rating import hide_code, is_order, rate, stands_alone
from learnt.model import TITLE_LIMIT, Discovery
from learnt.text.clean import clean, fold
from learnt.text.sentences import ITEM, is_whole

_MAX_BODY_LENGTH = 20_000
_MAX_REASON_LENGTH = 450
_PREFIX = re.compile(r"^(?:\[[\w ./-]+\]\s*|[\w./-]+(?:\([^()]*\))?!?:\s+)(?=\S)")
_NUMBER = re.compile(r"\s*\((?:GH-|PR )?#?\d+\)$|\s+#\d+$")
_NOTHING_TO_LEARN = re.compile(
    r"^(?:(?:merge|bump|release|prepare|version|v?\d+[.\d]*\w*|wip\b|fixup!|squash!|initial commit|upgrade|update|lint|format|"
    r"reformat|re-?word|translat\w+|typos?|polish|address|apply|clean ?up|tidy|whitespace|changelog|back to development|"
    r"start (?:of )?\d|add (?:changelog|docs?|tests?|release notes)|autosquash|sync|tests? for|document|docs?|clarify|explain|mention|"
    r"describe)\b(?! (?:in|of|with|only|instead|not|never)\b)|"
    r"(?:docs?|style|chore|release|deps|build\(deps|ci\(deps|i18n|typo|changelog)(?:\([^)]*\))?!?: )|"
    r"\b(?:typos?|changelog|release notes|spelling|dependabot|renovate|bump version|docs?|documentation|readme|"
    r"docstrings?|quickstart|tutorial|guide|examples?|grammar|wording)\b",
    re.IGNORECASE,
)
_REVERT = re.compile(
    r"^\s*(?:revert(?:s|ed|ing)?|back(?:s|ed)? out|roll(?:s|ed)? back|undo(?:es)?)\b[:\s]*(?P<what>.+?)\s*$", re.IGNORECASE
)
_BOILERPLATE = re.compile(
    r"^(?:this )?revert(?:s|ed|ing)? (?:commit|[\w.-]+/[\w.-]+#\d|pull request|PR|#|[0-9a-f]{7,40})|^\(?cherry picked|^conflicts:|^\[\d+\]", re.IGNORECASE
)
_UNNAMED_CHANGE = re.compile(
    r"^(?:(?:the|my|this|that|last|previous|latest|some|all|these|those|a|of|to|accidental|unwanted) )*(?:commits?|changes?|"
    r"merge|pr|pull request|patch|fix|it|this|that|version|bump|#?\d+|[0-9a-f]{7,40}|revert\b.*)?[.\"'”]*$",
    re.IGNORECASE,
)
_TO_OLD_STATE = re.compile(r"\brevert|\bback to\b|^to\b", re.IGNORECASE)
_TROUBLE = re.compile(
    r"\b(?:br(?:oke|eaks|eaking|oken)|caus(?:es?|ed|ing)|fail(?:s|ed|ing|ures?)?|crash\w*|regress\w*|slow(?:er|ed|s)?|wrong|"
    r"missing|hangs?|hung|leak\w*|lost|los(?:es|ing)|doubled?|twice|unable|conflict\w*|incompatib\w+|worse|deadlock\w*|"
    r"corrupt\w*|leads? to|led to|made|makes|too (?:many|much|long|large|often)|lücken|kaputt|scheitert|échoue|falla)\b",
    re.IGNORECASE,
)
_REASONS = frozenset("cause consequence effect limit demand prohibition choice advice".split())
_SUPPORT = frozenset("cause consequence condition scope choice limit".split())
_NOT_LASTING = frozenset(
    ("first person", "plan", "address", "question", "guess", "perfect", "completion", "result", "here and now", "now")
) | {"hypothesis", "no demand"}
_CHANGE = re.compile(
    r"^(?:(?:the|my|this|that|last|previous|latest|some|all|these|those|a|of|to|accidental|unwanted) )*(?:commits?|changes?|"
    r"merge|pr|pull request|patch|fix|it|this|that|version|bump|#?\d+|[0-9a-f]{7,40}|revert\b.*)?[.\"'”]*$",
    re.IGNORECASE,
)
_TO_OLD_STATE = re.compile(r"\brevert|\bback to\b|^to\b", re.IGNORECASE)
_TROUBLE = re.compile(
    r"\b(?:br(?:oke|eaks|eaking|oken)|caus(?:es?|ed|ing)|fail(?:s|ed|ing|ures?)?|crash\w*|regress\w*|slow(?:er|ed|s)?|wrong|"
    r"missing|hangs?|hung|leak\w*|lost|los(?:es|ing)|doubled?|twice|unable|conflict\w*|incompatib\w+|worse|deadlock\w*|"
    r"corrupt\w*|leads? to|led to|made|makes|too (?:many|much|long|large|often)|lücken|kaputt|scheitert|échoue|falla)\b",
    re.IGNORECASE,
)
_REASONS = frozenset("cause consequence effect limit demand prohibition choice advice".split())
_RULES = frozenset("demand prohibition announcement decision".split())
_NOT_LASTING = frozenset(("plan", "address", "question", "guess", "perfect", "completion", "result", "here and now", "now", "hypothesis"))
_CHANGE = re.compile(
    r"^(?:fix|add|remov|updat|chang|mov|renam|switch|mak|us|allow|introduc|implement|revert)(?:e?s|ing)\b|^(?:this|these) (?:\w+ )?(?:commit|change|patch|pr|adds?|fix(?:es)?|removes?|makes?|is an?|updates?|moves?|implements?|"
    r"introduces?|allows?|changes?|enables?|prevents?|ensures?|should|will|reverts?)\b|^(?:now|also)\b",
    re.IGNORECASE,
)
# A subject that says how things are (not) to be done, not only what the commit does.
_DECIDES = re.compile(
    r"^(?:do not|don['’]t|never|avoid|stop|keep|always|pin|prefer|disable|only (?:use|run|call|build|allow))\b|"
    r"\b(?:instead of|rather than|until)\b|, not |\bonly$|\b(?:nicht|nie|statt)\b",
    re.IGNORECASE,
)
_PROBLEM = re.compile(r"\b(?:problems?|issues?|bugs?|regression|fix(?:es|ed)?|work ?around|this test)\b", re.IGNORECASE)
_WE_NEED = re.compile(r"\b(?:we|you['’]d) (?:also |just |really |still |now )?(?:need|have|must)\b", re.IGNORECASE)
_CONTRASTS = re.compile(r"(?:but|however|instead|therefore|thus|so|then|also|still|now|as such|otherwise|and)\b", re.IGNORECASE)
_INSISTS = re.compile(r"\b(?:never|always|please|until|again)\b", re.IGNORECASE)
_FIXES = re.compile(r"^(?:fix|resolve|close|correct|handle|repair)", re.IGNORECASE)
_MIN_RATING = 2.0


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
        if sentences and is_order(sentences[0]) and not _INSISTS.search(sentences[0]):
            sentences = sentences[1:]  # what the commit does, said once more
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
    is_named = len(what.split()) > 1 and not _UNNAMED_CHANGE.match(what) and not _TO_OLD_STATE.search(what)
    return what if is_named else ""


def _learn_from_revert(change: str, passages: list[Passage], evidence: Discovery) -> Discovery | None:
    """Return what is not to be done again, and why."""
    reason = next((reason for one in passages if (reason := _find_reason(one))), "")
    if not change or not reason:
        return None
    lessons = filter(None, (find_lesson(passage) for passage in passages))
    rule = next((lesson.action or lesson.title for lesson in lessons if lesson.is_order), "")
    avoid = f"Do not redo “{change}”"
    first = reason.partition(". ")[0] if len(reason) + len(avoid) > TITLE_LIMIT else reason
    title = f"{avoid}: {first}" if len(avoid) + len(first) + 2 <= TITLE_LIMIT + 1 else avoid
    return evidence.replace(rule="revert", text=title, failed=change, worked=rule.rstrip("."), excerpt=reason)


def _find_reason(passage: Passage, *, must_last: bool = False) -> str:
    """Return the sentences of a paragraph that say why; empty if none of them does, or if what they say was only then."""
    whole = [sentence for sentence in passage.sentences if can_state(sentence) and not _is_plan(sentence)]
    while whole and _CONTRASTS.match(whole[0]):
        whole.pop(0)
    if not any(map(_gives_reason, whole)) or (must_last and not any(map(_lasts, whole))):
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
    """Return the rule that a message states, or what its subject decides and why."""
    decides = _DECIDES.search(subject) is not None and _is_title(subject) and not _FIXES.match(subject)
    rules = [find_lesson(passage, least=_MIN_RATING, may_lead=_states_rule) for passage in passages]
    rule = max(filter(None, rules), key=lambda lesson: lesson.rating, default=None)
    if decides and not (rule and stands_alone(rule.title)):
        reason = next((reason for one in passages if (reason := _find_reason(one, must_last=True))), "")
        action = rule.action or rule.title if rule else ""
        return evidence.replace(type="pattern", text=subject, worked=action, excerpt=reason) if reason else None
    if rule is None:
        return None
    kind = "pattern" if rule.is_order else "constraint"
    excerpt = f"{subject}. {rule.observation}"
    return evidence.replace(type=kind, text=rule.title, worked=rule.action, excerpt=excerpt)


def _states_rule(statement: str) -> bool:
    """Return whether a sentence states a rule with its reason or scope, not only what the commit does."""
    features = set(rate(statement).features)
    if _CHANGE.match(statement) or features & _NOT_LASTING or _PROBLEM.search(statement) or not stands_alone(statement):
        return False
    if "demand" in features:
        needed = {"cause", "consequence"} if _WE_NEED.search(statement) else _SUPPORT
        return bool(features & needed)
    if "choice" in features:
        return bool(features & {"cause", "consequence", "scope"})
    return bool(features & {"prohibition", "decision"})


def _lasts(statement: str) -> bool:
    """Return whether a sentence says how things are, not only how they were or what the commit does."""
    features = set(rate(statement).features)
    return not (_CHANGE.match(statement) or features & {"order", "past", *_NOT_LASTING})


def _is_title(subject: str) -> bool:
    is_short = len(subject) <= TITLE_LIMIT
    return is_short and is_whole(subject) and stands_alone(subject) and (is_order(subject) or not subject.isascii())
