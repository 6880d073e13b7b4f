"""Measure what is learnt from real transcripts: each rule's yield, and how many overcome errors become learnings.

    python -m tools.extraction_check FOLDER [--half held-out|development|all] [--items FILE] [--sample N] [--seed S]

`docs/extraction.md` says what is counted and how a sample is judged. Overcome errors are found here independently of
the rules that find learnings. A rule's yield is the number of its discoveries, of discoveries that were left out, of
learnings that remain, of distinct learnings, and of overcome errors that they cover. Only counts are printed; `--items`
writes a sample of learnings to judge.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from learnt.clients.kit.transcript import Step, about, steps
from learnt.flow.people import Listener
from learnt.mine.extract import LearningDraft, NoDraft, extract
from learnt.mine.lessons import observe_words
from learnt.mine.observe import observe_steps
from learnt.mine.people_rules import SOFT
from learnt.mine.quality import find_flaw
from learnt.mine.rejections import observe_rejections
from learnt.model import Discovery
from learnt.text.triggers import Situation, SituationMatcher

YIELD = ("discoveries", "left out", "learnings", "distinct learnings", "overcome errors covered")
CHECKS = re.compile(r"\b(?:test|tests|lint|build|vet|check|checks|fmt|format|tsc|pytest|jest|clippy|mypy|ruff)\b")
WITH_SUBCOMMANDS = {"git": 1, "go": 1, "gh": 2, "mise": 2, "npm": 2, "cargo": 1, "docker": 1, "uv": 2, "make": 1}
ABOUT_FILES = {"ls", "cat", "grep", "rg", "find", "head", "tail", "wc", "sed", "stat"}
NO_PROGRAMS = {"cd", "echo", "export", "sleep", "printf", "true", "head", "tail", "pwd"}
STOPPED = re.compile(r"sibling tool call errored|interrupted|cancell?ed|user doesn't want", re.IGNORECASE)
CONFLICT = re.compile(r"\bCONFLICT \(|could not apply [0-9a-f]{7}|Automatic merge failed", re.IGNORECASE)
WORDLESS = re.compile(r"(?:Error: )?(?:Exit code \d+)?\s*")
STILL_FAILS = re.compile(
    r"^(?:\s*--- FAIL|FAIL\b)|ERROR task failed|^make: \*\*\*|^error: Recipe|^npm ERR!", re.MULTILINE
)
TESTS = re.compile(r"(?:\s-run[ =]|\s-k[ =]|\s-t[ =])(\"[^\"]+\"|'[^']+'|\S+)")
NOT_RUN = re.compile(
    r"directory not found|no Go files in|cannot find main module|no such file or directory: \S+$", re.MULTILINE
)
MISSING = re.compile(r"does not exist|no such file", re.IGNORECASE)


class CallAndResult(NamedTuple):
    """A call and its result."""

    call: Step
    result: Step


class Overcome(NamedTuple):
    """A call that failed, the calls since then, and the call that worked in the end."""

    failed: CallAndResult
    since: list[Step]
    worked: Step
    is_check: bool


class RuleLearning(NamedTuple):
    """A learning, and the rule that found it."""

    draft: LearningDraft
    rule: str


def main() -> None:
    """Print the counts, and write the items to be judged if `--items` is set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("held-out", "development", "all"), default="held-out")
    parser.add_argument("--items", type=Path)
    parser.add_argument("--missed", type=Path)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    paths = [path for path in sorted(arguments.folder.glob("*.jsonl")) if _is_in(path, arguments.half)]
    report = Report()
    for path in paths:
        report.read(path)
    print(json.dumps(report.counts(), indent=1))
    if arguments.items:
        items = report.items(arguments.sample, arguments.seed)
        arguments.items.write_text(json.dumps(items, indent=1, ensure_ascii=False), encoding="utf-8")
    if arguments.missed:
        arguments.missed.write_text("\n".join(report.missed), encoding="utf-8")


def _is_in(path: Path, half: str) -> bool:
    odd = int(sha256(path.stem.encode()).hexdigest(), 16) % 2
    return half == "all" or (half == "held-out") == bool(odd)


