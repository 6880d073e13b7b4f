"""Find passwords in sentences in four languages, on the line below such a sentence, and in tables.

Each rule begins at a word for a password and reads a bounded stretch from it. A value counts only if no word of a
language looks like it.
"""

from __future__ import annotations

from collections.abc import Iterator

from learnt.text.secrets_values import KEYS, compile_once, find_places, is_chosen, is_said, is_strong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

_BREAK = r"(?:\r?\n|\\{1,8}(?:r\\{1,4})?n)"
# Nouns for passwords (chosen by people) and for tokens (random), in English, German, French and Spanish.
_HUMAN = (
    r"pass(?:[- ]?word|wd|[- ]?phrase|wort|[- ]?code|e)s?|pwd?|pw|kennw(?:ort|\u00f6rter)|zugangscode|mdp|pin"
    r"|contrase(?:\u00f1|n|n\u0303)as?|clave|creds?"
)
_DRAWN = r"tokens?|secrets?|keys?|schl\u00fcssel|geheimnis|jeton|cl(?:\u00e9|e\u0301)s?|clave|credentials?|zugangstoken"
_NOUNS = (
    "pass", "pw", "kennw", "zugangs", "mdp", "contrase", "clave", "token", "secret", "key", "schl\u00fcssel",
    "geheimnis", "jeton", "cl\u00e9", "cred", "identifiants", "login",
)  # fmt: skip
_ABOUT = (
    r"(?:[ \t]+(?:\(?[^\s()|=:]{1,40}\)|(?:for|of|to|on|in|at|from|used|we|that|there|f\u00fcr|von|vom"
    r"|zu|zum|zur|des|der|"
    r"dem|den|auf|am|im|beim|de|du|d'|des|pour|sur|dans|del|para|en|al|api|app|la|le|el|d'api"
    r"|d'acc\u00e8s|secr\u00e8te|"
    r"secreta|priv\u00e9e|privada|root|admin|now|here)(?![\w-])(?:[ \t]+[^\s|=:;]{1,60}){0,6}?))?"
)
_SAYS = (
    r"(?:is|was|are|will be|has been (?:changed|set|reset|rotated) to|(?:changed|set|reset|rotated"
    r"|updated) to|ist|lautet|"
    r"war|hei\u00dft|wird|wurde auf|est|\u00e9tait|sera|devient|es|era|ser\u00e1|ahora es|->|\u2192|\u2014|\u2013)"
)
_NOW = (
    r"(?:[ \t]+(?:now|currently|still|just|simply|again|today|jetzt|nun|aktuell|noch|einfach|derzeit|maintenant|"
    r"actuellement|toujours|ahora|actualmente|todav\u00eda|this|following|as follows|folgendes|folgenderma\u00dfen|"
    r"le suivant|la siguiente|la suivante))?"
)
_BLANK = r"[ \t\u00a0\u202f]"
_LEAD = rf"(?:{_ABOUT}{_BLANK}+{_SAYS}{_NOW}{_BLANK}*:?|{_ABOUT.removesuffix('?')}{_BLANK}*[:=])"
_LEAD_BELOW = rf"{_ABOUT}(?:{_BLANK}+{_SAYS}{_NOW})?{_BLANK}*[:=]?[ \t]*(?:[|>][-+]?[ \t]*)?"
_QUOTE = r"(?:\\{0,3}[\"'`*\u00ab\u201e\u201c\u2018]{1,3}[ \u00a0\u202f]?)"
_VALUE = r"([^\s\"'`\u00bb\u201c\u201d\u2019\\|]{4,200})"
_NOUN = rf"(?i)(?:({_HUMAN})|{_DRAWN})(?![\w-])(?:['\u2019]s(?= )|\\{{0,3}}[\"'`*]{{0,2}})"
_SAME = rf"(?i)(?:{_LEAD}|(?<=['\u2019]s)|(?:[ \t]+[\w-]{{2,15}}){{1,2}}{_BLANK}*:){_BLANK}+({_QUOTE})?{_VALUE}"
_BELOW = (
    rf"(?i){_LEAD_BELOW}{_BREAK}{{1,3}}(?:[ \t]*```\w{{0,12}}{_BREAK})?[ \t>*-]{{0,24}}{_QUOTE}?{_VALUE}"
    rf"{_QUOTE}?[.]?[ \t]*(?:$|{_BREAK}|[\"'])"
)
_BARE = r"[ \t]+([^\s\"'`\\|()<>\[\]{}$:;,/]{8,60})(?=[\s.,;\"'\\]|$)"
_FOLLOWS = r"[ \t]+[\"'`]?([^\s\"'`\\|]{4,200})"
_FOLLOWS_TO = rf"(?i){_ABOUT}[ \t]+(?:from[ \t]+\S{{1,60}}[ \t]+)?(?:to|auf|\u00e0|en|a){_FOLLOWS}"
_SIGNS = ("|", "\u2502", "\t", "\\t", ";", ",")
_MOST_ROWS = 200
_CELL = r"(?i)[*_`\" ]*(?:[\w.-]{1,30}[ _.-]){0,3}(?:" + _HUMAN + "|mot de passe|" + _DRAWN + r")[*_`\": ]*$"
_AS = (" as ", " als ", " comme ", " como ")
_WITH = (
    r"(?i)(?:(?<!\w)(?:with|using|mit|avec|con|und|and|et|y|/)|,)[ \t]+"
    r"(?:the |dem |das |le |la |admin |root |user )?(?:mot de )?$"
)
_SET = (
    r"(?i)(?:\bset|chang|reset|rotat|updat|setz|\u00e4nder|mis|met|cambi|pon|fij)\w{0,6}"
    r"(?:[ \t]+[^\s.]{1,30}){0,5}[ \t]+$"
)
_PAIR = (
    r"(?i)(?:cred(?:ential)?s?|zugangsdaten|identifiants|credenciales|log[- ]?in)"
    r"(?:[ \t]+[\w.-]{1,30}){0,4}(?:[ \t]*:)?"
    r"[ \t]+[\"'`]?[\w.@-]{1,60}[\"'`]?(?:[ \t]*[/|][ \t]*|:)[\"'`]?([^\s\"'`\\|]{4,100})"
)


