"""Judge whether a value in the context of a secret is a real secret, and look up words in a text.

Placeholders, plain words, paths and code are not secrets. Expressions are compiled when first needed. What is computed
for a text is kept until the next text, because all finders need it.
"""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    Span = tuple[int, int, str]
    """Where a secret begins and ends, and its kind."""

_patterns: dict[str, re.Pattern[str]] = {}
_NOWHERE: list[int] = []
MIN_SHAPE_LENGTH = 16
# A key is a secret if one of these words comes before it: there are primary keys, too.
KEYS = tuple(
    "api app application access account admin auth bot client consumer cookie crypto deploy encrypt encryption hmac "
    "fernet ingest unseal recovery read server integration jwt license "
    "master preshared pre-shared pre_shared priv private role "
    "root secret service session shared signature signing ssh "
    "storage subscription token webhook write".split()
)
_EMPTY = frozenset(
    "admin auto bcrypt bool boolean bytes change_me changeit changeme default disabled dummy empty enabled encrypted "
    "example false fixme foobar forgot guest hashed hidden incorrect input invalid login masked missing mypassword "
    "mysecret mytoken nil none not_set null object optional pass passphrase passwd password password1 password123 "
    "passwort plain plaintext postgres prompt pwd readonly redacted removed required reset s3cr3t secret secret123 "
    "secrets sensitive string strong test testing text todo token true undefined unknown unset user username weak "
    "wrong".split()
)
_PLACEHOLDER = (
    r"(?i)\$\{|\$\(|\{\{|\{%|%\(|#\{|\$[A-Za-z_][\w.:]*-?$|\$env:|%\w+%$|%[sdrv]$|<|@\w+@$|!(?:vault|ref|sub|secret|env|join)"
    r"|[a-z]+(?:password|passwd|secret|token)$|(?:op|vault|env|arn|ssm|file|gcp|aws|keyring|keychain|secretsmanager|bws):"
)
# Parts of placeholders, and of expressions for the letters of a token.
_PARTS = (
    "redacted", "your-", "your_", "your ", "your.", "example", "placeholder", "***", "...", "\u2026", "\u2022",
    "os.environ", "process.env", "getenv", "env[", "changeme", "change-me", "change_me", "replace", "insert-",
    "insert_", "dummy", "${", "{{", "00000000", "12345678", "abcdef123",
)  # fmt: skip
_PART = r"\{(?i:[a-z_])[\w.\[\]]*\}|<[\w -]+>|a-zA-Z|A-Za-z|a-z0-9|0-9a-|A-Z0-9"
# Words, numbers and camel case with separators: names, paths, versions, models.
WORDS = (
    r"[-_./:+@,~#*!?=]*(?:(?:[A-Z]?[a-z]+(?:[A-Z][a-z]+)*\d{0,4}|[A-Z]+\d{0,4}|\d+[a-z]{0,3}\d?)"
    r"(?:[-_./:+@,~#*!?=]+|$))+"
)
TYPE = r"[A-Z]{1,5}[a-z]*\d{0,5}(?:[A-Z][a-z]{2,})+$"
CAMEL = r"_*[A-Za-z][a-z]+(?:\d{0,2}[A-Z]{1,5}[a-z]{2,})+\d?$"
_NAME = rf"{CAMEL}|{TYPE}"
# Technical terms with a number, which prose about passwords mentions.
_TECHNICAL = (
    r"(?i)(?:sha|md|aes|base|utf|rsa|rot|crc|hs|rs|es|ecdsa|latin|cp|iso|pbkdf|argon|oauth|auth|http|tls|ssl|v|pkcs|x|ldap"
    r"|tier|level|step|option|version|python|win|web|p|s|ec|k|i)[-_ ]?\d{1,4}[a-z]{0,2}(?:[-_/][\w-]{1,30})?$"
    r"|(?-i:[A-Z]{2,6})[- ]?\d{1,5}$|\d{1,2}[a-z]+$"
    r"|\d{1,4}[-+]?(?:[a-z]{1,3}|chars?|characters?|digits?|letters?|bits?|bytes?|days?|hours?|minutes?|times?)$"
)