class Report:
    """The counts for all transcripts."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.yields: dict[str, Counter[str]] = defaultdict(Counter)
        self.skipped: Counter[str] = Counter()
        self.drafts: dict[str, RuleLearning] = {}
        self.missed: list[str] = []

    def read(self, path: Path) -> None:
        """Count one transcript."""
        self._count_said(path)
        learnings = list(self._learnings(path))
        self.totals["transcripts"] += 1
        self.totals["transcripts with a learning"] += bool(learnings)
        self.totals["learnings"] += len(learnings)
        for learning in learnings:
            self.yields[learning.rule]["learnings"] += 1
            self.yields[learning.rule]["distinct learnings"] += learning.draft.title not in self.drafts
            self.drafts.setdefault(learning.draft.title, learning)
        for overcome in find_overcome_errors(_read_calls(path)):
            kind = classify(overcome)
            covering = {learning.rule for learning in learnings if covers(learning.draft, overcome)}
            self.totals[f"overcome errors, {kind}"] += 1
            self.totals[f"overcome errors, {kind}, covered"] += bool(covering)
            for rule in covering:
                self.yields[rule]["overcome errors covered"] += 1
            if not covering:
                self.missed.append(_as_line(path, overcome))

    def counts(self) -> dict[str, object]:
        """Return all counts."""
        totals = self.totals
        return {
            **totals,
            "distinct learnings": len(self.drafts),
            "coverage of calls": self._coverage("calls"),
            "coverage of calls and checks": self._coverage("calls", "checks"),
            "coverage of all": self._coverage("calls", "checks", "unfinished code"),
            "learnings per transcript": round(totals["learnings"] / max(totals["transcripts"], 1), 2),
            "yield by rule": {rule: {name: self.yields[rule][name] for name in YIELD} for rule in sorted(self.yields)},
            "left out, by reason": dict(self.skipped.most_common()),
        }

    def _coverage(self, *kinds: str) -> float:
        all, covered = (
            sum(self.totals[f"overcome errors, {kind}{suffix}"] for kind in kinds) for suffix in ("", ", covered")
        )
        return round(covered / max(all, 1), 3)

    def items(self, most: int, seed: int) -> list[dict[str, str]]:
        """Return a shuffled sample of the distinct learnings, only with their text."""
        titles = sorted(self.drafts)
        random.Random(seed).shuffle(titles)
        drafts = [self.drafts[title].draft for title in titles[:most]]
        return [
            {"item": str(number), "title": draft.title, "observation": draft.observation, "action": draft.action}
            for number, draft in enumerate(drafts, 1)
        ]

    def _count_said(self, path: Path) -> None:
        """Count what people say: as a rule, which is active if it was typed, and less firmly, which is proposed."""
        listener = Listener()
        said = listener.follow(steps(str(path)))
        self.totals["prompts"] += sum(step.kind == "prompt" and not step.aside for step in said)
        for utterance in listener.heard:
            is_firm = utterance.force != SOFT and utterance.own
            self.totals["sentences said as a rule" if is_firm else "sentences said less firmly"] += 1

    def _learnings(self, path: Path) -> Iterator[RuleLearning]:
        for discovery in find_discoveries(path):
            draft = extract(discovery)
            reason = draft.reason if isinstance(draft, NoDraft) else find_flaw(draft, rule=discovery.rule)
            self.yields[discovery.rule]["discoveries"] += 1
            self.yields[discovery.rule]["left out"] += bool(reason)
            if reason:
                self.skipped[reason] += 1
            elif isinstance(draft, LearningDraft):
                yield RuleLearning(draft, discovery.rule)


def find_discoveries(path: Path) -> Iterator[Discovery]:
    """Yield the discoveries in a transcript, from the agent's actions and from its last words."""
    yield from observe_steps(steps(str(path)), folder=about(str(path)).folder)
    yield from observe_rejections(steps(str(path)), folder=about(str(path)).folder)
    said = [step.text for step in steps(str(path)) if step.kind == "said" and not step.aside]
    yield from observe_words(said[-1] if said else "")


