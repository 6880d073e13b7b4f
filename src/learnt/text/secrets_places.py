"""Find passwords by their place in command lines, files, sentences and tables.

Each rule begins at a word that must be there, and reads a bounded stretch from it. In a sentence in English, German,
French or Spanish, the words after one for a password are read until one of them looks like a password; it counts if a
word such as `is`, `to` or `ist`, or a colon, comes before it, or if it stands alone on the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.text.secrets_values import (
    KEYS,
    compile_once,
    find_places,
    has_more_than_letters,
    is_chosen,
    is_hard,
    is_placeholder,
    is_said,
    is_strong,
    lower_case,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

_BREAK = r"(?:\r?\n|\\{1,8}(?:r\\{1,4})?n)"
# A word of a command: in quotes, in escaped quotes, or bare.
_WORD = r"(?:\\{0,9}\"([^\"\\\n]{1,200})|\\{0,9}'([^'\\\n]{1,200})|([^\s\"'`|;&<>\\)\]]{1,200}))"
_NEXT = r"(?:\\{0,9}[\"'],?)?[ \t=]{1,8}"

# (programs, option, form of the value: g glued to the option, s also separate, or the separator after a user name)
OPTIONS = (
    ("mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlslap mysqlpump mysqlbinlog mysqlsh mariadb "
     "mariadb-dump mariadb-admin mariabackup xtrabackup mycli 7z 7za 7zr 7zz rar unrar", "p", "g"),
    ("sshpass rabbitmqadmin mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles "
     "cqlsh cypher-shell twine conan smbmap crackmapexec netexec nxc evil-winrm hydra rdesktop influx arangosh "
     "couchbase-cli cbq ncftp ncftpput ncftpget psexec winexe keepassxc-cli docker+login podman+login nerdctl+login "
     "buildah+login skopeo+login oras+login helm+login crane+login az+login oc+login argocd+login cf+login jf+login "
     "ibmcloud+login security+unlock-keychain beeline hdbsql altool", "p", "s"),
    ("sqlcmd bcp osql isql tsql ipmitool mosquitto_pub mosquitto_sub mosquitto_rr zip unzip zipcloak ssh-keygen",
     "P", "s"),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami ldapcompare ldapmodrdn dsconf", "w", "s"),
    ("ldappasswd", "s", "s"),
    ("redis-cli keydb-cli valkey-cli redis-benchmark memtier_benchmark", "a", "s"),
    ("plink pscp psftp putty", "pw", "s"),
    ("snmpwalk snmpget snmpset snmpbulkwalk snmptrap snmptable", "A", "s"),
    ("snmpwalk snmpget snmpset snmpbulkwalk snmptrap snmptable", "X", "s"),
    ("ssh-keygen", "N", "s"),
    ("openssl", "k", "s"),
    ("doctl+auth", "t", "s"),
    ("curl etcdctl influx wget elasticdump", "u", ":"),
    ("curl", "U", ":"),
    ("curl etcdctl elasticdump", "-user", ":"),
    ("http https httpie xh", "-auth", ":"),
    ("http https httpie xh", "a", ":"),
    ("smbclient rpcclient smbget smbcacls", "U", "%"),
    ("lftp", "u", ","),
)  # fmt: skip
# Letters that a text must contain, and the beginnings of commands and lines after which the password is the next word.
_BEFORE = {
    "pass": ("requirepass", "enable password"),
    "auth": ("masterauth", "ngrok authtoken", "add-authtoken", "snyk auth"),
    "login": ("cargo login", "vault login"),
    "identified by": ("identified by",),
    "securestring": ("convertto-securestring -string", "convertto-securestring"),
}
# The same for commands with the password as their last word.
_AT_END = {
    "pass": ("mkpasswd", "openssl passwd", "mosquitto_passwd", "htpasswd -", "smbpasswd", "wpa_passphrase",
             "rabbitmqctl change_password", "poetry config http-basic"),
    "secret": ("dotnet user-secrets set",),
    "login": ("bw login",),
    "user": ("rabbitmqctl add_user", "net user"),
    "net use": ("net use",),
}  # fmt: skip
_ARGUMENTS = rf"(?:{_NEXT}(?:\\?\"[^\"\n]{{0,100}}\"|'[^'\n]{{0,100}}'|[^\s\"'`|;&<>()]{{1,100}})){{1,8}}"
# A call with the name of a user and a password as two strings.
_CALL = (
    r"(?i)(?:auth\w{0,12}|login|connect(?:ion)?|pdo)[ \t]{0,4}[=:]?[ \t]{0,4}(?:[\w.]{1,40})?\((?:[^()\n]{1,200}?,)?"
    r"\s{0,9}\\{0,9}[\"'][^\"'\n]{1,80}?\\{0,9}[\"'],\s{0,9}\\{0,9}[\"']([^\"'\\\n]{4,100})\\{0,9}[\"']"
)
_CALLS = ("auth", "login", "connect", "pdo(")
_KINDS = ("kind: secret", 'kind":"secret', 'kind": "secret', 'kind\\": \\"secret', 'kind\\":\\"secret')
# Commands that read a password from their standard input, and options whose value is a command that prints one.
_FED = (
    r"chpasswd|passwd\b|sudo\b[^|\n]{0,40}-\w*S|password-stdin|with-token|kinit|cryptsetup|passphrase-fd|vncpasswd"
    "|base64"
)
_PRINTED = (
    rf"(?:echo|printf)(?:[ \t]+-[neE]+)?(?:[ \t]+\\{{0,9}}[\"']?%s(?:\\+n)?\\{{0,9}}[\"']?)?[ \t]+{_WORD}\\{{0,9}}"
    rf"[\"']?(?:[^\S\n]*\|[^\n|]{{0,60}}?(?:{_FED})|[)\"'`])"
)
_PRINTS = r"(?i)(?:pass|key|secret|token)[\w-]*[= ](?:<\(|\$\(|\\{0,9}[\"'`])$"
_LOGIN = r"(?:^|[\s\"'`=/])[\w.-]{1,60}:([^\s\"'`@/:\\]{4,100})()$"
_ORACLE = r"(?:sqlplus|expdp|impdp|sqlldr|thin)[ \t:][\"']?\w{1,40}/\\{0,9}\"?([^\s\"'@/\\]{4,100})(\\{0,9}\"?)$"
_ENTRY = (
    rf"(?:{_BREAK}[ \t]++|[\s{{,]){{0,80}}+\\{{0,9}}\"?[\w.-]{{1,80}}\\{{0,9}}\"?:[ \t]*\\{{0,9}}[\"']?"
    rf"([^\s\"'\\,}}]{{4,4000}})\\{{0,9}}[\"']?"
)


def _forms() -> dict[tuple[str, str], list[tuple[list[str], str]]]:
    """Return, for each program and option, the words that must follow the program, and the form of the value."""
    forms: dict[tuple[str, str], list[tuple[list[str], str]]] = {}
    for names, option, form in OPTIONS:
        for name in names.split():
            program, *others = name.split("+")
            forms.setdefault((program, option), []).append((others, form))
    return forms


_FORMS = _forms()
_WITH_OPTION = {option: [name for name, other in _FORMS if other == option] for _, option in _FORMS}
_ANY = ("p", "P", "w", "pw")  # options for passwords in most programs that have them
_USER = r"\s(?:-[uUnD]|--?user(?:name)?)[ =]\S"
_OPTION = (
    rf"-(?<=[ \t\"']-)(?!passw)({'|'.join(sorted(_WITH_OPTION, key=len, reverse=True))})(?=[^\s-]|\\{{0,9}}[\"'\s])"
)


def find_in_commands(text: str) -> Iterator[Span]:
    """Find passwords in command lines."""
    if "-" in text:
        yield from _find_options(text)
    for places, at_end in ((_BEFORE, False), (_AT_END, True)):
        for letters, commands in places.items():
            for command in commands if find_places(text, (letters,)) else ():
                yield from _find_arguments(text, command, at_end=at_end)
    yield from _find_fed(text)
    if "@" in text:
        yield from _find_logins(text)
    if " /" in text:
        for match in compile_once(r" /[rR]?[pP](?i:ass(?:word)?)?[: ]([^\s\"'\\]{4,100})").finditer(text):
            if is_said(match[1]):
                yield *match.span(1), "password"


def _find_options(text: str) -> Iterator[Span]:
    """Find the values of short password options after a program that has them, or that could be nothing else."""
    for match in compile_once(_OPTION).finditer(text):
        line = text[max(0, match.start() - 300) : match.start()]
        if match[1] not in _ANY and not any(program in line for program in _WITH_OPTION[match[1]]):
            continue
        value = _value_of_option(text, match.end(), "s") if match[1] in _ANY else None
        if match[1] in _ANY and not value:
            continue
        line = compile_once(r"\n|\\n|\||;|&&|\$\(").split(line)[-1]
        form = _form(line, match[1])
        value = _value_of_option(text, match.end(), form) if form else value
        if not value:
            continue
        password = text[value[0] : value[1]]
        if form or is_hard(password) or (compile_once(_USER).search(line) and is_said(password)):
            yield *value, "password"


def _form(line: str, option: str) -> str:
    """Return the form of an option's value, for the last program on the line that has this option."""
    words = compile_once(r"[\w+.-]+").findall(line)
    for number in range(len(words) - 1, -1, -1):
        for others, form in _FORMS.get((words[number], option), ()):
            if all(word in words[number:] for word in others):
                return form
    return ""