def compile_once(expression: str) -> re.Pattern[str]:
    pattern = _patterns.get(expression)
    if pattern is None:
        pattern = _patterns[expression] = re.compile(expression, re.ASCII)
    return pattern


def is_placeholder(value: str) -> bool:
    lower = value.lower()
    return (
        not value
        or lower.strip("_-<>[](){}*.$%\"'") in _EMPTY
        or len(set(lower)) <= 2
        or bool(compile_once(_PLACEHOLDER).match(value))
        or _has_part_of_placeholder(value, lower)
    )


def _has_part_of_placeholder(value: str, lower: str) -> bool:
    for part in _PARTS:
        if part in lower:
            return True
    if "xxxx" in value or "XXXX" in value or lower.endswith(("-here", "_here")):
        return True
    return ("{" in value or "<" in value or "0-9" in value or "a-z" in lower) and bool(
        compile_once(_PART).search(value)
    )


def is_strong(value: str, *, least: int = 12) -> bool:
    """Return whether a value looks random."""
    if len(value) < least or not value.isascii() or any(letter.isspace() for letter in value) or "://" in value:
        return False
    if not any(letter.isalpha() for letter in value) or is_placeholder(value) or compile_once(WORDS).fullmatch(value):
        return False
    if compile_once(
        r"0[xX][0-9a-fA-F]+$|(?:\\x[0-9a-fA-F]{2})+$|\d{4}-\d\d-\d\d|(?:learn|task|event|brief|attempt)_[0-9a-z]{14}$"
    ).match(value):
        return False
    if compile_once(_NAME).match(value):
        return False
    if any(letter.isdigit() for letter in value):
        return True
    return (
        len(value) >= 16
        and value.lower() != value != value.upper()
        and not any(bracket in value for bracket in "()[]{}")
    )


def is_opaque(value: str) -> bool:
    """Return whether a value where a secret is expected is more than a word."""
    return (
        len(value) >= 8
        and not is_placeholder(value)
        and (value[1:] != value[1:].lower() or value.endswith("=") or any(letter.isdigit() for letter in value))
        and not (compile_once(WORDS).fullmatch(value) and not value.endswith("=") and len(value) < 40)
    )


def has_more_than_letters(value: str) -> bool:
    return is_mixed(value) or any(not letter.isalpha() and letter not in "-_./:" for letter in value)


def is_chosen(value: str) -> bool:
    """Return whether a value where a password is expected may be one, even if it is a plain word."""
    named = value.isupper() and value.replace("_", "").replace("-", "").isalpha()
    return (
        len(value) >= 4
        and not named
        and bool(compile_once(r".*[A-Za-z]").match(value))
        and value[0] not in "<$-/"
        and not is_placeholder(value)
    )


def is_said(value: str, *, least: int = 6) -> bool:
    """Return whether a value in prose has digits, as passwords do, and is no name or term of a language or of code."""
    if len(value) < least or not compile_once(r"[\w!#$%&*+./=?@^~-]*\d[\w!#$%&*+./=?@^~-]*$").match(value):
        return False
    if not is_chosen(value) or value[-1] in "=/":
        return False
    if compile_once(_TECHNICAL).match(value) or compile_once(
        rf"0[xX][0-9a-fA-F]+$|{CAMEL}|{TYPE}|[a-z]{{3,6}}\d[a-z]{{3,6}}$|[~.]{{0,2}}/[\w./-]+$|[\w.-]+@[\w.-]*$|@\w+$"
    ).match(value):
        return False
    # Names and versions are words and numbers; passwords are a word with a number, or words with a number at the end.
    if compile_once(WORDS).fullmatch(value):
        form = (
            r"[A-Za-z]+[-!#*?@.+_]?\d{2,4}[!#*?+_-]?$|(?:[A-Za-z]+-){2,5}\d{2,4}$|(?=.*[a-z])(?=.*[A-Z]).*[!#*?+@]"
            r"|.*\d{2,}[!#*+]$"
        )
        return bool(compile_once(form).match(value))
    return not value.isidentifier() or "_" not in value or not (value.islower() or value.isupper())


