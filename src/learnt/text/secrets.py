"""Find secrets in a text, by their shape or by their context.

By shape (`secrets_tokens.py`): tokens with a published prefix, private key blocks and JWTs, anywhere. By context: the
password of an address, an Authorization header, the value of a name like `api_key`, and passwords in commands, files,
sentences and tables (`secrets_places.py`), if they look like real ones (`secrets_values.py`). All of these are also
found when escaped, joined from strings or encoded in base64 (`secrets_views.py`). In doubt, a value that only its
context makes suspicious stays: placeholders, code, plain words, paths and prose.

The time is linear in the length of the text: every repetition is bounded or ends its expression. An expression is
compiled only when a text contains the letters that all of its matches contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from learnt.text.secrets_places import find_in_commands, find_in_files, find_in_prose, find_in_tables
from learnt.text.secrets_tokens import find_private_keys, find_tokens
from learnt.text.secrets_values import (
    CAMEL,
    KEYS,
    TYPE,
    WORDS,
    compile_once,
    find_places,
    has_more_than_letters,
    is_hard,
    is_mixed,
    is_opaque,
    is_placeholder,
    is_said,
    is_strong,
)
from learnt.text.secrets_views import find_in_base64, find_in_views, lay_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

__all__ = ["FINDERS", "find_places", "lay_out"]

# A value is judged by its beginning, but removed as a whole.
_JUDGED_LENGTH = 300

# The letters that names of secrets contain, and the expression for a name with its assignment.
_LETTERS_OF_NAMES = tuple(
    "pass pw secret token key auth cred bearer sess connect.sid sig kennw contrase mdp clave psk".split()
)
_NAME = (
    r"(?i)(?P<key>pass(?:word|wd|phrase|wort|code)|pwd|secret|token|key|credentials?|bearer|signature(?==[0-9A-Za-z%+/-]{32})"
    r"|passe(?![\w.-])|kennwort|contrase(?:\u00f1|n)a|mdp(?![a-z])|clave(?![a-z])|psk(?![a-z])"
    r"|(?:(?<=db)|(?<=store)|(?<=key)|(?<=root)|(?<=admin)|(?<=smtp)|(?<=mail)|(?<=ftp)|(?<=user)|(?<=bind)|(?<=my))(?:pass|pw)(?![\w.-])"
    r"|(?-i:(?<=[a-z])Pass(?![\w.-])|(?<=[A-Z])(?<!COM)(?<!BY)PASS(?==)|(?<=_)PASS(?=[ \t]))"
    r"|(?:(?<![A-Za-z])|(?<=\\[nrt]))(?:pass|pw|auth|sig)(?![\w.-])"
    r"|(?-i:(?<![A-Za-z])(?:sessionid|SESSIONID|session(?==[\w%.+/-]{24})|connect\.sid)|(?<=PHP)SESSID|(?<=\bJ)SESSIONID))"
    r"(?P<rest>[\w.-]{0,40}+)"
    r"(?P<close>\\{0,9}[\"'`]?\]?)"
    r"(?P<sep>:[ \t]{0,2}(?:str|string\??|bytes|SecretStr|Optional\[str\]|&(?:'static )?str)(?: \| None)?"
    r"[ \t]?=[ \t]{0,8}"
    r"|[ \t]{0,20}(?:=>|:=|\?=|===?|!==?|=|:(?!:))[ \t]{0,20}"
    r"|>(?=[^\s<])"
    r"|\((?=[\"'])"
    r"|,[ \t]{0,4}(?=[\"'])"
    r"|\s{0,4}\{\s{0,20}default\s{0,8}=\s{0,8}"
    r"|,?\s{1,60}[\"']?value[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
    r"|[ \t]{1,8}(?:is|was|ist)[ \t]{1,8}(?::[ \t])?"
    r"|[ \t]{1,8}(?=\S{6}))"
)
# A name that continues with one of these is about a secret and does not hold it.
_ABOUT = frozenset(
    "alg algorithm arn at attempts budget cache callback change changed check class config count counts created "
    "digest duration enabled encoder endpoint env error errors exp expires expiration expiry field file filename files "
    "format func function generator hash hashed hasher header help hint id ids in index info input interval invalid "
    "label len length limit list location manager map max message min mode model name names namespace needed number "
    "offset parser path pattern policy pos position prefix prompt provider ref regex required reset rotation rules "
    "scope size source spec start state status store strength suffix title total ttl type types uri url usage used "
    "validator var version".split()
)
# Words before `token` for something else than a credential: a position in a list, a lock, a check against forgery, the
# number of a request. If the last could be a credential, too, it is none if its value is an id.
_CURSORS = tuple(
    "next prev previous page paging pagination cursor continuation continue start starting resume resumption sync "
    "marker scroll lock change update input output idempotency csrf csrfmiddleware xsrf requestverification "
    "anti-forgery antiforgery lifecycleaction lifecycle-action lifecycle_action workunit work-unit work_unit".split()
)
_ID = r"[0-9A-Za-z]{6,8}(?:-[0-9A-Za-z]{4}){3}-[0-9A-Za-z]{12}(?![\w-])|arn:"
_BARE = r"[^\s\"'`<>,;()\[\]{}|\\&]+"
_BARE_REST = r"(?:[^\s\"'`<>,;\\&]|&(?!(?:amp;)?[\w.-]{1,40}=))*"
_QUOTED = {'"': r"(?:[^\"\\\n]|\\.)*", "'": r"(?:[^'\\\n]|\\.)*", "`": r"[^`\\\n]*"}
_QUOTED_WITHIN = r"[^\"'`\\\n]*"
_SCHEMES = "bearer|basic|token|bot|api-?key|key|jwt|oauth|pat|negotiate|splunk|genie-?key|sso-key|x-api-key"


def _logins(text: str) -> Iterator[Span]:
    """Find the password in scheme://user:password@host, and a token in place of both."""
    if "@" not in text or "://" not in text:
        return
    expression = (
        r"://(?:[^\s:/@\"'`<>]{0,200}:(?!\d{1,5}[/?#])([^\s\"'`<>/]{1,300})|([\w-]{20,300}))@(?=[A-Za-z0-9\[%$_.(-])"
    )
    for match in compile_once(expression).finditer(text):
        group = 1 if match[1] else 2
        if not is_placeholder(match[group]) and (group == 1 or is_strong(match[2], least=20)):
            yield *match.span(group), "password" if group == 1 else "token"


