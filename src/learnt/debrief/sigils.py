"""Read the sigils in an agent's output, and make the report on a failed attempt.

Sigils say what the agent learnt, how it ended, and what the next attempt should know:

    <learning category="pitfall" tags="sqlite, locking" when="the database is locked; commit hangs">
    Close the cursor before the commit.
    </learning>
    <failure-report>
    what_tried: …
    why_failed: …
    </failure-report>           also error_category, relevant_files, stack_trace, avoid
    <difficulty-estimate>hard</difficulty-estimate>
    <retry-suggestion>Start with the migration.</retry-suggestion>
    <task-done/>                or <task-failed/>, either also with a text
    <next-model>opus</next-model>

Everything is optional and nothing is an error: a sigil that cannot be read is skipped and listed in `ignored`. A sigil
counts at the start of a line of the agent's own (see `own_lines`), or directly after a sigil that does. Its text is
then read as it is, with quotations, and sigils inside it are not read. A sigil that is not closed, or that contains
another one of its name, does not count. The first `MAX_LEARNINGS` learnings count, so that a debrief takes a bounded
time; of the other sigils, the first valid one counts. A task is failed even if the output also says that it is done.

In a learning, lines that start with `title:`, `when:` or `action:` are fields, lines below that are indented deeper
continue them, and the rest is the observation. A learning is never refused for its length: what is too long is cut, and
`ignored` says so.

The lines of a failure report are `key: value`, one field per line. Lines that are indented deeper or have no key
continue the value above; so do lines with an unknown key below `stack_trace`, where `error: …` is not a field.
Elsewhere an unknown lower-case key is a field of a later version and is skipped with its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from learnt.debrief.marks import remove_marks
from learnt.debrief.own_lines import NOT_AT_START, REPEATED, SIGIL_TAG, OwnStatements, starts_line
from learnt.debrief.own_words import own_words
from learnt.model import (
    CUE_LIMIT,
    DIFFICULTIES,
    FAILURE_CATEGORIES,
    KINDS,
    NO_REPORT,
    TAG_LIMIT,
    TEXT_LIMIT,
    TITLE_LIMIT,
    Failure,
    Value,
)
from learnt.text.clean import clean, fold
from learnt.text.shorten import shorten
from learnt.text.titles import REFUTED_PREFIX, cut_start, cut_text, cut_title, first_sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    _Sigil = tuple[re.Match[str], re.Match[str] | None]  # its start tag, and its end tag if it has one

DISCOVERY_OF_CATEGORY = {"pitfall": "blocker", "code_structure": "constraint", "decision": "decision"}

MAX_LEARNINGS = 50
_MAX_ENDING_LENGTH = 500
_MAX_UNREADABLE_SHARE = 0.25
_MAX_IGNORED = 50
_MIN_WRAPPED_LENGTH = 60  # a shorter line that ends without a full stop was probably not wrapped
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?""", re.ASCII)
_MODEL = re.compile(r"[A-Za-z0-9._:/-]{1,100}")
_KEYS = {
    **dict.fromkeys(("what_tried", "what_was_tried"), "tried"),
    **dict.fromkeys(("why_failed", "why_it_failed"), "reason"),
    **dict.fromkeys(("avoid", "what_to_avoid"), "avoid"),
    "error_category": "category",
    "relevant_files": "files",
    "stack_trace": "error",
}
_FIELD = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?[*_`]*([A-Za-z](?:[\w -]{0,40}[A-Za-z])?)[*_`]*[ \t]*:[*_`]*(?:[ \t]+|$)(.*)", re.ASCII
)
_FOREIGN_KEY = re.compile(r"[a-z][a-z0-9_-]*")
_CATEGORIES = {
    "test_failure": "test",
    **{f"{category}_error": category for category in ("build", "logic", "type", "dependency")},
    **{category.replace("-", "_"): category for category in FAILURE_CATEGORIES},
}
# A field in the text of a learning, perhaps in a list and emphasised.
_OWN_FIELD = re.compile(r"[ \t]*(?:[-*][ \t]+)?[*_]{0,3}(title|when|action)[*_]{0,3}[ \t]*:[*_]{0,3}", re.I | re.A)
_SEPARATOR = ";"  # between the situations of a `when`
_NO_FILE = ("", "none", "n/a", "-")


class LearningSigil(Value):
    """A learning as the agent wrote it; its text becomes the observation."""

    title: str
    text: str
    action: str = ""
    cues: tuple[str, ...] = ()
    category: str = ""
    tags: tuple[str, ...] = ()
    domain: str = ""
    kind: str = ""


class FailureSigil(Value):
    """The agent's own report on why it failed."""

    tried: str
    reason: str
    category: str = "unknown"
    files: tuple[str, ...] = ()
    error: str = ""
    avoid: str = ""


class Sigils(Value):
    """The sigils of an output; `ignored` gives a reason for each one that could not be read."""

    learnings: tuple[LearningSigil, ...] = ()
    failure: FailureSigil | None = None
    difficulty: str = ""
    suggestion: str = ""
    result: str = ""
    note: str = ""
    next_model: str = ""
    ignored: tuple[str, ...] = ()


def read_sigils(output: str) -> Sigils:
    """Return the sigils of an output."""
    text = clean(output)
    own = own_words(text)
    reader = _SigilReader()
    for name, attributes, inside, flaw in _find_sigils(text, own):
        reader.add(name, attributes, clean(inside).strip(), flaw)
    return reader.sigils(quoted=_count_quoted(text, own))


def remove_sigils(output: str) -> str:
    """Return an output without its sigils."""
    rest, position = "", 0
    for tag, end in _find_outermost(own_words(output)):
        rest += output[position : tag.start()]
        position = (end or tag).end()
    return rest + output[position:]


def is_sigil(line: str) -> bool:
    """Return whether a line holds only sigils, or the start or the end of one."""
    return bool(line.strip()) and not SIGIL_TAG.sub("", remove_sigils(line)).strip()


def make_report(sigils: Sigils, output: str, *, attempt: str, task: str, result: str, at: int) -> Failure | None:
    """Return the agent's report on an attempt, or a minimal one; None if the attempt was done or interrupted."""
    if result in ("done", "interrupted"):
        return None
    said_done = sigils.result == "done"
    note = "" if said_done else sigils.note
    reason = f"{REFUTED_PREFIX * said_done}the attempt ended as {result}{NO_REPORT}{note and f': {note}'}"
    tried = sigils.note if said_done else ""
    report = sigils.failure or FailureSigil(tried=tried, reason=reason, error=_find_ending(output))
    return Failure(attempt=attempt, task=task, suggestion=sigils.suggestion, created_at=at, **report.as_dict())


def _find_ending(output: str) -> str:
    """Return the end of an output without marks and sigils: purging a learning must leave no copy of it here."""
    ending = cut_start(remove_marks(remove_sigils(output)).strip(), _MAX_ENDING_LENGTH)
    return "(the output is not text)" if ending.count("\ufffd") > _MAX_UNREADABLE_SHARE * len(ending) else ending


def kind_of(discovery: str) -> str:
    """Return the kind of learning that a type of discovery makes."""
    return {"blocker": "gotcha", "constraint": "constraint", "pattern": "best-practice"}.get(discovery, "solution")


def discovery_of(category: str) -> str:
    """Return the type of discovery that a learning of this category is."""
    return DISCOVERY_OF_CATEGORY.get(_normalise_key(category), "pattern")


def _find_sigils(text: str, own: str) -> Iterator[tuple[str, dict[str, str], str, str]]:
    """Yield each outermost sigil: its name, attributes and text, and what is wrong with its tags or place."""
    statements = OwnStatements(text)
    for tag, end in _find_outermost(own):
        flaw = "" if end else "is not closed" if tag["whole"] else "has a start tag that cannot be read"
        if not flaw and not statements.has(tag.start()):
            flaw = REPEATED if starts_line(text, tag.start()) else NOT_AT_START
        inside = text[tag.end() : end.start()] if end else ""
        yield tag["opened"].lower(), _read_attributes(tag, text), inside, flaw


def _count_quoted(text: str, own: str) -> int:
    """Return how many sigils are quoted."""
    return sum(own[tag.start()].isspace() for tag, end in _find_outermost(text) if end)


def _find_outermost(own: str) -> Iterator[_Sigil]:
    """Yield the start tag of each sigil that is not inside another one, and its end tag if it has one."""
    tags = list(SIGIL_TAG.finditer(own))
    ends = _match_tags(tags)
    position = 0
    for tag in tags:
        if tag["closed"] or tag.start() < position:
            continue
        end = ends.get(tag.start())
        yield tag, end
        position = (end or tag).end()


def _match_tags(tags: list[re.Match[str]]) -> dict[int, re.Match[str]]:
    """Return the end tags by the position of their start tags."""
    ends: dict[int, re.Match[str]] = {}
    unclosed: dict[str, list[int]] = {}
    for tag in tags:
        if tag["closed"]:
            if starts := unclosed.get(tag["closed"].lower()):
                ends[starts.pop()] = tag
        elif tag["empty"]:
            ends[tag.start()] = tag  # an empty sigil is its own end
        elif tag["whole"]:
            unclosed.setdefault(tag["opened"].lower(), []).append(tag.start())
    return ends


def _read_attributes(tag: re.Match[str], text: str) -> dict[str, str]:
    """Return the attributes that are in the own words, with their values from the text itself."""
    attributes: dict[str, str] = {}
    for attribute in _ATTRIBUTE.finditer(tag.string, *tag.span("attributes")) if tag["attributes"] else ():
        value = attribute.lastindex or 1
        if value > 1:
            attributes.setdefault(attribute[1].lower(), fold(text[slice(*attribute.span(value))]))
    return attributes


class _SigilReader:
    """Collects the sigils of an output."""

    def __init__(self) -> None:
        self._learnings: list[LearningSigil] = []
        self._failure: FailureSigil | None = None
        self._only: dict[str, str] = {}
        self._ignored: list[str] = []

    def add(self, name: str, attributes: dict[str, str], text: str, flaw: str) -> None:
        """Add a sigil, or note why it is ignored."""
        flaw = flaw or _find_flaw(name, text)
        if not flaw and name == "learning":
            flaw = self._add_learning(attributes, text)
        elif not flaw and (name in self._only or (name == "failure-report" and self._failure)):
            flaw = "came before, and the first one counts"
        elif not flaw and name == "failure-report":
            self._failure, flaw = _read_failure(text)
        elif not flaw:
            self._only[name] = text
        if flaw:
            self._ignored.append(f"<{name}> {flaw}")
        else:
            self._ignored += _list_ignored(name, attributes, text)

    def _add_learning(self, attributes: dict[str, str], text: str) -> str:
        """Add a learning, and note what is cut; return what is wrong with it."""
        statement = _LearningText(attributes, text)
        if not statement.title:
            return "says nothing but when it matters"
        self._learnings.append(statement.as_sigil(attributes))
        self._ignored += statement.cut
        return ""

    def sigils(self, *, quoted: int) -> Sigils:
        """Return everything that was read."""
        more = len(self._learnings) - MAX_LEARNINGS
        if more > 0:
            self._ignored.insert(0, f"{more:,} <learning> beyond the first {MAX_LEARNINGS}")
        if quoted:
            self._ignored.insert(0, f"quoted, so not the agent's own: {quoted:,} sigil{'' if quoted == 1 else 's'}")
        result = next((result for result in ("failed", "done") if f"task-{result}" in self._only), "")
        if "task-failed" in self._only and "task-done" in self._only:
            self._ignored.append("<task-done> is ignored because of <task-failed>")
        return Sigils(
            learnings=tuple(self._learnings[:MAX_LEARNINGS]),
            failure=self._failure,
            difficulty=self._only.get("difficulty-estimate", "").lower(),
            suggestion=self._only.get("retry-suggestion", ""),
            result=result,
            note=self._only.get(f"task-{result}", ""),
            next_model=self._only.get("next-model", ""),
            ignored=_shorten(self._ignored),
        )


def _find_flaw(name: str, text: str) -> str:
    """Return what is wrong with the text of a sigil, if anything."""
    if not text and name not in ("task-done", "task-failed"):
        return "is empty"
    if len(text) > TEXT_LIMIT and name != "learning":
        return f"has more than {TEXT_LIMIT:,} characters"
    if name == "difficulty-estimate" and text.lower() not in DIFFICULTIES:
        return f"is none of {', '.join(DIFFICULTIES)}"
    if name == "next-model" and not _MODEL.fullmatch(text):
        return "is not the name of a model"
    return ""


def _list_ignored(name: str, attributes: dict[str, str], text: str) -> list[str]:
    """Return what is ignored of a valid sigil."""
    if name == "learning" and attributes.get("kind") and not _read_kind(attributes):
        return [f"<learning> has a kind that is none of {', '.join(KINDS)}"]
    if name == "failure-report":
        return [f"<failure-report> has a key that is not read: {key}" for key in _read_fields(text)[1]]
    return []


def _shorten(reasons: list[str]) -> tuple[str, ...]:
    more = len(reasons) - _MAX_IGNORED
    return (*reasons[:_MAX_IGNORED], f"and {more:,} more") if more > 0 else tuple(reasons)


class _LearningText:
    """What a learning says, with each text cut to its limit; `cut` says what was cut."""

    def __init__(self, attributes: dict[str, str], text: str) -> None:
        self.cut: list[str] = []
        fields, rest = _split_statement(text)
        self.action = self._cut("action", "\n".join(fields["action"]), TEXT_LIMIT)
        self.observation = self._cut("text", rest, TEXT_LIMIT)
        title = self._cut("title", attributes.get("title", "") or fold(" ".join(fields["title"])), TITLE_LIMIT)
        self.title = title or _fit(_find_first_sentence(self.observation or self.action))
        self.cues = self._cut_cues([attributes.get("when", ""), *fields["when"]])

    def as_sigil(self, attributes: dict[str, str]) -> LearningSigil:
        """Return the sigil; the observation of one without a text of its own repeats its title."""
        return LearningSigil(
            title=self.title,
            text=self.observation or self.title,
            action=self.action,
            cues=self.cues,
            category=cut_title(_normalise_key(attributes.get("category", ""))),
            tags=_clean_list(attributes.get("tags", "").split(",")),
            domain=cut_title(attributes.get("domain", "")),
            kind=_read_kind(attributes),
        )

    def _cut_cues(self, lists: list[str]) -> tuple[str, ...]:
        stated = dict.fromkeys(fold(cue) for words in lists for cue in words.split(_SEPARATOR) if fold(cue))
        if len(stated) > CUE_LIMIT:
            self.cut.append(f"{len(stated) - CUE_LIMIT:,} situations of a <learning> beyond the first {CUE_LIMIT}")
        return tuple(dict.fromkeys(self._cut("when", cue, TITLE_LIMIT) for cue in list(stated)[:CUE_LIMIT]))

    def _cut(self, name: str, text: str, limit: int) -> str:
        if len(text) <= limit:
            return text
        self.cut.append(f"the end of the {name} of a <learning>, which has more than {limit:,} characters")
        if name == "title":
            return _fit(text)
        return cut_title(text) if limit == TITLE_LIMIT else cut_text(text, limit)


def _split_statement(text: str) -> tuple[dict[str, list[str]], str]:
    """Return the fields in the text of a learning, and the rest of the text; quoted lines are no fields."""
    lines, own_lines = text.split("\n"), own_words(text).split("\n")
    depths = [len(line) - len(line.lstrip()) for line in lines]
    # The text was stripped, so the depth of its first line is unknown.
    depths[0] = min((depth for line, depth in zip(lines[1:], depths[1:], strict=True) if line.strip()), default=0)
    fields: dict[str, list[str]] = {"title": [], "when": [], "action": []}
    rest: list[str] = []
    current, depth = rest, 0
    for line, own_line, own_depth in zip(lines, own_lines, depths, strict=True):
        field = _OWN_FIELD.match(own_line)
        if field:
            current, depth = fields[field[1].lower()], own_depth
            current.append(line[field.end() :].strip())
        elif current is not rest and line.strip() and own_depth > depth:
            current[-1] += f" {line.strip()}"
        else:
            current = rest
            rest.append(line)
    return fields, "\n".join(rest).strip()


def _read_kind(attributes: dict[str, str]) -> str:
    kind = _normalise_key(attributes.get("kind", "")).replace("_", "-")
    return kind if kind in KINDS else ""


def _find_first_sentence(text: str) -> str:
    """Return the first sentence of the first line with own words, or of the first line; a wrapped line is joined."""
    lines = text.split("\n")
    owns = (any(map(str.isalnum, own)) for own in own_words(text).split("\n"))
    start = next((number for number, is_own in enumerate(owns) if is_own), 0)
    line = fold(lines[start])
    for following in map(fold, lines[start + 1 :]):
        is_wrapped = following[:1].islower() or (len(line) >= _MIN_WRAPPED_LENGTH and following[:1].isalnum())
        is_ended = line.endswith((".", "!", "?", ":")) or len(line) > 2 * TITLE_LIMIT
        if not is_wrapped or is_ended or _FIELD.match(following):
            break
        line = f"{line} {following}"
    return first_sentence(line)


def _fit(title: str) -> str:
    """Return a title that fits: a shorter sentence or, if there is none, the first words."""
    shorter = title if len(title) <= TITLE_LIMIT else shorten(title)
    return cut_title(title) if shorter.endswith("…") else shorter


def _clean_list(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words stripped, without empty ones, each once."""
    return tuple(dict.fromkeys(cut_title(fold(word)) for word in words if fold(word)))[:TAG_LIMIT]


def _normalise_key(text: str) -> str:
    """Return a name in a form for comparison: `code_structure` for `Code structure`."""
    return re.sub(r"[\s_-]+", "_", text.strip().lower())


def _read_failure(text: str) -> tuple[FailureSigil | None, str]:
    """Return the report, or what is missing in it."""
    fields, _ = _read_fields(text)
    for field, key in (("tried", "what_tried"), ("reason", "why_failed")):
        if not fields.get(field):
            return None, f"has no {key}"
    category = _normalise_key(fields.pop("category", "").strip("`'\"*. "))
    files = _read_files(fields.pop("files", ""))
    return FailureSigil(**fields, category=_CATEGORIES.get(category, "unknown"), files=files), ""


def _read_fields(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a report, each by its first value, and the unknown keys."""
    lines = [_ReportLine(line) for line in text.split("\n")]
    # The text was stripped, so the depth of its first line is unknown. One more column is tolerated.
    deepest = min((line.depth for line in lines[1:] if line.name), default=0) + 1
    fields: dict[str, list[str]] = {}
    foreign: list[str] = []
    current = ""
    for line in lines:
        starts = bool(line.name) and line.depth <= deepest
        if starts:
            current = line.name if line.name not in fields else ""
        elif line.has_foreign_key and line.depth <= deepest and current != "error":
            foreign.append(line.key)
            current = ""
        if current:
            value = line.value if starts else line.text
            fields.setdefault(current, []).append(value.rstrip() if current == "error" else value.strip())
    return {name: "\n".join(values).strip() for name, values in fields.items()}, foreign


class _ReportLine:
    """A line of a report: its depth, and the field that it starts, if any."""

    def __init__(self, text: str) -> None:
        match = _FIELD.match(text)
        self.key = match[1] if match else ""
        self.text = text
        self.depth = len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip())
        self.name = _KEYS.get(_normalise_key(self.key), "")
        self.value = match[2] if match else ""
        self.has_foreign_key = not self.name and _FOREIGN_KEY.fullmatch(self.key) is not None


def _read_files(text: str) -> tuple[str, ...]:
    names = (name.strip(" \t`'\"[]()*").removeprefix("- ").strip(" `'\"") for name in re.split(r"[,\n]", text))
    return tuple(dict.fromkeys(name for name in names if name.lower() not in _NO_FILE))[:TAG_LIMIT]