def find_overcome_errors(calls: list[CallAndResult]) -> Iterator[Overcome]:
    """Yield each call that failed, with the first later call that succeeded in doing the same thing."""
    for position, failed in enumerate(calls):
        if not failed.result.failed or failed.result.denied or STOPPED.search(failed.result.text[:300]):
            continue
        if _only_reports(failed.result.text):
            continue
        for later, other in enumerate(calls[position + 1 :], position + 1):
            since = [between.call for between in calls[position + 1 : later] if not between.result.failed]
            if other.result.failed or not _same_intent(failed, other.call):
                continue
            if not _is_answer(failed, other):
                continue
            if _identical(failed.call, other.call) and not _changed_since(failed.call, since):
                continue
            is_check = failed.call.does == "run" and CHECKS.search(" ".join(_programs(failed.call.text))) is not None
            yield Overcome(failed, since, other.call, is_check)
            break


def _only_reports(output: str) -> bool:
    """Return whether a call only reported something: a merge conflict, or an exit code without output."""
    return CONFLICT.search(output) is not None or WORDLESS.fullmatch(output) is not None


def _is_answer(failed: CallAndResult, other: CallAndResult) -> bool:
    """Return whether a call without an exit code really did what the failed call was meant to do."""
    if failed.call.does != "run":
        return True
    if CHECKS.search(" ".join(_programs(failed.call.text))) and STILL_FAILS.search(other.result.text):
        return False
    return _same_tests(failed.call.text, other.call.text) and _same_tasks(failed.call.text, other.call.text)


def _same_tests(before: str, after: str) -> bool:
    """Return whether the second command runs some of the first command's selected tests again, or all tests."""
    wanted, chosen = (_tests(text) for text in (before, after))
    alike = any(name.startswith(other) or other.startswith(name) for name in wanted for other in chosen)
    return alike or not wanted or not chosen


def _tests(command: str) -> set[str]:
    return {name.strip("'\"^$") for names in TESTS.findall(command) for name in names.split("|")}


def _same_tasks(before: str, after: str) -> bool:
    """Return whether both commands start a script for the same task, which is the word after the script."""
    wanted, started = (set(re.findall(r"(\S*\w\.(?:sh|py|js|ts|rb) [a-z][\w:-]*)", text)) for text in (before, after))
    return wanted <= started


def classify(overcome: Overcome) -> str:
    """Return what kind of error it is.

    `unfinished code` for failed tests and compiler errors, `checks` for other failed checks, `clients' tools` for
    refused calls of these and shells in another folder, which teach nothing about a project, else `calls`.
    """
    failed = overcome.failed
    is_refused = failed.call.does != "run" and not MISSING.search(failed.result.text)
    if is_refused or NOT_RUN.search(failed.result.text):
        return "clients' tools"
    if not overcome.is_check:
        return "calls"
    return "unfinished code" if _is_unfinished(overcome.failed.result.text) else "checks"


def covers(draft: LearningDraft, overcome: Overcome) -> bool:
    """Return whether a learning mentions what failed and what worked, and is about this error."""
    failed, worked = overcome.failed.call, overcome.worked
    text = f"{draft.title} {draft.observation} {draft.action}"
    same_error = _is_triggered(draft, overcome)
    if failed.does != "run":
        name = failed.path.rpartition("/")[2]
        return same_error and (f"`{failed.tool}`" in text or (bool(name) and name in text))
    names_failed = any(program in text for program in _programs(failed.text)) or any(
        name in text for name in _names(failed.text) & _names(overcome.failed.result.text)
    )
    if not names_failed or (overcome.is_check and not same_error):
        return False
    if _identical(failed, worked):
        edited = {call.path.rpartition("/")[2] for call in overcome.since if call.does == "edit"}
        ran = {" ".join(call.text.split()[:3]) for call in overcome.since if call.does == "run"}
        return same_error and any(name in text for name in edited | ran)
    new, gone = _words(worked.text) - _words(failed.text), _words(failed.text) - _words(worked.text)
    text = _without_numbers(text)
    named = any(word in text for word in (new or gone))
    return same_error and (named or overcome.is_check)


def _is_triggered(draft: LearningDraft, overcome: Overcome) -> bool:
    """Return whether the error triggers the learning or, if it has no error trigger, whether the call does."""
    call = overcome.failed.call
    command = call.text if call.does == "run" else ""
    matcher = SituationMatcher(Situation(text=overcome.failed.result.text, paths=(call.path,), command=command))
    kinds = ("errors",) if draft.triggers.errors else ("commands", "files")
    return any(matcher.matches(kind, pattern) for kind in kinds for pattern in getattr(draft.triggers, kind))


