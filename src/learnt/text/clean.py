"""Clean untrusted text before it is stored, in the same way for every database.

Cleaning removes terminal sequences (colours, titles, cursor movements), control characters except line break and tab,
and invisible characters (zero-width, bidirectional, tag and filler characters), which could make a text read
differently to a person and to a model. A lone surrogate becomes U+FFFD. Joiners stay in emoji and in scripts that need
them. Cleaning twice changes nothing.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# If a title or link does not end on its line, only its start is removed. The expression is compiled when first needed.
_TERMINAL_SEQUENCE = (
    r"(?:\x1b\[|\x9b(?=[0-?]))[0-?]*+[ -/]*+[@-~]?+"  # colours and cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)"  # titles and links
    r"|\x1b[ -/]*+[0-~]"
)
_JOINERS = "\u200c\u200d"
_INVISIBLE = (
    (0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x034F, 0x034F), (0x061C, 0x061C),
    (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200B), (0x200E, 0x200F), (0x202A, 0x202E),
    (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0E), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB), (0x13430, 0x13438), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
)  # fmt: skip
_TAG_CHARACTERS = range(0xE0000, 0xE1000)  # too many for the table
# Secrets consist of these characters. Others are not dropped at a cut, because some scripts have no spaces between
# words.
_VISIBLE_ASCII = "".join(map(chr, range(ord("!"), ord("~") + 1)))
_MAX_SPLIT_WORD = 300  # a longer word is data without spaces, and most of it can stay
_DROPPED = {code: None for first, last in _INVISIBLE for code in range(first, last + 1)}


def clean(text: str) -> str:
    """Return the text without characters that must not be stored, with `\n` as its line break."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = re.sub(_TERMINAL_SEQUENCE, "", text)
    text = text.translate(_DROPPED)
    if text.isascii():
        return text
    text = "".join(
        "\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text if ord(letter) not in _TAG_CHARACTERS
    )
    return _remove_stray_joiners(text) if any(joiner in text for joiner in _JOINERS) else text


def join_messages(messages: Iterable[str]) -> str:
    """Return an agent's messages as one text.

    A colon at the end of a message announces a call of a tool: nothing in the next message is introduced by it.
    """
    whole = [message.strip() for message in messages]
    return "\n\n".join(
        f"{message[:-1]}." if message.endswith(":") and number < len(whole) else message
        for number, message in enumerate(whole, 1)
        if message
    )


def fold(text: str) -> str:
    """Return the cleaned text on one line, with single spaces."""
    return " ".join(clean(text).split())


def _remove_stray_joiners(text: str) -> str:
    """Keep a joiner only between two visible non-ASCII letters, because elsewhere it could only hide something."""
    kept: list[str] = []
    for position, letter in enumerate(text):
        if letter not in _JOINERS or (kept and _joins(kept[-1]) and _joins(text[position + 1 : position + 2])):
            kept.append(letter)
    return "".join(kept)


def _joins(letter: str) -> bool:
    return bool(letter) and not letter.isascii() and not letter.isspace() and letter not in _JOINERS


def first_words(text: str, limit: int) -> str:
    """Return the beginning of a text, without a word that the cut would split.

    A split word is dropped because it might be part of a secret, which would not be recognised. If the word is very
    long, only the last characters before the cut are dropped.
    """
    if len(text) <= limit:
        return text
    safe_end = max(0, limit - _MAX_SPLIT_WORD)
    return text[:safe_end] + text[safe_end:limit].rstrip(_VISIBLE_ASCII)


def last_words(text: str, limit: int) -> str:
    """Return the end of a text, without a word that the cut would split; see `first_words`."""
    if len(text) <= limit:
        return text
    safe_start = len(text) - max(0, limit - _MAX_SPLIT_WORD)
    return text[len(text) - limit : safe_start].lstrip(_VISIBLE_ASCII) + text[safe_start:]


def shorten_middle(text: str, limit: int) -> str:
    """Return a text; if it is too long, return its beginning and its end, with a note on how much is left out."""
    if len(text) <= limit:
        return text
    left_out = f"\n[… {len(text) - limit:,} characters left out …]\n"
    half = max(0, limit - len(left_out)) // 2
    return text[:half] + left_out + text[len(text) - half :]