def _value_of_option(text: str, end: int, form: str) -> tuple[int, int] | None:
    user = rf"(?:{_NEXT})?\\{{0,9}}[\"']?[^\s\"'{form}]{{1,100}}{form}([^\s\"'`\\|;&]{{4,200}})"
    word = {"g": _WORD, "s": rf"(?:{_NEXT})?{_WORD}"}.get(form, user)
    match = compile_once(word).match(text, end)
    if not match or (form not in "gs" and "://" in match[0]):
        return None
    start, value = match.start(match.lastindex or 0), match[match.lastindex or 0].rstrip(",")
    return (start, start + len(value)) if is_chosen(value) else None


def _find_arguments(text: str, command: str, *, at_end: bool) -> Iterator[Span]:
    """Find the word after a command, or its last word."""
    for place in find_places(text, (command,)):
        if text[place - 1 : place].isalnum():
            continue  # a part of a word
        value = _ARGUMENTS if at_end else rf"(?:{_NEXT}|[ \t]?(?=[\"'])){_WORD}"
        match = compile_once(r"[\w./:-]{0,60}" + value).match(text, place + len(command))
        span = (_last_word(match) if at_end else match.span(match.lastindex or 0)) if match else None
        if span:
            word = text[span[0] : span[1]].rstrip(",;.")
            if is_said(word) and not compile_once(r"[a-z][a-z_-]{2,}=").match(word):
                yield span[0], span[0] + len(word), "password"


