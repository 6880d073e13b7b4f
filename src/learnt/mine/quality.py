"""The gate: find the reason why a text is not a useful learning, whether an agent, a model or a rule wrote it.

Every learning passes it, whichever door it comes through, except what a person adds. A learning is a principle that the
next agent can act on. A note to do, a question, a plan, an account of one incident, a sentence without anything
specific, a fact about a single line, a platitude about all software, and a description of the current state are not
learnings. Mined prose must be a whole sentence as well; an author who states a learning may be terse. In case of doubt,
no flaw is reported: marks will show whether the learning is useless.
"""

from __future__ import annotations

import re

from learnt.text.sentences import is_whole
from learnt.text.verbs import is_base_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.mine.extract import LearningDraft

# These rules put their findings into sentences of their own, or somebody has put them into words on purpose.
_WORDED_BY_RULES = ("command", "edit", "call", "verification", "stated")
# The flaws that are none if it happens again.
_HEALED_BY_RECURRENCE = ("an incident", "too narrow")
_MIN_WORDS, _MIN_WORDS_OF_AN_ORDER = 3, 2
_POINTING = frozenset("it this that them these those".split())
_FIRST_WITHOUT_BLANKS = "\u3040"
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE = re.compile(r"`[^`]*`")
# Something specific: code, a path, an option, an identifier, an abbreviation, a file, a number.
_CONCRETE = re.compile(
    r"\d|`[^`]+`|\w+/\w+|(?<!\w)--?\w[\w-]*|\w+_\w+|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\w*\b|\b\w+\.[a-z]{1,5}\b|\w+\(\)"
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
    r"\bcommon sense\b|^\w+ (?:is|are) (?:very )?important\W*$|^works on my machine\b|"
    r"\bpay attention\b|\bas (?:needed|appropriate)\b|\bconsider (?:all )?edge cases\b",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"^(?:all |the |both )*(?:\w+ )?(?:tests?|build|lint(?:er)?|checks?|suite)s? (?:now |all |still )*"
    r"(?:pass(?:es|ed)?|succeeds?|is green|are green|work)|"
    r"^the task was\b|"
    r"^(?:i|we)(?:'ve| have)? (?:\w+ )?(?:added|fixed|implemented|updated|changed|created|removed|refactored|found)\b|"
    r"^(?:the )?(?:file |module )?`?[\w/-]+\.\w{1,5}`? (?:contains|includes|defines|has) (?!to\b|no\b)|"
    r"\b(?:has|have) been (?:added|fixed|implemented|updated|changed|created|removed)\b|"
    r"^(?:fixed|added|implemented|updated|created|removed|refactored|done|completed|success\w*)\b|"
    r"\bis (?:now|complete|done)\b|\byet$|"
    r"^(?:the|this|your) (?:\w+ )?(?:implementation|code|changes?|fix|approach|pr|pull request|design|solution|logic) "
    r"(?:is|are|looks?|seems?) (?:\w+ )?(?:solid|correct|fine|good|clean|sound|ready|complete|great|safe)\b|"
    r"^(?:the|this) (?:fix|pr|pull request|change|commit|patch|refactoring) (?!needs|has to)\w+s\b|^tests that\b|"
    r"^(?:prevents|ensures|verifies|adds|fixes|allows|removes|handles|improves|updates|replaces)\b|"
    r"^(?:alle )?tests (?:laufen(?! (?:nur|mit|in|auf|gegen|über|immer)\b)|sind grün|bestehen)\b|"
    r"^(?:tous les )?tests (?:passent|sont verts)\b|"
    r"^(?:tod[oa]s l[oa]s )?(?:tests|pruebas) pasan\b",
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
_TO_DO = re.compile(r"^\W*(?:todo|fixme|tbd|wip|xxx)\b(?!`| (?:comments?|markers?|notes?|items?)\b)", re.IGNORECASE)
_NOTHING = re.compile(
    r"(?:none|nothing|n/?a|no (?:new )?learnings?|nothing (?:new|learn(?:ed|t)|to (?:report|add|learn)|special)|"
    r"(?:see|same as|as) above|lorem ipsum.*|(?:your )?learning (?:goes )?here)(?: (?:here|so far|this time|yet))?\W*",
    re.IGNORECASE,
)
_PLAN = re.compile(
    r"^(?:i(?:['’]ll| will| am going to|['’]m going to| plan to| want to)|we(?:['’]ll| will| plan to| are going to)|"
    r"let me|let['’]s|we should (?:refactor|rewrite|clean|improve|revisit)|"
    r"(?:possible |the |a )?next steps?\b|next,? i|going to|ich werde|je vais|voy a)\b",
    re.IGNORECASE,
)
# What somebody did, without a word of what holds: “Edited the skill without loading it”.
_TELLS = re.compile(
    r"^(?:(?:i|we) )?(?:edited|forgot|tried|ran|broke|wrote|skipped|missed|deleted|merged|pushed|deployed|spent|wasted|"
    r"overlooked|misread|assumed|committed|reverted|had to)\b"
    r"(?!.*\b(?:is|are|must|should|needs?|never|always|not|cannot|can|will|has|have|do|does)\b)",
    re.IGNORECASE,
)
_CAUSE = re.compile(r"\b(?:was|were) (?:caused|due|because|broken|wrong|missing)\b", re.IGNORECASE)
_PROJECT_FACT = re.compile(
    r"^(?:the|this|our) (?:project|repo(?:sitory)?|codebase|code|app(?:lication)?) (?:uses|has|is|contains|runs)\b",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r"\b(?:not|instead|only|never|must|rather)\b", re.IGNORECASE)
_IS_A_RULE = re.compile(
    r"\b(?:use|should|must|make|rewrite|replace|remove|prefer|avoid|expect|instead|not checked)\b",
    re.IGNORECASE,
)
_PART_OF_SENTENCE = re.compile(
    r"^(?:ensuring|allowing|preventing|making sure)\b[^,]*$|"
    r"^(?:because|which|whose|that (?:is|are|was|were)|weil|parce que|porque)\b[^,]*$|"
    r"\b(?:the|an|of|and|or|with|from|into|der|und|oder|mit|von|les|et|ou|los|con)$",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"(?:the|an?|this|our|my)\b", re.IGNORECASE)
_PLACEHOLDERS = re.compile(r"<(?:id|time|n)>|…")


def find_flaw(draft: LearningDraft, *, rule: str = "") -> str:
    """Return why what a rule found is not a useful learning; empty if it is useful."""
    if rule and rule not in _WORDED_BY_RULES and (draft.title.endswith("…") or not is_whole(draft.title)):
        return "incomplete: it is only a part of a sentence"
    flaw = find_flaw_in(title=draft.title, observation=draft.observation, action=draft.action)
    return flaw or _check_code(draft.title)


def find_flaw_in(*, title: str, observation: str = "", action: str = "") -> str:
    """Return why these texts are not a useful learning; empty if they are useful."""
    return (
        _check_form(title)
        or _check_subject(title)
        or _check_substance(title, action)
        or _check_remedy(title, action)
        or _check_advice(observation, action)
    )


def can_heal(reason: str) -> bool:
    """Return whether a flaw is perhaps none if several tasks report the same."""
    return reason.startswith(_HEALED_BY_RECURRENCE)


def _check_form(title: str) -> str:
    """Return a flaw if a text does not even state something."""
    if _TO_DO.search(title):
        return "a note to do: it says what is missing, not what holds"
    if _NOTHING.fullmatch(title) or _says_too_little(title):
        return "too vague: it says too little"
    if _PART_OF_SENTENCE.search(title.rstrip(" .")) or (_ARTICLE.match(title) and not is_whole(title)):
        return "incomplete: it is only a part of a sentence"
    if title.rstrip().endswith("?"):
        return "a question: it does not say the answer"
    if _PLAN.search(title):
        return "a plan: it says what comes next, not what holds"
    return ""


def _check_subject(title: str) -> str:
    """Return a flaw if a text is about one day, one line or the present state."""
    if _INCIDENT.search(title):
        return "an incident: it names one day, commit, person or report"
    if _LINE.search(title):
        return "too narrow: it is about one line of one file"
    is_fact = _PROJECT_FACT.match(title.strip()) and not _CONTRAST.search(title)
    if is_fact or _STATE.search(title.strip()):
        return "restates the present state"
    if _CAUSE.search(_CODE.sub(" ", title)) or _TELLS.search(_CODE.sub(" ", title.strip())):
        return "an incident: it tells what was, not what holds"
    return ""


def _check_substance(title: str, action: str) -> str:
    """Return a flaw if a text names nothing and is true everywhere."""
    if _CONCRETE.search(title) or _CONCRETE.search(action):
        return ""
    prose = _CODE.sub(" ", title)
    if _PLATITUDE.search(prose) or _EMPTY.search(prose):
        return "a platitude: it is true of all software"
    return "too vague: it names nothing" if _VAGUE.search(prose) else ""


def _says_too_little(text: str) -> bool:
    """Return whether a text has less than three words; two are enough for an order such as “Use pnpm”."""
    found = [word for word in _WORD.findall(text) if word.lower() not in _POINTING]
    # In scripts without blanks, two letters count as a word.
    count = sum(len(word) // 2 if word[0] >= _FIRST_WITHOUT_BLANKS else 1 for word in found)
    return count < (_MIN_WORDS_OF_AN_ORDER if found and is_base_form(found[0]) else _MIN_WORDS)


def _check_remedy(title: str, action: str) -> str:
    """Return a flaw unless the texts contain a rule or an example that a check accepts."""
    if action.startswith("Mind this in new code") and not _IS_A_RULE.search(title):
        return "too vague: it says what is wrong, not what to do"
    elided = title.count("`…`") > 1 and "for example" not in action
    if ": …" in title:
        return "too vague: what matters is left out"
    if (elided or title.endswith("`…`")) and "mark it where it is meant" not in action:
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
