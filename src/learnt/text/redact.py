"""Remove secrets, passwords in addresses, and purged texts from a text.

`redact` replaces the secrets that `secrets.py` recognises before anything is stored. The same text always gives the
same result, and redacting twice changes nothing more. `secrets.py` is loaded only for a text that may hold a secret.
"""

from __future__ import annotations

from collections.abc import Iterable

from learnt.text.clean import clean, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

# A removed secret may uncover another one next to it. A few rounds are enough for any text not crafted to evade them.
_MAX_ROUNDS = 6
# A text without any of these, without a long word, and without an option or a joint as below holds no secret that
# `secrets.py` recognises.
_SECRET_HINTS = (
    *":// auth base64 basic bearer clave contrase ookie cred kennw key mdp pass psk pw secret sess sig token".split(),
    *"geheimnis identifiants jeton zugang schl\u00fcssel cl\u00e9 login sqlplus pdp @tcp( @unix( <<<".split(),
    *"community rabbitmq kinit connect( pdo( unlock obscure createuser \\u00 \\/".split(),
    *("log in with", "identified by", "net use", "alias set", " using ", "sudo -s", " /p", " /rp"),
)
# How short options for a password begin, and letters of the programs that have others than these.
_OPTIONS = tuple(f"{before}-{letter}" for before in " \"'\t" for letter in "pPw")
_ANY_OPTION = (" -", '"-', "'-", "\t-")
PROGRAMS = tuple("curl doctl elasticdump etcdctl http influx keydb ldap lftp memtier openssl redis".split())
PROGRAMS += tuple("rpcclient smb snmp ssh-keygen valkey wget xh".split())
# What is between two strings that a program joins.
_JOINTS = tuple(
    f"{quote}{sign}" for quote in "\"'`" for sign in (" +", "+", " .", ".", ' "', " '", "\n", " \\", "\\", " &")
)
_MIN_SECRET_LENGTH = 18
_LONG = 1_000  # a longer text nearly always contains a long word or one of the letters
PURGED = "[purged]"
_MIN_PURGED_LENGTH = 12  # shorter texts occur by chance


def redact(text: str) -> tuple[str, int]:
    """Return the text with secrets replaced by `[redacted: KIND]`, and how many were replaced."""
    if not may_hold_secrets(text):
        return text, 0
    from learnt.text.secrets import FINDERS, find_places, lay_out  # most texts of a hook do not need it

    total = 0
    plain = lay_out(text)
    for _ in range(_MAX_ROUNDS):
        count = 0
        for letters, find in FINDERS:
            if letters and not find_places(plain, letters):
                continue
            spans = list(find(plain))
            if spans:
                text, cuts = _cut(text, spans)
                plain = lay_out(text)
                count += cuts
        total += count
        if not count:
            break
    return text, total


def redact_text(text: str, limit: int) -> tuple[str, int]:
    """Return the text cleaned and with its secrets replaced, and how many were replaced.

    If only redaction makes the text longer than the limit, it is cut.
    """
    safe, count = redact(clean(text))
    return (safe[:limit].rstrip() if len(text) <= limit < len(safe) else safe), count


def redact_line(text: str, limit: int) -> tuple[str, int]:
    """Do the same as `redact_text`, on one line."""
    # Redacted before folding, because some secrets have several lines, and after it, because a name and its value may
    # have been on two.
    safe, count = redact(clean(text))
    folded = fold(safe)
    safe, more = redact(folded) if folded != safe else (safe, 0)
    return (safe[:limit].rstrip() if len(text) <= limit < len(safe) else safe), count + more


def may_hold_secrets(text: str) -> bool:
    """Return quickly whether a text may hold a part of a secret."""
    if len(text) > _LONG:
        return True
    # Secrets hold no angle brackets; sigils do.
    words = (text.replace("<", " ").replace(">", " ") if "<" in text or ">" in text else text).split()
    if words and max(map(len, words)) >= _MIN_SECRET_LENGTH:
        return True
    if len(words) < 2:
        return _holds_any(text.lower(), _SECRET_HINTS) if not text.isalpha() else False
    lower = text.lower()
    if _holds_any(lower, _SECRET_HINTS):
        return True
    if "-" in text and (_holds_any(text, _OPTIONS) or (_holds_any(text, _ANY_OPTION) and _holds_any(lower, PROGRAMS))):
        return True
    return ('"' in text or "'" in text or "`" in text or "\n" in text) and _may_join(text, words)


def _holds_any(text: str, sought: tuple[str, ...]) -> bool:
    for letters in sought:  # noqa: SIM110 (a loop is faster than `any`, and every text of a hook passes here)
        if letters in text:
            return True
    return False


def _may_join(text: str, words: list[str]) -> bool:
    """Return whether a text may join strings or lines to a secret."""
    if "\n" in text and _has_wrapped_word(text):
        return True
    if not _holds_any(text, _JOINTS):
        return False
    return any(len(word) >= 8 and not word.isalpha() for word in words)


def _has_wrapped_word(text: str) -> bool:
    """Return whether a word that continues on the next line may be long enough for a secret."""
    words = text.replace("\n", "").split()
    return any(len(word) >= _MIN_SECRET_LENGTH and any(letter.isdigit() for letter in word) for word in words)


def _cut(text: str, spans: list[Span]) -> tuple[str, int]:
    """Replace the spans, the longest of those that start together; overlapping ones are left for the next round."""
    pieces: list[str] = []
    done = count = 0
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            pieces += (text[done:start], f"[redacted: {kind}]")
            done = end
            count += 1
    return "".join((*pieces, text[done:])), count


def without_password(address: str) -> str:
    """Return a database address without its password."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return "…"  # not an address: it may hold anything
    login, at, server = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{mark}{user}{':…' if colon else ''}{at}{_without_secret_options(server)}"


def without_password_of(address: str, text: str) -> str:
    """Return a text that may quote an address, such as a driver's error, without the address's password."""
    password = address.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return text.replace(password, "…") if password else text


def _without_secret_options(server: str) -> str:
    path, mark, options = server.partition("?")
    shown = [option for option in options.split("&") if not option.lower().startswith(("password=", "sslpassword="))]
    return path + mark + "&".join(shown) if any(shown) else path


def long_enough(texts: Iterable[str]) -> list[str]:
    """Return the texts that are too long to occur by chance, the longest first."""
    return sorted({text for text in texts if len(text) >= _MIN_PURGED_LENGTH}, key=lambda text: (-len(text), text))


def black_out(text: str, purged: Iterable[str]) -> str:
    """Return a text in which full copies of purged texts are replaced."""
    for sought in long_enough(purged):
        text = text.replace(sought, PURGED)
    return text
