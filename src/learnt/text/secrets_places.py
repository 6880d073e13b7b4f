"""Find passwords by their context in command lines and in files with a fixed format.

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
    is_placeholder,
    is_said,
    lower_case,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

_BREAK = r"(?:\r?\n|\\{1,8}(?:r\\{1,4})?n)"
_GAP = r"(?:[\s\\]|\\[nrt]){1,9}"
# A word of a command: in quotes, in escaped quotes, or bare.
_WORD = r"(?:\\{0,9}\"([^\"\\\n]{1,200})|\\{0,9}'([^'\\\n]{1,200})|([^\s\"'`|;&<>\\)\]]{1,200}))"
_NEXT = r"(?:\\{0,9}[\"'],?)?[ \t=]{1,8}"

# (programs, option, form of the value: g glued to the option, s also separate, or the separator after a user name)
OPTIONS = (
    ("mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlslap mysqlpump mysqlbinlog mysqlsh mariadb "
     "mariadb-dump mariadb-admin mariabackup xtrabackup mycli 7z 7za 7zr 7zz rar unrar", "p", "g"),
    ("rar unrar", "hp", "g"),
    ("sshpass rabbitmqadmin "
     "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles cqlsh "
     "cypher-shell twine conan smbmap crackmapexec netexec nxc evil-winrm hydra rdesktop influx arangosh couchbase-cli "
     "cbq ncftp ncftpput ncftpget psexec winexe keepassxc-cli wmic", "p", "s"),
    ("docker+login podman+login nerdctl+login buildah+login skopeo+login oras+login helm+login crane+login az+login "
     "oc+login argocd+login cf+login rosa+login ibmcloud+login bx+login snyk+login jf+login", "p", "s"),
    ("sqlcmd bcp osql isql tsql ipmitool impi-config mosquitto_pub mosquitto_sub mosquitto_rr zip unzip zipcloak "
     "pdftotext ssh-keygen wsmancli", "P", "s"),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami ldapcompare ldapmodrdn ldapexop ldapvc dsconf "
     "ldapurl", "w", "s"),
    ("ldappasswd", "s", "s"),
    ("ldappasswd", "a", "s"),
    ("ldappasswd", "A", "s"),
    ("redis-cli keydb-cli valkey-cli redis-benchmark memtier_benchmark", "a", "s"),
    ("plink pscp psftp putty kitty", "pw", "s"),
    ("x11vnc", "passwd", "s"),
    ("snmpwalk snmpget snmpset snmpbulkwalk snmptrap snmpgetnext snmptable", "A", "s"),
    ("snmpwalk snmpget snmpset snmpbulkwalk snmptrap snmpgetnext snmptable", "X", "s"),
    ("ssh-keygen cryptsetup", "N", "s"),
    ("curl ab siege", "u", ":"),
    ("curl", "U", ":"),
    ("curl etcdctl elasticdump", "-user", ":"),
    ("curl", "-proxy-user", ":"),
    ("ab", "A", ":"),
    ("http https httpie xh", "a", ":"),
    ("etcdctl influx wget elasticdump mc rsync", "u", ":"),
    ("smbclient rpcclient net smbget smbcacls smbtree nmblookup winexe wmic", "U", "%"),
    ("lftp", "u", ","),
    ("openssl", "k", "s"),
    ("openssl", "K", "s"),
    ("nuget dotnet+push choco+push choco+apikey", "k", "s"),
    ("gh+secret+set", "b", "s"),
)  # fmt: skip
# Letters that a text must contain, and commands with the password as an argument: `_` is a word before the password.
_POSITIONS = {
    "pass": ("wpa_passphrase _", "rabbitmqctl change_password _", "mosquitto_passwd -b _ _",
             "mosquitto_passwd -c -b _ _", "smbpasswd -a -s _", "requirepass", "enable password", "vncpasswd -f"),
    "config": ("mc config host add _ _ _", "composer config http-basic _ _", "poetry config http-basic _ _",
               "poetry config pypi-token _"),
    "secret": ("dotnet user-secrets set _", "enable secret"),
    "login": ("cargo login", "vault login"),
    "auth": ("masterauth", "redis auth"),
    "securestring": ("convertto-securestring", "convertto-securestring -string"),
    "net use": ("net user _", "net use _ _"),
    "add_user": ("rabbitmqctl add_user _",),
    "alias set": ("mc alias set _ _ _",),
    "setapikey": ("nuget setapikey",),
    "obscure": ("rclone obscure",),
    "community": ("snmp-server community",),
    "identified by": ("identified by",),
}  # fmt: skip
# (first letters, expression): lines of files with a fixed format.
_PAIR = r"\s{0,9}\\{0,9}[\"'][^\"'\n]{1,80}?\\{0,9}[\"'],\s{0,9}\\{0,9}[\"']([^\"'\\\n]{4,100})\\{0,9}[\"']"
_CALL = rf"\({_PAIR}\s{{0,9}}\)"
_FILES = (
    (
        "machine",
        rf"(?i)machine{_GAP}\S{{1,200}}?{_GAP}login{_GAP}\S{{1,200}}?{_GAP}password{_GAP}([^\s\"'\\]{{4,200}})",
    ),
    ("default", rf"(?i)default{_GAP}login{_GAP}\S{{1,200}}?{_GAP}password{_GAP}([^\s\"'\\]{{4,200}})"),
    ("psk", r"(?i)psk[\"']?[ \t]{0,4}(?:[=:][ \t]{0,4}|(?=[ \t]\\{0,9}\")[ \t])\\{0,9}[\"']?([^\s\"'\\\[\]]{8,64})"),
    ("wep_key", r"(?i)wep_key\d?[ \t]{0,4}[=:][ \t]{0,4}[\"']?([^\s\"'\\]{5,64})"),
    ("password ", r"(?i)password [05789] ([^\s\"'\\]{4,})"),
    ("auth ", r"(?<![\w-])AUTH (?:[\w-]{1,40} )?(?![A-Z0-9=-]+[\s\"'])([^\s\"'\\]{6,100})(?=\s*(?:$|[\n\"'\\]))"),
    ("auth", rf"(?i)auth\w{{0,12}}[ \t]{{0,4}}[=:]?[ \t]{{0,4}}(?:[\w.]{{1,40}})?{_CALL}"),
    ("login(", rf"(?i)login{_CALL}"),
    ("connect(", rf"(?i)connect\((?:[^()\n]{{1,80}}?,)?{_PAIR}"),
    ("pdo(", rf"(?i)pdo\((?:[^()\n]{{1,80}}?,)?{_PAIR}"),
    ("getconnection", r"(?i)getconnection\([^\n]{1,200}?,\s?\\?\"[^\"\n]{1,60}\",\s?\\?\"([^\"\\\n]{4,100})\\?\""),
)
_KINDS = ("kind: secret", 'kind":"secret', 'kind": "secret', 'kind\\": \\"secret', 'kind\\":\\"secret')
# Commands that read a password from their standard input.
_FED = (
    r"chpasswd|passwd\b|sudo\b[^|\n]{0,40}-\w*S|password-stdin|with-token|kinit|cryptsetup|passphrase-fd|vncpasswd"
    "|base64"
)
_PRINTED = (
    rf"(?:echo|printf)(?:[ \t]+-[neE]+)?(?:[ \t]+\\{{0,9}}[\"']?%s(?:\\+n)?\\{{0,9}}[\"']?)?[ \t]+{_WORD}\\{{0,9}}"
    rf"[\"']?[^\S\n]*\|[^\n|]{{0,60}}?(?:{_FED})"
)
_ORACLE = ("sqlplus ", "expdp ", "impdp ", "sqlldr ", "jdbc:oracle:")
_TCP = r"[\w.-]{1,60}:([^\s\"'`@/:]{4,100})()$"
_ANY_WORD = rf"{_NEXT}(?:\\?\"[^\"\n]{{0,100}}\"|'[^'\n]{{0,100}}'|[^\s\"']{{1,100}})"
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
_OPTION = (
    rf"-(?<=[ \t\"']-)(?!passw)({'|'.join(sorted(_WITH_OPTION, key=len, reverse=True))})(?=[^\s-]|\\{{0,9}}[\"'\s])"
)


def find_in_commands(text: str) -> Iterator[Span]:
    """Find passwords in command lines."""
    if "-" in text:
        yield from _find_options(text)
    yield from _find_positions(text)
    if "passwd" in text:
        yield from _find_htpasswd(text)
    if "<<<" in text or "|" in text:
        yield from _find_piped(text)
    yield from _find_database_logins(text)
    for match in compile_once(r" /[rR]?[pP](?i:ass(?:word)?)?[: ]([^\s\"'\\]{4,100})").finditer(text):
        if is_said(match[1]):
            yield *match.span(1), "password"


def _find_options(text: str) -> Iterator[Span]:
    """Find the values of short password options after a program that has them."""
    for match in compile_once(_OPTION).finditer(text):
        line = text[max(0, match.start() - 300) : match.start()]
        if match[1] not in "pP" and not any(program in line for program in _WITH_OPTION[match[1]]):
            continue
        line = compile_once(r"\n|\\n|\||;|&&|\$\(").split(line)[-1]
        form = _form(line, match[1])
        value = _value_of_option(text, match.end(), form) if form else _value_after_user(text, match, line)
        if value:
            yield *value, "password"


def _value_after_user(text: str, option: re.Match[str], line: str) -> tuple[int, int] | None:
    """Return the value of `-p` of any program, if a user is named before it."""
    if option[1] not in ("p", "P") or not compile_once(r"\s(?:-[uUnD]|--?user(?:name)?)[ =]\S").search(line):
        return None
    match = compile_once(rf"[ \t]+{_WORD}").match(text, option.end())
    value = match[match.lastindex or 0] if match else ""
    return match.span(match.lastindex or 0) if match and is_said(value) else None


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


def _find_positions(text: str) -> Iterator[Span]:
    lower = lower_case(text)
    for letters, commands in _POSITIONS.items():
        for command in commands if letters in lower else ():
            anchor = command.rstrip(" _")
            if anchor in lower:
                yield from _find_position(text, anchor, command.count(" _"))


def _find_position(text: str, anchor: str, skipped: int) -> Iterator[Span]:
    """Find the word that follows a command and a number of other words."""
    for place in find_places(text, (anchor,)):
        if text[place - 1 : place].isalnum():
            continue  # a part of a word
        if " " not in anchor and compile_once(r"\w*[ \t]*=").match(text, place + len(anchor)):
            continue  # a variable
        skip = rf"[\w./:-]{{0,60}}(?:{_ANY_WORD}){{{skipped}}}"
        match = compile_once(rf"{skip}(?:{_NEXT}|[ \t]?(?=[\"'])){_WORD}").match(text, place + len(anchor))
        group = (match.lastindex or 0) if match else 0
        value = match[group].rstrip(",;.") if match else ""
        if match and is_chosen(value) and (skipped or has_more_than_letters(value)):
            yield match.start(group), match.start(group) + len(value), "password"


def _find_htpasswd(text: str) -> Iterator[Span]:
    """Find the last word of `htpasswd -b [file] user password`, with its options in any order."""
    for place in find_places(text, ("htpasswd",)):
        command = compile_once(r"htpasswd((?:[ \t]+-[a-zA-Z0-9]+(?:[ \t]+\d+)?){1,5})").match(text, place)
        if command and "b" in command[1]:
            last = rf"(?:[ \t]+[^\s|;&]{{1,200}}){{{1 if 'n' in command[1] else 2}}}[ \t]+{_WORD}"
            match = compile_once(last).match(text, command.end())
            if match and is_chosen(match[match.lastindex or 0]):
                yield *match.span(match.lastindex or 0), "password"


def _find_piped(text: str) -> Iterator[Span]:
    """Find passwords that are piped into a command or given to it as a here-string."""
    for place in find_places(text, ("<<<",)) if "<<<" in text else ():
        match = compile_once(rf"<{{3,}}[ \t]*{_WORD}").match(text, place)
        before = text[max(0, place - 120) : place]
        if match and compile_once(rf"(?:{_FED})[^\n|]{{0,60}}$").search(before) and "chpasswd" not in before:
            yield from (
                [(*match.span(match.lastindex or 0), "password")] if is_chosen(match[match.lastindex or 0]) else []
            )
    for place in find_places(text, ("echo ", "printf ")):
        match = compile_once(_PRINTED).match(text, place)
        group = (match.lastindex or 0) if match else 0
        if match and group:
            value = match[group]
            start = match.start(group) + (value.find(":") + 1 if "chpasswd" in match[0] else 0)
            secret = text[start : match.end(group)]
            encoded = match[0].endswith("base64")
            if is_chosen(secret) and not (encoded and (" " in secret or not has_more_than_letters(secret))):
                yield start, match.end(group), "password"
    for place in find_places(text, ("chpasswd",)):
        stretch = text[place : place + 600]
        for match in compile_once(rf"(?:{_BREAK}|<<<[ \t]?[\"']?)[\w.-]{{1,40}}:([^\s\"':\\]{{4,100}})").finditer(
            stretch
        ):
            if is_chosen(match[1]):
                yield place + match.start(1), place + match.end(1), "password"


def _find_database_logins(text: str) -> Iterator[Span]:
    """Find the password in `sqlplus user/password@host`, `jdbc:oracle:thin:user/…` and `user:password@tcp(host)`."""
    for at in compile_once("@").finditer(text):
        before = text[max(0, at.start() - 170) : at.start()]
        oracle = any(name in before for name in _ORACLE)
        if oracle or text.startswith(("tcp(", "unix("), at.end()):
            form = r"[ \t:][\"']?\w{1,40}/\\{0,9}\"?([^\s\"'@/\\]{4,100})(\\{0,9}\"?)$" if oracle else _TCP
            match = compile_once(form).search(before)
            if match and is_chosen(match[1]):
                end = at.start() - len(match[2])
                yield end - len(match[1]), end, "password"


def find_in_files(text: str) -> Iterator[Span]:
    """Find passwords in `.netrc`, `.pgpass`, Kubernetes secrets and other files with a fixed format."""
    lower = lower_case(text)
    for letters, expression in _FILES:
        for place in find_places(text, (letters,)) if letters in lower else ():
            match = compile_once(expression).match(text, place)
            if match and " " not in match[1] and is_chosen(match[1]) and has_more_than_letters(match[1].rstrip(",;)")):
                yield *match.span(1), "password"
    yield from _find_pgpass(text)
    if "kind" in lower and "secret" in lower:
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
