"""Tell a rule that holds in general from a remark on one case.

A rule has a duty (`must`, `not allowed`, `never`, `go through`) and a subject in general: `every handler`, `migrations`
and `we` are, `this loop`, `the total` and `it` are not. An order with `always` or `never` in front is a rule, too. Each
clause is judged separately, and one clause that is a rule is enough. English, German, French and Spanish are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_MAX_SENTENCE_LENGTH = 800
_MAX_SUBJECT_WORDS = 25
_NAME = "\N{BULLET}"
_USUALLY = "usually"
# Code in backticks, a path, a call, or an identifier with a dot or an underscore.
_NAMES = re.compile(r"`[^`\n]*`|[\w.@-]*/[\w./*-]+|\b\w+(?:\.\w+)+(?:\(\))?|\w+\(\)|\b\w+_\w+\b")
_CLAUSE_END = re.compile(
    r"[;:,()–—]|(?<=\w)[.!](?=\s|$)| - | (?:because|since|although|while|whereas|which|weil|denn|obwohl|"
    r"parce que|car|"
    r"porque|aunque) "
)
_TOKEN = re.compile(rf"{_NAME}|[^\W\d_][\w'’-]*")
# Duties of several words are written as one.
_JOINED = tuple(
    (re.compile(rf"\b(?:{pattern})"), word)
    for pattern, word in (
        (
            r"(?:is|are|be)(?: \w+)?? (allowed|permitted|forbidden|banned|prohibited|mandatory|tolerated|required)",
            r"\1",
        ),
        (r"(?:isn't|aren't) (?:allowed|permitted|tolerated)", "forbidden"),
        (r"ha(?:ve|s) to", "must"),
        (r"needs? to", "must"),
        (r"may (?:not|only)", "mustn't"),
        (r"can(?:not| only)\b", "can't"),
        (r"(?:belongs?|go|goes|come|comes) (?:in|into|through|via|from|under|to)\b", "belong"),
        (r"(?:do(?:n't|es not|es ?n't)|do not)", "don't"),
        (r"by (?:policy|convention)", "policy"),
        (r"(?<=\w )are (?:\w+ed|set|put|sent|read|made|done|built|written|kept) (?:through|via|from|as)\b", _USUALLY),
        (r"(?<=we )(?:use|prefer|avoid|require|want|keep|put|stick|rely)\b", "must"),
        (r"or else|otherwise|or (?:they|it)\b|sonst|sinon|de lo contrario", "otherwise"),
        (r"(?:doi(?:t|vent)|devr(?:a|ont|ait|aient)|il faut)", "doivent"),
        (r"(?:deben?|hay que|tienen? que|debería\w*)", "deben"),
        (r"nicht (?:erlaubt|zulässig)|verboten", "forbidden"),
        (r"pas(?:s|sent|se|sa|san) (?:par|por)\b", "belong"),
        (r"(?:with|of|by|on|in|for|to|the|not|is|are|if|when) only", "with"),  # `rows with only blanks` is no duty
    )
)
# Every duty contains one of these; most of what tools print contains none.
_MAY_OBLIGE = re.compile(
    r"must|should|shall|need|requir|never|always|only|allow|permit|forbid|bann|prohib|mandat|tolera|belong|go|"
    r"come|don't|do not|"
    r"does|polic|convention|everywhere|neighbo|elsewhere|like |whole|entire|this |our |ha(?:ve|s) to|may |are |"
    r"müss|muss|dürf|darf|"
    r"soll|gehör|nur|kein|nicht|verboten|nie|immer|doi|dev|faut|jamais|toujours|pass|deb|hay|tien|nunca|siempre|"
    r"diesem|ce |este ",
    re.IGNORECASE,
)
_SCOPE = re.compile(
    r"\b(?:in|of|across|through(?:out)?) (?:(?:this|our) (?:code ?base|repo(?:sitory)?|mono ?repo|project|team|"
    r"workspace|account|organi[sz]ation|company|app(?:lication)?|product)|the (?:whole|entire) \w+)\b|"
    r"\bin diesem (?:projekt|repo\w*)\b|\bdans ce (?:projet|dépôt)\b|\ben este (?:proyecto|repositorio)\b|"
    r"\beverywhere(?: (?:else|in))?\b|"
    r"\b(?:like|as) (?:in )?(?:its neighbou?rs|elsewhere|all (?:the )?(?:others?|\w+s)|"
    r"(?:the|every) (?:others?|rest))\b",
    re.IGNORECASE,
)
_SCOPE_WORD = "scopewide"
# A sentence that says of itself that it is a rule.
_CONVENTION = re.compile(
    r"\W*(?:(?:our|the|a|house|team|project) )*(?:convention|rule|policy|guideline|standard|konvention|regel|"
    r"convention|règle|regla|norma)s?(?: (?:here|is|in \w+ \w+))*\W*:"
)
_ABSOLUTE = frozenset(
    "never always forbidden banned prohibited mandatory policy mustn't nie niemals immer jamais toujours nunca "
    "siempre "
    "scopewide".split()
)
_DUTIES = _ABSOLUTE | frozenset(
    "must should shouldn't shall need needs require requires required only can't allowed permitted belong don't "
    "otherwise "
    "usually müssen muss dürfen darf sollen sollten sollte gehören gehört nur kein keine keinen doivent deben".split()
)
# What a tool cannot do is no duty.
_DUTIES_OF_TOOLS = _DUTIES - {"can't", "otherwise"}
_PLURAL_DUTIES = frozenset("müssen dürfen sollen sollten gehören".split())
_STANDING_ORDERS = frozenset("never always don't avoid immer nie niemals toujours jamais siempre nunca".split())
# `No unwrap() outside tests in this project` is an order, `no timeout on calls` a complaint.
_DENIALS = frozenset("no keine kein".split())
_POLITE = frozenset("please bitte and so".split())
_FREQUENCIES = frozenset(
    "never always only don't nie niemals immer nur jamais toujours nunca siempre otherwise".split()
)
_DEFINITE = frozenset(
    "the this that these those it its it's that's there here he she you they i i'm i've i'll my your his her their "
    "one two three four five both some several many most few another other "
    "please also "
    "and but or so then now which who what why how if when is was has does isn't der die das es dies diese dieser "
    "dieses hier er "
    "sie ich du le la ce cette c'est il elle je tu el esta este esto yo maybe perhaps".split()
)
_GENERAL = frozenset(
    "we our every each all any no whoever whatever whenever a an everything everyone nothing nobody such "
    "wir unsere jede jeder jedes alle kein keine nous on nos chaque tous toutes aucun aucune les nosotros nuestras "
    "nuestros "
    "todos todas cada ningún ninguna los las".split()
)
_CASE = frozenset("here this that was were had did been became will would could might hier ici aquí".split())
_FIRST_PERSON = frozenset("i i'm i've i'll me my ich je yo".split())
_PLURAL = re.compile(r"[\w-]*[^\Wsui_]s$|data$|people$|children$")


def states_rule(sentence: str, *, is_prose: bool = True) -> bool:
    """Return whether a sentence states what holds in general, not only for the case that it comments on.

    In prose, a subject without an article is general (`Personal data must not leave the backend`). A tool leaves
    articles out, so that only a plural is general there.
    """
    text = _write_as_words(sentence)
    if is_prose and _CONVENTION.match(text):
        return True
    if "?" in text or not _FIRST_PERSON.isdisjoint(_TOKEN.findall(text)):
        return False
    may_deny = is_prose and (_SCOPE_WORD in text or "instead" in text or "allowed" in text)
    orders = _STANDING_ORDERS | _DENIALS if may_deny else _STANDING_ORDERS
    return any(_is_order(clause, orders) or _is_rule(clause, is_prose=is_prose) for clause in _split_clauses(text))


def has_duty(message: str) -> bool:
    """Return whether a tool's message says what must or must not be, whatever it is about."""
    if _MAY_OBLIGE.search(message) is None:
        return False
    return not _DUTIES_OF_TOOLS.isdisjoint(_TOKEN.findall(_write_as_words(message)))


