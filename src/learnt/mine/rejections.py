"""Find in a conversation what a check or a reviewer rejected, and what was then accepted.

    a check that failed with a demand, and passed after a change        rule `verification`
    a reviewer's remark that states a rule, and what was done about it  rule `review`

The rule is told in the words of the check, the agent or the reviewer wherever these are a sentence. Steps are read as a
stream; only recent failures, changes and messages are in memory. A check that failed because its code was not
finished teaches nothing, and neither does a remark on one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from learnt.clients.kit.transcript import Step
from learnt.mine.calls import MAX_EXCERPT_LENGTH, format_command
from learnt.mine.checks import compare_lines, find_nearest
from learnt.mine.complaint import find_error, generalise, is_conflict, read_diagnostics, was_aborted
from learnt.mine.corrections import find_requested_command
from learnt.mine.demands import (
    Demand,
    demands,
    find_whole_rule,
    is_put_in_words,
    is_test_run,
    prescribes,
    read_demands,
    split_clauses,
)
from learnt.mine.norms import states_rule
from learnt.mine.reviews import ReviewRemark, describe_remark, find_rules, read_remarks, read_thread
from learnt.mine.shell import Part, is_check, split_command
from learnt.model import TITLE_LIMIT, Discovery, Value
from learnt.text.clean import clean
from learnt.text.sentences import is_whole, read_sentences, split_sentences
from learnt.text.triggers import beginning_and_end
from learnt.text.words import words

_MAX_FOUND = 1_000
_MAX_OPEN_CALLS = 200
_MAX_REJECTIONS = 20
_MAX_CHANGES = 60
_MAX_FILES = 60
_MAX_REMARKS = 40
_MAX_MESSAGES = 20
_MAX_TEXT_LENGTH = 8_000
_MAX_MESSAGE_LENGTH = 20_000
# After this many more calls, a success is probably unrelated to the failure.
_FORGET_AFTER = 80
_MAX_SHOWN_LENGTH = 80
_MAX_ERROR_LENGTH = 300
_FEW_WORDS = 4
_LOOKING = frozenset(
    "ls cat head tail grep rg find sed awk stat file less diff tree pwd echo which type wc jq curl sleep true cd gh "
    "rm mv cp mkdir touch kill ps open psql".split()
)
_GIT_LOOKING = frozenset("status diff log show branch blame remote fetch stash add".split())
_GATES = (("git", "commit"), ("git", "push"), ("git", "merge"))
_TESTS = frozenset(
    "test tests e2e spec t bench pytest jest vitest rspec phpunit mocha unittest ctest playwright".split()
)
_APPLIES = frozenset("apply plan deploy diff preview up publish".split())
_SETTINGS_FILE = re.compile(r"\.(?:ya?ml|toml|tf|hcl|ini|cfg|json)$|file$")
_CODE = re.compile(r"`([^`\n]+)`")
_SUPPRESSED = re.compile(r"nolint|noqa|eslint-disable|type: ignore|#\[allow|@SuppressWarnings|ts-expect-error")
# A line that is more than an import or a comment.
_STATEMENT = re.compile(r"(?!import\b|from .* import\b|use \w|//|#|\*|\"[\w./-]+\"$)")
_NORM = re.compile(
    r"\b(?:must|every|each|all|never|may not|(?:not|n't) allowed|forbidden|no [\w .-]+ (?:should|may|can|must))\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w]*")
_DEFINES = r"\b(?:def|class|func|fn|function|const|let|var|type|interface|struct)\s+{}\b|^\s*{}\s*="
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i'll|i've|let me|let's|we|we'll|now|this|these|currently|still|hmm|wait|actually|but)\b|\?",
    re.IGNORECASE,
)
_OBLIGES = re.compile(
    r"\b(?:must|may not|ha(?:s|ve) to|never|always|(?:not|n't) allowed|forbidden|(?:needs?|requires?) (?:\w+ )?(?=`))"
)
# `conftest has an `aws` fixture`, `there is a `renderWithPortal` helper`.
_THERE_IS = re.compile(
    r"\b(?:has|have|provides?|offers?|ships?|exposes?|defines?|contains?|there(?:'s| is| are)|comes? with)"
    r"(?: already)? (?:an?|the|its own)(?: [\w-]+){0,2} `([^`\n]+)`"
)


class _Action(Value):
    """A file that was changed, or a command that was run."""

    at: int
    path: str = ""
    """The changed file, as it is shown."""
    full_path: str = ""
    before: str = ""
    after: str = ""
    parts: tuple[Part, ...] = ()
    command: str = ""


class _Repair(Value):
    """What was changed."""

    text: str
    line: str = ""
    """What was written, without its place; empty if it is not a line or two."""
    path: str = ""
    is_elsewhere: bool = False
    """Whether the check named this file, and complained about another one."""
    is_command: bool = False


class _Rejection(Value):
    """A command that failed with what a check says."""

    at: int
    command: str
    parts: tuple[Part, ...]
    output: str
    intents: frozenset[tuple[str, ...]]
    """What the command runs."""
    is_check: bool
    """Whether the command is known to check something; another one may, too."""
    edited: str = ""
    """The file that was changed last before."""
    met: tuple[str, ...] = ()
    """What the check demanded then, and does not demand any more."""


def observe_rejections(steps: Iterable[Step], *, folder: str = "") -> list[Discovery]:
    """Return what was rejected in a conversation and then accepted. Paths below `folder` become relative."""
    watch = RejectionWatch(folder)
    for _ in watch.follow(steps):
        pass
    return watch.found


class RejectionWatch:
    """Follows the steps of a conversation, and collects what was rejected in it and then accepted."""

    def __init__(self, folder: str = "") -> None:
        self._readers = {aside: _RejectionReader(folder) for aside in (False, True)}
        self._last_message = ""
        self.found: list[Discovery] = []

    def follow(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps, for another reader."""
        for step in steps:
            if len(self.found) < _MAX_FOUND:
                self.found += self._readers[step.aside].read(step)
            if step.kind == "said" and not step.aside:
                self._last_message = step.text
            yield step

    def drop_told(self, lessons: Iterable[Discovery]) -> Iterator[Discovery]:
        """Yield the lessons that are not already told by a rejection.

        If the last message is a review thread, none are: what is said there about one place was fixed.
        """
        if read_thread(self._last_message):
            return iter(())
        told = {sentence for found in self.found for sentence in (found.text, *split_sentences(found.worked))}
        keys = {sentence.rstrip(" .").casefold() for sentence in told}
        return (lesson for lesson in lessons if lesson.excerpt.rstrip(" .").casefold() not in keys)