def _last_word(arguments: re.Match[str]) -> tuple[int, int] | None:
    """Return the last argument of a command that is no option, without its quotes."""
    words = [word for word in compile_once(r"[^\s\"']+").finditer(arguments[0].rstrip("\\")) if word[0][0] not in "-/"]
    start = arguments.start()
    return (start + words[-1].start(), start + words[-1].end()) if words else None


def _find_fed(text: str) -> Iterator[Span]:
    """Find passwords that are printed for a command, piped into it or given to it as a here-string."""
    for place in find_places(text, ("<<<",)) if "<<<" in text else ():
        match = compile_once(rf"<{{3,}}[ \t]*{_WORD}").match(text, place)
        before = text[max(0, place - 120) : place]
        if match and compile_once(rf"(?:{_FED})[^\n|]{{0,60}}$").search(before) and "chpasswd" not in before:
            yield from (
                [(*match.span(match.lastindex or 0), "password")] if is_chosen(match[match.lastindex or 0]) else []
            )
    for place in find_places(text, ("echo ", "printf ")) if "|" in text or "(" in text or '"' in text else ():
        match = compile_once(_PRINTED).match(text, place)
        group = (match.lastindex or 0) if match else 0
        if not match or not group:
            continue
        piped = "|" in text[match.end(group) : match.end()]
        if not piped and not compile_once(_PRINTS).search(text[max(0, place - 60) : place]):
            continue
        start = match.start(group) + (match[group].find(":") + 1 if "chpasswd" in match[0] else 0)
        secret = text[start : match.end(group)]
        if is_chosen(secret) and (
            not match[0].endswith("base64") or (" " not in secret and has_more_than_letters(secret))
        ):
            yield start, match.end(group), "password"
    for place in find_places(text, ("chpasswd",)) if find_places(text, ("pass",)) else ():
        stretch = text[place : place + 600]
        for match in compile_once(rf"(?:{_BREAK}|<<<[ \t]?[\"']?)[\w.-]{{1,40}}:([^\s\"':\\]{{4,100}})").finditer(
            stretch
        ):
            if is_chosen(match[1]):
                yield place + match.start(1), place + match.end(1), "password"


