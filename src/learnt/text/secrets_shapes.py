"""Find secrets by their shape alone: tokens with a published prefix, also wrapped over lines, and private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.text.secrets_prefixes import DISCORD, OTHER_SHAPES, PREFIXES, SHAPES
from learnt.text.secrets_values import (
    compile_once,
    is_drawn,
    is_mixed,
    is_placeholder,
    is_strong,
    long_words,
    plain_words,
    word_beginnings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

    Shape = tuple[str, str, str]
    """The kind of a secret, its required letters and its expression."""

# A token may also begin after one of these, although they end with a letter or digit.
_EDGES = (r"\\[nrtbf]", r"%[0-9A-Fa-f][0-9A-Fa-f]", r"\[\dm", r"\[\d\dm", r"\\u00[0-7][0-9A-Fa-f]")
_EDGE = r"(?:(?<![A-Za-z0-9])|" + "|".join(f"(?<={edge})" for edge in _EDGES) + ")"
_LINE_BREAK = r"(?:\\?\r?\n|\\{1,8}(?:r\\{1,4})?n)[ \t>|#*]{0,16}"
_LETTER = r"[\w.~+/=-]"
_LENGTHS = frozenset(range(23, 29))
_MOST_LINES = 40
_MOST_FAILURES = 500  # a text made to be slow is not read to its end
_SURE = ("eyJ", "hf_", "r8_", "SG.", "AKIA", "AIza")  # short prefixes that begin nothing else
# Prefixes that are common words.
_COMMON = frozenset(
    "secret key api test live access standard console sandbox retool pat sdk mob token clerk luma".split()
)
# Words before a random value that mark it as a secret. The weak ones also occur before ids.
_MARKS = frozenset("sk rk pat key apikey token secret sec oat uat sat pw skey privkey".split())
_WEAK_MARKS = frozenset("live test prod api access refresh auth admin svc app bot sbx sandbox priv usr user".split())
_DRAWN = r"(?P<drawn>[\w=-]{16,}(?:\.[\w=-]{8,})*)"
_NO_VENDOR = r"(?:sha|md|crc|blake)\d.*|data|img|image|font|chunk|bundle|hash|integrity|h1"
_glued: dict[bytes, list[Shape]] = {}
_others = [(kind, letters, expression.replace("@", _EDGE)) for kind, letters, expression in OTHER_SHAPES]
_shapes: dict[bytes, list[tuple[frozenset[bytes], Shape]]] = {}


def find_private_keys(text: str) -> Iterator[Span]:
    """Find private key blocks; one that is cut off ends with its last line of base64."""
    if "PRIVATE KEY" not in text and "OpenVPN" not in text:
        return
    label = r"[A-Za-z0-9 -]{0,40}(?:PRIVATE KEY(?: BLOCK)?|OpenVPN [\w -]{0,20}key(?: V\d)?)[ -]-{3,4}"
    begins = list(compile_once(rf"-{{4,5}} ?BEGIN {label}").finditer(text))
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = compile_once(rf"-{{4,5}} ?END {label}").search(text, begin.end(), limit)
        if end is None:
            gap = r"(?:\\{1,4}[nrt]|[\s\"'+>#|,]){1,60}+"
            lines = rf"(?:{gap}(?:[A-Za-z][A-Za-z-]{{3,20}}: [^\n\\]{{1,100}}|[A-Za-z0-9/][A-Za-z0-9+/=]{{15,}}))+"
            body = compile_once(
                rf"{lines}(?:{gap}[A-Za-z0-9+/=]{{1,64}}(?=[\"'\s]*$|[\\\"'\s]+-))?(?:[\s\\nr]{{0,9}}-+)?"
            )
            if cut_off := body.match(text, begin.end(), limit):
                yield begin.start(), cut_off.end(), "private-key"
        elif compile_once(r"[A-Za-z0-9+/]{16}").search(text, begin.end(), end.start()):
            yield begin.start(), end.end(), "private-key"


def find_key_files(text: str) -> Iterator[Span]:
    """Find the secret lines of PuTTY's key files, and the secret numbers of a JSON web key."""
    if "Private-" in text:
        gap = r"(?:\\{1,4}[nrt]|\s){1,12}"
        expression = rf"Private-Lines: ?\d{{1,4}}((?:{gap}[A-Za-z0-9+/=]{{8,80}}(?![A-Za-z0-9+/:-]))+)"
        for match in compile_once(expression).finditer(text):
            start = match.end() - len(compile_once(r"(?:\\{1,4}[nrt]|\s)+").sub("", match[1], count=1))
            yield start, match.end(), "private-key"
        for match in compile_once(r"Private-(?:MAC|Hash): ?([0-9a-f]{32,64})").finditer(text):
            yield *match.span(1), "private-key"
    if b"kty" in plain_words(text):
        for match in compile_once(r"\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s?:\s?\\{0,3}\"([\w-]{20,})").finditer(text):
            yield *match.span(1), "private-key"


