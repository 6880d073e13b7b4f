"""Weigh a sentence of a person: is it meant for more than this task, and how firmly is it said?

Words show a firm rule: a request to remember it, or an order, a prohibition or a custom that is said of all cases, to
the agent or of the project; not a question, a complaint, an order for this time, or what the product shall do.
Whatever else is meant for more than this task is found by the model of `sentence_model`. It is soft: the person is
asked.
"""

from __future__ import annotations

import re

from learnt.mine import people_words as words
from learnt.mine.sentence_model import PROMPTS, rate
from learnt.text.verbs import is_base_form, is_past, is_present

ASKED, RULE, SOFT = "asked", "rule", "soft"
# The log-odds above which a sentence counts: by the model alone, and if words show a firm rule. Between the last two,
# the words of a firm rule are doubted, and the person is asked.
_MIN_ODDS, _MIN_ODDS_OF_FIRM, _MIN_ODDS_OF_PLAIN, _MIN_ODDS_OF_DOUBTFUL = 0.7, -0.5, -1.5, -3.0
_MIN_WORDS = 3
_MAX_HEAD_WORDS = 6
_CODE = re.compile(r"`[^`\n]+`")
_QUOTED = re.compile(r"\"[^\"\n]{8,}\"|“[^”\n]{8,}”|„[^“”\n]{8,}[“”]|«[^»\n]{8,}»")
_GENERAL = (
    words.UNIVERSAL,
    words.UNIVERSAL_ABROAD,
    words.QUANTIFIER,
    words.PLACE,
    words.AGREED,
    words.CIRCUMSTANCE,
)
_ADVERBS = frozenset("only just always here hier ici aquí to with".split())
_THIS = re.compile(r"(?:this|the following|folgendes|ceci|esto): ", re.IGNORECASE)
_COMPLAINT = re.compile(
    r"(?:the|my|our|all|every|it|this|that)\b[^,;:]{0,40}\b(?:fails?|crash\w*|hangs?|breaks?|is broken|are broken)\b",
    re.IGNORECASE,
)
_TO_DO = re.compile(r"(?:to|de(?! que)|d['’]|zu)\b ?", re.IGNORECASE)
_ALWAYS_OR_NEVER = re.compile(r"(?:always|never)(?: ever)? (?P<verb>[\w']+)", re.IGNORECASE)
_NO_CASE = re.compile(r"under no circumstances|at no point|in no case", re.IGNORECASE)
_AND = re.compile(r"[,;:–—]\s*|\b(?:and|but|und|aber|et|mais|y|pero)\b", re.IGNORECASE)
_PURPOSE = re.compile(r"\b(?:in case|so that|so|if|that|which|for|damit|falls|pour que|si|para que)\b", re.IGNORECASE)
_NOUN_FOLLOWS = re.compile(r" (?:versions?|releases?|use|reference)\b", re.IGNORECASE)
TASK = re.compile(
    r"(?:please |now |ok,? |can you |could you |then |let['’]s )*(?:fix|add|rename|move|make|remove|delete|change|"
    r"update|write|create|implement|refactor|revert|undo|redo|do|commit|push|merge|run|try|continue|go|clean|build|"
    r"set up|behebe|füge|mach|ändere|lösche?|schreib|corrige|ajoute|supprime|change|arregla|añade|borra|cambia)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"i\b", re.IGNORECASE)
_CLAUSE = re.compile(  # `but never read` without a comma goes on with the subject before it
    r"(?:[,;:–—]| -)\s+(?:(?:and|but|so|und|aber|also|et|mais|donc|y|pero|así que) )?|,? so ", re.IGNORECASE
)
_LAST_ALWAYS = re.compile(r",? (?:always|immer|toujours|siempre|every time|each time|jedes mal)[.!]*$", re.IGNORECASE)
_MODAL = re.compile(
    r"\b(?:must|should|shall|may|can|cannot|can't|needs? to|has to|have to|soll(?:en|te|ten)?|muss|müssen|darf|dürfen|"
    r"doit|doivent|debe|deben|tiene que)\b",
    re.IGNORECASE,
)
_STARTS_WITH_MODAL = re.compile(
    r"(?:soll(?:en|te|ten)?|muss|müssen|darf|dürfen|wird|werden|kann|können|ist|sind)\b", re.IGNORECASE
)
_NOT_CUSTOMS = frozenset(
    "are were should could can will might would may 're 've 'll 'd must need haben brauchen "
    "müssen sollten avons tenemos necesitamos".split()
)
_THESE = re.compile(r"\b(?:\w{2,}ing|these|those|this|that)\b", re.IGNORECASE)


def mask(text: str) -> str:
    """Return a text with code and quotations replaced by `x`."""
    return _QUOTED.sub("x", _CODE.sub("x", text)).replace("’", "'")


def weigh(sentence: str, *, before: str = "", after: str = "") -> str:
    """Return how firmly a sentence states a rule; empty if it states none. `before` and `after` stand beside it."""
    masked = mask(sentence)
    firm = _find_firm(masked)
    odds = rate(PROMPTS, sentence, before=before, after=after)
    is_plain = firm != RULE or _is_plain_order(masked)
    if firm and odds > (_MIN_ODDS_OF_PLAIN if is_plain else _MIN_ODDS_OF_FIRM):
        return firm
    is_likely = firm == ASKED or odds > (_MIN_ODDS_OF_DOUBTFUL if firm else _MIN_ODDS)
    return SOFT if is_likely and not words.REPORTED.match(strip_lead(masked)) else ""


def _is_plain_order(masked: str) -> bool:
    """Return whether a sentence is an order for all cases and nothing else: `never edit …`, `stop adding …`."""
    main = find_main(masked)
    return bool(words.STOP.match(main)) or _is_order_for_all(main, strictly=True)


def _find_firm(masked: str) -> str:
    """Return how firmly a sentence is said, by its words; empty if the words do not show that it is a rule."""
    if is_question(masked):
        return _weigh_request(masked) if words.REQUEST.match(strip_lead(masked)) else ""
    announced, _, rest = _split_announcement(masked)
    rest, main = strip_lead(rest), find_main(rest)
    if len(main.split()) < 2:
        return ""
    if announced == ASKED or _is_asked(masked, find_main(masked)):
        return ASKED
    if words.ONE_OFF.search(_find_core(rest)) or words.REPORTED.match(strip_lead(rest)):
        return ""
    is_spec = words.OF_PRODUCT.match(strip_lead(rest)) is not None
    is_rule = announced or (not is_spec and (_is_rule(rest, main) or _has_rule_clause(rest, main)))
    return RULE if is_rule else ""


def _weigh_request(masked: str) -> str:
    """Return how firmly a question asks the agent for something that holds from now on, or always."""
    main = find_main(masked)
    if _is_asked(masked, main):
        return ASKED
    is_always = _is_order_for_all(main.removeprefix("you ")) or words.YOU_MUST.match(main)
    return SOFT if is_always and not words.ONE_OFF.search(masked) else ""


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


def _is_asked(masked: str, main: str) -> bool:
    if memory := words.MEMORY.match(main):
        rest = _THIS.sub("", main[memory.end() :].lstrip(" ,:"))
        if _TO_DO.match(rest):
            return _is_general(rest) and not words.ONE_OFF.search(masked)
        return len(rest.split()) >= _MIN_WORDS and not (words.THIS_TASK.search(rest) or words.ONE_OFF.search(rest))
    return len(masked.split()) > _MIN_WORDS and _is_standing(masked)


def _is_standing(masked: str) -> bool:
    """Return whether a clause says that something holds from now on, and is neither a task nor its purpose."""
    masked = strip_lead(masked)
    masked = masked[request.end() :] if (request := words.REQUEST.match(masked)) else masked
    standing = words.STANDING.search(masked)
    if not standing or words.PERHAPS.search(masked):
        return False
    if _COMPLAINT.match(strip_lead(masked[standing.end() :].lstrip(" ,:"))):
        return False
    head = masked[: standing.start()]
    clause = strip_lead(_AND.split(head)[-1])
    return not clause or not (
        _PURPOSE.search(clause) or TASK.match(clause) or _NOUN_FOLLOWS.match(masked, standing.end())
    )


def _split_announcement(masked: str) -> tuple[str, str, str]:
    """Return how firmly a sentence announces a rule before a colon, the announcement, and the rule behind it."""
    plain = strip_lead(masked)
    if said := words.I_SAID.match(plain):
        return "", plain[: said.end()], plain[said.end() :]
    match = words.HEADED.match(plain)
    if not match:
        return "", "", masked
    if words.ANNOUNCES_MEMORY.search(match["head"]):
        return ASKED, match["head"], match["rest"]
    if words.ANNOUNCES_RULE.search(match["head"]) and not _starts_with_verb(match["head"]):
        return RULE, match["head"], match["rest"]
    is_short = len(match["head"].split()) <= _MAX_HEAD_WORDS and not words.TROUBLE.search(match["head"])
    if words.ANNOUNCES.search(match["head"]) or (is_short and not is_order_or_custom(find_main(match["head"]))):
        return "", match["head"], match["rest"]
    return "", "", masked


def _find_core(masked: str) -> str:
    """Return a sentence up to the reason behind its main clause."""
    main = find_main(masked)
    reason = words.REASON.search(main)
    return masked[: len(masked) - len(main) + reason.start()] if reason else masked


def _is_rule(masked: str, main: str) -> bool:
    """Return whether a sentence is said of all cases, to the agent or of the project."""
    return (
        _is_order_for_all(main)
        or bool(words.STOP.match(main) or words.ARRETE.match(main))
        or _is_universal_abroad(main)
        or _is_team_rule(masked, main)
        or bool(words.YOU_MUST.match(main) or (words.I_WANT.match(main) and _is_general(masked)))
        or bool(words.FORBIDDEN.search(masked) or words.NOBODY.match(main) or words.POLICY.search(masked))
        or bool(words.NONE_HERE.match(main) and words.PLACE.search(masked))
        or _is_generic_rule(masked, main)
        or _is_custom_of_place(masked)
    )


def _has_rule_clause(masked: str, main: str) -> bool:
    """Return whether a clause behind the first is an order for all cases.

    The first must not be about the product, or a task whose content follows behind a colon.
    """
    task, colon, _ = masked.partition(": ")
    if _is_about_product(main) or (colon and TASK.match(strip_lead(task))):
        return False
    clauses = [strip_lead(clause) for clause in _CLAUSE.split(masked)[1:]]
    return any(
        words.NOBODY.match(clause) or words.STOP.match(clause) or _is_order_for_all(clause, strictly=True)
        for clause in clauses
    )


def _is_about_product(main: str) -> bool:
    """Return whether a clause says what something shall do that is neither the agent nor a product of development."""
    if _is_about_kind(main) or words.PASSIVE.match(main):
        return False
    is_third = words.THIRD_PERSON.match(main) or words.ELIDED_THIRD_PERSON.match(main) or not is_order_or_custom(main)
    return bool(is_third and _MODAL.search(main[:80]))


def _is_order_for_all(main: str, *, strictly: bool = False) -> bool:
    """Return whether a clause is an order for all cases: `never edit …`, `don't ever …`, `no … in this repo`."""
    if match := _ALWAYS_OR_NEVER.match(main):
        is_for_users = match["verb"].lower() in words.PRODUCT_VERBS and not words.PLACE.search(main)
        return _may_be_order(match["verb"]) and not is_for_users and (not strictly or is_base_form(match["verb"]))
    if match := words.DO_NOT.match(main):
        return bool(words.NO_LONGER.search(main)) and (match["verb"] or "").lower() not in words.NO_PROHIBITION
    is_task = TASK.match(main) and _find_object(main) == "the"
    if _NO_CASE.match(main) or (_LAST_ALWAYS.search(main) and is_order_or_custom(main) and not is_task):
        return True
    return bool(words.BAN.match(main) and words.PLACE.search(main))


def _may_be_order(verb: str) -> bool:
    verb = verb.lower()
    return verb not in words.NO_ORDER and (is_base_form(verb) or not (is_past(verb) or is_present(verb)))


def _is_universal_abroad(main: str) -> bool:
    """Return whether a clause in another language than English is an order or a custom, and not about the product."""
    clause = next((clause for clause in _CLAUSE.split(main) if words.UNIVERSAL_ABROAD.search(clause)), "")
    if not clause or _STARTS_WITH_MODAL.match(clause):
        return False
    if words.IMPERSONAL.match(clause) or _LAST_ALWAYS.search(main):
        return True
    universal = words.UNIVERSAL_ABROAD.search(clause)
    if universal and words.MISHAP.match(clause[universal.end() :].lstrip()):
        return False
    if words.THIRD_PERSON.match(clause) or words.ELIDED_THIRD_PERSON.match(clause):
        return bool(words.INFINITIVE_LAST.search(clause)) and not words.GERMAN_MODAL.search(clause)
    return True


def _is_general(masked: str) -> bool:
    """Return whether something shows that a sentence is meant for more than this task."""
    return any(pattern.search(masked) for pattern in _GENERAL)


def _is_team_rule(masked: str, main: str) -> bool:
    """Return whether a clause says what the team always or never does, or does in this project."""
    if not words.WE.match(main):
        return False
    if match := words.WE_ALWAYS.match(main):
        return _may_be_order(match["verb"]) and not words.MISHAP.match(match["verb"])
    if words.WE_DO_NOT.match(main):
        return _denies(main) and bool(words.PLACE.search(masked))
    return bool(words.PLACE.search(masked)) and not words.WE_AGREED.match(main) and _is_custom(main)


def _denies(main: str) -> bool:
    """Return whether a clause says what the team does not do."""
    match = words.WE_DO_NOT.match(main)
    return bool(match) and (match["verb"] or "").lower() not in words.NO_RULE_VERBS  # type: ignore[index]


def _is_custom(main: str) -> bool:
    """Return whether the predicate behind the subject is in the present: `we use`, not `we had`, `we need`."""
    if main.lower().startswith("we "):
        return _denies(main) or words.CUSTOM_VERBS.match(_strip_adverbs(main[3:])) is not None
    verb = main.replace("'", " '").split()[1].lower() if len(main.split()) > 1 else ""
    is_over = is_past(verb) and not is_base_form(verb)
    return not is_over and verb not in words.NO_RULE_VERBS and verb not in _NOT_CUSTOMS


def _is_custom_of_place(masked: str) -> bool:
    """Return whether something is always or never so in this project: `prices always come in cents here`."""
    universal = words.UNIVERSAL.search(masked) or words.UNIVERSAL_ABROAD.search(masked)
    if not universal or not words.PLACE.search(masked):
        return False
    return not words.MISHAP.match(masked[universal.end() :].lstrip()) and not _FIRST_PERSON.match(strip_lead(masked))


def _is_about_kind(main: str) -> bool:
    """Return whether the subject of a clause is a kind of product of development: `all migrations`, `log messages`."""
    if _starts_with_verb(main) or words.THIRD_PERSON.match(main) or words.WE.match(main):
        return False
    kind = words.GENERIC.match(main)
    return kind is not None and not _THESE.search(kind[0])


def _is_generic_rule(masked: str, main: str) -> bool:
    """Return whether a clause demands something of all products of development: `all migrations must …`."""
    if words.GENERIC_ABROAD.match(main):
        return bool(_MODAL.search(main) or words.NORM.search(main) or words.UNIVERSAL_ABROAD.search(main))
    if not _is_about_kind(main) or not words.DEMANDS.search(main):
        return bool(words.PASSIVE.match(main))
    return bool(words.STRONG_DEMAND.search(main) or words.PLACE.search(masked))


def _strip_adverbs(text: str) -> str:
    return re.sub(r"^(?:(?:also|all|just|already|really|generally|usually|normally|currently|only) )+", "", text)


def _find_object(main: str) -> str:
    """Return the first word behind the verb of an order, without adverbs."""
    rest = main.split()[1:]
    while rest and rest[0].lower().strip(",") in _ADVERBS:
        rest = rest[1:]
    return rest[0].lower().strip(",.") if rest else ""


def _starts_with_verb(main: str) -> bool:
    return is_base_form(main.split(" ", 1)[0].lower().strip(".,!"))