def _find_logins(text: str) -> Iterator[Span]:
    """Find the password in `user:password@host` without a scheme, and in `user/password@host` for Oracle."""
    for at in compile_once(r"@(?=[\w./(-]{3})(?!sha\d)").finditer(text):
        before = text[max(0, at.start() - 170) : at.start()]
        match = compile_once(_LOGIN).search(before) or compile_once(_ORACLE).search(before)
        driver = text.startswith(("tcp(", "unix("), at.end()) or (match is not None and match.re.pattern == _ORACLE)
        if match and (is_chosen if driver else is_said)(match[1]):
            end = at.start() - len(match[2])
            yield end - len(match[1]), end, "password"


def find_in_files(text: str) -> Iterator[Span]:
    """Find passwords in calls, `.pgpass` and Kubernetes secrets."""
    for place in find_places(text, _CALLS):
        match = compile_once(_CALL).match(text, place)
        if match and " " not in match[1] and is_chosen(match[1]) and has_more_than_letters(match[1]):
            yield *match.span(1), "password"
    yield from _find_pgpass(text)
    if find_places(text, ("secret",)) and "kind" in lower_case(text):
        yield from _find_kubernetes(text)


def _find_pgpass(text: str) -> Iterator[Span]:
    """Find the last part of `host:port:database:user:password`."""
    expression = r":(?:\d{4,5}|\*):[A-Za-z*][\w.*-]{0,80}:[A-Za-z*][\w.*-]{0,80}:([^\s\"'`\\|:]{4,100})"
    for match in compile_once(expression).finditer(text):
        host = compile_once(r"(?:^|[^\w./-]|\\n)(?:\*|localhost|[\w-]+(?:\.[\w-]+)+|[a-z][\w-]{1,40})$").search(
            text[max(0, match.start() - 100) : match.start()]
        )
        address = compile_once(r"[0-9a-fA-F]{1,4}$").match(match[1])
        if host and not address and is_chosen(match[1]) and has_more_than_letters(match[1]):
            yield *match.span(1), "password"


def _find_kubernetes(text: str) -> Iterator[Span]:
    """Find all values of a Kubernetes secret, whatever their names."""
    done = 0
    for place in find_places(text, _KINDS):
        if place < done:
            continue
        first, last = max(done, place - 3_000), place + 6_000
        begin = max(first, text.rfind("\n---", first, place), text.rfind("\\n---", first, place))
        ends = (text.find("\n---", place, last), text.find("\\n---", place, last), last)
        done = min(end for end in ends if end >= 0)
        stretch = text[begin:done]
        for block in compile_once(r"(?:string)?[dD]ata\\{0,9}\"?:").finditer(stretch):
            yield from _find_entries(stretch, block.end(), begin)


def _find_entries(stretch: str, start: int, offset: int) -> Iterator[Span]:
    entry = compile_once(_ENTRY)
    match = entry.match(stretch, start)
    while match:
        if not is_placeholder(match[1]) and match[1] not in ("Opaque", "metadata", "true", "false"):
            yield offset + match.start(1), offset + match.end(1), "kubernetes-secret"
        following = entry.match(stretch, match.end())
        match = following if following and not compile_once(rf"{_BREAK}\w").match(stretch, match.end()) else None


# Sentences and tables