def _write_as_words(sentence: str) -> str:
    """Return a sentence in lower case, with each name as one sign and each duty as one word."""
    text = _NAMES.sub(_NAME, sentence[:_MAX_SENTENCE_LENGTH]).replace("’", "'").lower()
    text = _SCOPE.sub(_SCOPE_WORD, text)
    for pattern, word in _JOINED:
        text = pattern.sub(word, text)
    return text


def _split_clauses(text: str) -> Iterator[list[str]]:
    """Yield the words of each clause; `otherwise` ends the clause whose duty it states."""
    words: list[str] = []
    for clause in _CLAUSE_END.split(text):
        tokens = _TOKEN.findall(clause)
        if tokens[:1] == ["otherwise"]:
            yield [*words, "otherwise"]
        elif tokens:
            yield tokens
        words = tokens or words


def _is_order(words: Sequence[str], orders: frozenset[str]) -> bool:
    words = words[1:] if words[0] in _POLITE and len(words) > 1 else words
    is_order = words[0] in orders and len(words) > 2 and words[1] not in _DEFINITE and not words[1].endswith("ing")
    return is_order and _CASE.isdisjoint(words)


def _is_rule(words: Sequence[str], *, is_prose: bool) -> bool:
    if words[0] == "only":
        words = words[1:]  # `only admins may …` is about admins
    known_duties = _DUTIES if is_prose else _DUTIES_OF_TOOLS
    place = next((place for place, word in enumerate(words) if word in known_duties), -1)
    if place < 0 or place > _MAX_SUBJECT_WORDS:
        return False
    duties, subject = known_duties.intersection(words), words[:place] or words
    if subject[0] == _SCOPE_WORD:
        subject = words[1:]
    return bool(subject) and _is_general(subject, duties, is_prose=is_prose) and _is_free_of_case(words, subject)


def _is_general(subject: Sequence[str], duties: frozenset[str], *, is_prose: bool) -> bool:
    first = subject[0]
    if duties == {_USUALLY}:
        return first in _GENERAL  # what is done to some things may be the mistake
    if first in _GENERAL:
        return first not in ("a", "an") or bool(duties - {"need", "needs", "should"})
    if first == "die" and duties & _PLURAL_DUTIES:
        return True
    if first in _DEFINITE:
        return False
    if first == _NAME and not any(map(_PLURAL.match, subject[1:2])):
        return bool(duties & _ABSOLUTE)
    is_plural = any(map(_PLURAL.match, subject[:4]))
    return is_plural or (is_prose and bool(duties - _FREQUENCIES))  # `the check always fails` is a complaint


def _is_free_of_case(words: Sequence[str], subject: Sequence[str]) -> bool:
    return _CASE.isdisjoint(words) or (subject[0] in ("we", "our") and _CASE.intersection(words) <= {"here"})
