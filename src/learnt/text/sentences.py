"""Cut text into paragraphs and sentences: Markdown, commit messages, hard-wrapped text, plain talk.

    read_blocks      the blocks of a text: paragraphs, list items, headings, tables, code, quotations, trailers
    read_sentences   the sentences in its paragraphs and list items, with their places in the text
    split_sentences  the sentences of one paragraph
    is_whole         whether a text is a complete sentence

The lines of a paragraph or list item are joined before sentences are cut, so no sentence ends where a line was wrapped.
Each block and sentence knows where it stands in the text, which must have been cleaned (`clean`): a caller that knows
which parts of the text are quoted (`own_words`) drops the sentences in them. Any text is read in linear time.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from itertools import pairwise

from learnt.model import Value
from learnt.text.verbs import has_predicate, is_base_form, is_present, list_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PARAGRAPH, ITEM, HEADING, TABLE = "paragraph", "item", "heading", "table"
CODE, QUOTE, TRAILER, _RULER = "code", "quote", "trailer", "ruler"

# The expressions are compiled when first needed: a hook may load this module without using all of them. None of them
# backtracks over more than a word.
_FENCE = r"[ \t]*(?:[-*+][ \t]+)?(`{3,}(?=[^`]*$)|~{3,})"
_BULLET = r"[ \t]*(?:([-*+•▪‣◦·])|(\d{1,3}[.)]|\(?[a-z]\)))[ \t]+(?:\[[ xX]\][ \t]+)?"
_HEADING = r"[ ]{0,3}#{1,6}[ \t]+\S"
_BOLD_LINE = r"[ \t]*(?:\*\*[^*]+\*\*|__[^_]+__)[ \t]*:?[ \t]*"
_RULER_LINE = r"[ \t]*([-=*_~#^\"'+.])(?:[ \t]*\1){2,}[ \t]*|[ \t]*[─━═—–]{2,}[ \t]*"
_UNDERLINE = r"([-=~^\"'*+#])\1{2,}[ \t]*"
_TABLE_LINE = r"[ \t]*(?:[|│┃║].*|[┌├└┏┣┗╔╠╚╭╰].*|\+[-=+]{3,}|[-:]+(?:[ \t]*\|[ \t]*[-:]+)+)[ \t]*"
_TRAILER = (
    r"[ \t]*(?:(?:[A-Za-z]++-)+[A-Za-z]++: ?\S.*|\(cherry picked from commit.*|"
    r"(?i:cc|bug|fix(?:es|ed)?|close[sd]?|resolve[sd]?|refs?|references?|relates? to|see(?: also)?|issue|link|pr|"
    r"ticket|part of|related(?: to)?|task|jira|changelog|differential revision|(?:reviewed|approved|acked|tested) by|"
    r"signed off by|story|epic)\b:?[ \t]*(?:#|gh-|https?://|[A-Z]{2,}-\d|[\w.-]++/[\w.-]++#|\w++:\d).*)"
)
_MAX_INDENT = 4  # more is code
_CODE_SPAN = r"(?<!`)(`++)[^`]++\1(?!`)"
_WEB_ADDRESS = r"\bhttps?://[^\s<>\"')\]]*[^\s<>\"')\].,;:!?]"
_LINK = r"!?\[([^\[\]]*+)\]\([^()\s]*+(?:\([^()]*+\))?+[^()]*+\)"
_EMPHASIS = r"(?<![\w*])\*(?![\s*])([^*]++)(?<!\s)\*(?![\w*])|(?<![\w_])_(?![\s_])([^_]++)(?<!\s)_(?![\w_])"
_END = r"(?:(?<![.!?…])[.!?…]++|[。！？])[\"'”’»)\]*_]*+(?=\s|$)"
# Behind these a full stop does not end a sentence.
_ABBREVIATIONS = frozenset(
    "e.g i.e eg ie cf vs viz approx resp incl excl mr mrs dr prof st dept esp z.b d.h u.a bzw ggf inkl evtl sog vgl "
    "u.u z.t m.e p.ex c.-à-d p.ej ej".split()
)
# Behind these it does if the next word is capitalised, and behind those if no number follows.
_MAY_BE_LAST = frozenset("etc usw al inc ltd corp co jr sr u.s a.m p.m ff aka ca min max".split())
_BEFORE_NUMBERS = frozenset("no nos nr fig figs vol pp".split())
_OPENINGS = "\"'“‘«„([*_"
# Words that cannot end a sentence, because something must follow.
_DANGLING = frozenset(
    "a an the and or but nor because although unless if while whereas which whose of into onto than as via per between "
    "very our your their its my every der das ein eine und oder aber weil dass wenn ohne für von le les un une et "
    "ou mais que avec sans pour du des el los las una pero porque con sin para del".split()
)
# Words that seldom end one: a line that ends with one of them was wrapped.
_SELDOM_LAST = frozenset(
    "to from with without for by at in on is are was were be been not this these those that some any each since when "
    "where can must should will would may has have had do does la die den dem im am zu mit de".split()
)
# A clause that starts with one of these needs another clause, behind a comma or with a predicate of its own.
_SIDE_CLAUSE = (
    r"(?i)(?:(?P<comma>because|since|although|though|even (?:though|if)|which|whose|so that|such that|weil|da|obwohl|"
    r"damit|parce que|"
    r"puisque|porque|aunque)|unless|whereas|while|if|when(?:ever)?|until|after|before|once|as soon as|wenn|falls|si|"
    r"quand|lorsque|cuando)\b"
)
# A sentence that starts with one of these and does not ask lacks its subject.
_PREDICATE_FIRST = (
    r"(?:(?:so|and|but|also|then|thus) )?(?:must|should|can|could|would|will|may|might|is|are|was|were|has|had|does|"
    r"did|"
    r"needs?|isn't|can't|won't)\b"
)
_CONNECTED = r"(?:and|or|Or|but|nor|which|whose|that|than|und|oder|aber|sondern|et|ou|mais|y|o|pero)\b"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_MIN_WORDS = 3


class Block(Value):
    """A paragraph, a list item or another part of a text, on one line."""

    kind: str
    text: str
    start: int
    """Where its text starts in the whole text, behind a bullet."""
    end: int
    lines: tuple[tuple[int, int], ...] = ()
    """For each line that was joined: its position in `text`, and its position in the whole text."""

    def place_of(self, position: int) -> int:
        """Return where a character of this block stands in the whole text."""
        at, place = self.lines[bisect_right(self.lines, (position, sys.maxsize)) - 1]
        return place + position - at


class Sentence(Value):
    """A sentence of a paragraph or a list item."""

    text: str
    """Without emphasis and the addresses of links, with single spaces."""
    start: int
    end: int
    kind: str = PARAGRAPH
    block: int = 0
    """The number of its block: sentences of one block follow each other in one paragraph."""


def read_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences in the paragraphs and list items of a text, in order."""
    for number, block in enumerate(read_blocks(text)):
        if block.kind in (PARAGRAPH, ITEM):
            for start, end in find_sentences(block.text):
                plain = strip_markup(block.text[start:end])
                if plain:
                    places = block.place_of(start), block.place_of(end - 1) + 1
                    yield Sentence(text=plain, start=places[0], end=places[1], kind=block.kind, block=number)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of one paragraph, which may be wrapped."""
    joined = " ".join(text.split())
    return [plain for start, end in find_sentences(joined) if (plain := strip_markup(joined[start:end]))]


def strip_markup(text: str) -> str:
    """Return a sentence without emphasis and the addresses of links; code stays as it is."""
    pieces = re.split(r"(`+[^`]+`+)", text)
    pieces[::2] = [re.sub(_EMPHASIS, r"\1\2", re.sub(_LINK, r"\1", piece)) for piece in pieces[::2]]
    return " ".join("".join(pieces).replace("**", "").split())


def find_sentences(text: str) -> list[tuple[int, int]]:
    """Return where each sentence of a line of text starts and ends, without the blanks around it."""
    masked = _mask(text)
    cuts = [match.end() for match in re.finditer(_END, masked) if _ends_sentence(masked, match)]
    found = []
    for start, end in zip((0, *cuts), (*cuts, len(text)), strict=True):
        piece = text[start:end]
        if piece.strip():
            found.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
    return found


def _mask(text: str) -> str:
    """Return a text with code and addresses replaced by letters, which end no sentence."""
    for pattern in (_CODE_SPAN, _WEB_ADDRESS):
        text = re.sub(pattern, lambda match: "`" + "x" * (len(match[0]) - 2) + "`", text)
    return text


def _ends_sentence(text: str, end: re.Match[str]) -> bool:
    """Return whether a full stop, a question mark or the like ends a sentence here."""
    following = text[end.end() : end.end() + 20].strip().lstrip(_OPENINGS)
    if not following:
        return True
    starts_low = following[0].islower()
    if end[0][0] in "…。！？" or end[0].startswith("..."):
        return not starts_low
    if end[0][0] != ".":
        return not starts_low or len(end[0]) == 1
    word = text[text.rfind(" ", 0, end.start()) + 1 : end.start()].lstrip(_OPENINGS).lower()
    if word in _ABBREVIATIONS or _is_initial(text, end.start()) or re.match(r"[^\W\d_]\.", following):
        return False
    if word in _BEFORE_NUMBERS:
        return not following[0].isdigit()
    return not starts_low if word in _MAY_BE_LAST or (word.isdigit() and len(word) < 3) else True


def _is_initial(text: str, stop: int) -> bool:
    """Return whether the letter before this full stop abbreviates a word: `Donald E. Knuth`, `z. B. hier`."""
    return (
        re.search(r"(?:^|[A-Z]\w{0,20}\.? )[A-HJ-Z]$|\b[a-z]\. ?[A-Za-z]$", text[max(0, stop - 24) : stop]) is not None
    )


def is_whole(sentence: str) -> bool:
    """Return whether a text is a complete sentence: it starts and ends as one, and has a predicate.

    A full stop at the end is not asked for, because list items and subjects have none.
    """
    text = sentence.strip()
    plain = re.sub(_WEB_ADDRESS, "X", re.sub(_CODE_SPAN, "X", text))
    words = list_words(plain)
    return (
        len(words) >= _MIN_WORDS
        and _is_balanced(plain)
        and _starts_properly(plain)
        and _ends_properly(plain)
        and (has_predicate(words) or _orders_behind_comma(plain))
    )


def _orders_behind_comma(text: str) -> bool:
    """Return whether an order follows on a condition: `In tests, truncate first.`"""
    return any(map(is_base_form, re.findall(r", (?:please |always |never |then )?([a-z]+)\b", text)))


def _is_balanced(text: str) -> bool:
    if text.count("`") or text.count('"') % 2 or text.count("“") > text.count("”") + text.count("„"):
        return False
    opened: list[str] = []
    for letter in re.findall(r"(?<![:;])[()\[\]{}]", text):
        if letter in "([{":
            opened.append(letter)
        elif not opened or opened.pop() != _BRACKETS[letter]:
            return False
    return not opened


def _starts_properly(text: str) -> bool:
    """Return whether a sentence starts with a word, and is not only the second half of another or a side clause."""
    if not re.match(r"[\w\"'“‘«„(\[@$/~<¿¡]|[.-][\w/]", text) or re.match(_CONNECTED, text):
        return False
    if (
        re.match(r"X, (?:and|or|but) ", text)
        or _lacks_subject(text)
        or (re.match(r"(?:for|of|by|from|with|without)\b", text) and "," not in text)
    ):
        return False
    side = re.match(_SIDE_CLAUSE, text)
    if side is None or re.search(r"[,:;–—]| then | - ", text[side.end() :]):
        return True
    return not side["comma"] and sum(has_predicate(["", word]) for word in list_words(text[side.end() :])) > 1


def _lacks_subject(text: str) -> bool:
    """Return whether a sentence starts with its predicate (`Fixes the …`), or is only a purpose (`To avoid …`)."""
    if re.match(_PREDICATE_FIRST, text, re.IGNORECASE):
        return "?" not in text
    first, _, rest = text.partition(" ")
    if first == "To" and "," not in rest:
        return not any(has_predicate(["", word]) for word in list_words(rest))
    return (
        is_present(first)
        and re.match(r"(?:the|an?|this|that|these|its|all|some|any|more|X|\w+ing)\b", rest) is not None
    )


def _ends_properly(text: str) -> bool:
    """Return whether a sentence ends with its last word, not in its middle."""
    bare = text.rstrip("*_\"'”’» \t")
    if not bare or bare[-1] in ",;:([{-–—&+=|<" or bare.endswith(("...", "…", " /")):
        return False
    return _last_word(bare) not in _DANGLING


def _last_word(text: str) -> str:
    return text[text.rfind(" ") + 1 :].rstrip(".!?").lower()


def read_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a cleaned text, in order."""
    reader = _BlockReader(text)
    yield from reader.read()