def _headers(text: str) -> Iterator[Span]:
    """Find the value after `Authorization:`, or after `Bearer` or `Basic`."""
    gap = r"[ \t]{0,8}f?\\{0,9}[\"'`]?[ \t]{0,8}"
    expression = (
        rf"(?i)(?:(?<![a-z])(authorization)\\{{0,9}}[\"'`]?\]?[ \t]{{0,8}}(?:[:=]{gap}(?:(?:{_SCHEMES})[ \t]{{1,8}})?"
        rf"|,{gap}(?:{_SCHEMES})[ \t]{{1,8}})|\b(?:bearer|basic)(?:[ \t]{{1,8}}|%20))"
        r"([^\s\"'`\\,;<>()\[\]{}]{8,})"
    )
    done = 0
    for place in find_places(text, ("authorization", "bearer", "basic")):
        match = compile_once(expression).match(text, place) if place >= done else None
        if not match:
            continue
        done, value = match.end(), match[2]
        if not is_placeholder(value) and (is_opaque(value) if match[1] else is_strong(value, least=16)):
            yield *match.span(2), "authorization"


def _assignments(text: str) -> Iterator[Span]:
    """Find values assigned to a name like `password`, `api_key` or `token`."""
    done = 0
    # A single word such as `session` assigns nothing.
    for position in () if text.isalpha() else find_places(text, _LETTERS_OF_NAMES):
        name = compile_once(_NAME).match(text, position) if position >= done else None
        if not name or _says_nothing(text, name) or not _names_a_secret(text, name):
            continue
        assigned = _Assignment(text, name)
        if _is_real(assigned):
            done = assigned.end()
            yield assigned.start, done, _kind(assigned.key)
        elif assigned.sep and not assigned.quoted:
            done = assigned.start + len(assigned.value)


def _says_nothing(text: str, name: re.Match[str]) -> bool:
    """Return whether only a blank and a short word follow a name that is no option of a command."""
    return (
        name["sep"].isspace()
        and not name["key"].isupper()
        and "-" not in text[max(0, name.start() - 40) : name.start()]
        and not compile_once(r"[bru]{0,2}\\{0,9}[\"'`]|\S{20}").match(text, name.end())
    )


