"""Weigh a sentence of a person: is it meant for more than this task, and how firmly is it said?

The model of `sentence_model` decides whether a sentence is meant for more than this task. Words decide how firmly it
is said: whether it asks to be remembered, or speaks of all cases. Only a clear case is a rule; in case of doubt, it is
soft, and the person is asked.
"""

from __future__ import annotations

import re

from learnt.mine import people_words as words
from learnt.mine.sentence_model import PROMPTS, rate
from learnt.text.verbs import is_base_form

ASKED, RULE, SOFT = "asked", "rule", "soft"
# The log-odds above which a sentence is kept: if it asks to be remembered, if it speaks of all cases, in other cases,
# and without asking the person.
_LEAST_IF_ASKED, _LEAST_IF_FOR_ALL, _LEAST, _LEAST_FOR_RULE = -1.0, -0.5, 0.5, 0.8
_MIN_WORDS = 3
_CODE = re.compile(r"`[^`\n]+`")
_QUOTED = re.compile(r"\"[^\"\n]{8,}\"|“[^”\n]{8,}”|„[^“”\n]{8,}[“”]|«[^»\n]{8,}»")
_TO_DO = re.compile(r"(?:to|de(?! que)|d['’]|zu)\b ?", re.IGNORECASE)
_AND = re.compile(r"[,;:–—]\s*|\b(?:and|but|und|aber|et|mais|y|pero)\b", re.IGNORECASE)
_PURPOSE = re.compile(r"\b(?:in case|so that|so|if|that|which|for|damit|falls|pour que|si|para que)\b", re.IGNORECASE)
_NOUN_FOLLOWS = re.compile(r" (?:versions?|releases?|use|reference)\b", re.IGNORECASE)
TASK = re.compile(
    r"(?:please |now |ok,? |can you |could you |then |let['’]s )*(?:fix|add|rename|move|make|remove|delete|"
    r"change|update|write|"
    r"create|implement|refactor|revert|undo|redo|do|commit|push|merge|run|try|continue|go|clean|build|set up|"
    r"behebe|füge|mach|ändere|lösche?|schreib|corrige|ajoute|supprime|change|arregla|añade|borra|cambia)\b",
    re.IGNORECASE,
)


def weigh(sentence: str, *, before: str = "", after: str = "") -> str:
    """Return how firmly a sentence states a rule; empty if it states none. `before` and `after` stand beside it."""
    odds = rate(PROMPTS, sentence, before=before, after=after)
    masked = mask(sentence)
    if is_asked(masked) and odds > _LEAST_IF_ASKED:
        return ASKED
    is_for_all = is_for_all_cases(masked)
    if odds <= (_LEAST_IF_FOR_ALL if is_for_all else _LEAST):
        return ""
    return RULE if odds > _LEAST_FOR_RULE and is_for_all else SOFT


def is_for_all_cases(masked: str) -> bool:
    """Return whether a sentence speaks of all cases: `never`, `always`, `stop adding`, `don't … here`."""
    if is_question(masked) or words.ONE_OFF.search(masked):
        return False
    main = find_main(masked)
    if any(pattern.match(main) for pattern in (words.STOP, words.ARRETE, words.NOBODY)):
        return True
    if words.DO_NOT.match(main) and words.PLACE.search(masked):
        return True
    everywhere = (words.UNIVERSAL, words.UNIVERSAL_ABROAD, words.NO_LONGER, words.FORBIDDEN, words.POLICY)
    return any(pattern.search(masked) for pattern in everywhere)


def mask(text: str) -> str:
    """Return a text with code and quotations replaced by `x`."""
    return _QUOTED.sub("x", _CODE.sub("x", text)).replace("’", "'")


def is_question(masked: str) -> bool:
    """Return whether a sentence asks something."""
    plain = masked.rstrip("\"')” ")
    return plain.endswith("?") or masked.startswith("¿") or bool(words.QUESTION.match(strip_lead(masked)))


def is_order_or_custom(main: str) -> bool:
    """Return whether a clause tells the agent to do something, or says what the team does."""
    return bool(words.USE.match(main) or words.DO_NOT.match(main) or words.WE.match(main)) or _starts_with_verb(main)


def strip_lead(masked: str) -> str:
    """Return a sentence without the interjections before it."""
    lead = words.LEAD.match(masked)
    return masked[lead.end() :] if lead else masked


def find_main(masked: str) -> str:
    """Return the main clause of a sentence, without interjections and the clause before it."""
    main = strip_lead(masked)
    if request := words.REQUEST.match(main):
        main = main[request.end() :]
    for opening in (words.PLACE, words.ADVERBIAL, words.SIDE_CLAUSE):
        side = opening.match(main)
        if side and not words.WE.match(main):
            rest = strip_lead(main[side.end() :].lstrip(" ,"))
            main = rest if len(rest.split()) > 1 else main
    if habit := words.HABITUAL.match(main):  # a side clause without a comma
        use = words.USE.search(main, habit.end())
        main = main[use.start() :] if use else main
    return main


def is_asked(masked: str) -> bool:
    """Return whether a person asks for something to be remembered, or says that it holds from now on."""
    return _is_asked(masked, find_main(masked))


def _is_asked(masked: str, main: str) -> bool:
    if memory := words.MEMORY.match(main):
        rest = main[memory.end() :].lstrip(" ,:")
        if _TO_DO.match(rest):
            return _is_general(rest) and not words.ONE_OFF.search(masked)
        return len(rest.split()) >= _MIN_WORDS and not words.ONE_OFF.search(rest)
    return len(masked.split()) > _MIN_WORDS and _is_standing(masked)


def _is_standing(masked: str) -> bool:
    """Return whether a clause says that something holds from now on, and is neither a task nor its purpose."""
    standing = words.STANDING.search(masked)
    if not standing or words.PERHAPS.search(masked):
        return False
    head = masked[: standing.start()]
    clause = strip_lead(_AND.split(head)[-1])
    return not clause or not (
        _PURPOSE.search(clause) or TASK.match(clause) or _NOUN_FOLLOWS.match(masked, standing.end())
    )


def _starts_with_verb(main: str) -> bool:
    return is_base_form(main.split(" ", 1)[0].lower())


def _is_general(masked: str) -> bool:
    """Return whether something shows that a sentence is meant for more than this task."""
    patterns = (
        words.UNIVERSAL,
        words.UNIVERSAL_ABROAD,
        words.QUANTIFIER,
        words.PLACE,
        words.AGREED,
        words.CIRCUMSTANCE,
    )
    return any(pattern.search(masked) for pattern in patterns)