class _BlockReader:
    """Reads a text line by line, and remembers the lines of the block that goes on."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._kind = ""
        self._open: list[tuple[int, str]] = []
        self._item_column = -1

    def read(self) -> Iterator[Block]:
        """Yield the blocks."""
        place, fence = 0, ""
        for line in self._lines:
            if line[:1] not in ("", " ", "\t"):
                self._item_column = -1  # unless the line starts another item
            if fence:
                self._open.append((place, line))
                if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                    fence = ""
                    yield from self._end()
            elif opened := re.match(_FENCE, line):
                yield from self._end()
                fence, self._kind, self._open = opened[1], CODE, [(place, line)]
            else:
                yield from self._take(place, line)
            place += len(line) + 1
        yield from self._end()

    def _take(self, place: int, line: str) -> Iterator[Block]:
        """Add a line to the open block, or end it and start another."""
        if not line.strip():
            yield from self._end()
            return
        kind, skipped = self._classify(line)
        if kind == _RULER:
            if self._kind == PARAGRAPH and len(self._open) == 1 and re.fullmatch(_UNDERLINE, line):
                self._kind = HEADING
            yield from self._end()
            return
        if not self._goes_on(kind):
            yield from self._end()
            self._kind = kind
        self._open.append((place + skipped, line[skipped:]))

    def _goes_on(self, kind: str) -> bool:
        if kind == PARAGRAPH:
            return self._kind in (PARAGRAPH, ITEM)
        return kind == self._kind and kind in (TABLE, CODE, QUOTE)

    def _classify(self, line: str) -> tuple[str, int]:
        """Return what a line is, and how many of its characters precede its text."""
        if re.fullmatch(_RULER_LINE, line):
            return _RULER, 0
        if re.match(_HEADING, line) or (not self._open and re.fullmatch(_BOLD_LINE, line)):
            return HEADING, len(line) - len(line.lstrip(" #"))
        if line.lstrip().startswith(">"):
            return QUOTE, len(line) - len(line.lstrip(" \t>"))
        if re.fullmatch(_TABLE_LINE, line):
            return TABLE, 0
        if re.fullmatch(_TRAILER, line):
            return TRAILER, 0
        bullet = re.match(_BULLET, line)
        if bullet and self._may_start_item(bullet):
            self._item_column = bullet.end()
            return ITEM, bullet.end()
        return self._classify_text(len(line) - len(line.lstrip()))

    def _may_start_item(self, bullet: re.Match[str]) -> bool:
        """Return whether this is a list item, not a wrapped line that happens to begin with a number."""
        return self._kind != PARAGRAPH or bool(bullet[1]) or bullet[2] in ("1.", "1)", "a)", "(a)")

    def _classify_text(self, indent: int) -> tuple[str, int]:
        """Return what a line of plain text is: part of a paragraph, more text of a list item, or code."""
        if self._kind in (PARAGRAPH, ITEM):
            return PARAGRAPH, indent
        if self._item_column >= 0 and indent >= min(self._item_column, 2):
            return (ITEM, indent) if indent < self._item_column + _MAX_INDENT else (CODE, 0)
        self._item_column = -1
        return (CODE, 0) if indent >= _MAX_INDENT else (PARAGRAPH, indent)

    def _end(self) -> Iterator[Block]:
        """Yield the open block; lines that are statements of their own are blocks of their own."""
        lines, kind = self._open, self._kind
        self._open, self._kind = [], ""
        if not lines:
            return
        if kind in (PARAGRAPH, ITEM):
            for group in _group_lines(lines):
                yield _join(kind, group)
        else:
            yield _join(kind, lines)


def _group_lines(lines: Sequence[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    """Return the lines of a paragraph in groups that belong together.

    Wrapped lines belong together. Lines that all start like sentences do not, if one of them was broken although the
    next word would have fitted.
    """
    texts = [line.strip() for _, line in lines]
    if len(lines) < 2 or not all(map(_starts_like_sentence, texts)):
        return [list(lines)]
    width = max(map(len, texts))
    may_end = [_ends_properly(text) and _last_word(text) not in _SELDOM_LAST for text in texts]
    has_room = [len(before) + 1 + len(text.split()[0]) <= width for before, text in pairwise(texts)]
    if not any(ends and fits for ends, fits in zip(may_end, has_room, strict=False)):
        return [list(lines)]
    groups = [[lines[0]]]
    for ends, line in zip(may_end, lines[1:], strict=False):
        if ends:
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def _starts_like_sentence(text: str) -> bool:
    first = text.lstrip(_OPENINGS)[:1]
    return bool(first) and not first.islower()


def _join(kind: str, lines: Sequence[tuple[int, str]]) -> Block:
    """Return a block of these lines, joined by blanks; code keeps its line breaks."""
    glue = "\n" if kind == CODE else " "
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    length = 0
    for place, line in lines:
        text = line.rstrip() if kind == CODE else line.strip().removesuffix("\\").rstrip()
        places.append((length, place + (0 if kind == CODE else len(line) - len(line.lstrip()))))
        pieces.append(text)
        length += len(text) + 1
    end = lines[-1][0] + len(lines[-1][1].rstrip())
    return Block(kind=kind, text=glue.join(pieces), start=places[0][1], end=end, lines=tuple(places))
