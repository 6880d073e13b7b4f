"""Classify a learning by what it says: whether it forbids something, its category, and what triggers it.

The same rules serve every source: sigils, tools, people, models and mined text. What the author states explicitly stays;
only what is missing is filled in. In doubt nothing is: a trigger must be specific, since it shows a learning wherever it
matches, and a category keeps a learning from the agents that do not see it.
"""

from __future__ import annotations

import re

from learnt.debrief.tags import find_files
from learnt.mine.complaint import find_stable_part
from learnt.mine.shell import split_command
from learnt.model import TRIGGER_LIMIT, Triggers
from learnt.text.statements import read_statement
from learnt.text.triggers import MAX_WILDCARDS, count_wildcards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_MAX_LENGTH = 4_000
# The expressions are compiled when first needed. A prohibition opens a sentence, behind a condition (“In tests, …”) ...
_OPENING = (
    r"(?i)(?:^|[:;,.–—]\s+|\bplease\s+|\bbitte\s+)(?:never|do not|don['’]?t|avoid|stop\s+\w+ing|no\s+(?:more\s+)?\w+|"
    r"nie|niemals|vermeide[nt]?|kein(?:e|en|em|er|es)?|nicht|verwende\w*\s+(?:nie|kein)\w*|"
    r"ne\s+\S+|n['’]\w+|jamais|pas\s+de|évite[rz]?|arrête[rz]?\s+d\S*|nunca|jamás|evit(?:a|ar|e|en)|deja\s+de|"
    r"no\s+\w+(?:es|as|éis|an|en|ar|er|ir))\b"
)
# ... or is said with a verb.
_FORBIDDING = (
    r"(?i)\b(?:must|should|shall|may|needs? to)\s+(?:not|never)\b|\b(?:must|should)n['’]t\b|"
    r"\b(?:is|are)\s+(?:forbidden|prohibited|not allowed|off[- ]limits|never to be)\b|\bnobody (?:may|must)\b|"
    r"\b(?:darf|dürfen|soll(?:te|ten|en)?)\b[^,;.]{0,40}\b(?:nicht|nie|kein\w*)\b|\bverboten\b|"
    r"\bne (?:doit|doivent|faut)(?: \w+)? (?:pas|jamais)\b|\binterdit\w*\b|\bno (?:se )?deben?\b|\bprohibid[oa]s?\b"
)
_ALTERNATIVE = r"(?i)^(?:use|run|prefer|call|instead)\b|\binstead of\b"
_CODE = r"`([^`\n]{2,200})`"
_QUOTED = r"`([^`\n]{8,200})`|\"([^\"\n]{8,200})\"|“([^”\n]{8,200})”"
_ERROR_WORDS = (
    r"(?i)\b(?:error|exception|failed|failure|fatal|panic|denied|refused|not found|no such|cannot|can't|could not|"
    r"unable|unknown|undefined|invalid|unexpected|missing|timed? ?out|does not exist|no module|not allowed|already|"
    r"must be|is required|rejected|conflict|mismatch|deadlock)\b"
)
_ERROR_CODE = r"\b(?:E\d{3,5}|TS\d{4,5}|SC\d{4}|CS\d{4}|ORA-\d{4,5}|ERR_[A-Z_]{4,}|[A-Z]{2,6}-\d{4,5})\b"
_RUN_VERB = (
    r"(?i)\b(?:run|runs|running|call|use|using|execute|via|with|start|launch|by|of|than|not|never|avoid|then|first|"
    r"before|after|führe|starte|mit|statt|nicht|lance[rz]?|exécute[rz]?|avec|ejecuta|corre|con)[\s:,(]*$"
)
_PROGRAM = r"\.{0,2}/?[a-z][\w.+-]*(?:/[\w.+-]+)*"
_PLAIN_WORD = r"[\w./:@=+,-]+"
_FOLDER = r"`((?:[\w.*-]+/){2,})`"
# Names that stand in every project say nothing about a learning.
_COMMON_FILE = r"(?i)(?:readme|changelog|license|contributing|index|main|app|mod|lib|test|tests|__init__)\.\w+"
_MAX_TRIGGERS = 3
_MIN_ERROR_WORDS = 4
# The topics that agents' categories name, the narrower ones first.
_TOPICS = {
    "azure-devops": r"azure devops|azure[ -]pipelines?|\baz (?:repos|pipelines|boards|devops)\b",
    "pytest": r"\bpytest\b|\bconftest\b",
    "testing": (
        r"\b(?:unit|integration|e2e|end-to-end|flaky|regression|snapshot) ?tests?\b|\btest suite\b|\btests?\b|\btesting\b|"
        r"\bunittest\b|\bjest\b|\bvitest\b|\bplaywright\b|\bcypress\b|\brspec\b|\bjunit\b|\bfixtures?\b|\bmock(?:s|ing|ed)?\b|"
        r"\bcoverage\b|\bpruebas?\b"
    ),
    "security": (
        r"\bsecrets?\b|\bpasswords?\b|\bcredentials?\b|\bapi keys?\b|\baccess tokens?\b|\bauth(?:entication|orization|z)\b|"
        r"\bpermissions?\b|\bcsrf\b|\bxss\b|\bsql injection\b|\bencrypt\w*|\bsanitiz\w*|\bvulnerab\w*|\bcve-\d|\boauth\b|"
        r"\bjwt\b|\bpii\b|\bpasswor[dt]\w*|\bmot de passe\b|\bcontraseñas?\b"
    ),
    "git": (
        r"\bgit\b|\bcommit(?:s|ted|ting)?\b|\brebas\w+|\bpull requests?\b|\bcherry-pick\w*|\bworktrees?\b|\bbranch(?:es)?\b|"
        r"\bmerge conflicts?\b|\bforce[- ]push\w*"
    ),
    "infrastructure": (
        r"\bdocker\w*|\bcontainers?\b|\bkubernetes\b|\bk8s\b|\bkubectl\b|\bhelm\b|\bterraform\b|\bansible\b|\bdeploy\w*|"
        r"\bstaging\b|\bci\b|\bpipelines?\b|\bnginx\b|\bload balancer\b|\bgcloud\b|\baws\b|\bs3\b|\bcron\w*|\brollbacks?\b"
    ),
    "architecture": (
        r"\barchitectur\w+|\blayers?\b|\bmodule boundar\w+|\bmicroservices?\b|\bcoupl\w+|\bcircular (?:imports?|dependenc)\w*|"
        r"\bdomain model\b|\bservice boundar\w+|\bmonorepo\b|\bpublic api\b"
    ),
    "build": (
        r"\bbuilds?\b|\bcompil\w+|\bbundl\w+|\bwebpack\b|\bvite\b|\bnpm\b|\bpnpm\b|\byarn\b|\bcargo\b|\bgradle\w*|\bmvn\b|"
        r"\bmaven\b|\bcmake\b|\block ?files?\b|\bpackage manager\b|\blint\w*|\bformatter\b|\btsc\b|\bmypy\b|\bruff\b|"
        r"\beslint\b|\buv\b|\bpip\b|\bpoetry\b"
    ),
}  # fmt: skip


