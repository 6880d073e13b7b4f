"""Find secrets that are escaped, joined from several strings, or encoded in base64.

Only the surroundings of such writing are read again, so that the time stays linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from learnt.text.secrets_values import compile_once, long_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

    Finder = Callable[[str], Iterator[Span]]
    Piece = tuple[int, int, str]
    """Where something to replace begins and ends, and its replacement."""

_BEFORE, _AFTER = 200, 400  # letters around such writing that are read again
# The escapes of JSON, JavaScript, HTML and addresses for one visible Latin-1 character.
_ESCAPE = (
    r"[\\%&](?:(?<=\\)\\{0,9}(?:u00([2-7a-fA-F][0-9A-Fa-f])|x([2-7][0-9A-Fa-f])|(/))|(?<=%)(2[0BbDdFf]|3[ADad]|40|5[Ff])"
    r"|(?<=&)#(\d\d);)"
)
_LAYOUT = r"\\\\{0,7}(?:u00(?:0a|0A|0d|0D|09|20|22|26|27|3c|3C|3e|3E|60)|[nrt])"
_MARKS = {"\\": ("\\u00", "\\x", "\\/"), "%": ("%2", "%3", "%40", "%5"), "&#": ("&#",)}
_BLANK = r"(?:[ \t]|\\?\r?\n|\\{1,8}[nrt]){0,40}+"
# What is between two strings that a program joins.
_SIGN = rf"(?:{_BLANK}(?:\+|\.\.?|&|\|\||<>|\\{{1,4}}|~)?{_BLANK})"
_JOINTS = {
    quote: rf"{quote}(?<=[\w.~+/=\\-].)(?=[\s\\+.&|<~]){_SIGN}(?<!{quote})[fbru]?\\{{0,9}}{quote}(?=[\w.~+/=-])"
    for quote in "\"'`"
}
# What is between two lines over which a token is broken: the second holds nothing else.
_BROKEN = r"\n[ \t>|#*]{0,16}+(?=[A-Za-z0-9][\w+/=.~-]{2,}+[ \t]*+(?:$|[\\\r\n\"'`]))"
_LETTERS, _NO_LETTER = r"[\w.~+/=-]*", r"[^\w.~+/=-]"
_MIN_WORD_LENGTH = 12
_LONGEST_RUN = 8_000


def lay_out(text: str) -> str:
    """Return a text of the same length in which escaped line breaks, tabs and quotes are plain."""
    if "\\" not in text:
        return text
    if "\\\\" not in text and "\\u00" not in text:
        return text.replace("\\n", " \n").replace("\\r", "  ").replace("\\t", " \t")
    return compile_once(_LAYOUT).sub(lambda match: _plain(match[0]), text)


@lru_cache(maxsize=64)
def _plain(escape: str) -> str:
    letter = {"n": "\n", "r": " ", "t": "\t"}.get(escape[-1]) or chr(int(escape[-2:], 16))
    filler = "\\" if letter in "\"'" else "<" if letter == "<" else " "
    return filler * (len(escape) - 1) + letter


def find_in_views(text: str, finders: Sequence[Finder], joiners: Sequence[Finder]) -> Iterator[Span]:
    """Yield what the finders find after unescaping the text and joining its strings."""
    if any(sign in text and any(mark in text for mark in marks) for sign, marks in _MARKS.items()):
        pieces = ((*match.span(), _letter(match)) for match in compile_once(_ESCAPE).finditer(text))
        yield from _find_replaced(text, pieces, (lambda view: _find_joined(view, joiners), *finders))
    yield from _find_joined(text, joiners)


def _find_joined(text: str, finders: Sequence[Finder]) -> Iterator[Span]:
    for quote, expression in _JOINTS.items():
        if quote in text:
            yield from _find_replaced(text, _joints(text, expression), finders)
    if "\n" in text:
        yield from _find_replaced(text, _joints(text, _BROKEN), finders[:1])


def _joints(text: str, expression: str) -> Iterator[Piece]:
    """Yield what is between two strings that together may be a secret."""
    for match in compile_once(expression).finditer(text):
        start = match.start()
        stretch = text[max(0, start - 80) : start]
        escaped = len(stretch) - len(stretch.rstrip("\\ \r"))
        before = compile_once(_NO_LETTER).split(stretch[: len(stretch) - escaped])[-1]
        # The beginning of a token is no plain word.
        if not before or (expression == _BROKEN and not compile_once(r".*[\d_~-].*[A-Za-z0-9]$").match(before)):
            continue
        after = compile_once(_LETTERS).match(text, match.end(), match.end() + 80)
        word = before + (after[0] if after else "")
        if len(word) >= _MIN_WORD_LENGTH and compile_once(r"\d|[a-z][A-Z].*[a-z][A-Z]").search(word):
            yield start - escaped, match.end(), ""


def _find_replaced(text: str, replaced: Iterable[Piece], finders: Sequence[Finder]) -> Iterator[Span]:
    pieces_of_text = list(replaced)
    for start, end, pieces in _windows(text, pieces_of_text) if pieces_of_text else ():
        view, starts, offsets = _replace(text, start, end, pieces)
        for find in finders:
            for first, last, kind in find(view):
                # A secret at the end of a stretch may be incomplete.
                if (first or not start) and (last < len(view) or end >= len(text)):
                    yield _place(first, starts, offsets), _place(last, starts, offsets), kind


def _windows(text: str, replaced: Iterable[Piece]) -> Iterator[tuple[int, int, list[Piece]]]:
    """Yield the stretches of text around replacements, with their replacements."""
    pieces: list[Piece] = []
    for piece in replaced:
        if pieces and piece[0] > pieces[-1][1] + _AFTER:
            yield *_limits(text, pieces), pieces
            pieces = []
        pieces.append(piece)
    if pieces:
        yield *_limits(text, pieces), pieces


def _limits(text: str, pieces: list[Piece]) -> tuple[int, int]:
    end = pieces[-1][1] + _AFTER
    word = compile_once(r"\S{0,4000}+.?").match(text, min(end, len(text)))
    return max(0, pieces[0][0] - _BEFORE), word.end() if word else end


def _letter(match: re.Match[str]) -> str:
    """Return the character of an escape."""
    four, two, slash, address, decimal = match.groups()
    return slash or chr(int(decimal) if decimal else int(four or two or address, 16))


def _replace(text: str, start: int, end: int, pieces: list[Piece]) -> tuple[str, list[int], list[int]]:
    """Return a stretch after its replacements, and where each part of it begins there and in the text."""
    parts: list[str] = []
    starts, offsets = [], []
    length, done = 0, start
    for place, stop, letter in pieces:
        for part, origin in ((text[done:place], done), (letter, place)):
            starts.append(length)
            offsets.append(origin)
            parts.append(part)
            length += len(part)
        done = stop
    return "".join((*parts, text[done:end])), [*starts, length], [*offsets, done]


def _place(position: int, starts: list[int], offsets: list[int]) -> int:
    number = bisect_right(starts, position) - 1
    return offsets[number] + position - starts[number]


def find_in_base64(text: str, finders: Sequence[Finder]) -> Iterator[Span]:
    """Find tokens and passwords encoded in base64."""
    long = long_words(text)
    # Text in base64: the first of four letters shows that the byte is a visible character or a line break.
    expression = (
        r"[I-Za-f](?<![A-Za-z0-9+/].)[A-Za-z0-9+/]{3}(?:[CI-Za-f][A-Za-z0-9+/]{3}){5,}[A-Za-z0-9+/]{0,3}={0,2}"
        r"(?![A-Za-z0-9+/])"
    )
    for run in sorted(set(compile_once(expression).findall(long)), key=len, reverse=True) if len(long) >= 24 else ():
        if _holds_secret(run[:_LONGEST_RUN], finders):
            place = text.find(run)
            while place >= 0:
                yield place, place + len(run), "base64-secret"
                place = text.find(run, place + len(run))


def _holds_secret(run: str, finders: Sequence[Finder]) -> bool:
    from binascii import a2b_base64

    whole = run.rstrip("=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    plain = a2b_base64(whole + "=" * (-len(whole) % 4))
    if not plain.isascii():
        return False
    decoded = plain.decode("ascii")
    return decoded.replace("\n", " ").isprintable() and any(True for find in finders for _ in find(decoded))
