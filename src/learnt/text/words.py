"""Split text into the words that are indexed and searched. The words are the same for every database.

An identifier such as `build_prompt`, `buildPrompt`, `--no-learnings` or `E0308` is found by itself and by its parts.
The index also contains neighbouring parts joined into one word, with a prefix, so that `buildprompt` finds
`build_prompt` if no text contains `buildprompt` itself. Only whole words match, not their beginnings. Words are in
lower case, without accents, and stemmed. Stop words are dropped, and scripts without spaces are split into pairs of
letters. Any text can be split.

`estimate_tokens` estimates how many tokens a text has, without any model's vocabulary. It errs on the high side, so
that budgets are not exceeded. The tests check it against cl100k.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, pairwise

# Letters and digits, joined by dots, dashes and underscores; `c++`, `c#` and `f#` are names, too.
_CHUNK = re.compile(r"\w+(?:[-.]+\w+)*(?:\+\+|#(?!\w))?")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_CONTRACTION = r"(?i)(?<=\w)['’](?:s|t|d|m|ll|re|ve)\b"  # compiled when a text has one
_NUMBERED = r"([^\W\d_]{2,})[ ][#v]?(\d)(?![\w%]|[.,:]\d)"  # compiled when a text has a digit
# Kana, Han and Hangul. Letters are compared one by one, because compiling an expression with these ranges would take
# longer than a search.
_WITHOUT_SPACES = (("\u3040", "\u30ff"), ("\u3400", "\u4dbf"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7af"))
_MAX_WORD_LENGTH = 64
JOINED = "+"  # the prefix of words that only the index contains: joined parts of an identifier
_PIECE = re.compile(r"[A-Za-z]+|\d+|[^\S\n]+|\n+|[^\sA-Za-z\d]+")
_WHOLE_WORD = 6  # words up to this length are mostly one token
_PER_FURTHER_LETTER = 0.18
_PER_PUNCTUATION_MARK = 0.7
_DIGITS_PER_TOKEN = 3

# What says that something is no longer as it was.
_GONE = (
    "no longer|anymore|any more|nowadays|is gone|are gone|was removed|were removed|is being removed|were deleted|"
    "was deleted|deprecated|obsolete|outdated|replaced|superseded|retired|moved to|migrated|is ignored|are ignored|"
    "undoes|nicht mehr|veraltet|abgeschafft|ersetzt|obsolète|remplacé|remplacée|ya no|obsoleto|reemplazado|reemplazada"
)
_SINCE = (
    r"(?:since|as of|until|from) (?:v?\d|january|february|march|april|may|june|july|august|september|october|november|"
    r"december|the (?:move|switch|migration|upgrade|release))|ne \w+ plus"
)
_CHANGE = rf"\b(?:{_GONE}|{_SINCE})\b"
# Looking for these first is much faster, and few texts contain one.
_SIGNS_OF_CHANGE = (*_GONE.split("|"), "since ", "as of ", "until ", "from ", " plus")
_MAX_LENGTH = 20_000
STOP_WORDS = frozenset(
    (
        "a about above after again all also am an and any are as at be because been before being below "
        "between both but by can could did do does doing don down during each few for from further had has "
        "have having he her here hers him his how i if in into is isn it its itself just let ll me more most "
        "my myself no nor not now of off on once only or other our ours out over own please re s same shall "
        "she should so some such t than that the their theirs them then there these they this those through "
        "to too under until up us ve very was wasn we were what when where which while who whom why will with "
        "won would you your yours "
    ).split()
)


def words(text: str) -> list[str]:
    """Return the words of a text in order, with repetitions."""
    return [*chain.from_iterable(map(_split_chunk, _find_chunks(text)))]


def indexed_words(text: str) -> list[str]:
    """Return the words by which a text is found: its words, and the joined parts of its identifiers."""
    return [*chain.from_iterable(map(_index_chunk, _find_chunks(text)))]


def count_joined(words: Iterable[str]) -> int:
    """Return how many of the words by which a text is found are joined parts."""
    return f" {' '.join(words)}".count(f" {JOINED}")  # faster than to look at each word


def numbered_words(text: str) -> list[str]:
    """Return the words that a single digit follows, each with it: `node 8`, `step 2`. No index contains them."""
    if not has_digit(text):
        return []
    found = ((name.lower(), digit) for name, digit in re.findall(_NUMBERED, text))
    return [f"{stem(name)} {digit}" for name, digit in found if name not in STOP_WORDS]


def has_digit(text: str) -> bool:
    """Return whether a text has an ASCII digit, which is quicker than to look for a pattern with one."""
    return any(digit in text for digit in "0123456789")


def spell_words(text: str) -> dict[str, str]:
    """Return how the words by which a text is found are first written in it."""
    spelled: dict[str, str] = {}
    for chunk in _CHUNK.findall(text):
        for written in (*_PART.findall(chunk), chunk):
            for word in _index_chunk(written):
                spelled.setdefault(word, written)
    return spelled


def mark(text: str, wanted: Iterable[str]) -> str:
    """Return the text with everything that matches one of the wanted words in `<mark>`."""
    is_unwanted = frozenset(wanted).isdisjoint

    def mark_chunk(chunk: re.Match[str]) -> str:
        return chunk[0] if is_unwanted(_index_chunk(chunk[0])) else f"<mark>{chunk[0]}</mark>"

    return _CHUNK.sub(mark_chunk, text)


def speaks_of_change(text: str) -> bool:
    """Return whether a text says that something is no longer as it was."""
    text = text[:_MAX_LENGTH].lower()
    return any(sign in text for sign in _SIGNS_OF_CHANGE) and re.search(_CHANGE, text) is not None


def _find_chunks(text: str) -> list[str]:
    has_contraction = "'" in text or "’" in text
    return _CHUNK.findall(re.sub(_CONTRACTION, "", text) if has_contraction else text)


@lru_cache(maxsize=50_000)
def _index_chunk(chunk: str) -> list[str]:
    """Return a chunk's words and its joined parts: +reuse for `re-use`, +httpserver for `HTTPServer`."""
    own = _split_chunk(chunk)
    if len(own) < 2:
        return own
    pairs = [
        first + second
        for name in chunk.split(".")
        for first, second in pairwise(_PART.findall(name))
        if first.isalpha() and second.isalpha() and first.isascii() and second.isascii()
    ]
    return own + [JOINED + stem(pair.lower()[:_MAX_WORD_LENGTH]) for pair in dict.fromkeys(pairs)]


