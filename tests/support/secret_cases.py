"""Texts with a secret, drawn from the templates in `secret_cases.txt`, each as it is met: plain, quoted, in pieces.

Every secret is generated, so none of them is real. A case is missed if eight characters of a random piece are left, or
all of a shorter one.
"""

from __future__ import annotations

import json
import random
import re
import string
import textwrap
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from learnt.text.redact import redact

LEAST_FOUND = 0.95
LEAST_FOUND_IN_FAMILY = 0.85
_ALNUM = string.ascii_letters + string.digits
_ALPHABETS = {
    "a": _ALNUM, "A": string.ascii_letters, "b": _ALNUM + "+/", "d": string.digits, "h": "0123456789abcdef",
    "H": "0123456789ABCDEF", "l": string.ascii_lowercase + string.digits, "u": _ALNUM + "-_",
    "U": string.ascii_uppercase + string.digits, "x": string.ascii_uppercase + "234567", "s": _ALNUM + "!@#%^*-_+=.~",
}  # fmt: skip
_WORDS = "amber Autumn Berlin castle Dragon falcon Ginger hunter Island juniper Kaffee lemon Soleil verano".split()

# Ways to meet a token that is known by its own shape.
_CARRIERS = (
    "The deploy failed because {} was revoked last week.", "I pasted {} by mistake, sorry.", "it is {}.", "(see {})",
    "Ich habe {} im Log gefunden.", "J'ai trouvé {} dans le journal.", "Encontré {} en el registro.", "- note: {}",
    "$ tool run --with {} --verbose", "tool '{}'", "SETTING={}", 'setting: "{}"', "  - {}", "| thing | {} |",
    "2026-01-05T10:11:12Z INFO client sends {} to host status=200", 'connect("{}")', "thing:\n  {}", "<b>{}</b>",
    "({})", "see `{}`", "first,{},last", "#{}", "url?thing={}&page=2", "\x1b[32m{}\x1b[0m", "DEBUG=1\nNOTE={}\nPORT=80",
)  # fmt: skip
# Ways to give a value a name.
_NAMINGS = (
    "{name}={value}", "export {name}={value}", "{name}='{value}' make run", 'set {name}="{value}"', "{lower}: {value}",
    "{lower} = \"{value}\"", '"{camel}": "{value}",', "  - name: {name}\n    value: {value}", "{words}: {value}",
    "The {words} is {value} now.", "| {words} | {value} |", "10:11:12 WARN retry {lower}={value} in 5s",
    "tool --{dashed} {value} up", "{words}:\n{value}", '{lower}="{value}",', "const {camel} = '{value}';",
    "docker run -e {name}={value} app", "{name}:\n  {value}", "ENV {name} {value}", "'{lower}' => '{value}',",
)  # fmt: skip
# Ways to meet the line of a command, a file or a letter.
_LINES = ("$ {}", "anna@web1:~$ {}", "# {}", "2026-01-05T10:11:12Z WARN [worker-3] {}", "- note: {}")
_BODY, _HEX = "\n".join(["{b:64}"] * 4), "\n".join(["{h:32}"] * 16)
_BLOCKS = (
    f"-----BEGIN {{kind}}PRIVATE KEY-----\n{_BODY}\n{{b:30}}==\n-----END {{kind}}PRIVATE KEY-----",
    f"-----BEGIN {{kind}}PRIVATE KEY-----\n{_BODY}\n",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{_BODY}\n=ab12\n-----END PGP PRIVATE KEY BLOCK-----",
    f'---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "a"\n{_BODY}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----',
    "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: a\nPublic-Lines: 1\nAAAAB3NzaC1yc2E\n"
    f"Private-Lines: 4\n{_BODY}\nPrivate-MAC: {{h:64}}",
    "<tls-auth>\n#\n# 2048 bit OpenVPN static key\n#\n-----BEGIN OpenVPN Static key V1-----\n"
    f"{_HEX}\n-----END OpenVPN Static key V1-----\n</tls-auth>",
    f"<tls-auth>\n-----BEGIN OpenVPN Static key V1-----\n{_HEX}",
    f"<key>\n-----BEGIN PRIVATE KEY-----\n{_BODY}\n-----END PRIVATE KEY-----\n</key>",
    '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS", "d": "{u:43}"}',
)
_KEY_KINDS = ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ")
# Ways to write a token in two pieces.
_JOINTS = (
    "key = {}\n{}", "TOKEN={}\\\n{}", 'key = "{}" + "{}"', "key = '{}' +\n    '{}'", 't = ("{}"\n     "{}")',
    't = "{}" \\\n    "{}"', "$t = '{}' . '{}';", 'local t = "{}" .. "{}"', "it was {}\n{}", "token: >-\n  {}\n  {}",
)  # fmt: skip
# Ways to write a secret in base64.
_ENCODED = (
    "{}", "echo {} | base64 -d", "data: {}", '"content": "{}"', "SETTING_B64={}", "it is {} in base64",
    "apiVersion: v1\nkind: Secret\nmetadata: {}\ndata:\n  x: {}\n", "apiVersion: v1\ndata:\n  x: {}\nkind: Secret\n",
)  # fmt: skip
_LOGINS = (
    "Authorization: Basic {}", "curl -H 'Authorization: Basic {}' https://api.internal", "//reg.internal/:_auth={}",
    '{"auths": {"reg.internal": {"auth": "{}"}}}',
)  # fmt: skip