# Nouns for passwords (chosen by people) and for tokens (random), in English, German, French and Spanish.
_HUMAN = (
    r"(?:pass(?:[- ]?word|wd|[- ]?phrase|wort|[- ]?code|e)s?|pwd?|kennw(?:ort|\u00f6rter)|zugangscode|mdp|pin"
    r"|contrase(?:\u00f1|n|n\u0303)as?|clave|creds?|geheimnis|secreto?|psk|pass(?! to ))(?![\w-])"
)
_DRAWN = (
    r"(?:tokens?|secrets?|keys?|(?:zugangs)?schl\u00fcssel|jeton|cl(?:\u00e9|e\u0301)s?|clave|credentials?"
    r"|zugangstoken)(?![\w-])"
)
_NOUN = rf"(?i)(?:({_HUMAN})|{_DRAWN})"
_NOUNS = (
    "pass", "pw", "kennw", "zugang", "mdp", "contrase", "clave", "psk", "token", "secret", "key", "geheimnis", "jeton",
    "cred", "identifiants", "login",
)  # fmt: skip
_OTHER_NOUNS = (*_NOUNS, "schl\u00fcssel", "cl\u00e9")
# Words after which a sentence gives the value.
_SAYS = frozenset(
    "is was are be been to now one : -> => \u2192 \u2014 \u2013 ist war lautet hei\u00dft wird auf est c'est "
    "\u00e9tait sera devient en es era ser\u00e1 a \u00e0 por".split()
)
_SAYING = rf"[:=]|(?i:\s(?:{'|'.join(sorted(_SAYS - {':'}))})\s)"
_AS = (" as ", " als ", " comme ", " como ")
_WITH = r"(?i)(?:(?<!\w)(?:with|using|mit|avec|con|und|and|et|y|/)|,)[ \t]+(?:\w{2,6}[ \t]+){0,2}(?:mot de )?$"
_PAIR = (
    r"(?i)(?:cred(?:ential)?s?|zugang(?:sdaten)?|identifiants|credenciales|log[- ]?in)"
    r"(?:[ \t]+[^\s:/|\"'`]{1,30}){0,4}(?:[ \t]*:)?"
    r"[ \t]+[\"'`]?[\w.@-]{1,60}[\"'`]?(?:[ \t]*[/|][ \t]*|:)[\"'`]?([^\s\"'`\\|]{4,100})"
)
_QUOTES = "\"'`*\u00ab\u00bb\u201e\u201c\u201d\u2018\u2019\\()"
# A part of any value: a digit next to a letter or a sign, or words with hyphens.
_VALUE = r"[\d-](?:(?<=-)[a-z]+-|(?<=[A-Za-z!#$%&*+./=?@^~_-]\d)|(?<=\d)[!#$%&*+./=?@^~_-]*[A-Za-z])"
_BASE64 = r"[A-Z0-9+][A-Za-z0-9+/]{0,11}$"
_MOST_WORDS, _MOST_LETTERS, _MOST_LETTERS_ABOVE = 12, 240, 40
_SIGNS = ("|", "\u2502", "\t", ";", ",")
_MOST_ROWS = 200
_CELL = r"(?i)[*_`\" ]*(?:[\w.-]{1,30}[ _.-]){0,3}(?:" + _HUMAN + "|mot de passe|" + _DRAWN + r")[*_`\": ]*$"


def find_in_prose(text: str) -> Iterator[Span]:
    """Find passwords in sentences such as `the password for X is …`, also on the next line."""
    if text.isalpha():
        return
    places = find_places(text, _NOUNS if text.isascii() else _OTHER_NOUNS)
    if not places or not compile_once(_VALUE).search(text):
        return
    done = value_at = 0
    named = any(word in text for word in _AS)
    for place in places:
        value_at = value_at if value_at > place else _next_value(text, place)
        ahead = value_at <= place + 2 * _MOST_LETTERS
        if place < done or not (ahead or named):
            continue
        for value, start in _find_values(text, place, ahead=ahead, named=named):
            done = start + len(value)
            yield start, done, "password"
            break


def _next_value(text: str, place: int) -> int:
    """Return where the next word begins that is no plain word and may be a value."""
    match = compile_once(_VALUE).search(text, place)
    return match.start() if match else len(text) + 2 * _MOST_LETTERS


def _find_values(text: str, place: int, *, ahead: bool, named: bool) -> Iterator[tuple[str, int]]:
    """Yield the value that a sentence gives for a noun, and where it begins."""
    if text[place - 1 : place].isalpha() and not text[place : place + 4].lower().startswith(("pass", "pw", "kenn")):
        return
    noun = compile_once(_NOUN).match(text, place)
    if not noun and text[place] not in "cCzZiIlL":
        return
    # Short words occur in base64, too.
    if noun and noun[1] and len(noun[0]) <= 4 and compile_once(_BASE64).search(text[max(0, place - 12) : place]):
        noun = None
    if noun:
        # There are primary keys, too: what a key of no known kind is said to be must be long.
        least = 24 if noun[0][:3].lower() == "key" and not _is_secret_key(text, place) else 0
        yield from (found for found in _find_after(text, noun) if len(found[0]) >= least) if ahead else ()
        line = text[max(0, place - 140) : place].rpartition("\n")[2] if named else ""
        value = _value_before(line) if named else ""
        if value and _is_value(value, noun[1]):
            yield _trim(value), place - len(line) + line.rindex(value)
    pair = compile_once(_PAIR).match(text, place) if ahead and text[place] in "cCzZiIlL" else None
    if pair and _is_value(pair[1], "password"):
        yield _trim(pair[1]), pair.start(1)


