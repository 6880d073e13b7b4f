"""Find lessons that are stated in text: in an agent's output or in a commit message.

A sentence is a lesson only if it mentions something in the project (in backticks, a file, a command), states a rule or
a cause, and is not a plan, a question or a report of finished work. Quotations are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from learnt.debrief.own_words import own_words
from learnt.mine.complaint import generalise
from learnt.model import Discovery
from learnt.text.clean import clean, fold
from learnt.text.verbs import base_of

_MAX_TEXT_LENGTH = 100_000
_MIN_LENGTH, _MAX_LENGTH = 35, 260
_MIN_WORDS = 5
_MIN_LABELLED_LENGTH, _MIN_LABELLED_WORDS = 15, 3
_LINE = re.compile(r"[^\n]+")
_SENTENCE_END = re.compile(r"(?<![A-Z])(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?](?=\s+[A-Z`*\"'(]|\s*$)")
_LEAD = re.compile(r"^[\s>#|]*(?:[-*+•]\s+|\d+[.)]\s+)?(?:\[[ x]\]\s*)?")
_CONCRETE = re.compile(
    r"`[^`\n]{2,60}`|\b[\w-]+/[\w./-]+|\b[\w-]+\.(?:py|go|ts|tsx|js|rs|java|rb|md|toml|yaml|yml|json|sh|sql|c|h)\b"
)
# A requirement or a limit, which is true beyond the current work.
_DEMANDS = re.compile(
    r"\b(?:requires? (?!approval|user|manual|changes?\b)|must (?:not|come|run|match|start|end|stay|be (?!\w+ing\b))\b|"
    r"(?:does(?:n't| not)|do(?:n't| not)) (?:support|respect|accept|allow|work|take|honou?r|follow|inherit|"
    r"include|read|expand)|(?:is|are) not (?:supported|allowed|available)|"
    r"(?<!to )only (?:works?|accepts?|supports?|runs?|takes?|applies)\b|has to be|have to be|cannot be|"
    r"can't be|fails? (?:when|if|unless|on|without)\b|breaks? (?:when|if|unless)\b)"
)
_NAMED_FIRST = re.compile(
    r"^(?:(?:The|A|An|In|On|With|For|When|It turns out(?: that)?|"
    r"Turns out(?: that)?)[, ]+)?(?:[\w-]+ ){0,3}(?:x\b|[\w-]+/[\w./-]+|[\w-]+\.\w{1,5}\b)"
)
_COMMAND_MOOD = re.compile(r"^(?:(?:always|never)(?! \w+s\b)|don't|do not|avoid)\b", re.IGNORECASE)
# The correction of an earlier belief.
_TURNS_OUT = re.compile(r"^(?:(?:so|and|but|well|ah),? )?(?:it )?turns out\b", re.IGNORECASE)
_HOLDS = re.compile(
    r"\b(?:must|never|always|only|cannot|can't|needs?|has to|have to|requires?|refuses?|expects?|ignores?|fails?|"
    r"breaks?|(?:does|do|is|are)(?:n't| not)|instead of|rather than|unless|without)\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:was|were|had|did|been)\b", re.IGNORECASE)
# One thing instead of another.
_INSTEAD = re.compile(
    r"^(?:so,? )?(?:use|run|call|prefer|pass|write|set|import|open|start|add|put|keep|build|install)\b[^.;]*\bx\b[^.;]*"
    r"\b(?:instead of|rather than|over|not|never)\b[^.;]*\bx\b",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"\b(?:always|never) (?:use|run|call|pass|write|set|import|open|start|add|put|keep|edit|commit|push|touch|change|"
    r"build|install|delete|rely|assume)\b",
    re.IGNORECASE,
)
# A requirement. `must be running` is only a guess.
_MUST = re.compile(r"(?<!^)\bmust\b(?! have\b| be \w+ing\b| be (?:a|an|the)\b)", re.IGNORECASE)
_YOU_MUST = re.compile(r"^you (?:must|need to|have to|cannot|can't)\b", re.IGNORECASE)
# Words that announce a lesson and are not part of it.
_LABEL = re.compile(
    r"^(?:(?:note|important|lesson(?: learn(?:ed|t))?|gotcha|caveat|tip|warning|beware|remember|learning|understood|"
    r"takeaway)[:,]\s+(?:that )?|i(?: have|'ve)? (?:learn(?:ed|t)|found out|noticed) (?:that )?|"
    r"(?:in (?:the )?future|next time|from now on),? |(?:make|be) sure (?:to|that you) )",
    re.IGNORECASE,
)
_SHOULD_HAVE = re.compile(r"^(?:i|we) should have (used|run|called|passed|set)\b", re.IGNORECASE)
_IMPERATIVE = re.compile(
    r"^(?:use|run|call|prefer|pass|write|set|import|open|start|add|put|keep|build|install|edit|commit|push|read|check|"
    r"close|quote|pin|copy|rename|name|declare|export|wrap|escape|generate)\b",
    re.IGNORECASE,
)
_REASONED = re.compile(
    r"^(?:use|run|call|prefer|pass|write|set)\b[^.]{3,120}\b(?:instead of|rather than|not)\b.*(?:\bbecause\b|"
    r"\bsince\b|: |; | — | - )",
    re.IGNORECASE,
)
# Statements about the current work.
_CURRENT_WORK = re.compile(
    r"\b(?:was|were|had|did|been|would|might|may|could|should|will|now|anyway|we|our|i|my|fix|fixes|fixed|bug|"
    r"issue|problem|this|these|root cause|users?|copilot|reviewer|comment|pr|commit message|after that|also|so that|"
    r"existing|currently|still|which|already)\b",
    re.IGNORECASE,
)
_NO_LESSON = re.compile(
    r"^(?:let me|let's|lets|i'll|i will|i'm|i am|i need|i should|i want|i can|i see|i've|i have|i think|i found|"
    r"i also|now|next|first|then|finally|ok|okay|good|great|perfect|looking|checking|we should|we could|we need|"
    r"should|could|would|do you|did you|is |are |what|why|how|which|maybe|perhaps|if you|you |the user|this test|"
    r"test |tests |step|option|phase|todo|note to self|added|fixed|updated|changed|removed|created|implemented|"
    r"this (?:is|was|adds|fixes|ensures|means|will|change|commit|pr)|that's|it's|there (?:is|are)|here)\b",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"\b(?:let me|i'll|i will|we'll|i'd|want me to|shall i|would you|should we|for now|at the moment|currently|"
    r"right now|in this session|i just|just now|earlier i|as you|you asked|you mentioned|your |acceptance criteria|"
    r"out of scope|lines? \d)|\bearlier\b|\?|[✅❌✓✗]|→|:$|\|",
    re.IGNORECASE,
)
_REVERT = re.compile(r"^\s*revert\b[:\s]*\"?(?P<what>[^\"\n]+?)\"?\s*$", re.IGNORECASE)
_REVERT_BOILERPLATE = re.compile(
    r"^(?:This reverts commit\b|\(cherry picked|Signed-off-by|Co-authored-by|[\w-]+: \S+$)", re.IGNORECASE
)
_BECAUSE = re.compile(
    r"\b(?:because|since|as it|broke|breaks|caused|causes|fails?|failed|regress\w*|due to|so that|leads? to)\b",
    re.IGNORECASE,
)
_TRAILER = re.compile(r"^[\w-]+: \S.*$")


def observe_words(text: str) -> Iterator[Discovery]:
    """Yield the lessons that an agent states in its own words, without duplicates."""
    yielded = set()
    for sentence in _split_own_sentences(text[:_MAX_TEXT_LENGTH]):
        statement, labelled = _strip_label(sentence)
        type = _classify(statement, labelled=labelled)
        if type and statement.casefold() not in yielded:
            yielded.add(statement.casefold())
            yield Discovery(type=type, rule="words", text=generalise(statement), excerpt=sentence)


def observe_commit(subject: str, body: str, files: Iterable[str] = ()) -> Discovery | None:
    """Return why a commit reverted a change, or the first lesson in its message; None if there is neither."""
    lines = (line for line in clean(body).split("\n") if not _REVERT_BOILERPLATE.match(line.strip()))
    prose = "\n".join(line for line in lines if not _TRAILER.match(line.strip()))
    evidence = Discovery(type="blocker", rule="words", text="", excerpt=fold(prose)[:1_000], files=tuple(files)[:20])
    if reverted := _REVERT.match(clean(subject)):
        change = fold(reverted["what"])
        for sentence in _split_sentences(prose):
            if _BECAUSE.search(sentence) or len(sentence) > _MIN_LENGTH:
                reason = generalise(sentence)
                text = f"Do not redo “{change}”: {reason}"
                return evidence.replace(rule="revert", text=text, failed=change, error=reason)
        return None
    for sentence, labelled in map(_strip_label, _split_own_sentences(prose)):
        if type := _classify(sentence, labelled=labelled):
            return evidence.replace(type=type, text=generalise(sentence))
    return None


def _strip_label(sentence: str) -> tuple[str, bool]:
    """Return a sentence without the words that announce a lesson, and whether it had such words."""
    rest = _LABEL.sub("", sentence)
    if rest == sentence and (match := _SHOULD_HAVE.match(sentence)):
        rest = base_of(match[1]).capitalize() + sentence[match.end() :]
    return rest[:1].upper() + rest[1:], rest != sentence


def _classify(sentence: str, *, labelled: bool = False) -> str:
    """Return a statement's type of discovery; empty if it is not a lesson. `labelled` means it was announced as one."""
    min_length, min_words = (_MIN_LABELLED_LENGTH, _MIN_LABELLED_WORDS) if labelled else (_MIN_LENGTH, _MIN_WORDS)
    if not min_length <= len(sentence) <= _MAX_LENGTH or len(sentence.split()) < min_words:
        return ""
    talks = _TALK.search(sentence) or (_NO_LESSON.match(sentence) and not _YOU_MUST.match(sentence))
    if talks or not _CONCRETE.search(sentence):
        return ""
    prose = _CONCRETE.sub("x", sentence)
    if _TURNS_OUT.match(prose):
        return "constraint" if _HOLDS.search(prose) and not _PAST.search(prose) else ""
    is_order = (_COMMAND_MOOD.match(prose) and "`" in sentence) or (labelled and _IMPERATIVE.match(prose))
    if is_order or _REASONED.match(prose) or _INSTEAD.match(prose):
        return "pattern"
    if _CURRENT_WORK.search(prose):
        return ""
    if _ALWAYS.search(prose):
        return "pattern"
    return "constraint" if _MUST.search(prose) or (_DEMANDS.search(prose) and _NAMED_FIRST.match(prose)) else ""


def _split_own_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text that are not quoted, including the code in them."""
    text = clean(text)
    own = own_words(text)
    for line in _LINE.finditer(own):
        for start, end in _find_sentences(line[0]) if line[0].strip() else ():
            sentence = _LEAD.sub("", text[line.start() + start : line.start() + end]).replace("**", "").strip()
            if sentence and line[0][start:end].strip():
                yield fold(sentence)


def _split_sentences(text: str) -> Iterator[str]:
    joined = fold(text)
    return (sentence for start, end in _find_sentences(joined) if (sentence := joined[start:end].strip()))


def _find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a line starts and ends."""
    return pairwise((0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)))
