"""Find why a change was taken back, or decided, in commit messages.

A message teaches something only if it gives a reason that outlasts the commit:

    a revert         what is not to be done again, and why
    a rule           a sentence that says what must (not) be, with its reason, its scope or its condition
    a decision       a subject that says how things are (not) to be done, and a body that says why

Whole paragraphs are read: lists of changes, quotations, code, tables and trailers are left out, and so are releases,
merges, updates of dependencies, documentation and other commits that only keep things tidy. What a message says about
the defect that it repairs is no longer true, and what it says about itself is a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from learnt.mine.passages import (
    Lesson,
    Passage,
    add_odds,
    can_state,
    choose_clause,
    find_lesson,
    list_beginnings,
    read_passages,
)
from learnt.mine.rating import hide_code, is_order, names_something, rate
from learnt.mine.references import capitalise, stands_alone, starts_with_reference
from learnt.mine.sentence_model import COMMITS
from learnt.model import TITLE_LIMIT, Discovery
from learnt.text.clean import clean, fold
from learnt.text.sentences import ITEM, is_whole, split_sentences

_MAX_BODY_LENGTH = 20_000
_MAX_REASON_LENGTH = 450
_MIN_RATING = 2.0
_MIN_WITH_ODDS = 1.0

_SCOPE = re.compile(r"^(?:\[[\w ./-]+\]\s*|[\w./-]+(?:\([^()]*\))?!?:\s+)(?=\S)")
_NUMBER = re.compile(r"\s*\((?:GH-|PR )?#?\d+\)$|\s+#\d+$")
_TIDIES_UP = re.compile(
    r"^(?:(?:merge|bump|release|prepare|version|v?\d+[.\d]*\w*|wip|fixup!|squash!|initial commit|upgrade|update|lint|"
    r"re-?format|format (?:code|files|with \w+)|re-?word|translat\w+|polish|address|apply|clean ?up|tidy|whitespace|"
    r"back to development|sync|"
    r"add (?:docs?|tests?|unit tests?)|tests? for|document|clarify|explain|mention|describe)\b"
    r"(?! (?:in|of|with|only|instead|not|never)\b)|"
    r"(?:docs?|style|chore|release|deps|i18n|(?:build|ci)\(deps)(?:\([^)]*\))?!?: )|"
    r"\b(?:typos?|changelog|release notes|spelling|dependabot|renovate|bump version|docs?|documentation|readme|"
    r"docstrings?|quickstart|tutorial|guide|examples?|grammar|wording)\b",
    re.IGNORECASE,
)
_REPAIRS = re.compile(
    r"^(?:fix|resolve|close|correct|handle|repair|work around|(?:avoid|stop|do not|don['’]t|never) "
    r"(?:crash|leak|fail|break|hang|panic|error|segfault|deadlock|die|chok|rac))",
    re.IGNORECASE,
)
# A subject that tells what was changed: a feature, a defect, the shape of the code.
_CHANGES = re.compile(
    r"^(?:add|implement|support|allow|refactor|rename|move|extract|simplif|improve|clean|update|remove|drop|delete|speed|"
    r"show|translate|ensure|make|introduce|replace|create|rework|rewrite|split|convert|port|test|expose|provide|change|"
    r"tweak|adjust|extend|include|optimi|reduce|enable|raise|return|check|prevent|detect|print|log|emit|accept|respect|"
    r"get|set|pass|copy|parse|inline|unif|factor|share|reuse|define|declare|mark|annotate|type|import|export|register|"
    r"report|warn|display|render|read|write|load|save|store|track|count|generate|build|compute|cache|skip|ignore|filter|"
    r"sort|try|edit|flip|link|trim)\w*\b",
    re.IGNORECASE,
)
# A subject that says how things are (not) to be done, whatever its verb.
_DECIDES = re.compile(
    r"^(?:do not|don['’]t|never|avoid|stop|keep|always|pin|prefer|disable|only (?:use|run|call|build|allow))\b|"
    r"\b(?:instead of|rather than)\b|, not |\bonly$|\b(?:nicht|nie|statt)\b",
    re.IGNORECASE,
)

_REVERTS = re.compile(
    r"^(?:revert(?:s|ed|ing)?|back(?:s|ed)? out|roll(?:s|ed)? back|undo(?:es)?)\b[:\s]*(?P<change>.+)$", re.IGNORECASE
)
_UNNAMED_CHANGE = re.compile(
    r"^(?:(?:the|my|this|that|last|previous|latest|some|all|these|those|a|of|to|accidental|unwanted) )*(?:commits?|"
    r"changes?|merge|pr|pull request|patch|fix|it|this|that|version|bump|#?\d+|[0-9a-f]{7,40})?[.\"'”]*$|"
    r"\brevert|\bback to\b|^to\b|^(?:the )?changes? (?:to|in|from)\b",
    re.IGNORECASE,
)
_ADDED_BY_GIT = re.compile(
    r"^(?:this )?(?:partially |partly )?revert(?:s|ed|ing)? (?:commit|[\w.-]+/[\w.-]+#\d|pull request|PR|#|"
    r"[0-9a-f]{7,40})|"
    r"^\(?cherry picked|^conflicts:|^\[\d+\]",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"\b(?:br(?:oke|eaks|eaking|oken)|caus(?:es?|ed|ing)|fail(?:s|ed|ing|ures?)?|crash\w*|regress\w*|slow(?:er|ed|s)?|"
    r"wrong|missing|hangs?|hung|leak\w*|lost|los(?:es|ing)|doubled?|twice|unable|conflict\w*|incompatib\w+|worse|"
    r"deadlock\w*|corrupt\w*|leads? to|led to|made|makes|too (?:many|much|long|large|often))\b",
    re.IGNORECASE,
)

_NOT_NEEDED = re.compile(
    r"\b(?:no longer|not) (?:be )?(?:needed|necessary|required|used|relevant)|\b(?:fixed|resolved) (?:upstream|now|"
    r"and)|"
    r"\blong since\b|\bobsolete\b",
    re.IGNORECASE,
)
# What holds for a while, or only compared with what was before.
_FOR_NOW = re.compile(
    r"\b(?:for now|temporar\w+|again|any ?more|(?:more|less|better) (?!than)\w+|latest)\b", re.IGNORECASE
)
# A sentence about the commit itself, about a defect, or a step of an argument.
_ABOUT_COMMIT = re.compile(
    r"^(?:(?:fix|add|remov|updat|chang|mov|renam|switch|mak|us|allow|introduc|implement|revert)(?:e?s|ing)\b|"
    r"(?:this|these) (?:\w+ )?(?:commit|change|patch|pr|adds?|fix(?:es)?|removes?|makes?|is an?|updates?|moves?|"
    r"implements?|introduces?|allows?|changes?|enables?|prevents?|ensures?|should|will|reverts?|also)\b|(?:now|also)\b)|"
    r"\b(?:is|are) (?:now )?(?:moved|renamed|removed|replaced|changed|added|dropped|converted|split)\b",
    re.IGNORECASE,
)
_ABOUT_DEFECT = re.compile(
    r"\b(?:problems?|issues?|bugs?|regression|fix(?:es|ed)?|work ?around|this test|the test|while at it)\b",
    re.IGNORECASE,
)
_DRAWBACK = re.compile(
    r"\b(?:problem|trouble|drawback|downside|issue) (?:with|of) (?:this|that|the old|the previous|the former)\b",
    re.IGNORECASE,
)
_CONTINUES = re.compile(
    r"(?:but|however|instead|therefore|thus|so|then|also|still|now|as such|otherwise|and|hence|for example|"
    r"basically)\b",
    re.IGNORECASE,
)
_MUST = re.compile(
    r"\b(?:must|(?:has|have|needs) to(?! (?:do|use)\b)|need to be|may only|should (?:always|never|only|"
    r"not)(?! be (?:the case|necess))|"
    r"(?:any|every|each|all) .{2,60} should|no (?:\w+ ){1,3}may|muss|müssen|darf|dürfen)\b",
    re.IGNORECASE,
)
_PERHAPS = re.compile(
    r"\b(?:may|might|can|could) (?:\w+ )?(?:need|have)\b|\b(?:clear|know|sure|see|check|question)\b.{0,20} (?:if|"
    r"whether)\b",
    re.IGNORECASE,
)
# A step of the work, unless it says what happens otherwise.
_WE_MUST = re.compile(r"\bwe (?:\w+ )?(?:need|have|must)\b(?!.*\b(?:otherwise|else|because)\b)", re.IGNORECASE)
_INSISTS = re.compile(
    r"^(?:please|never|always)\b|^(?:do not|don['’]t|keep)\b.*\b(?:until|unless|again|back|without|directly|outside|"
    r"before|even)\b",
    re.IGNORECASE,
)
_REASONS = frozenset("cause consequence effect limit demand prohibition choice advice".split())
_SUPPORT = frozenset("cause consequence condition scope choice".split())
_PASSES = frozenset(
    ("first person", "plan", "address", "question", "guess", "perfect", "completion", "result", "here and now", "now")
) | {"hypothesis", "no demand", "place"}


def observe_commit(subject: str, body: str, files: Iterable[str] = ()) -> Discovery | None:
    """Return why a commit took a change back, or why it made one; None if its message gives no lasting reason."""
    subject = fold(subject)
    passages = list(_read_paragraphs(clean(body[:_MAX_BODY_LENGTH])))
    evidence = Discovery(type="decision", rule="words", text="", files=tuple(files)[:20])
    if reverted := _REVERTS.match(subject):
        return _learn_from_revert(_name_change(reverted["change"]), passages, evidence)
    decision = _strip_subject(subject)
    if not passages or _TIDIES_UP.search(subject) or _TIDIES_UP.search(decision):
        return None
    return _learn_from_decision(decision, passages, evidence)


def _read_paragraphs(body: str) -> Iterator[Passage]:
    """Yield the paragraphs of a message, without lists and without what git or a platform added."""
    for passage in read_passages(body):
        sentences = tuple(sentence for sentence in passage.sentences if not _ADDED_BY_GIT.match(sentence))
        if sentences and is_order(sentences[0]) and not _INSISTS.match(sentences[0]):
            sentences = sentences[1:]  # what the commit does, said once more
        if passage.kind != ITEM and sentences:
            yield passage.replace(sentences=sentences)


def _strip_subject(subject: str) -> str:
    return capitalise(_NUMBER.sub("", _SCOPE.sub("", subject)).rstrip(" ."))


def _name_change(what: str) -> str:
    """Return which change was taken back; empty if the subject does not say."""
    what = _NUMBER.sub("", what).strip()
    if what[:1] in "\"'“‘":
        what = what[1:].rstrip("\"'”’.")
    what = _NUMBER.sub("", _SCOPE.sub("", what)).rstrip(" .…")
    return what if len(what.split()) > 1 and not _UNNAMED_CHANGE.search(what) else ""


def _learn_from_revert(change: str, passages: list[Passage], evidence: Discovery) -> Discovery | None:
    """Return what is not to be done again, and why."""
    reason = next((reason for passage in passages if (reason := _find_reason(passage))), "")
    if not change or not reason or _NOT_NEEDED.search(reason):
        return None
    rule = next((lesson.action or lesson.title for lesson in map(find_lesson, passages) if lesson), "")
    avoid = f"Do not redo “{change}”"
    titles = (f"{avoid}: {why}" for why in (reason, *list_beginnings(split_sentences(reason)[0])))
    title = next((title for title in titles if len(title) <= TITLE_LIMIT + 1), avoid)  # a title has no full stop
    return evidence.replace(rule="revert", text=title, failed=change, worked=rule.rstrip("."), excerpt=reason)


def _find_reason(passage: Passage) -> str:
    """Return the sentences of a paragraph that say why a change was taken back; empty if none does."""
    whole = _list_reasons(passage)
    return _take(whole, _MAX_REASON_LENGTH) if any(_gives_reason(one) or _lasts(one) for one in whole) else ""


def _list_reasons(passage: Passage) -> list[str]:
    """Return the whole sentences of a paragraph that are no plans, without the end of an argument at its start."""
    whole = [sentence for sentence in passage.sentences if can_state(sentence) and not _is_plan(sentence)]
    while whole and _CONTINUES.match(whole[0]):
        whole.pop(0)
    return whole


def _find_lasting_reason(passage: Passage, *, is_plain: bool) -> str:
    """Return the sentences of a paragraph that say why things are to be done so; empty if none does.

    `is_plain` says that the subject leaves no doubt that it decides something. Otherwise the model must agree.
    """
    whole = [sentence for sentence in _list_reasons(passage) if not _ABOUT_COMMIT.search(sentence)]
    is_plain = is_plain and any(map(_gives_reason, whole)) and any(map(_lasts, whole))
    return _take(whole, _MAX_REASON_LENGTH) if is_plain or _has_likely_reason(passage) else ""


def _has_likely_reason(passage: Passage) -> bool:
    return any(
        rate(sentence).total + odds >= _MIN_WITH_ODDS
        for sentence, odds in zip(passage.sentences, passage.odds, strict=True)
        if can_state(sentence)
        and _lasts(sentence)
        and not _ABOUT_DEFECT.search(sentence)
        and not starts_with_reference(sentence)
    )


def _take(sentences: Iterable[str], limit: int) -> str:
    """Return as many of the first sentences as the limit allows, at least one."""
    taken = ""
    for sentence in sentences:
        if taken and len(taken) + len(sentence) >= limit:
            break
        taken = f"{taken} {sentence}".strip()
    return taken


def _gives_reason(sentence: str) -> bool:
    return _TROUBLE.search(hide_code(sentence)) is not None or bool(_REASONS.intersection(rate(sentence).features))


def _is_plan(sentence: str) -> bool:
    return bool({"plan", "question", "guess"}.intersection(rate(sentence).features))


def _lasts(sentence: str) -> bool:
    """Return whether a sentence says how things are, not only how they were or what the commit does."""
    features = set(rate(sentence).features)
    return not (_ABOUT_COMMIT.search(sentence) or features & ({"order", "past", *_PASSES} - {"here and now"}))


def _learn_from_decision(subject: str, passages: list[Passage], evidence: Discovery) -> Discovery | None:
    """Return the rule that a message states, or what its subject decides and why."""
    rules = map(_find_rule, passages)
    rule = max(filter(None, rules), key=lambda lesson: lesson.rating, default=None)
    if rule is not None:
        excerpt = f"{subject}. {rule.observation}"
        kind = "pattern" if rule.is_order else "constraint"
        return evidence.replace(type=kind, text=rule.title, worked=rule.action, excerpt=excerpt)
    reason = _explain_decision(subject, passages)
    if not reason or _NOT_NEEDED.search(reason):
        return None
    fact = choose_clause(split_sentences(reason)[0])
    if names_something(fact) and not names_something(subject) and len(fact) <= TITLE_LIMIT and stands_alone(fact):
        return evidence.replace(type="constraint", text=fact, worked=subject, excerpt=f"{subject}. {reason}")
    return evidence.replace(type="pattern", text=subject, excerpt=reason)


def _explain_decision(subject: str, passages: list[Passage]) -> str:
    """Return why the subject of a message decides something; empty if it decides nothing, or does not say why."""
    is_plain = _DECIDES.search(subject) is not None
    if not _is_title(subject) or _REPAIRS.match(subject) or (_CHANGES.match(subject) and not is_plain):
        return ""
    rated = add_odds(passages, COMMITS, before=subject)
    return next((reason for passage in rated if (reason := _find_lasting_reason(passage, is_plain=is_plain))), "")


def _find_rule(passage: Passage) -> Lesson | None:
    if any(map(_DRAWBACK.search, passage.sentences)):
        return None
    has_reason = sum(map(_explains, passage.sentences)) > 0
    return find_lesson(passage, least=_MIN_RATING, may_lead=partial(_states_rule, has_reason=has_reason))


def _explains(sentence: str) -> bool:
    """Return whether a sentence says what happens, or happened, without the rule beside it."""
    return not _MUST.search(sentence) and (_TROUBLE.search(hide_code(sentence)) is not None or _lasts(sentence))


def _states_rule(statement: str, *, has_reason: bool) -> bool:
    """Return whether a sentence states a rule, not only what the commit does.

    `has_reason` says that its paragraph gives the reason; otherwise the sentence must give it, or say where it applies.
    """
    features = set(rate(statement).features)
    is_about_now = _ABOUT_COMMIT.search(statement) or _ABOUT_DEFECT.search(statement) or features & _PASSES
    if is_about_now:
        return False
    if "order" in features:
        return _INSISTS.match(statement) is not None or {"choice", "scope"} <= features
    if features & {"past", "happened"}:
        return "decision" in features
    if _MUST.search(statement) and not _PERHAPS.search(statement):
        return not _WE_MUST.search(statement) and (has_reason or bool(features & _SUPPORT))
    return "decision" in features


def _is_title(subject: str) -> bool:
    """Return whether a subject tells what to do, in a whole sentence."""
    if len(subject) > TITLE_LIMIT or not is_whole(subject) or not stands_alone(subject) or _FOR_NOW.search(subject):
        return False
    return is_order(subject) or not subject.isascii()