class _RejectionReader:
    """Reads the steps of one conversation and remembers what was rejected and is not settled yet."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[str, Step] = {}
        self._rejections: list[_Rejection] = []
        self._changes: list[_Action] = []
        self._texts: dict[str, str] = {}  # the last known text of each file
        self._said: list[tuple[int, str]] = []
        self._remarks: list[tuple[int, ReviewRemark]] = []
        self._yielded: set[str] = set()
        self._now = 0

    def read(self, step: Step) -> Iterator[Discovery]:
        """Read one step and yield what this step settles."""
        found: Iterable[Discovery] = ()
        if step.kind == "call":
            if len(self._open) >= _MAX_OPEN_CALLS:
                self._open.pop(next(iter(self._open)))
            self._open[step.call] = step
        elif step.kind == "result":
            found = self._read_result(step)
        elif step.kind in ("said", "prompt"):
            found = self._read_message(step)
        for discovery in found:
            if discovery.text not in self._yielded:
                self._yielded.add(discovery.text)
                yield discovery

    def _read_message(self, step: Step) -> Iterator[Discovery]:
        text = step.text[:_MAX_MESSAGE_LENGTH]
        if step.kind == "said":
            self._said = [*self._said, (self._now, text)][-_MAX_MESSAGES:]
            yield from self._settle_remarks(text)
        thread = read_thread(text)
        for remark in thread:
            if rules := find_rules(remark):
                yield describe_remark(remark, rules, remark.answer)
        if not thread:
            waiting = [(self._now, remark) for remark in read_remarks(text) if find_rules(remark)]
            self._remarks = [*self._remarks, *waiting][-_MAX_REMARKS:]

    def _settle_remarks(self, answer: str) -> Iterator[Discovery]:
        """Yield the remarks about files that were changed since."""
        waiting = []
        for at, remark in self._remarks:
            edits = [change for change in self._changes if change.at > at and change.path]
            if remark.file and any(change.full_path.endswith(remark.file) for change in edits):
                yield describe_remark(remark, find_rules(remark), "")
            else:
                waiting.append((at, remark))
        self._remarks = waiting

    def _read_result(self, step: Step) -> Iterator[Discovery]:
        call = self._open.pop(step.call, None)
        if call is None or step.denied or (step.failed and was_aborted(step.text)):
            return
        self._now += 1
        if call.does == "edit" and not step.failed:
            self._note_edit(call)
        elif call.does == "run":
            parts = split_command(call.text)
            if step.failed:
                yield from self._settle_some(parts, step.text)
                self._note_rejection(call, parts, step.text)
            else:
                yield from self._settle(call, parts, step.text)
                change = _Action(at=self._now, parts=parts, command=call.text[:_MAX_TEXT_LENGTH])
                self._changes = [*self._changes, change][-_MAX_CHANGES:]

    def _note_edit(self, call: Step) -> None:
        path, after = call.path, call.text[:_MAX_TEXT_LENGTH]
        before = call.before[:_MAX_TEXT_LENGTH] or self._texts.get(path, "")
        change = _Action(
            at=self._now, path=_shorten_path(path, self._folder), full_path=path, before=before, after=after
        )
        self._changes = [*self._changes, change][-_MAX_CHANGES:]
        if not call.before:
            self._texts[path] = after
            while len(self._texts) > _MAX_FILES:
                self._texts.pop(next(iter(self._texts)))

    def _note_rejection(self, call: Step, parts: tuple[Part, ...], output: str) -> None:
        if is_conflict(output) or all(map(_is_harmless, parts)):
            return
        rejection = _Rejection(
            at=self._now,
            command=call.text[:_MAX_TEXT_LENGTH],
            parts=parts,
            output=beginning_and_end(output, _MAX_TEXT_LENGTH // 2),
            intents=frozenset(part.intent for part in parts),
            is_check=any(map(_checks_something, parts)),
            edited=next((change.path for change in reversed(self._changes) if change.path), ""),
        )
        self._rejections = [*self._rejections, rejection][-_MAX_REJECTIONS:]

    def _settle_some(self, parts: tuple[Part, ...], output: str) -> Iterator[Discovery]:
        """Yield the demands that a check no longer makes, although it fails because of others."""
        intents = {part.intent for part in parts}
        for number, rejection in enumerate(self._rejections):
            since = [change for change in self._changes if change.at > rejection.at and change.path]
            if rejection.intents != intents or not since:
                continue
            now = [demand.message for demand in read_demands(output, self._folder)]
            if now:  # otherwise it may have stopped before it came so far
                yield from _learn(rejection.replace(met=(*rejection.met, *now)), since, (), self._folder)
                before = (demand.message for demand in read_demands(rejection.output, self._folder))
                met = tuple(message for message in before if message not in now)
                self._rejections[number] = rejection.replace(met=(*rejection.met, *met))

    def _settle(self, call: Step, parts: tuple[Part, ...], output: str) -> Iterator[Discovery]:
        """Yield what was rejected by the checks that pass now."""
        waiting = []
        intents = {part.intent for part in parts}
        for rejection in self._rejections:
            is_same = call.text == rejection.command or (rejection.is_check and rejection.intents <= intents)
            if not is_same:
                if self._now - rejection.at < _FORGET_AFTER:
                    waiting.append(rejection)
                continue
            since = [change for change in self._changes if change.at > rejection.at]
            is_gate = bool(rejection.intents & set(_GATES))
            if not any(change.path for change in since) and call.text != rejection.command and not is_gate:
                waiting.append(rejection)  # the call was changed, not what it checks
                continue
            if not any(change.path for change in since) and is_gate:
                since = [*since, _Action(at=self._now, parts=parts, command=call.text[:_MAX_TEXT_LENGTH])]
            said = [text for at, text in self._said if at >= rejection.at]
            yield from _learn(rejection, since, said, self._folder)
        self._rejections = waiting


def _list_demands(rejection: _Rejection, folder: str) -> Iterator[Demand]:
    """Yield what a check demanded in words; what only names a rule is learnt from the edit that it accepted."""
    named = {diagnostic.message for diagnostic in read_diagnostics(rejection.output) if diagnostic.rule}
    for demand in read_demands(rejection.output, folder):
        is_named = any(demand.message in message for message in named)
        if demand.message not in rejection.met and (is_put_in_words(demand.message) or not is_named):
            yield demand


def _learn(rejection: _Rejection, since: Sequence[_Action], said: Sequence[str], folder: str) -> Iterator[Discovery]:
    """Yield the demands of a check that passed after some changes, or how the agent explained the failure."""
    if not since:
        return
    demands = list(_list_demands(rejection, folder))
    explanation = _find_explanation(said, since)
    check = _name_check(rejection)
    evidence = Discovery(
        type="constraint",
        rule="verification",
        text="",
        failed=check,
        excerpt=rejection.output[:MAX_EXCERPT_LENGTH],
    )
    has_yielded = False
    for demand in demands:
        remedy = _find_remedy(demand, since, folder)
        has_sense = remedy is not None and bool(remedy.line or demand.is_rule or prescribes(demand.message))
        if remedy and has_sense and _is_worth_knowing(demand, rejection, since):
            has_yielded = True
            where = _shorten_path(demand.file, folder) if demand.file else rejection.edited
            files = dict.fromkeys((where, remedy.path)) if where and remedy.path else (where,)
            found = evidence.replace(error=demand.message, files=tuple(filter(None, files)))
            text = _put(demand, check, explanation, remedy)
            yield _advise(found.replace(text=text, worked=remedy.text), remedy, where)
    remedy = _find_remedy(Demand(message=explanation), since, folder) if explanation and not has_yielded else None
    first = next((demand.message for demand in demands), "") or find_error(rejection.output)
    error = generalise(first, folder)[:_MAX_ERROR_LENGTH]
    if remedy and error:
        found = evidence.replace(text=explanation, error=error, worked=remedy.text)
        yield _advise(found, remedy, "")


def _advise(discovery: Discovery, remedy: _Repair, where: str) -> Discovery:
    """Return a discovery with what happened, as something of the past, and with what to do."""
    place = f" a change of `{where}`" if where else ""
    observed = (
        f"`{discovery.failed}` rejected{place or ' a change'}: “{discovery.error}”. It passed with {remedy.text}."
    )
    advice = f"Write it so from the start, for example {remedy.text}." if remedy.line else f"{discovery.text}."
    if remedy.is_command:
        advice = f"Do it so from the start: {remedy.text}."
    elif remedy.is_elsewhere and remedy.line:
        advice = (
            f"Change `{remedy.path}` in the same go, for example {remedy.text.removesuffix(f' in `{remedy.path}`')}."
        )
    return discovery.replace(observed=observed, advice=advice)


def _is_worth_knowing(demand: Demand, rejection: _Rejection, since: Sequence[_Action]) -> bool:
    """Return whether a demand is more than a word on unfinished code.

    In a test run only a rule in general is, a demand that names the place of its remedy, or one about settings.
    """
    parts = [part for change in since for part in change.parts]
    if find_requested_command(demand.message, parts) is not None:
        return False  # what has to be run first is learnt from the command
    if is_test_run(rejection.output) or all(map(_runs_tests, rejection.parts)):
        is_settings = _SETTINGS_FILE.search(demand.file) is not None
        is_norm = demand.is_rule and _NORM.search(demand.message) is not None
        return is_norm or is_settings or demand.is_limit or any(_is_named(demand, change) for change in since)
    if rejection.is_check:
        return True
    return demand.is_rule or prescribes(demand.message) or any(_is_named(demand, change) for change in since)


def _put(demand: Demand, check: str, explanation: str, remedy: _Repair) -> str:
    """Return the rule as a sentence: the check's own, the agent's, or one that quotes the check."""
    if rule := find_whole_rule(demand):
        return rule
    if explanation:
        return explanation
    rules = [clause for clause in split_clauses(demand.message) if states_rule(clause, is_prose=False)]
    said = rules[0] if rules else demand.message
    if remedy.is_elsewhere:
        start = f"Change `{remedy.path}` as well, or `{check}` says"
        quoted = _quote(said, TITLE_LIMIT - len(start))
        return f"{start} {quoted}" if quoted else f"Change `{remedy.path}` as well: `{check}` checks it"
    order = f"{'Run' if remedy.is_command else 'Write'} {remedy.line}, or `{check}` says" if remedy.line else ""
    quoted = _quote(said, TITLE_LIMIT - len(order)) if order and not demand.is_limit else ""
    if quoted:
        return f"{order} {quoted}"
    start = f"`{check}` rejects this:"
    return f"{start} {_quote(said, TITLE_LIMIT - len(start)) or _cut(said, TITLE_LIMIT - len(start))}"


def _quote(message: str, room: int) -> str:
    """Return a message in quotation marks, or its first clause that fits and demands something; empty if none does."""
    clauses = [message, *(clause for clause in split_clauses(message) if demands(clause))]
    fitting = next((clause for clause in clauses if len(clause) + len(" “”") <= room), "")
    return f"“{fitting}”" if fitting else ""


def _cut(message: str, room: int) -> str:
    return f"“{message[: room - len(' “ …”')].rpartition(' ')[0]} …”"


def _runs_tests(part: Part) -> bool:
    pieces = {piece for word in part.words[:4] for piece in re.split(r"[:_./-]+", word.lower())}
    return not _TESTS.isdisjoint(pieces)


def _checks_something(part: Part) -> bool:
    """Return whether a part runs a check, or applies something that a gate checks."""
    return is_check(part) or part.intent[:2] in _GATES or not _APPLIES.isdisjoint(part.words[1:3])


def _name_check(rejection: _Rejection) -> str:
    """Return the part of a command line that checks something: the one in the output, a check, or the last one."""
    scripts = [
        part
        for part in rejection.parts
        if part.program.rpartition(".")[0] in (*filter(None, rejection.output.split(":")),)
    ]
    checks = [part for part in rejection.parts if is_check(part)]
    part = (scripts or checks or rejection.parts)[-1]
    further = part.words[1:2] if len(part.intent) == 1 and part.words[1:2] and part.words[1].isalpha() else ()
    return " ".join((*part.intent, *further))


def _find_remedy(demand: Demand, since: Sequence[_Action], folder: str) -> _Repair | None:
    """Return what was changed to fulfil a demand; None if nothing was changed that could have."""
    edits = [change for change in since if change.path]
    named = [change for change in since if _is_named(demand, change)]
    own = [change for change in edits if demand.file and change.path.endswith(demand.file.rpartition("/")[2])]
    for changes in filter(None, (named, own, edits)):
        change = max(changes, key=lambda change: _measure_relation(change, demand.message))
        if not change.path:
            command = f"`{_show_command(change, demand, folder)}`"
            return _Repair(text=command, line=command, is_command=True)
        line = _show_change(change, demand.message, is_only=len(edits) == 1)
        where = f" in `{change.path}`" if change not in own else ""
        return _Repair(
            text=f"{line}{where}" if line else f"a change of `{change.path}`",
            line=line,
            path=change.path,
            is_elsewhere=change in named and change not in own,
        )
    commands = [part for change in since for part in change.parts if not _is_harmless(part) and not is_check(part)]
    command = f"`{format_command(commands[0], folder)}`" if commands else ""
    return _Repair(text=command, line=command, is_command=True) if command else None


def _show_command(change: _Action, demand: Demand, folder: str) -> str:
    """Return the part of a command line that names what a demand names."""
    lines = [line.strip() for line in re.split(r"&&|\|\||;|\n", change.command)]
    line = next((line for line in reversed(lines) if any(name in line for name in demand.names)), change.command)
    shown = generalise(line, folder).replace("`", "'")
    return shown if len(shown) <= _MAX_SHOWN_LENGTH else f"{shown[: _MAX_SHOWN_LENGTH - 1]}…"


def _shorten_path(path: str, folder: str) -> str:
    """Return a path below the folder of the conversation, or only the name of a file elsewhere."""
    shown = generalise(path, folder)
    return shown.rpartition("/")[2] if shown.startswith(("/", "~")) else shown


def _is_harmless(part: Part) -> bool:
    return part.program in _LOOKING or (part.program == "git" and (part.intent[1:2] or ("",))[0] in _GIT_LOOKING)


def _is_named(demand: Demand, change: _Action) -> bool:
    """Return whether a demand names the place of a change, as a path or with another ending."""
    for name in demand.names:
        stem = name.rpartition(".")[0] or name
        if change.path and (
            change.full_path.endswith(name.removeprefix("./"))
            or (name.endswith("/") and f"/{name}" in f"/{change.full_path}")
            or (len(stem) > 3 and change.full_path.rpartition(".")[0].endswith(stem))
        ):
            return True
        if not change.path and len(name) > 3 and name in change.command and not all(map(_is_harmless, change.parts)):
            return True
    return False


def _measure_relation(change: _Action, message: str) -> int:
    """Return how many words of a message a change brought in."""
    removed, added = compare_lines(change.before, change.after, with_comments=True)
    new = set(words(message)) - set(words("\n".join(removed)))
    return max((len(new & set(words(line))) for line in added), default=0)


def _show_change(change: _Action, message: str, *, is_only: bool) -> str:
    """Return the changed line that has most to do with a message; empty if none has, unless it is the only one."""
    removed, added = compare_lines(change.before, change.after, with_comments=True)
    wanted = set(words(message))
    new = wanted - set(words("\n".join(removed)))
    best = max(added, key=lambda line: len(new & set(words(line))), default="")
    before = find_nearest(best, removed)
    shared = len(new & set(words(best)))
    is_related = shared > 1 or (shared == 1 and (is_only or len(new) <= _FEW_WORDS))
    if _SUPPRESSED.search(best):
        return ""
    is_single = is_only and len(added) == 1 and len(removed) <= 1 and _STATEMENT.match(best)
    if not is_related and not is_single:
        worst = max(removed, key=lambda line: len(wanted & set(words(line))), default="")
        is_telling = len(wanted & set(words(worst))) > 1 and worst[0].isalnum()
        return f"nothing like `{_cut_line(worst)}`" if is_telling else ""
    is_short = len(before) + len(best) <= _MAX_SHOWN_LENGTH
    shown = f"`{_cut_line(best)}`" + (f" instead of `{_cut_line(before)}`" if before and is_short else "")
    return shown if best[0].isalnum() else f"the line {shown}"


def _cut_line(line: str) -> str:
    line = line.replace("`", "'")
    return line if len(line) <= _MAX_SHOWN_LENGTH else f"{line[: _MAX_SHOWN_LENGTH - 1]}…"


def _find_explanation(said: Sequence[str], since: Sequence[_Action]) -> str:
    """Return the sentence in which the agent says what holds: a rule, or a thing of the project that it then used."""
    for text in reversed(said):
        for sentence in read_sentences(clean(text)):
            plain = sentence.text
            if _FIRST_PERSON.search(plain) or not _CODE.search(plain) or not is_whole(plain):
                continue
            if _OBLIGES.search(plain) and states_rule(plain):
                return plain.rstrip(" .")
            if _describes_what_is_used(plain, since):
                return f"Use what is there: {plain.rstrip(' .')}"
    return ""


def _describes_what_is_used(sentence: str, since: Sequence[_Action]) -> bool:
    """Return whether a sentence says that there is something, which the changes began to use."""
    edits = [change for change in since if change.path]
    for match in _THERE_IS.finditer(sentence):
        for name in _IDENTIFIER.findall(match[1]):
            word = re.compile(rf"\b{re.escape(name)}\b")
            defined = re.compile(_DEFINES.format(re.escape(name), re.escape(name)), re.MULTILINE)
            if any(
                word.search(edit.after) and not word.search(edit.before) and not defined.search(edit.after)
                for edit in edits
            ):
                return True
    return False