def is_hard(value: str) -> bool:
    """Return whether a value can hardly be anything but a password: a sign among letters and digits, or random."""
    if not is_said(value, least=8):
        return False
    if compile_once(r"[\w.=-]*[!#%*?+^~][\w!#%*?+^~.=-]*$").match(value):
        return True
    return value.isalnum() and value.lower() != value != value.upper() and not compile_once(WORDS).fullmatch(value)


def is_drawn(value: str) -> bool:
    """Return whether the characters after a prefix look random: with digits, and not made of words."""
    digits = sum(letter.isdigit() for letter in value)
    changes = len(compile_once(r"[a-z][A-Z]|[A-Z][a-z]").findall(value))
    if digits < 2 and changes < (3 if digits else 4):
        return False
    return not is_placeholder(value) and not compile_once(WORDS).fullmatch(value)


def is_random(value: str, *, least: int, known: bool) -> bool:
    """Return whether a value contains a long random run of digits and letters; after a known word, also of one case."""
    run = value if value.isalnum() else max(compile_once(r"[A-Za-z0-9]+").findall(value), key=len, default="")
    if len(run) < least or (not known and compile_once(r"[0-9a-f]+$|[0-9A-F]+$|[A-Za-z]+$").match(run)):
        return False
    digits = len(compile_once(r"\d").findall(run))
    changes = len(compile_once(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])").findall(run))
    if not (digits >= 2 or (known and changes * 5 >= len(run))) or digits == len(run):
        return False
    few = changes * (5 if known else 4) < len(run) or (len(run) < 26 and (run.islower() or run.isupper()))
    if few and not (known and len(run) >= 32 and digits >= 4):
        return False
    words = compile_once(r"[A-Z][a-z]{2,}").findall(run)  # as in names of functions
    return (len(run) >= 32 or sum(map(len, words)) * 5 < len(run) * 3) and not is_placeholder(value)


class _Lookups:
    """What the finders look up in one text, each part computed when first needed."""

    def __init__(self, text: str) -> None:
        self.lower = text.lower()
        if len(self.lower) != len(text):
            self.lower = "".join(letter.lower() if letter.isascii() else letter for letter in text)
        self.long: str | None = None
        self.places: dict[str | tuple[str, ...], list[int]] = {}


_index = lru_cache(maxsize=2)(_Lookups)  # two, because finders also read stretches of a text


def lower_case(text: str) -> str:
    """Return the text in lower case, without changing the position of any letter."""
    return _index(text).lower


def long_words(text: str) -> str:
    """Return the words that are long enough for a token, separated by spaces."""
    index = _index(text)
    if index.long is None:
        index.long = " ".join([word for word in text.split() if len(word) >= MIN_SHAPE_LENGTH])
    return index.long


def find_places(text: str, words: tuple[str, ...]) -> list[int]:
    """Return where the words begin, in upper or lower case."""
    index = _index(text)
    known = index.places
    places = known.get(words)
    if places is None:
        lower = index.lower
        places = known[words] = []
        for word in words:
            if word in known:
                places += known[word]
            elif word in lower:
                known[word] = _find(lower, word)
                places += known[word]
            else:
                known[word] = _NOWHERE
        places.sort()
    return places


def _find(lower: str, word: str) -> list[int]:
    places = []
    place = lower.find(word)
    while place >= 0:
        places.append(place)
        place = lower.find(word, place + len(word))
    return places


def is_mixed(value: str) -> bool:
    """Return whether the case of the letters changes more often than in words."""
    return (
        len(value) >= 8
        and len(compile_once(r"[a-z][A-Z]").findall(value)) >= 2
        and not compile_once(CAMEL).match(value)
    )
