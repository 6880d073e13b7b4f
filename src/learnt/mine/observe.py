"""Find the errors that an agent overcame in a conversation: what failed, why, and what then worked.

    a command that failed, and the changed one that worked           rule `command`
    an edit or another tool call that was rejected, and its remedy    rule `edit` or `call`
    code that a check rejected, and the edit that it accepted         rule `verification`

Steps are read as a stream: only open calls, recent failures and recent edits are in memory. Each correction is yielded
once. Nothing is learnt from an error that was not overcome, a test that failed while its code was being written, a
merge conflict, or a call that was stopped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter

from learnt.clients.kit.transcript import Step
from learnt.mine.calls import FailedCall, PastCall, Retry, WorkingCall, make_failure
from learnt.mine.checks import (
    FailedCheck,
    FailedTestRun,
    has_failed_tests,
    learn_from_edits,
    learn_from_formatter,
    learn_from_rejected_values,
    learn_from_repair,
)
from learnt.mine.complaint import (
    find_error,
    find_first_line,
    is_conflict,
    read_diagnostics,
    reports_failure,
    was_aborted,
)
from learnt.mine.corrections import find_correction
from learnt.mine.outcomes import TurnWatch
from learnt.mine.shell import Part, changes_state, is_about_files, is_check, is_formatter, split_command
from learnt.model import Discovery
from learnt.text.triggers import beginning_and_end

_MAX_OPEN_CALLS = 200
_MAX_KNOWN = 10_000
_MAX_FAILED = 40
_MAX_PAST = 60
_MAX_SAID = 20
_MAX_RETRIES = 200
# After this many more calls, a success is probably unrelated to the failure.
_FORGET_AFTER = 80
_MAX_TEXT_LENGTH = 4_000


def observe_steps(
    steps: Iterable[Step], *, folder: str = "", retries: list[Retry] | None = None
) -> Iterator[Discovery]:
    """Yield the discoveries in a conversation. Paths below `folder`, where it took place, become relative.

    The commands that replaced failed ones are added to `retries`, as they were written.
    """
    readers: dict[bool, _StepReader] = {}
    yielded: set[tuple[str, ...]] = set()
    for step in steps:
        reader = readers.setdefault(step.aside, _StepReader(folder, [] if retries is None else retries))
        yield from _without_known(reader.read(step), yielded)
    for reader in readers.values():
        yield from _without_known(reader.end_turn(), yielded)


def _without_known(discoveries: Iterable[Discovery], known: set[tuple[str, ...]]) -> Iterator[Discovery]:
    """Yield the discoveries that are not known yet."""
    for discovery in discoveries:
        key = (discovery.rule, discovery.text)
        if key not in known:
            if len(known) < _MAX_KNOWN:
                known.add(key)
            yield discovery


class _StepReader:
    """Reads the steps of one conversation and remembers failures that might still be corrected."""

    def __init__(self, folder: str, retries: list[Retry]) -> None:
        self._folder = folder
        self._retries = retries
        self._open: dict[str, Step] = {}
        self._failed_calls: list[FailedCall] = []
        self._failed_checks: list[FailedCheck] = []
        self._failed_test_runs: list[FailedTestRun] = []
        self._past: list[PastCall] = []
        self._said: list[tuple[int, str]] = []
        self._now = 0
        self._turn = TurnWatch(folder)
        self._settled: list[FailedCall] = []

    def read(self, step: Step) -> Iterator[Discovery]:
        """Read one step and yield the discoveries that this step completes."""
        if step.kind == "call":
            if len(self._open) >= _MAX_OPEN_CALLS:
                self._open.pop(next(iter(self._open)))
            self._open[step.call] = step
            return
        if step.kind == "prompt":
            yield from self.end_turn()
        if step.kind == "said":
            self._turn.say(step.text[:_MAX_TEXT_LENGTH])
            self._said = [*self._said, (self._now, step.text[:_MAX_TEXT_LENGTH])][-_MAX_SAID:]
        call = self._open.pop(step.call, None) if step.kind == "result" else None
        if call is None or step.denied or (step.failed and was_aborted(step.text)):
            return
        self._now += 1
        parts = split_command(call.text) if call.does == "run" else ()
        checks = [part for part in parts if is_check(part)]
        is_failure = step.failed or _complains(checks, step.text) or _shows_failure(parts, step.text)
        complaint = step.text if is_failure else ""
        if checks:
            yield from self._compare_checks(checks, complaint)
            yield from self._compare_tests(checks, complaint)
        if complaint or step.failed:
            self._remember_failure(call, parts, complaint)
        else:
            yield from self._find_corrections(call, parts, step.text)
            past = PastCall(call=_shorten_call(call), parts=parts, at=self._now)
            self._turn.add_success(past)
            self._past = [*self._past, past][-_MAX_PAST:]

    def end_turn(self) -> Iterator[Discovery]:
        """Yield what the turn teaches as a whole, and begin another one."""
        turn, self._turn = self._turn, TurnWatch(self._folder)
        yield from turn.find_lesson(self._settled)
        self._settled = []

    def _remember_failure(self, call: Step, parts: tuple[Part, ...], complaint: str) -> None:
        error = find_error(complaint) if call.does == "run" else find_first_line(complaint)
        if not error or is_conflict(complaint):
            return
        failure = make_failure(_shorten_call(call), parts, error, _shorten(complaint), self._now)
        # What was done before the last failure of the same call did not help.
        others = [other for other in self._failed_calls if call.does != "run" or other.call.text != call.text]
        self._failed_calls = [*others, failure][-_MAX_FAILED:]
        self._turn.add_failure(failure)

    def _find_corrections(self, call: Step, parts: tuple[Part, ...], output: str) -> Iterator[Discovery]:
        """Yield the corrections that a working call makes, and drop the failures that it settles."""
        open_failures = []
        printed = _shorten(output)
        for failure in self._failed_calls:
            since = tuple(self._past[bisect_right(self._past, failure.at, key=attrgetter("at")) :])
            said = tuple(text for at, text in self._said if at >= failure.at)
            success = WorkingCall(call=call, output=printed, parts=parts, since=since, folder=self._folder, said=said)
            settled, discovery = find_correction(failure, success)
            if discovery is not None:
                self._note_retry(failure, call, discovery)
                yield discovery
            if settled:
                self._settled.append(failure)
            if not settled and self._now - failure.at < _FORGET_AFTER:
                open_failures.append(failure)
        self._failed_calls = open_failures

    def _note_retry(self, failure: FailedCall, call: Step, discovery: Discovery) -> None:
        failed_call = failure.call
        if discovery.rule != "command" or failed_call.text == call.text or len(self._retries) >= _MAX_RETRIES:
            return
        retry = Retry(
            failed=failed_call.text,
            error=failure.error,
            failed_at=failed_call.at,
            worked=call.text[:_MAX_TEXT_LENGTH],
            worked_at=call.at,
            folder=self._folder,
        )
        self._retries.append(retry)

    def _compare_checks(self, checks: list[Part], complaint: str) -> Iterator[Discovery]:
        """Compare the checks' current diagnostics with earlier ones, and yield what the fixes teach."""
        intents = {part.intent for part in checks}
        current = list(read_diagnostics(complaint))
        current_keys = {diagnostic.key for diagnostic in current}
        open_checks = []
        for check in self._failed_checks:
            if check.part.intent not in intents:
                if self._now - check.at < _FORGET_AFTER:
                    open_checks.append(check)
                continue
            before = [past for past in self._past if past.at < check.at]
            between = [past for past in self._past if past.at > check.at]
            fixed = [diagnostic for diagnostic in check.diagnostics if diagnostic.key not in current_keys]
            # A check that stops at its first error says nothing about others. Code whose tests ran was compiled.
            if fixed and (not complaint or current or has_failed_tests(complaint)):
                yield from learn_from_edits(check, fixed, before, between, self._folder)
            yield from learn_from_repair(check, complaint, between, self._folder)
            if not complaint:
                yield from learn_from_formatter(check, between, self._folder)
        if complaint:
            failing = _find_failing_check(checks, complaint, has_rule=any(diagnostic.rule for diagnostic in current))
            open_checks.append(
                FailedCheck(part=failing, diagnostics=tuple(current[:20]), output=_shorten(complaint), at=self._now)
            )
        self._failed_checks = open_checks[-_MAX_FAILED:]

    def _compare_tests(self, checks: list[Part], complaint: str) -> Iterator[Discovery]:
        """Compare the tests that fail now with the last failed run of the same tests, and yield what fixes teach."""
        open_runs = []
        failed = has_failed_tests(complaint)
        tests_ran = failed or not complaint  # otherwise the run stopped before the tests
        for run in self._failed_test_runs:
            if tests_ran and any(map(run.runs_same_tests, checks)):
                between = [past for past in self._past if past.at > run.at]
                yield from learn_from_rejected_values(run.part, run.output, complaint, between, self._folder)
            elif self._now - run.at < _FORGET_AFTER:
                open_runs.append(run)
        if failed:
            open_runs.append(FailedTestRun(part=checks[-1], output=_shorten(complaint), at=self._now))
        self._failed_test_runs = open_runs[-_MAX_FAILED:]