def complete(record: dict[str, Any], *, has_topic: bool = True) -> dict[str, Any]:
    """Return the fields of a learning with its polarity, triggers and, with `has_topic`, its category filled in.

    Fields that the author has set stay.
    """
    title, action = str(record.get("title", "")), str(record.get("action", ""))
    texts = (title, action, str(record.get("observation", "")))
    found = dict(record)
    if forbids(title):
        found["polarity"] = "avoid"
    if has_topic and not record.get("category"):
        found["category"] = find_category(title, action)
    found["triggers"] = find_triggers(*texts, given=record.get("triggers") or Triggers())
    return found


def forbids(title: str) -> bool:
    """Return whether a sentence says what not to do: “Never …”, “In tests, do not …”, “X must not …”.

    “Use X, not Y” and “Use X instead of Y” say what to do.
    """
    text = title[:_MAX_LENGTH]
    if re.search(_FORBIDDING, text):
        return True
    opening = re.search(_OPENING, text)
    return opening is not None and (opening.start() == 0 or not re.search(_ALTERNATIVE, text))


def find_category(title: str, action: str = "") -> str:
    """Return the topic of a learning among those that agents' categories name; empty if none is clearly its topic."""
    counts = {
        topic: 2 * len(set(re.findall(pattern, title.lower()))) + len(set(re.findall(pattern, action.lower())))
        for topic, pattern in _TOPICS.items()
    }
    best = max(counts, key=lambda topic: counts[topic])
    return best if counts[best] >= 2 else ""