@lru_cache(maxsize=50_000)  # texts share most of their words
def _split_chunk(chunk: str) -> list[str]:
    if not chunk.isascii():
        chunk = _remove_accents(chunk)
        if any(first <= letter <= last for letter in chunk for first, last in _WITHOUT_SPACES):
            letters = chunk.lower()
            return [letters[position : position + 2] for position in range(max(1, len(letters) - 1))]
    parts = _PART.findall(chunk)
    whole = chunk.strip("_-.").lower()[:_MAX_WORD_LENGTH]
    if len(parts) == 1 and len(whole) == len(parts[0]):
        return [stem(whole)] if _is_indexed(whole) else []
    in_full = [whole] if len(whole) > 1 else []
    return in_full + [stem(part.lower()[:_MAX_WORD_LENGTH]) for part in parts if _is_indexed(part.lower())]


def _is_indexed(word: str) -> bool:
    return len(word) > 1 and word not in STOP_WORDS


def _remove_accents(text: str) -> str:
    from unicodedata import combining, normalize

    # A spacing accent is decomposed into a space and a combining accent.
    return normalize("NFKC", "".join(x for x in normalize("NFKD", text) if not (combining(x) or x.isspace())))


# Endings and their replacements, by the steps of Porter's stemmer.
_STEP_2 = dict(
    pair.split(":")
    for pair in (
        "ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous ization:ize "
        "ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble logi:log"
    ).split()
)
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = tuple("ement ance ence able ible ment ant ent ion ism ate iti ous ive ize al er ic ou".split())


