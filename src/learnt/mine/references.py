"""Tell whether a sentence can be understood alone, and strip what only announces or connects it.

A learning is read without the text that it was found in. A sentence that starts with `it`, `this` or `otherwise` is
about what was said before; words such as `It turns out that` or `Note:` only say that something worth knowing follows.
"""

from __future__ import annotations

import re

from learnt.mine.rating import hide_code, is_order
from learnt.text.verbs import base_of, is_past

# Sentences that start so are about what was said before.
_ANAPHORA = re.compile(
    r"^(?:(?:and|but|so|also|then|therefore|hence|thus|still|yet|however|importantly|notably|unfortunately)\b,? ?)*"
    r"(?:otherwise|instead|as such|as a result|(?:because of|due to|with|without|after|before|by|for|if|until|since|"
    r"from|"
    r"when) (?:this|that|it|them|so|not|these|there (?:is|are)n['’]t|they)\b|for (?:this|that) reason|"
    r"in (?:this|that|such a?) (?:case|event|way)|(?:(?:in|with|on|for|under) [\w§. -]{2,30},? )?"
    r"(?:it|its|they|their|them|he|she|these|those|such|this|that|both|neither|the (?:same|other|latter|former)|here|"
    r"there(?!['’]s no| (?:is|are) no)|one of them|each of them|either|which|das|dies\w*|es|sie|er|dabei|dadurch|damit|"
    r"deshalb|daher|cela|ça|c['’]est|ce|il(?! faut)|elle|ils|esto|eso|ello|así))(?:['’](?:s|re|ll|d))?(?![\w/.-])"
    r"(?! (?:repo(?:sitory)?|project|code ?base|service|package|workspace|app(?:lication)?|image)\b)",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:on|in|with|into|to|for|from|of|at|under|outside|inside|within|behind) (?:(?:that|those|these) (?!is\b|"
    r"are\b|way\b)\w+|"
    r"this (?:case|situation|commit|change|context|line|function|test|file)\b)|"
    r"\b(?:for|of|with|like|than|about) (?:this|that|these|those)\b(?! \w+ing\b)(?=[ ,.;]*(?:$|[,.;]|to\b))|"
    r"(?<=[a-z] )(?:those|these) \w+s\b(?! (?:that|which|who|whose)\b)(?!:)",
    re.IGNORECASE,
)
# An order or a demand about `it`, before anything is named that it could be.
_ABOUT_IT = re.compile(r"^[^§]{0,30}\b(?:it|them|(?:that|those) \w+)\b", re.IGNORECASE)
# Words that announce what was found out and are not part of it.
_ANNOUNCES = re.compile(
    r"^(?:(?:so|and|but|well|ah|also),? )?(?:(?:it )?turn(?:s|ed) out(?: that)?,? |"
    r"(?:please )?(?:note|remember|beware|be aware|keep in mind)(?: that|[:,]) |"
    r"the (?:gotcha|lesson|catch|trap|point|problem|reason|cause|culprit|crux|difficulty|key|thing)\b[^.:;,]{0,40} "
    r"(?:is|was) that |"
    r"it took (?:me )?(?:a while|some time|a moment)[^.:;,]{0,30} that |"
    r"(?:i|we)(?: have|['’]ve)? (?:also )?(?:learn(?:ed|t)|found(?: out)?|noticed|realised|realized|discovered|"
    r"understood|"
    r"saw) that |"
    r"(?:make|be) sure (?:to|that you) |(?:in (?:the )?future|from now on|for (?:the )?future),? |next time, )",
    re.IGNORECASE,
)
_TOPIC = re.compile(r"^(?:about|regarding|concerning|as for|on) [^.:;!?§`]{2,50}: (?=\S)", re.IGNORECASE)
_LABEL = re.compile(r"^(?P<label>[A-Z][^.:;!?§`]{2,60}?)(?: ?:| –| —) (?=\S)")
_LABEL_WORD = re.compile(
    r"\b(?:note|notice|nb|important|lessons?|gotchas?|caveat|tip|warning|beware|remember|learning|understood|takeaways?|"
    r"detail|things?|knowing|noting|mind|ran into|trap|pitfall|catch|future|cause|reason|background|why|went wrong|"
    r"next time|"
    r"heads[- ]up|fyi|attention|rule|convention|achtung|hinweis|wichtig|merke|importante?|ojo|nota|cuidado|"
    r"remarque)\b",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(
    r"^(?:(?:so(?! that\b)|also|therefore|thus|however|importantly|notably|unfortunately|basically|and|"
    r"but),? )(?=[\w`])",
    re.IGNORECASE,
)
_MAX_LABEL_WORDS = 8
_SHOULD_HAVE = re.compile(r"^(?:i|we) should have ([a-z]+)\b", re.IGNORECASE)


def strip_announcement(sentence: str) -> tuple[str, bool]:
    """Return a sentence without the words that announce a lesson, and whether it had such words."""
    rest = _TOPIC.sub("", _strip_label(sentence))
    while (shorter := _ANNOUNCES.sub("", rest, count=1)) != rest:
        rest = shorter
    if rest == sentence and (past := _SHOULD_HAVE.match(sentence)) and is_past(past[1]):
        rest = base_of(past[1]) + sentence[past.end() :]
    return capitalise(_CONNECTIVE.sub("", rest)), rest != sentence


def capitalise(sentence: str) -> str:
    """Return a sentence with a capital letter, unless it starts with a name such as `urllib3` or `os.path`."""
    word = re.match(r"[^\W\d_]+(?:['’]\w+)?(?=[\s,]|: |$)", sentence)
    return sentence[:1].upper() + sentence[1:] if word and word[0].islower() else sentence


def _strip_label(sentence: str) -> str:
    label = _LABEL.match(sentence)
    if label and len(label["label"].split()) <= _MAX_LABEL_WORDS and _LABEL_WORD.search(label["label"]):
        return sentence[label.end() :]
    return sentence


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence can be understood without the one before it."""
    prose = hide_code(sentence)
    if _ANAPHORA.match(prose) or _POINTS_BACK.search(prose):
        return False
    return not (_ABOUT_IT.match(prose) and (is_order(prose) or prose.lower().startswith("you ")))


def starts_with_reference(sentence: str) -> bool:
    """Return whether a sentence starts with a word for what was said before."""
    return _ANAPHORA.match(hide_code(sentence)) is not None