def find_aws_pairs(text: str) -> Iterator[Span]:
    """Find AWS secret keys in a text that also contains a key id."""
    if not ("AKIA" in text or "ASIA" in text) or not compile_once(r"A[KS]IA[A-Z0-9]{16}").search(text):
        return
    for match in compile_once(r"(?<![\w/+=-])[A-Za-z0-9/+]{40}(?![\w/+=-])").finditer(text):
        if is_strong(match[0]) and match[0].lower() != match[0] != match[0].upper():
            yield *match.span(), "aws-secret-key"


def find_shapes(text: str) -> Iterator[Span]:
    """Find tokens with a published format."""
    long = long_words(text)
    if not long:
        return
    words = plain_words(text)
    for kind, letters, expression in (*_candidates(words, word_beginnings(text)), *_others):
        if letters in long and compile_once(expression).search(long):
            yield from _find_matches(kind, expression, text)
    # The first part of a Discord token has this length.
    if not _LENGTHS.isdisjoint(map(len, words)) and compile_once(DISCORD).search(long):
        yield from _find_matches("discord-token", DISCORD, text)
    yield from _find_marked(text, long, words)


def _candidates(words: frozenset[bytes], beginnings: frozenset[bytes]) -> Iterator[Shape]:
    """Yield the shapes whose prefix may be in the text, by its words or its first letters."""
    if not _shapes:
        _fill_shapes()
    for start in sorted(words & _shapes.keys()):
        yield from (shape for parts, shape in _shapes[start] if parts <= words)
    for start in sorted(beginnings & _glued.keys()):
        yield from _glued[start]


def _fill_shapes() -> None:
    """Index each shape by the first word of its prefix, or by three letters if the prefix is glued to the rest."""
    for kind, prefixes, tail in (*SHAPES, *((kind, prefixes, _DRAWN) for kind, prefixes in PREFIXES)):
        for prefix in prefixes.split():
            *parts, _ = re.split("[^A-Za-z0-9]+", prefix.lower())
            shape = kind, prefix, _expression(prefix, tail)
            if parts:
                words = frozenset(part.encode() for part in parts)
                _shapes.setdefault(parts[0].encode(), []).append((words, shape))
            else:
                _glued.setdefault(prefix[:3].lower().encode(), []).append(shape)


def _expression(prefix: str, tail: str) -> str:
    start = re.escape(prefix)
    # The letters come first: searching for an expression that begins with letters is much faster.
    edges = "|".join(f"(?<={edge}{start})" for edge in _EDGES)
    # The whole word is removed, so that no new match begins at its end.
    return f"{start}(?:(?<![A-Za-z0-9]{start})|{edges}){tail}[A-Za-z0-9]*"


def _find_matches(kind: str, expression: str, text: str) -> Iterator[Span]:
    pattern = compile_once(expression)
    for match in pattern.finditer(text):
        if compile_once(r"(?i:your[-_]|example)|x{5}|X{5}|\*{5}|([^A])\1{7}").search(match[0]):
            continue
        if "drawn" not in pattern.groupindex or is_drawn(match["drawn"]):
            yield *match.span(), kind


