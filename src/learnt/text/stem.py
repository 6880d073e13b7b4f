"""Cut English endings, after the algorithm that M. F. Porter published in 1980, so that `failing` finds `failed`.

Words of one or two letters stay. The measure of a stem is the number of times that vowels are followed by consonants.
"""

from __future__ import annotations

import itertools

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ion",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "al",
    "er",
    "ic",
    "ou",
)


def stem(word: str) -> str:
    """Return the stem of a lower-case word."""
    if len(word) <= 2:
        return word
    word = _past_and_progressive(_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
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
            return _mended(rest) if _has_vowel(rest) else word
    return word


def _mended(rest: str) -> str:
    """Return what remains of a word without -ed or -ing as its plain form."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and not _is_vowel(rest, len(rest) - 1) and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _is_short(rest) else rest


def _replaced(word: str, endings: dict[str, str]) -> str:
    # The longest ending decides, even where its stem is too short to be changed.
    for ending in sorted((ending for ending in endings if word.endswith(ending)), key=len, reverse=True):
        rest = word[: -len(ending)]
        return rest + endings[ending] if _measure(rest) > 0 else word
    return word


def _long_ending(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            fits = _measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t")))
            return rest if fits else word
    return word


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
    return any(_is_vowel(word, position) for position in range(len(word)))


def _measure(word: str) -> int:
    shape = [_is_vowel(word, position) for position in range(len(word))]
    return sum(before and not after for before, after in itertools.pairwise(shape))


def _is_short(word: str) -> bool:
    """Say whether a stem ends like `hop` or `fil`: consonant, vowel, consonant other than w, x, y."""
    last = len(word) - 1
    return (
        last >= 2
        and not _is_vowel(word, last)
        and _is_vowel(word, last - 1)
        and not _is_vowel(word, last - 2)
        and word[-1] not in "wxy"
    )