def _complains(checks: list[Part], output: str) -> bool:
    """Return whether a check failed, according to its output, because `make test | tail` hides the exit code."""
    if not checks or any(is_formatter(part) for part in checks):
        return False
    markers = ("\nFAIL", "ERROR task failed", "error: Recipe", "npm ERR!", "make: ***")
    return any(marker in output[-2_000:] for marker in markers) or any(
        diagnostic.rule for diagnostic in read_diagnostics(output)
    )


def _shows_failure(parts: tuple[Part, ...], output: str) -> bool:
    """Return whether a command failed according to its output, although the client marks no error.

    Programs that look into files and logs print errors that are not their own.
    """
    acts = [part for part in parts if not is_about_files(part)]
    return bool(acts) and len(acts) == len(parts) and _acts(acts[-1]) and reports_failure(output)


def _acts(part: Part) -> bool:
    return changes_state(part) or part.intent[-1] in ("apply", "plan", "get")


def _find_failing_check(checks: list[Part], complaint: str, *, has_rule: bool) -> Part:
    """Return the check that most likely failed: the one in the output, a linter for a rule, or the last one."""
    for part in checks:
        if f"[{part.intent[-1]}] ERROR" in complaint or (has_rule and "lint" in " ".join(part.intent)):
            return part
    return checks[-1]


def _shorten(text: str) -> str:
    return beginning_and_end(text, _MAX_TEXT_LENGTH // 2)


def _shorten_call(call: Step) -> Step:
    return call.replace(text=call.text[:_MAX_TEXT_LENGTH], before=call.before[:_MAX_TEXT_LENGTH])