def _names_a_secret(text: str, name: re.Match[str]) -> bool:
    key, rest, sep = name["key"], name["rest"], name["sep"]
    if rest[:1].isalpha() and (rest[0].islower() or key.isupper()):
        return False
    before = text[max(0, name.start() - 50) : name.start()]
    if key.lower() == "key" and not before.rstrip(" _.-").lower().endswith(KEYS):
        return False
    other = (
        (name["close"].endswith("]") and "[redacted: " in before)
        or (sep == ":" and before.endswith(":"))
        or before.lower().endswith(("publickey", "public_key_"))
        or compile_once(r"::\w*$").search(before)
        or (key.lower() == "token" and _is_cursor(text, name, before))
        or (sep == "(" and (key == "pass" or (key.islower() and before[-1:].isalpha())))
        or (sep == ">" and not compile_once(r"<[^<>\n]{0,60}$").search(before))
        or (sep.rstrip() == "," and not compile_once(r"\([\"'][\w.-]*$").search(before))
    )
    if other:
        return False
    return not rest or _ABOUT.isdisjoint(part.lower() for part in compile_once(r"[A-Z]?[a-z]+|[A-Z]+").findall(rest))


def _is_cursor(text: str, name: re.Match[str], before: str) -> bool:
    """Return whether a token is a position in a list, a lock or the id of a request."""
    if before.rstrip(" _-").lower().endswith(_CURSORS):
        return True
    numbered = compile_once(r"(?i)(?:client|request|import|export)[_-]?$").search(before[-30:])
    return bool(
        numbered and compile_once(r"[\"'\\]{0,9}(?:" + _ID + r"|(?:import|export)-token-)").match(text, name.end())
    )


class _Assignment:
    """A value and how it is assigned to a name."""

    def __init__(self, text: str, name: re.Match[str]) -> None:
        self.text = text
        self.key = name["key"].lower()
        self.upper = name["key"].isupper()
        self.human = _is_human(self.key) or (name["key"] == "SECRET" and name["sep"] == "=")
        self.sep = name["sep"].strip()
        self.tight = self.sep == name["sep"]
        self.position = name.start()
        self.before = text[max(0, name.start() - 12) : name.start()].lower()
        self.own = text[name.start() - 1 : name.start()] == "_"
        quote = (
            compile_once(r"[bru]{0,2}(\\{0,9})(\"\"\"|'''|[\"'`])").match(text, name.end()) if self.sep != ">" else None
        )
        self.quoted = bool(quote)
        self.start = quote.end() if quote else name.end()
        self._body = compile_once(_BARE if not quote else _QUOTED_WITHIN if quote[1] else _QUOTED[quote[2][0]])
        match = self._body.match(text, self.start, self.start + _JUDGED_LENGTH)
        self.value = match[0] if match else ""
        self.follows = text[match.end() : match.end() + 1] if match else ""
        if not quote and self.follows not in ("(", "["):
            self.value = self.value.rstrip(".,:?")

    def end(self) -> int:
        """Return where the whole value ends, however long it is."""
        end = self.start + len(self.value)
        if not self.quoted and not self.follows.strip():
            return end
        more = (self._body if self.quoted else compile_once(_BARE_REST)).match(self.text, end)
        rest = more[0] if more else ""
        return end + len(rest if self.quoted else rest.rstrip(")]}"))


def _is_human(key: str) -> bool:
    """Return whether a name promises something that a person may have chosen."""
    return key.startswith(("pass", "pw", "kennwort", "contrase", "mdp", "clave", "psk"))


def _is_real(assigned: _Assignment) -> bool:
    """Return whether an assigned value is a real secret."""
    if "private" in assigned.before and compile_once(r"0x[0-9a-f]{64}$").match(assigned.value):
        return True
    if (
        len(assigned.value) < (6 if assigned.human else 12)
        or is_placeholder(assigned.value)
        or assigned.value[0].isspace()
        or assigned.value.startswith("--")
        or _is_identifier(assigned)
    ):
        return False
    if assigned.sep in ("is", "was", "ist", ",", ""):
        return _is_real_without_operator(assigned)
    if assigned.human:
        return _is_password(assigned)
    if assigned.key == "auth" and assigned.own and is_strong(assigned.value, least=20):
        return True
    if assigned.key == "auth":
        return assigned.quoted and assigned.sep != "(" and len(assigned.value) >= 12 and is_opaque(assigned.value)
    if assigned.key.endswith("sid") or assigned.key in ("session", "sessionid", "sig"):
        return is_strong(assigned.value, least=16)
    return is_strong(assigned.value) or (assigned.key == "secret" and is_hard(assigned.value))


