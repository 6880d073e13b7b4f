"""Find passwords by their place in command lines and in files with a fixed format.

Each rule begins at a word that must be there, and reads a bounded stretch from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.text.secrets_values import (
    compile_once,
    find_places,
    has_more_than_letters,
    is_chosen,
    is_hard,
    is_placeholder,
    is_said,
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
        if value and (form or is_hard(text[value[0] : value[1]])):
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
    for place in find_places(text, ("echo ", "printf ")) if "|" in text or "(" in text else ():
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