def _read_calls(path: Path) -> list[CallAndResult]:
    open_calls: dict[str, Step] = {}
    calls = []
    for step in steps(str(path)):
        if step.aside:
            continue
        if step.kind == "call":
            open_calls[step.call] = step
        elif step.kind == "result" and step.call in open_calls:
            calls.append(CallAndResult(open_calls.pop(step.call), step))
    return calls


def _same_intent(failed: CallAndResult, call: Step) -> bool:
    before = failed.call
    if before.does == "run":
        return call.does == "run" and _same_programs(before.text, call.text)
    if call.tool != before.tool:
        return False
    if MISSING.search(failed.result.text) and before.path:
        return call.path.rpartition("/")[2] == before.path.rpartition("/")[2]
    return call.path == before.path


def _same_programs(before: str, after: str) -> bool:
    wanted = set(_programs(before))
    if not wanted or not wanted <= set(_programs(after)):
        return False
    return bool(_names(before) & _names(after)) if wanted & ABOUT_FILES else True


def _programs(command: str) -> list[str]:
    """Return the programs that a command line starts, with their subcommands."""
    programs = []
    for segment in re.split(r"&&|\|\||[;|\n]", re.sub(r"<<.*", "", command, flags=re.DOTALL)):
        words = [word for word in segment.split() if not re.match(r"[A-Z_]+=|\d?>", word)]
        if not words or not re.match(r"[\w./-]+$", words[0]) or words[0] in NO_PROGRAMS:
            continue
        plain = list(_plain(words))
        programs.append(" ".join([words[0], *plain[: WITH_SUBCOMMANDS.get(words[0], 0)]]))
    return programs


def _plain(words: list[str]) -> Iterator[str]:
    """Yield the words after a program up to the first argument, because later words may be quoted text."""
    for word, ahead in zip(words[1:], words, strict=False):
        if re.match(r"[a-z][\w:-]*$", word):
            yield word
        elif not word.startswith("-") and ahead not in ("-C", "-R", "-c"):
            return


def _names(text: str) -> set[str]:
    return {word.rpartition("/")[2] for word in re.findall(r"[\w.~/-]*[\w-]\.\w+|[\w.~-]+/[\w./-]+", text)} - {""}


def _words(command: str) -> set[str]:
    """Return a command's words without quotes, numbers and the folders in absolute paths."""
    words = (word.strip("'\"`()") for word in command.split())
    plain = {_without_numbers(word.rpartition("/")[2] if word.startswith("/") else word) for word in words}
    return {word for word in plain if len(word) > 1}


def _without_numbers(text: str) -> str:
    return re.sub(r"<\w+>|\d{3,}", "", text)


def _identical(failed: Step, worked: Step) -> bool:
    return (failed.text, failed.path, failed.before) == (worked.text, worked.path, worked.before)


def _changed_since(failed: Step, since: list[Step]) -> bool:
    if failed.does == "run":
        return any(call.does == "edit" for call in since)
    return any(call.path == failed.path or call.does in ("edit", "run") for call in since)


def _is_unfinished(output: str) -> bool:
    """Return whether a check failed because of a test or a compiler error, not because of a lint rule or its call."""
    places = [line for line in output.split("\n") if re.match(r"(?:\[[\w:.-]+\] )?[\w./-]+\.\w+:\d+", line)]
    by_rule = any(re.search(r"\((?!typecheck)[a-z]{3,}\)$", line) for line in places)
    if NOT_RUN.search(output) and not places:
        return False
    return not by_rule and (bool(places) or "--- FAIL" in output or "\nFAIL" in output)


def _as_line(path: Path, overcome: Overcome) -> str:
    failed = overcome.failed
    call, worked = failed.call, overcome.worked
    fields = (call.tool, call.path, call.text[:300], failed.result.text[:400], worked.text[:300], worked.path)
    return json.dumps([path.stem, overcome.is_check, *fields])


if __name__ == "__main__":
    main()
