"""Classify a learning by what it says: whether it forbids something, its category, and what triggers it.

The same rules serve every source: sigils, tools, people, models and mined text. What the author states stays; only what
is missing is filled in. In doubt nothing is: a trigger must be specific, since it shows a learning wherever it matches,
and a category keeps a learning from the agents that do not see it.
"""

from __future__ import annotations

import re
from functools import cache

from learnt.debrief.tags import find_files
from learnt.mine.complaint import find_stable_part
from learnt.mine.shell import is_verb, split_command
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
_OBLIGATION = (
    r"(?i)\b(?:must|has to|have to|is required|are required|only|always|muss|müssen|immer|nur|doit|doivent|debe)\b"
)
_TROUBLE = (
    r"(?i)\b(?:fail(?:s|ed)?|breaks?|hangs?|crash(?:es)?|silently|ignor(?:es|ed)|loses?|lost|wrong|stale|errors?|"
    r"does not|doesn['’]t|cannot|can['’]t|rejects?|refuses?|drops?|swallows?|leaks?|overwrites?)\b"
)
_ALTERNATIVE = r"(?i)^(?:use|run|prefer|call|instead)\b|\binstead of\b"
_CODE = r"`([^`\n]{2,200})`"
_QUOTED = r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”"
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
_MIN_WEIGHT = 2
_MIN_ERROR_WORDS = 4
# The topics that agents' categories name, the narrower ones first, each with its words. `*` stands for any ending; one
# word is enough, except those with a `?`, which stand in texts about anything.
_TOPICS = {
    "azure-devops": "azure devops, azure pipeline*, azure-pipelines*, az repos, az pipelines, az boards, az devops",
    "pytest": "pytest, conftest",
    "testing": (
        "test?, tests?, testing?, test suite?, unit test*, integration test*, end-to-end test*, e2e, flaky, "
        "jest, unittest, vitest, playwright, cypress, rspec, junit, fixture?, fixtures?, mock?, mocks?, "
        "mocking?, coverage?, prueba?, pruebas?"
    ),
    "security": (
        "secret?, secrets?, password*, passwort*, credential*, api key, api keys, access token*, permission?, "
        "authentication?, authorization?, permissions?, csrf, xss, sql injection, encrypt*, sanitiz*, "
        "vulnerab*, oauth, jwt, pii, mot de passe, contraseña*"
    ),
    "git": (
        "git, commit message*, rebas*, pull request, pull requests, cherry-pick*, worktree*, branch?, "
        "branches?, merge conflict*, force push*, force-push*"
    ),
    "infrastructure": (
        "docker*, container?, containers?, kubernetes, k8s, kubectl, helm, terraform, ansible, deploy?, "
        "deploys?, deployment?, deployments?, staging?, ci?, pipeline?, pipelines?, nginx, load balancer*, "
        "gcloud, aws, s3, rollback*"
    ),
    "architecture": (
        "architectur*, layer?, layers?, module boundar*, service boundar*, microservice*, coupling, circular "
        "import*, circular dependenc*, domain model, monorepo?, public api?"
    ),
    "build": (
        "build?, builds?, compil*, bundl*, webpack, vite, npm, pnpm, yarn, cargo, gradle*, mvn, maven, cmake, "
        "lint*, lock file*, lockfile*, package manager*, formatter*, tsc, mypy, ruff, eslint, uv, pip, poetry"
    ),
}


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


def find_kind(title: str) -> str:
    """Return the kind of learning that a sentence is: what must or must not be, what goes wrong, or what works well."""
    text = title[:_MAX_LENGTH]
    if forbids(text) or re.search(_OBLIGATION, text):
        return "constraint"
    return "gotcha" if re.search(_TROUBLE, text) else "best-practice"


def find_category(title: str, action: str = "") -> str:
    """Return the topic of a learning among those that agents' categories name; empty if none is clearly its topic."""
    title, action = title[:_MAX_LENGTH].lower(), action[:_MAX_LENGTH].lower()
    counts = {
        topic: sum(weight * _count(pattern, title, action) for weight, pattern in ((2, strong), (1, weak)) if pattern)
        for topic, (strong, weak) in _topic_patterns().items()
    }
    best = max(counts, key=lambda topic: counts[topic])
    return best if counts[best] >= _MIN_WEIGHT else ""


def _count(pattern: str, title: str, action: str) -> int:
    """Return how many words of a topic a title has, and of the action at most one."""
    return len(set(re.findall(pattern, title))) + bool(re.search(pattern, action) and re.search(pattern, title))


@cache
def _topic_patterns() -> dict[str, tuple[str, str]]:
    """Return for each topic a pattern of its own words, and one of the words that stand in other texts, too."""
    lists = {topic: words.split(", ") for topic, words in _TOPICS.items()}
    return {
        topic: (
            _make_pattern(word for word in words if not word.endswith("?")),
            _make_pattern(word.removesuffix("?") for word in words if word.endswith("?")),
        )
        for topic, words in lists.items()
    }


def _make_pattern(words: Iterable[str]) -> str:
    choices = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in words)
    return rf"\b(?:{choices})\b" if choices else ""


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
    has_option = any(word.startswith("-") for word in words[1:])
    if not has_option and not any(map(is_verb, intent[1:])) and not re.search(_RUN_VERB, before):
        return ""
    following = words[len(intent) : len(intent) + 1]
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