_STEP_2_ENDINGS, _STEP_3_ENDINGS = tuple(_STEP_2), tuple(_STEP_3)
_SHAPES = "".join("v" if chr(code) in "aeiou" else "c" for code in range(128))


@lru_cache(maxsize=20_000)  # identifiers share most of their parts
def stem(word: str) -> str:
    """Return the stem of a lower-case word; a word with characters other than a-z stays unchanged."""
    if len(word) <= 2 or not (word.isascii() and word.isalpha()):
        return word
    word = _past_and_progressive(_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    if word.endswith(_STEP_2_ENDINGS):
        word = _replace_ending(word, _STEP_2)
    if word.endswith(_STEP_3_ENDINGS):
        word = _replace_ending(word, _STEP_3)
    return _final_e(_long_ending(word))


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _past_and_progressive(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return _restore_ending(rest) if _has_vowel(rest) else word
    return word


def _restore_ending(rest: str) -> str:
    """Return the base form of a word whose -ed or -ing was removed."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and not _is_vowel(rest, len(rest) - 1) and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _is_short(rest) else rest


def _replace_ending(word: str, endings: dict[str, str]) -> str:
    # Only the longest ending is considered, even if its stem is too short to be changed.
    ending = max((ending for ending in endings if word.endswith(ending)), key=len)
    rest = word.removesuffix(ending)
    return rest + endings[ending] if _measure(rest) > 0 else word


def _long_ending(word: str) -> str:
    if not word.endswith(_STEP_4):
        return word
    ending = next(ending for ending in _STEP_4 if word.endswith(ending))
    rest = word.removesuffix(ending)
    fits = _measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t")))
    return rest if fits else word


def _final_e(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        if _measure(rest) > 1 or (_measure(rest) == 1 and not _is_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _is_vowel(word: str, position: int) -> bool:
    letter = word[position]
    return letter in "aeiou" or (letter == "y" and position > 0 and not _is_vowel(word, position - 1))


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _shape(word: str) -> str:
    """Return a word with `v` for each vowel and `c` for each consonant."""
    if "y" in word:
        return "".join(["v" if _is_vowel(word, position) else "c" for position in range(len(word))])
    return word.translate(_SHAPES)


def _is_short(word: str) -> bool:
    """Return whether a stem ends like `hop` or `fil`: consonant, vowel, consonant other than w, x, y."""
    last = len(word) - 1
    return (
        last >= 2
        and not _is_vowel(word, last)
        and _is_vowel(word, last - 1)
        and not _is_vowel(word, last - 2)
        and word[-1] not in "wxy"
    )


def estimate_tokens(text: str) -> int:
    """Return the approximate number of tokens in a text."""
    total = sum(map(_count_piece, _PIECE.findall(text)))
    return -int(-total // 1)  # rounded up; importing `math` takes longer than the counting


@lru_cache(maxsize=20_000)  # a brief is measured again for each learning that is added
def _count_piece(piece: str) -> float:
    first = piece[0]
    if first == "\n":
        return 1
    if first.isspace():
        return 0 if len(piece) == 1 else 1  # a single space belongs to the next word
    if first.isdigit():
        return -(-len(piece) // _DIGITS_PER_TOKEN) if first.isascii() else len(piece)
    if not piece.isascii():
        return sum(map(_count_letter, piece))
    if first.isalpha():
        return 1 + max(0, len(piece) - _WHOLE_WORD) * _PER_FURTHER_LETTER
    return max(1, len(piece) * _PER_PUNCTUATION_MARK)


def _count_letter(letter: str) -> float:
    if letter < "\u0080":
        return 1
    if letter < "\u3000":
        return 1.5
    return 1.3 if letter < "\U00010000" else 3