class Case(NamedTuple):
    """A text with a secret: the family, the text, and the random pieces of the secret."""

    family: str
    text: str
    pieces: list[str]


@cache
def templates() -> dict[str, list[str]]:
    """Return the templates of each family."""
    families: dict[str, list[str]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"\[((?:token|name|place): .*)\]", line):
            family = families.setdefault(heading[1], [])
        elif line and not line.startswith("# "):
            family.append(re.sub(r"(\\?)\\([nt])", lambda match: _unescape(match[1], match[2]), line))
    return families


def _unescape(backslash: str, letter: str) -> str:
    return f"\\{letter}" if backslash else {"n": "\n", "t": "\t"}[letter]


def cases(seed: int) -> Iterator[Case]:
    """Yield cases of every family, the same for the same seed."""
    chance = random.Random(seed)
    for family, lines in templates().items():
        ways = {"token": _carry, "name": _name, "place": _place}[family.partition(":")[0]]
        for line in lines:
            yield from (Case(family, text, pieces) for text, pieces in ways(line, chance))
    yield from _blocks(chance)
    tokens = [line for family, lines in templates().items() if family.startswith("token") for line in lines]
    yield from _split([token for token in tokens if "://" not in token and len(token) < 60], chance)
    yield from _encode(tokens, chance)


def draw(template: str, chance: random.Random) -> tuple[str, list[str]]:
    """Fill in a template; return the text and its random pieces."""
    pieces: list[str] = []

    def fill(match: re.Match[str]) -> str:
        letters = _ALPHABETS[match[1]] if match[1] else ""
        pieces.append("".join(chance.choices(letters, k=int(match[2]))) if letters else password(chance))
        return pieces[-1]

    return re.sub(r"\{p\}|\{(\w):(\d+)\}", fill, template), pieces


def password(chance: random.Random) -> str:
    """Draw a password as generators and people make them."""
    word, other = chance.sample(_WORDS, 2)
    number, mark = chance.randrange(10, 2030), chance.choice("!#*-.?_")
    ways: tuple[Callable[[], str], ...] = (
        lambda: "".join(chance.choices(_ALNUM, k=chance.randrange(10, 20))) + str(number),
        lambda: "k" + "".join(chance.choices(_ALNUM + "!#%*-_+=.", k=14)) + "7x",
        lambda: f"{word.title()}{number}{mark}",
        lambda: f"{word}{mark}{number}",
        lambda: f"{word}-{other.lower()}-{number}",
        lambda: f"{word}{other.title()}{number}",
        lambda: f"{word.replace('o', '0').replace('e', '3').replace('i', '1')}-{other}{number}!",
    )
    return chance.choice(ways)()


