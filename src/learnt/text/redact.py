"""Take out of a text what must not be seen by others.

`redact` replaces secrets by `[redacted: KIND]` before anything is stored; `secrets.py` knows them. The same text always
gives the same result, and redacting twice changes nothing more. Most texts hold nothing that could be a part of a
secret: for these, the expressions are not even loaded.
"""

from __future__ import annotations

from learnt.text.clean import clean, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from learnt.text.secrets import Span

# What was taken out may uncover what stood right beside it; a few rounds reach the end of any text not made for it.
_ROUNDS = 6
# A text without any of these, and without a long word, holds no secret that `secrets.py` knows.
_LETTERS = (
    "://",
    "auth",
    "basic",
    "bearer",
    "connect.sid",
    "ookie",
    "credential",
    "curl",
    "default",
    "identified by",
    "key",
    "machine",
    "mysql",
    "pass",
    "pw",
    "redis-cli",
    "secret",
    "sess",
    "sig",
    "token",
)
_SHORTEST_WORD = 18
PURGED = "[purged]"
_SHORTEST_PURGED = 12  # shorter ones occur by chance


def redact(text: str) -> tuple[str, int]:
    """Return the text with secrets replaced by `[redacted: KIND]`, and how many were replaced."""
    if not may_hold_secrets(text):
        return text, 0
    from learnt.text.secrets import FINDERS  # only now: most texts of a hook need none of it

    total = 0
    for _ in range(_ROUNDS):
        count = 0
        for find in FINDERS:
            spans = list(find(text))
            if spans:
                text, cuts = _cut(text, spans)
                count += cuts
        total += count
        if not count:
            break
    return text, total


def redact_text(text: str, limit: int) -> tuple[str, int]:
    """Return any text cleaned and without secrets, and how many were replaced.

    Where redaction alone makes it longer than the limit, it is cut: nobody must be told to shorten what was short.
    """
    safe, count = redact(clean(text))
    return (safe[:limit].rstrip() if len(text) <= limit < len(safe) else safe), count


def redact_line(text: str, limit: int) -> tuple[str, int]:
    """Do the same, and put it on one line."""
    # Before, because some secrets have several lines; after, because a name and its value may have had two.
    safe, count = redact(clean(text))
    safe, more = redact(fold(safe))
    return (safe[:limit].rstrip() if len(text) <= limit < len(safe) else safe), count + more


def may_hold_secrets(text: str) -> bool:
    """Say quickly whether a text holds anything that could be a part of a secret."""
    if any(len(word) >= _SHORTEST_WORD for word in text.split()):
        return True
    lower = "" if text.isalpha() else text.lower()  # a single word gives nothing to a name, even if it is one
    return any(letters in lower for letters in _LETTERS)


def _cut(text: str, spans: list[Span]) -> tuple[str, int]:
    """Replace the spans, the longest first of those that begin together; what overlaps it waits for the next round."""
    pieces: list[str] = []
    done = count = 0
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            pieces += (text[done:start], f"[redacted: {kind}]")
            done = end
            count += 1
    return "".join((*pieces, text[done:])), count


def without_password(address: str) -> str:
    """Return a database address that can be shown."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return "…"  # no address at all: it may hold anything
    login, at, place = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{mark}{user}{':…' if colon else ''}{at}{_without_secret_options(place)}"


def without_password_of(address: str, text: str) -> str:
    """Return a text about an address, such as a driver's error, without the address's password."""
    password = address.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return text.replace(password, "…") if password else text


def _without_secret_options(place: str) -> str:
    path, mark, options = place.partition("?")
    shown = [option for option in options.split("&") if not option.lower().startswith(("password=", "sslpassword="))]
    return path + mark + "&".join(shown) if any(shown) else path


def long_enough(texts: Iterable[str]) -> list[str]:
    """Return the texts that do not occur in others by chance, the longest first."""
    return sorted({text for text in texts if len(text) >= _SHORTEST_PURGED}, key=lambda text: (-len(text), text))


def black_out(text: str, purged: Iterable[str]) -> str:
    """Return a text without those that a person purged, wherever it repeats one in whole."""
    for sought in long_enough(purged):
        text = text.replace(sought, PURGED)
    return text