def _find_marked(text: str, long: str, words: frozenset[bytes]) -> Iterator[Span]:
    """Find random values after a word such as `sk`, `pat` or `key`, or after a short name and `_`."""
    for mark in sorted(mark for mark in _MARKS | _WEAK_MARKS if mark.encode() in words):
        expression = rf"{mark}[-_](?<![A-Za-z0-9]{mark}[-_])([\w-]{{16,}})"
        for match in compile_once(expression).finditer(text) if compile_once(expression).search(long) else ():
            if _is_random(match[1], least=16, hexadecimal=mark in _MARKS):
                yield *match.span(1), "token"
    expression = r"[-_]([A-Za-z0-9]{30,})(?![\w+/=-])"
    for tail in {match[1] for match in compile_once(expression).finditer(long)}:
        if _is_random(tail, least=30, hexadecimal=False):
            yield from _find_behind_names(text, tail)


def _find_behind_names(text: str, tail: str) -> Iterator[Span]:
    place = text.find(tail)
    while place >= 0:
        name = compile_once(rf"{_EDGE}([a-z][a-z0-9]{{1,11}})[-_]$").search(text[max(0, place - 20) : place])
        if name and not compile_once(_NO_VENDOR).fullmatch(name[1]):
            yield place, place + len(tail), "token"
        place = text.find(tail, place + len(tail))


def _is_random(value: str, *, least: int, hexadecimal: bool) -> bool:
    """Return whether a value contains a long random run of digits and letters."""
    run = max(compile_once(r"[A-Za-z0-9]+").findall(value), key=len, default="")
    if len(run) < least or is_placeholder(value):
        return False
    digits = sum(letter.isdigit() for letter in run)
    if hexadecimal and len(run) >= 32 and 4 <= digits < len(run):
        return True
    changes = len(compile_once(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])").findall(run))
    return digits >= 2 and run != run.lower() and run != run.upper() and changes * 4 >= len(run)


def find_wrapped(text: str) -> Iterator[Span]:
    """Find tokens with a published prefix that continue on the next lines."""
    if "\n" not in text and "\\n" not in text:
        return
    jwt = next((kind, letters, rest.replace("@", "")) for kind, letters, rest in OTHER_SHAPES)
    for kind, letters, expression in (*_candidates(plain_words(text), word_beginnings(text)), jwt):
        sure = letters in _SURE if letters.isalnum() or len(letters) < 4 else letters.rstrip("_-.") not in _COMMON
        if sure and letters in text:
            yield from _find_over_lines(text, kind, letters, expression)


def _find_over_lines(text: str, kind: str, letters: str, expression: str) -> Iterator[Span]:
    start = re.escape(letters)
    place, failures = text.find(letters), 0
    while place >= 0 and failures < _MOST_FAILURES:
        begin = compile_once(rf"{start}{_LETTER}{{0,300}}+(?={_LINE_BREAK}{_LETTER})").match(text, place)
        end = _end_over_lines(text, begin, expression) if begin else 0
        failures += bool(begin) and not end
        if end:
            yield place, end, kind
        place = text.find(letters, max(end, place + len(letters)))


def _end_over_lines(text: str, begin: re.Match[str], expression: str) -> int:
    """Return where a token that continues on the next lines ends, or 0 if it does not continue."""
    pattern = compile_once(expression)
    joined, end = begin[0], begin.end()
    complete = _is_whole(pattern, joined)
    result = 0
    for _ in range(_MOST_LINES):
        line = compile_once(rf"{_LINE_BREAK}({_LETTER}{{1,300}}+)").match(text, end)
        if not line:
            break
        alone = compile_once(r"[ \t]*(?:$|\r?\n|\\{1,4}[nr]|[\"'`])").match(text, line.end())
        if complete and not (alone and len(line[1]) >= 4 and _is_rest(line[1])):
            break
        joined, end = joined + line[1].rstrip("."), line.end() - len(line[1]) + len(line[1].rstrip("."))
        if complete or _is_whole(pattern, joined):
            complete, result = True, end
        if not alone:
            break
    return result


def _is_whole(pattern: re.Pattern[str], joined: str) -> bool:
    match = pattern.match(joined)
    return match is not None and ("drawn" not in pattern.groupindex or is_drawn(match["drawn"]))


def _is_rest(line: str) -> bool:
    return is_drawn(line) or is_strong(line, least=8) or is_mixed(line)