def find_in_prose(text: str) -> Iterator[Span]:
    """Find passwords in sentences such as `the password for X is …`, also on the next line."""
    if text.isalpha():
        return
    done = 0
    for place in find_places(text, _NOUNS):
        if place < done:
            continue
        for value, start in (*_find_values(text, place), *_find_pair(text, place)):
            done = start + len(value)
            yield start, done, "password"
            break


def _find_values(text: str, place: int) -> Iterator[tuple[str, int]]:
    """Yield the value that a sentence gives for a noun, and where it begins."""
    noun = compile_once(_NOUN).match(text, place)
    if not noun or (noun[0].lower().startswith("key") and not _is_secret_key(text, place)):
        return
    same = compile_once(_SAME).match(text, noun.end())
    if same and _is_value(same[2], noun[1], quoted=bool(same[1])):
        yield _trim(same[2]), same.start(2)
    below = compile_once(_BELOW).match(text, noun.end())
    if below and _is_value(below[1], noun[1]):
        yield _trim(below[1]), below.start(1)
    before = text[max(0, place - 140) : place]
    value = _value_before(before)
    if value and _is_value(value, noun[1]):
        yield _trim(value), place - len(before) + before.rindex(value)
    if noun[1]:
        yield from _find_bare(text, noun.end(), before)


def _value_before(before: str) -> str:
    """Return the value of `X as the password`, given the text before the noun."""
    word = next((word for word in _AS if word in before), "")
    value, _, rest = before.rpartition(word) if word else ("", "", "")
    return value.split()[-1].strip("\"'`\\") if value.strip() and len(rest.split()) <= 3 else ""


def _is_secret_key(text: str, place: int) -> bool:
    return text[max(0, place - 20) : place].rstrip(" _.-").lower().endswith(KEYS)


def _find_bare(text: str, end: int, before: str) -> Iterator[tuple[str, int]]:
    """Yield the value in `password X`, `with password X` and `set the password to X`."""
    bare = compile_once(_BARE).match(text, end)
    if bare and _has_signs(bare[1]) and is_said(_trim(bare[1])):
        yield _trim(bare[1]), bare.start(1)
    for lead, follows in ((_WITH, _FOLLOWS), (_SET, _FOLLOWS_TO)):
        after = compile_once(follows).match(text, end)
        if after and _is_value(after[1], "password") and compile_once(lead).search(before):
            yield _trim(after[1]), after.start(1)


