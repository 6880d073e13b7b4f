"""Find the decisions that people make in answer to an agent's question, and choices that replace earlier ones.

A decision is a choice with its reason. Without a reason ("yes", "option 2") it says nothing to who was not there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from learnt.mine.comparison import FAMILIES
from learnt.mine.people import Utterance, capitalise, list_names
from learnt.mine.people_rules import SOFT, mask, strip_lead
from learnt.mine.people_words import any_of
from learnt.text.clean import clean, fold
from learnt.text.sentences import read_sentences, split_sentences
from learnt.text.statements import read_statement
from learnt.text.words import stem
from learnt.weigh.compare import find_slot

_MAX_ANSWER = 600
_MAX_SENTENCES = 2
_MIN_WORDS = 4
_MAX_OPTION = 80
_MAX_NAME_WORDS = 4
# A choice among what the agent offered.
_CHOICE = any_of(
    r"let['’]?s|go (?:with|for)|option|choose|pick|i(?:['’]d| would)? (?:prefer|choose|go|take)|the (?:first|second|"
    r"third|former|latter)|neither|keep|use|take|yes|no|a|b|c|[1-9]|stick|leave|both|do",
    r"nimm|lass uns|wir nehmen|variante|ja|nein|lieber|behalte?|verwende|nutze|die (?:erste|zweite)",
    r"prends|on prend|partons|oui|non|plutôt|garde[sz]?|utilise|la (?:première|deuxième|seconde)",
    r"vamos con|usa|mejor|s[ií]|no|la (?:primera|segunda)|quédate|mantén",
    at_start=True,
)
_BECAUSE = any_of(
    r"because|since|so that|as (?:we|it|they|the)|otherwise|due to|the reason",
    r"weil|denn|da (?:wir|es|sie|die|der|das)|damit|sonst|wegen",
    r"parce (?:que|qu['’])|car|puisque?|sinon|pour que",
    r"porque|ya que|pues|si no|para que|debido a",
)
_OPTION = re.compile(
    r"^(?:(?:let['’]?s )?(?:go (?:with|for)|take|do|use|pick|choose)?\s*)?(?:option|variant|variante|opción|choice|"
    r"number|nr\.?|#)?\s*\(?(?P<name>[a-e1-9])\)?(?=[\s,.:;!–—-]|$)",
    re.IGNORECASE,
)
# What a rule says to use, and what it says not to use any more.
_CHOSEN = re.compile(
    r"\b(?:use[sd]?|using|prefer|take|run|nimm|nehmen|nutzen?|verwenden?|benutzen?|utilis\w+|prends|usa|usamos|"
    r"utiliza\w*)\b(?: (?:only|always|immer|toujours|siempre|hier|ici|aquí))? (?P<what>[`\w.-]+)",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"\b(?:not|instead of|rather than|no longer|never use|don['’]?t use|stop using|statt|anstatt|nicht mehr|nicht|"
    r"keine?n?|au lieu de|plutôt que|pas|plus|en lugar de|en vez de|no) (?P<what>[`\w.-]+)",
    re.IGNORECASE,
)

_ALSO = any_of(r"also|too|as well|in addition|auch|außerdem|aussi|también|además")
_NUMBER = re.compile(r"\d")
_LANGUAGES = frozenset(
    stem(word)
    for word in (
        "english german french spanish italian portuguese dutch polish russian ukrainian turkish chinese "
        "japanese korean englisch deutsch französisch spanisch italienisch anglais allemand français espagnol italien "
        "inglés alemán francés español italiano"
    ).split()
)


def read_decision(question: str, answer: str) -> Utterance | None:
    """Return the choice that a person makes, with its reason, when the agent has asked; None if there is none."""
    asked = _find_question(question)
    text = clean(answer).strip()
    sentences = split_sentences(text) if len(text) <= _MAX_ANSWER and not text.startswith("/") else []
    if not asked or not sentences or sentences[0].endswith("?"):
        return None
    first = sentences[0]
    said = " ".join(sentences[:_MAX_SENTENCES])
    if not (_BECAUSE.search(mask(said)) or _gives_reason(sentences)) or not _chooses(first, question):
        return None
    choice = _name_option(first, question)
    if len(choice.split()) < _MIN_WORDS and len(sentences) > 1:
        choice = f"{choice} {sentences[1]}"
    return Utterance(text=capitalise(choice), words=fold(said), force=SOFT, is_decision=True)


def chooses_instead(earlier: str, later: str) -> bool:
    """Return whether a later rule makes another choice than an earlier one.

    It rejects what the earlier one says to use (`use pnpm`, then `we use bun, not pnpm`), or it is the same rule with
    another number, language or tool (`answer in English`, then `answer in German`).
    """
    some, others = read_statement(earlier), read_statement(later)
    if not some.denied and _find_names(_REJECTED, later) & _find_names(_CHOSEN, earlier):
        return not is_narrower(earlier, later)
    if others.denied or _ALSO.search(later):
        return False
    if len(some.sequence) == len(others.sequence) == 1:
        return any({*some.sequence, *others.sequence} <= family for family in FAMILIES)
    slot = find_slot(some, others)
    if slot is None:
        return False
    are_tools = slot[0] in _find_names(_CHOSEN, earlier) and slot[1] in _find_names(_CHOSEN, later)
    return are_tools or all(map(_NUMBER.search, slot)) or all(word in _LANGUAGES for word in slot)


def is_narrower(earlier: str, later: str) -> bool:
    """Return whether a later rule holds only in a place or a case that an earlier one does not name."""
    return not read_statement(later).places <= read_statement(earlier).all_words


def _find_names(pattern: re.Pattern[str], text: str) -> set[str]:
    return {stem(name) for match in pattern.finditer(text) for name in list_names(match["what"], least=2)}


def _find_question(said: str) -> str:
    """Return the last question in the agent's last paragraphs; empty if it asked nothing."""
    sentences = [sentence.text for sentence in read_sentences(clean(said)[-4_000:])]
    return next((sentence for sentence in reversed(sentences[-8:]) if sentence.endswith("?")), "")


def _gives_reason(sentences: Sequence[str]) -> bool:
    rest = sentences[1:2]
    return bool(rest) and bool(re.match(r"(?:we|it|they|the|our|wir|on|nous|es|tenemos)\b", rest[0], re.IGNORECASE))


def _chooses(first: str, question: str) -> bool:
    """Return whether an answer begins with a choice, or only names what was offered."""
    if _CHOICE.match(strip_lead(mask(first))) or _CHOICE.match(first):
        return True
    is_short = len(first.split()) <= _MAX_NAME_WORDS
    return is_short and not list_names(question, least=4).isdisjoint(list_names(first, least=4))


def _name_option(first: str, question: str) -> str:
    """Return an answer whose bare number of an option is replaced by what the agent called it."""
    match = _OPTION.match(strip_lead(first))
    if not match:
        return strip_lead(first)
    offers = re.findall(r"(?m)^\s*(?:[-*] )?(?:\*\*)?(?:option )?\(?([A-Ea-e1-9])[.):]+\s*(.+)$", question)
    named = {name.lower(): text for name, text in offers}
    offer = named.get(match["name"].lower())
    if offer is None:
        return strip_lead(first)
    rest = strip_lead(first)[match.end() :]
    return fold(offer.replace("**", ""))[:_MAX_OPTION].rstrip(" .:") + rest