def _is_identifier(assigned: _Assignment) -> bool:
    """Return whether a bare value is an identifier of some code."""
    if assigned.quoted:
        return False
    dotted = "." in assigned.value and not assigned.tight
    if assigned.sep == ":" and compile_once(r"[ \t]{1,4}=[ \t]").match(
        assigned.text, assigned.start + len(assigned.value)
    ):
        return assigned.value.isidentifier()  # a type
    parts = assigned.value.lstrip("*&").split(".")
    if (dotted or assigned.follows in ("(", "[")) and all(part.isidentifier() or not part for part in parts):
        return True
    return not assigned.tight and bool(compile_once(rf"{CAMEL}|{TYPE}").match(assigned.value))


def _is_real_without_operator(assigned: _Assignment) -> bool:
    """Judge a value without an operator between it and its name: an option of a command, or prose."""
    before = assigned.text[max(0, assigned.position - 40) : assigned.position]
    option = compile_once(r"(?:^|[\s\"'`(])--?[\w.-]*$").search(before)
    if option and not assigned.sep:
        return _is_password(assigned) if assigned.human else is_strong(assigned.value)
    if assigned.upper and assigned.own and not assigned.sep:
        return is_said(assigned.value) if assigned.human else is_strong(assigned.value, least=16)
    if assigned.key in ("pass", "sig") or assigned.key.endswith(("sid", "sessionid")):
        return False
    if assigned.sep == "," and assigned.human:
        return is_said(assigned.value)
    if assigned.sep or assigned.quoted:
        return is_strong(assigned.value, least=8)
    return is_strong(assigned.value, least=20) and not compile_once(
        r"(?i)[0-9a-f]+$|.*(?:key|pass|secret|token)"
    ).match(assigned.value)


def _is_password(assigned: _Assignment) -> bool:
    """Judge a password that a person may have chosen: shorter, and perhaps a word."""
    value = assigned.value
    if any(letter.isspace() for letter in value) or (assigned.sep == ">" and assigned.follows not in ("<", "")):
        return False
    if assigned.quoted and assigned.sep != "(":
        label = r"[A-Z][a-z]+$|[A-Za-z]+(?:[._|:](?:[A-Za-z]+|\d{1,2}))+$|~?/[\w.-]+/|\.{1,2}/|[\d.]*\.[\d.]*$"
        return not compile_once(label).match(value)
    if value.isalpha():
        chosen = assigned.sep == "=" and assigned.tight and assigned.upper and not value.isupper()
        return chosen or is_mixed(value)
    if value.isdigit():
        return len(assigned.key) > 4 and "=" in assigned.sep
    return (has_more_than_letters(value) and not _is_code(value)) or is_said(value)


def _is_code(value: str) -> bool:
    """Return whether a bare value reads as an identifier, a path, an address or a name of several words."""
    if compile_once(r"[A-Za-z]+[._-]\d{2,4}$").match(value):
        return False
    words = compile_once(WORDS).fullmatch(value) and compile_once(r"\w+[._]|[a-z]+[-/:]|[\d/~.-]").match(value)
    return bool(
        (words and compile_once(r"[\w/.:~-]+$").match(value))
        or compile_once(r"0[xX][0-9a-fA-F]+$|\w{1,20}://").match(value)
    )


def _kind(key: str) -> str:
    key = key.lower()
    if _is_human(key):
        return "password"
    if "key" in key:
        return "key"
    if key.endswith(("sid", "session", "sessionid")):
        return "session"
    return "token" if key in ("token", "bearer", "auth") else "secret"


_PLAIN_FINDERS: tuple[tuple[tuple[str, ...], Callable[[str], Iterator[Span]]], ...] = (
    (("private", "openvpn", '"kty'), find_private_keys),
    ((), _logins),
    ((), find_tokens),
    (("authorization", "bearer", "basic"), _headers),
    ((), find_in_commands),
    ((), find_in_files),
    ((), find_in_prose),
    ((), find_in_tables),
    ((), _assignments),
)
_FINDERS = tuple(find for _, find in _PLAIN_FINDERS)
_JOINERS = (find_tokens, _logins, _assignments)


def _in_views(text: str) -> Iterator[Span]:
    return find_in_views(text, _FINDERS, _JOINERS)


def _in_base64(text: str) -> Iterator[Span]:
    return find_in_base64(text, _FINDERS)


FINDERS = (((), _in_views), *_PLAIN_FINDERS, ((), _in_base64))
"""Letters of which a text must contain one, in lower case, and what yields the secrets of one kind in it.

They run in this order, because a finder must not see earlier secrets.
"""