def _find_pair(text: str, place: int) -> Iterator[tuple[str, int]]:
    """Yield the second value of `credentials: user / password`."""
    match = compile_once(_PAIR).match(text, place)
    if match and _is_value(match[1], "password"):
        yield _trim(match[1]), match.start(1)


def _has_signs(value: str) -> bool:
    """Return whether a value mixes letters, digits and punctuation as words of prose and code do not."""
    return all(compile_once(sort).search(value) for sort in ("[a-z]", "[0-9]", r"[A-Z]|[^\w.-]", r"[!#%*+?@&^~=]"))


def _trim(value: str) -> str:
    return value.rstrip(".,;:!?)*" if not value.endswith("!") else ".,;:)*")


def _is_value(value: str, human: str | None, *, quoted: bool = False) -> bool:
    value = _trim(value)
    if not human:
        return is_strong(value) and is_said(value)
    word = quoted and len(value) >= 6 and is_chosen(value) and (value.isalpha() or value.count("-") >= 2)
    return word or is_said(value, least=5 if quoted else 6)


def find_in_tables(text: str) -> Iterator[Span]:
    """Find the table cells below or next to a noun for a password."""
    if not any(sign in text for sign in _SIGNS):
        return
    done = 0
    for place in find_places(text, _NOUNS):
        if not compile_once(r"[\w \u00f1]{1,24}[*_`\"' ]{0,4}(?:$|[|,;\t\u2502\r\n\\])").match(text, place):
            continue
        begin, end = _line_at(text, place)
        sign = _sign(text[begin:end].rstrip("\\"))
        cells = text[begin:end].split(sign) if sign else [""]
        column = text[begin:place].count(sign) if sign else 0
        if not compile_once(_CELL).match(cells[column].strip(" \\")):
            continue
        beside = _cell_beside(text, place, end, cells[column + 1 :]) if sign in "|\u2502" else None
        if beside:
            yield beside
        elif place >= done:
            below, done = _cells_below(text, end, len(cells), column, sign)
            yield from below


def _sign(line: str) -> str:
    """Return the separator of the cells if a line belongs to a table."""
    sign = next((sign for sign in _SIGNS if sign in line), "")
    listed = sign in ("|", "\u2502") or compile_once(r"[\w-]+(?:(?:[,;\t]|\\{1,4}t)[\w -]+)+\s*$").match(line)
    return sign if listed else ""


def _line_at(text: str, place: int) -> tuple[int, int]:
    first, last = max(0, place - 300), min(len(text), place + 400)
    broken, escaped = text.rfind("\n", first, place), text.rfind("\\n", first, place)
    begin = max(broken + 1 if broken >= 0 else 0, escaped + 2 if escaped >= 0 else 0, first and place)
    if max(broken, escaped) >= 0:
        begin = max(broken + 1, escaped + 2 if escaped >= 0 else 0)
    ends = (text.find("\n", place, last), text.find("\\n", place, last), last)
    return begin, min(end for end in ends if end >= 0)


def _cell_beside(text: str, place: int, end: int, following: list[str]) -> Span | None:
    """Return the cell to the right of the noun, if it is a password."""
    value = following[0].strip(" *`\"'") if following else ""
    if not value or not _is_cell(value) or _rule(text, end):
        return None
    start = text.find(value, place)
    return start, start + len(value), "password"


def _cells_below(text: str, end: int, count: int, column: int, sign: str) -> tuple[list[Span], int]:
    """Return the passwords in one column of the following lines, and where the table ends."""
    spans: list[Span] = []
    for _ in range(_MOST_ROWS):
        step = compile_once(r"\\{0,8}(?:\r?\n|(?<=\\)n)").match(text, end)
        if not step:
            break
        begin, end = step.end(), _line_at(text, step.end())[1]
        row = text[begin:end].split(sign)
        if len(row) == count:
            value = row[column].strip(" *`\"'\\")
            start = text.find(value, begin + len(sign.join(row[:column])))
            spans += [(start, start + len(value), "password")] if _is_cell(value) else []
        elif not compile_once(r"[ \t+|=:\\\u2502\u2500-\u257f-]+$").match(text[begin:end]):
            break
    return spans, end


def _rule(text: str, end: int) -> bool:
    """Return whether the next line is the rule below a table's header."""
    return bool(compile_once(rf"{_BREAK}[ \t]*[|+\u2502\u251c]?[ \t]*[:=\u2500-]{{2,}}").match(text, end))


def _is_cell(value: str) -> bool:
    return is_said(value) and " " not in value
