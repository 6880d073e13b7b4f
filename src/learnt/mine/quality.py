"""Find the reason why a text is not a useful learning, whether an agent, a model or a rule wrote it.

A learning is a principle that the next agent can act on. An account of one incident, a sentence without anything
specific, a fact about a single line, a platitude about all software, and a description of the current state are not
learnings. In case of doubt, no flaw is reported: marks will show whether the learning is useless.
"""

from __future__ import annotations

import re

from learnt.text.sentences import is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.mine.extract import LearningDraft

_MIN_WORDS = 3
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE = re.compile(r"`[^`]*`")
# Something specific: code, a path, an option, an identifier, an abbreviation, a file.
_CONCRETE = re.compile(
    r"`[^`]+`|\w+/\w+|(?<!\w)--?\w[\w-]*|\w+_\w+|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\w*\b|\b\w+\.[a-z]{1,5}\b|\w+\(\)"
)
_INCIDENT = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b[0-9a-f]{40}\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,12}\b|"
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\b|(?:/Users|/home)/\w+|(?<![\w&])#\d{2,}\b|\bPR \d+|"
    r"\b(?:pull request|issue) #?\d+|\b(?:today|yesterday|this (?:morning|afternoon|session)|last (?:week|night))\b",
    re.IGNORECASE,
)
_LINE = re.compile(r"\blines? \d+|\b[\w/-]+\.\w{1,5}:\d+")
_PLATITUDE = re.compile(
    r"\b(?:write|add|run|have) (?:\w+ ){0,2}tests\b|\bbe (?:more )?careful\b|"
    r"\bfollow (?:\w+ ){0,4}(?:conventions?|practices?|guidelines?|standards?|patterns?)\b|"
    r"\b(?:best|good) practices?\b|\bclean code\b|\bhandle (?:all )?errors? (?:properly|correctly|gracefully)\b|"
    r"\bdouble[- ]check|\btest thoroughly\b|\bthorough(?:ly)? test|\bread the (?:docs|documentation|code)\b|"
    r"\bmeaningful names?\b|\bkeep (?:it|things|the code) (?:simple|clean)\b|"
    r"\bmake sure (?:that )?(?:it|everything|the code) works\b|"
    r"\bpay attention\b|\bas (?:needed|appropriate)\b|\bconsider (?:all )?edge cases\b",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"^(?:all |the |both )*(?:\w+ )?(?:tests?|build|lint(?:er)?|checks?|suite)s? (?:now |all |still )*"
    r"(?:pass(?:es|ed)?|succeeds?|is green|are green|work)|"
    r"^(?:i|we)(?:'ve| have)? (?:\w+ )?(?:added|fixed|implemented|updated|changed|created|removed|refactored|found)\b|"
    r"^(?:the )?(?:file )?\S+ (?:contains|includes|defines|has) (?!to\b|no\b)|"
    r"\b(?:has|have) been (?:added|fixed|implemented|updated|changed|created|removed)\b|"
    r"^(?:fixed|added|implemented|updated|created|removed|refactored|done|completed|success\w*)\b|"
    r"\bis (?:now|complete|done)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:things?|stuff|somehow|something|various|several issues|some (?:issues?|problems?)|etc)\b", re.IGNORECASE
)
_EMPTY = re.compile(
    r"\b(?:better|faster|cleaner) (?:and \w+ )?(?:in general|code)?\b|\bin general\b|"
    r"\b(?:right|proper|appropriate|correct) (?:configuration|settings?|tools?|way|approach|version|values?)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(r"\b(?:was|were) (?:caused|due|because|broken|wrong|missing)\b", re.IGNORECASE)
_PROJECT_FACT = re.compile(
    r"^(?:the|this|our) (?:project|repo(?:sitory)?|codebase|code|app(?:lication)?) (?:uses|has|is|contains|runs)\b",
    re.IGNORECASE,
)
_IS_A_RULE = re.compile(
    r"\b(?:use|should|must|make|rewrite|replace|remove|prefer|avoid|expect|instead|missing|unhandled|unwrapped)\b|"
    r"\bnot checked\b",
    re.IGNORECASE,
)
_PLACEHOLDERS = re.compile(r"<(?:id|time|n)>|…")


def find_flaw(draft: LearningDraft) -> str:
    """Return why a draft is not a useful learning; empty if it is useful."""
    return find_flaw_in(title=draft.title, observation=draft.observation, action=draft.action)


def find_flaw_in(*, title: str, observation: str = "", action: str = "") -> str:
    """Return why these texts are not a useful learning; empty if they are useful."""
    prose = _CODE.sub(" ", title)
    if len(_WORD.findall(title)) < _MIN_WORDS:
        return "too vague: it says too little"
    if _INCIDENT.search(title):
        return "an incident: it names one day, commit, person or report"
    if _LINE.search(title):
        return "too narrow: it is about one line of one file"
    if _STATE.search(title.strip()) or _PROJECT_FACT.match(title.strip()):
        return "restates the present state"
    if _CAUSE.search(prose):
        return "an incident: it tells what was, not what holds"
    if not (_CONCRETE.search(title) or _CONCRETE.search(action)):
        if _PLATITUDE.search(prose) or _EMPTY.search(prose):
            return "a platitude: it is true of all software"
        if _VAGUE.search(prose):
            return "too vague: it names nothing"
    return _check_remedy(title, action) or _check_code(title) or _check_advice(observation, action)


def _check_remedy(title: str, action: str) -> str:
    """Return a flaw unless the texts contain a rule or an example that a check accepts."""
    if action.startswith("Mind this in new code") and not _IS_A_RULE.search(title):
        return "too vague: it says what is wrong, not what to do"
    elided = title.count("`…`") > 1 or title.endswith("`…`")
    if elided and "for example" not in action and "mark it where it is meant" not in action:
        return "too vague: what matters is left out"
    return ""


def _check_code(title: str) -> str:
    """Return a flaw if the code in a title is only placeholders, so that it was true on one machine or one day."""
    spans = _CODE.findall(title)
    if len(spans) > 1 and spans[-1] == spans[-2] != "`…`":
        return "too vague: what failed and what worked read the same"
    if spans and all(len(re.findall(r"\w", _PLACEHOLDERS.sub("", span))) < 2 for span in spans):
        return "an incident: without the names of that day nothing is left"
    return ""


def _check_advice(observation: str, action: str) -> str:
    """Return a flaw if the advice is to repeat the failed command."""
    failed = re.match(r"`([^`]+)` failed", observation)
    if failed and action == f"Use `{failed[1]}`.":
        return "too vague: it advises what failed"
    return ""