def _carry(template: str, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    for number, carrier in enumerate(chance.sample(_CARRIERS, 3)):
        secret, pieces = draw(template, chance)
        text = carrier.replace("{}", secret)
        yield text if number else quote(text, chance), pieces


def _name(template: str, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    name, _, value = template.partition("=")
    parts = re.split(r"[_-]|(?<=[a-z])(?=[A-Z])", name)
    names = {
        "name": name, "lower": "_".join(parts).lower(), "words": " ".join(parts), "dashed": "-".join(parts).lower(),
        "camel": parts[0].lower() + "".join(part.title() for part in parts[1:]),
    }  # fmt: skip
    for number, naming in enumerate(chance.sample(_NAMINGS, 3)):
        secret, pieces = draw(value, chance)
        text = naming
        for key, word in {**names, "value": secret}.items():
            text = text.replace("{" + key + "}", word)
        yield text if number else quote(text, chance), pieces


def _place(template: str, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    yield draw(template, chance)
    text, pieces = draw(template, chance)
    yield quote(text, chance), pieces
    text, pieces = draw(template, chance)
    if "\n" in template or chance.random() < 0.3:
        yield f"steps:\n  - run: |\n{textwrap.indent(text, '      ')}\n  - name: next", pieces
    else:
        yield chance.choice(_LINES).replace("{}", text), pieces


def quote(text: str, chance: random.Random) -> str:
    """Return the text as it is in a transcript: a JSON string, perhaps within another, or with needless escapes."""
    line = json.dumps(
        {"type": "tool_result", "content": f"$ cat notes\n{text}\nok"}, ensure_ascii=chance.random() < 0.5
    )
    way = chance.randrange(8)
    if way < 2:
        return json.dumps({"log": line})
    if way == 2:
        return line.replace('\\"', "\\u0022").replace("&", "\\u0026").replace("'", "\\u0027").replace("<", "\\u003c")
    if way == 3:
        return line.replace("-", "\\u002d").replace("+", "\\u002b")
    return line.replace("/", "\\/") if way == 4 else line


def _blocks(chance: random.Random) -> Iterator[Case]:
    for template in _BLOCKS:
        for way in range(6):
            text, pieces = draw(template.replace("{kind}", chance.choice(_KEY_KINDS)), chance)
            lines = text.split("\n")
            if way == 1:
                text = textwrap.indent(text, "  ")
            elif way == 2:
                text = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1))
            elif way == 3:
                text = "\n".join(f"> {line}" for line in lines)
            elif way:
                text = quote(text, chance)
            yield Case("block", text, pieces)


def _split(tokens: list[str], chance: random.Random) -> Iterator[Case]:
    for number, template in enumerate(chance.sample(tokens, 100)):
        secret, pieces = draw(template, chance)
        cut = len(secret) - len(pieces[-1]) + len(pieces[-1]) // 2
        text = chance.choice(_JOINTS).replace("{}", secret[:cut], 1).replace("{}", secret[cut:], 1)
        text = text if number % 2 else quote(text, chance)
        yield Case("split", text, [*pieces[:-1], secret[cut - 8 : cut], secret[cut : cut + 8]])


def _encode(tokens: list[str], chance: random.Random) -> Iterator[Case]:
    named = ["DB_PASSWORD={p}\nDB_USER=app", "postgres://app:{p}@db1/shop", "password: {p}"] * 10
    plain: Iterable[tuple[str, tuple[str, ...]]] = [(token, _ENCODED) for token in chance.sample(tokens, 40) + named]
    for number, (template, ways) in enumerate([*plain, *[("anna:{p}", _LOGINS)] * 20, *[("{p}", _ENCODED[-2:])] * 10]):
        code = b64encode(draw(template, chance)[0].encode()).decode()
        before, _, after = chance.choice(ways).rpartition("{}")
        text = before + code + after
        yield Case("base64", text if number % 2 else quote(text, chance), [code.rstrip("=")])


def is_missed(case: Case) -> bool:
    """Return whether the redactor leaves a part of a secret."""
    shown, count = redact(case.text)
    shown = shown.replace("\\/", "/").replace("\\u002d", "-").replace("\\u002b", "+")
    return not count or any(_remains(piece, shown) for piece in case.pieces)


def _remains(piece: str, text: str) -> bool:
    size = min(8, len(piece))
    return size >= 4 and any(piece[start : start + size] in text for start in range(len(piece) - size + 1))
