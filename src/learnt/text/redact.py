"""Remove from a text what others must not see: secrets, passwords of addresses, and what a person purged.

`redact` replaces the secrets that `secrets.py` knows before anything is stored. The same text always gives the same
result, and redacting twice changes nothing more. `secrets.py` is loaded only for a text that may hold a secret.
"""

from __future__ import annotations

from collections.abc import Iterable

from learnt.text.clean import clean, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets import Span

# A removed secret may uncover another one right beside it; a few rounds suffice for any text not made to defeat them.
_MAX_ROUNDS = 6
# A text without any of these, and without a long word, holds no secret that `secrets.py` knows.
_SECRET_HINTS = (
    "identified by",
    *(
        ":// auth basic bearer connect.sid ookie credential curl default key machine mysql pass pw redis-cli secret "
        "sess sig token"
    ).split(),
)
_MIN_SECRET_LENGTH = 18
PURGED = "[purged]"
_MIN_PURGED_LENGTH = 12  # shorter ones occur by chance


def redact(text: str) -> tuple[str, int]:
    """Return the text with secrets replaced by `[redacted: KIND]`, and how many were replaced."""
    if not may_hold_secrets(text):
        return text, 0
    from learnt.text.secrets import FINDERS  # most texts of a hook need none of it

    total = 0
    for _ in range(_MAX_ROUNDS):
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

    A text that only redaction makes longer than the limit is cut: its author need not shorten it.
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
    # Secrets hold no angle brackets; sigils do.
    if any(len(word) >= _MIN_SECRET_LENGTH for word in text.replace("<", " ").replace(">", " ").split()):
        return True
    lower = "" if text.isalpha() else text.lower()  # a single word is no assignment
    return any(letters in lower for letters in _SECRET_HINTS)


def _cut(text: str, spans: list[Span]) -> tuple[str, int]:
    """Replace the spans, of those that start together the longest; what overlaps it waits for the next round."""
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
        return "…"  # it is no address and may hold anything
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
    return sorted({text for text in texts if len(text) >= _MIN_PURGED_LENGTH}, key=lambda text: (-len(text), text))


def black_out(text: str, purged: Iterable[str]) -> str:
    """Return a text without those that a person purged, wherever it repeats one in whole."""
    for sought in long_enough(purged):
        text = text.replace(sought, PURGED)
    return text