def find_triggers(title: str, action: str = "", observation: str = "", *, given: Triggers) -> Triggers:
    """Return the given triggers and, for each kind without any, those that the texts name."""
    text = "\n".join((title, action, observation))[:_MAX_LENGTH]
    found = {
        "files": given.files or _keep(_list_files(text)),
        "commands": given.commands or _keep(_list_commands(title[:_MAX_LENGTH]) or _list_commands(text)),
        "errors": given.errors or _keep(_list_errors(text)),
    }
    return given.replace(**found)


def _list_files(text: str) -> Iterator[str]:
    """Yield the files and folders that a text names, without those that stand in every project."""
    yield from (path for path in find_files(text) if "/" in path or not re.fullmatch(_COMMON_FILE, path))
    yield from (folder for folder in re.findall(_FOLDER, text) if count_wildcards(folder) <= MAX_WILDCARDS)


def _list_commands(text: str) -> list[str]:
    """Return the commands that a text names: those that it rejects or, if there are none, all of them."""
    denied = read_statement(text).denied if "`" in text else frozenset()
    spans = [(span, _read_command(span[1], text[: span.start()])) for span in re.finditer(_CODE, text)]
    commands = [(span[1], command) for span, command in spans if command]
    rejected = [command for span, command in commands if read_statement(f"`{span}`").words <= denied]
    return rejected or [command for _, command in commands]


def _read_command(code: str, before: str) -> str:
    """Return the program of a command with what makes it specific; empty if the code is no command or only a word."""
    parts = split_command(code)
    if not parts or not re.fullmatch(_PROGRAM, parts[-1].words[0]) or re.match(_ERROR_WORDS, code):
        return ""
    words, intent = parts[-1].words, parts[-1].intent
    following = words[len(intent) : len(intent) + 1]
    has_option = any(word.startswith("-") for word in words[1:])
    if len(intent) == 1 and not has_option and not re.search(_RUN_VERB, before):
        return ""
    specific = [*intent, *(word for word in following if len(intent) == 1 or word.startswith("-"))]
    is_plain = all(re.fullmatch(_PLAIN_WORD, word) for word in specific)
    return " ".join(specific) if len(specific) > 1 and is_plain and words[: len(specific)] == tuple(specific) else ""


def _list_errors(text: str) -> Iterator[str]:
    """Yield the messages and codes of errors that a text quotes."""
    for match in re.finditer(_QUOTED, text):
        quoted = next(filter(None, match.groups()))
        if len(quoted.split()) >= _MIN_ERROR_WORDS and re.search(_ERROR_WORDS, quoted):
            yield find_stable_part(quoted)
    yield from re.findall(_ERROR_CODE, text)


def _keep(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the first few patterns, each once."""
    valid = (pattern for pattern in patterns if pattern.strip() and len(pattern) <= TRIGGER_LIMIT)
    return tuple(dict.fromkeys(valid))[:_MAX_TRIGGERS]