def _find_after(text: str, noun: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Yield the first word after the noun that is given as its value."""
    said, between, place = False, 0, noun.end()
    follows = text[place : place + 2].lstrip(_QUOTES)[:1]
    if follows and follows not in " \t\r\n:=;'\u2019\u00a0\u202f":
        return
    line, _, below = text[place : place + _MOST_LETTERS].partition("\n")
    # `name: value` and `name = value` are assignments, which code has, too; only the next line is of interest.
    assigned = line.lstrip(" \t\"'`*")[:1] in (":", "=") or text[noun.start() - 1 : noun.start()] in ("_", ".")
    if assigned and line.strip(" \t\"'`*:=|>+\\-"):
        return
    words = [] if assigned else line.lstrip(";").split()
    if words and not compile_once(_SAYING).search(line):
        del words[1:]
    for number, word in enumerate(words):
        says = word.lower() in _SAYS
        if not word.isalpha():
            place = text.find(word, place)
            value = _bare(word)
            if (
                place + word.index(value) + len(value) < len(text)
                and text[place + word.index(value) + len(value)] == "("
            ):
                return
            if _is_given(text, noun, value, number=number, said=said, between=between, quoted=word[0] in _QUOTES[:-2]):
                yield _trim(value), place + word.index(value)
                return
            says = says or word[-1] in ":="
            if not says and not _is_plain(word):
                return
        said, between = said or says, 0 if says else between + said
        if number >= _MOST_WORDS or between > 2:
            return
    if below and (len(line) <= _MOST_LETTERS_ABOVE or line.rstrip().endswith(":")):
        yield from _find_below(text, place + text[place:].index("\n"), noun[1])


def _bare(word: str) -> str:
    """Return a word without the quotes around it and what follows them."""
    return compile_once(r"[\"'`\\|<>\u00bb\u201c\u201d\u2019]").split(word.lstrip(_QUOTES), maxsplit=1)[0].rstrip("()*")


def _is_given(
    text: str, noun: re.Match[str], value: str, *, number: int, said: bool, between: int, quoted: bool
) -> bool:
    """Return whether a word is the value that a sentence gives."""
    if said:
        return _is_value(value, noun[1], quoted=quoted) and (between <= 1 or is_strong(_trim(value), least=8))
    return not number and bool(noun[1]) and _follows_bare(text, noun, value)


def _is_plain(word: str) -> bool:
    """Return whether a word of a sentence may come between a noun and its value."""
    return len(word) <= 30 and word[-1] not in ".;!?" and not compile_once(r"[\d=(){}\[\]<>]").search(word)


def _find_below(text: str, end: int, human: str | None) -> Iterator[tuple[str, int]]:
    """Yield the value that stands alone on the next line with words."""
    below = compile_once(r"\s+(?:```\w{0,12}\s+)?(?:[>*-][ \t]+)?(\S{4,200})[ \t]*(?=$|\r?\n|[\"'}\\])").match(
        text, end
    )
    value = _bare(below[1]) if below else ""
    if below and value and not below[1].endswith((":", "(", "{")) and _is_value(value, human):
        yield _trim(value), below.start(1) + below[1].index(value)


def _follows_bare(text: str, noun: re.Match[str], value: str) -> bool:
    """Return whether a value directly after the noun is given: `password X`, `with password X`."""
    trimmed = _trim(value)
    if not is_said(trimmed) or compile_once(r"[\w.]+[(\[=]|.*[/:$()<>\[\]{},]").match(trimmed):
        return False
    before = text[max(0, noun.start() - 1) : noun.start()]
    if before.isalpha() and len(noun[0]) > 2:
        return False
    if len(noun[0]) >= 6 and before not in ("_", ".", "/", "-"):
        return True
    if "   " in text[noun.end() : noun.end() + 4] or is_strong(trimmed, least=10):
        return len(trimmed) >= 8
    begin, end = _line_at(text, noun.start())
    line = text[begin:end].split()
    return (len(line) <= 3 and _bare(line[-1]) == value) or bool(
        compile_once(_WITH).search(text[max(begin, noun.start() - 60) : noun.start()])
    )


def _value_before(before: str) -> str:
    """Return the value of `X as the password`, given the text before the noun."""
    word = next((word for word in _AS if word in before), "")
    value, _, rest = before.rpartition(word) if word else ("", "", "")
    return value.split()[-1].strip("\"'`\\") if value.strip() and len(rest.split()) <= 3 else ""


def _is_secret_key(text: str, place: int) -> bool:
    return text[max(0, place - 20) : place].rstrip(" _.-").lower().endswith(KEYS)


def _trim(value: str) -> str:
    value = value.rstrip(".,;:?)*")
    return value if value[-2:-1].isdigit() else value.rstrip("!")


def _is_value(value: str, human: str | None, *, quoted: bool = False) -> bool:
    value = _trim(value)
    if is_said(value, least=5 if quoted else 6) or (
        compile_once(r"(?:base64:)?[\w+/=~-]{24,}$").match(value) and is_strong(value)
    ):
        return True
    words = compile_once(r"[a-z]+(?:-[a-z]+){2,}$")
    return bool(human and quoted and words.match(value)) and is_chosen(value)


def find_in_tables(text: str) -> Iterator[Span]:
    """Find the table cells below or next to a noun for a password."""
    done = 0
    if "\n" not in text and "|" not in text and "\u2502" not in text:
        return
    for place in find_places(text, _NOUNS):
        if place < done or not compile_once(r"[\w \u00f1]{1,24}[*_`\"' ]{0,4}(?:$|[|,;\t\u2502\r\n\\])").match(
            text, place
        ):
            continue
        begin, end = _line_at(text, place)
        sign = _sign(text[begin:end])
        cells = text[begin:end].split(sign) if sign else [""]
        column = text[begin:place].count(sign) if sign else 0
        if not compile_once(_CELL).match(cells[column].strip(" \\")):
            continue
        beside = _cell_beside(text, place, end, cells[column + 1 :]) if sign in "|\u2502" else None
        if beside:
            yield beside
        else:
            below, done = _cells_below(text, end, len(cells), column, sign)
            yield from below


def _sign(line: str) -> str:
    """Return the separator of the cells if a line belongs to a table."""
    sign = next((sign for sign in _SIGNS if sign in line), "")
    listed = sign in ("|", "\u2502") or compile_once(r"[\w -]+(?:[,;\t][\w -]+)+\s*$").match(line)
    return sign if listed else ""


def _line_at(text: str, place: int) -> tuple[int, int]:
    end = text.find("\n", place, place + 400)
    return text.rfind("\n", max(0, place - 300), place) + 1, end if end >= 0 else min(len(text), place + 400)


def _cell_beside(text: str, place: int, end: int, following: list[str]) -> Span | None:
    """Return the cell to the right of the noun, if it is a password."""
    value = following[0].strip(" *`\"'") if following else ""
    if not value or not _is_cell(value) or _rule(text, end):
        return None
    start = text.find(value, place)
    return start, start + len(value), "password"


def _cells_below(text: str, end: int, count: int, column: int, sign: str) -> tuple[list[Span], int]:
    """Return the passwords in one column of the following lines, and where the table ends."""
    spans: list[Span] = []
    for _ in range(_MOST_ROWS):
        if text[end : end + 1] != "\n":
            break
        begin, end = end + 1, _line_at(text, end + 1)[1]
        row = text[begin:end].split(sign)
        if len(row) == count:
            value = row[column].strip(" *`\"'\\\r")
            start = text.find(value, begin + len(sign.join(row[:column])))
            spans += [(start, start + len(value), "password")] if _is_cell(value) else []
        elif not compile_once(r"[ \t\r+|=:\\\u2502\u2500-\u257f-]+$").match(text[begin:end]):
            break
    return spans, end


def _rule(text: str, end: int) -> bool:
    """Return whether the next line is the rule below a table's header."""
    return bool(compile_once(r"\r?\n[ \t]*[|+\u2502\u251c]?[ \t]*[:=\u2500-]{2,}").match(text, end))


def _is_cell(value: str) -> bool:
    return (is_said(value) or is_strong(value, least=24)) and " " not in value
