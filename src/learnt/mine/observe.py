"""Watch what an agent did for errors that it overcame: what failed, why, and what worked then.

    a command that failed, and the changed one that worked           rule `command`
    an edit or another tool call that was refused, and what it took  rule `edit` or `call`
    what a check rejected, and the edit that it passed               rule `verification`

Steps are read as a stream: only the calls that are still open, the last failures and the last edits are in memory. The
same correction is told once, however often it came. An error that nobody overcame, a test that was red while its code
was being written, a conflict of a merge and a call that was stopped teach nothing here.
"""

from __future__ import annotations

from learnt.mine.commands import is_about_the_call
from learnt.mine.compiled import imported, refused
from learnt.mine.complaint import diagnostics, first_line, is_conflict, is_no_error, why
from learnt.mine.corrections import correction
from learnt.mine.evidence import Failed, Happened, Worked
from learnt.mine.red import Red, red_tests
from learnt.mine.rejections import Rejected, accepted_by_edit, formatted, repaired
from learnt.mine.shell import is_check, is_formatter, parts
from learnt.text.triggers import beginning_and_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from learnt.clients.kit.steps import Step
    from learnt.mine.shell import Part
    from learnt.model import Discovery

_MOST_OPEN = 200
_MOST_FAILED = 40
_MOST_HAPPENED = 60
# After so many further calls, what works has hardly to do with what failed.
_FORGOTTEN_AFTER = 80
_KEPT = 4_000


def observe_steps(steps: Iterable[Step], *, folder: str = "") -> Iterator[Discovery]:
    """Yield what a conversation teaches; paths below `folder`, where it took place, become relative."""
    watches: dict[bool, _Watch] = {}
    told: set[tuple[str, ...]] = set()
    for step in steps:
        watch = watches.setdefault(step.aside, _Watch(folder))
        for discovery in watch.take(step):
            sign = (discovery.rule, discovery.text)
            if sign not in told:
                if len(told) < 10_000:
                    told.add(sign)
                yield discovery


class _Watch:
    """What is in memory while one conversation is read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[str, Step] = {}
        self._failed: list[Failed] = []
        self._rejected: list[Rejected] = []
        self._red: list[Red] = []
        self._happened: list[Happened] = []
        self._now = 0

    def take(self, step: Step) -> Iterator[Discovery]:
        """Take one step, and yield what it completes."""
        if step.kind == "call":
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            self._open[step.call] = step
            return
        call = self._open.pop(step.call, None) if step.kind == "result" else None
        if call is None or step.denied or (step.failed and is_no_error(step.text)):
            return
        self._now += 1
        ran = parts(call.text) if call.does == "run" else ()
        checks = [part for part in ran if is_check(part)]
        complaint = step.text if step.failed or _complains(checks, step.text) else ""
        if checks:
            yield from self._checked(checks, complaint)
            yield from self._tested(checks, complaint)
        if complaint or step.failed:
            self._remember_failure(call, ran, complaint)
        else:
            yield from self._corrected(call, ran)
            self._remember(call, ran)

    def _remember_failure(self, call: Step, ran: tuple[Part, ...], complaint: str) -> None:
        error = why(complaint) if call.does == "run" else first_line(complaint)
        if not error or is_conflict(complaint):
            return
        failed = Failed(call=_short(call), ran=ran, error=error, output=_kept(complaint), at=self._now)
        if is_about_the_call(failed):
            self._failed = [*self._failed, failed][-_MOST_FAILED:]

    def _corrected(self, call: Step, ran: tuple[Part, ...]) -> Iterator[Discovery]:
        """Yield what the call that has just worked corrects, and forget the failures that it settles."""
        left = []
        for failed in self._failed:
            since = tuple(happened for happened in self._happened if happened.at > failed.at)
            worked = Worked(call=call, ran=ran, since=since, folder=self._folder)
            settled, discovery = correction(failed, worked)
            if discovery is not None:
                yield discovery
            if not settled and self._now - failed.at < _FORGOTTEN_AFTER:
                left.append(failed)
        self._failed = left

    def _remember(self, call: Step, ran: tuple[Part, ...]) -> None:
        happened = Happened(call=_short(call), ran=ran, at=self._now)
        self._happened = [*self._happened, happened][-_MOST_HAPPENED:]

    def _checked(self, checks: list[Part], complaint: str) -> Iterator[Discovery]:
        """Compare what a check says now with what it said before."""
        intents = {part.intent for part in checks}
        found = list(diagnostics(complaint))
        still = {diagnostic.key for diagnostic in found}
        left = []
        for rejected in self._rejected:
            if rejected.part.intent not in intents:
                if self._now - rejected.at < _FORGOTTEN_AFTER:
                    left.append(rejected)
                continue
            before = [happened for happened in self._happened if happened.at < rejected.at]
            between = [happened for happened in self._happened if happened.at > rejected.at]
            gone = [diagnostic for diagnostic in rejected.diagnostics if diagnostic.key not in still]
            # A check that stops at its first complaint says nothing about the others; tests that run are compiled.
            if gone and (not complaint or found or red_tests(complaint)):
                yield from accepted_by_edit(rejected, gone, before, between, self._folder)
                yield from imported(rejected.part, gone, between, self._folder)
            yield from repaired(rejected, complaint, between, self._folder)
            if not complaint:
                yield from formatted(rejected, between, self._folder)
        if complaint:
            failing = _failing(checks, complaint, has_rule=any(diagnostic.rule for diagnostic in found))
            left.append(Rejected(part=failing, diagnostics=tuple(found[:20]), output=_kept(complaint), at=self._now))
        self._rejected = left[-_MOST_FAILED:]

    def _tested(self, checks: list[Part], complaint: str) -> Iterator[Discovery]:
        """Compare which tests fail now with those that failed when the same ones were asked for."""
        left = []
        tests = red_tests(complaint)
        ran = bool(tests) or not complaint  # otherwise something stopped before
        for red in self._red:
            if ran and any(map(red.asks_as, checks)):
                between = [happened for happened in self._happened if happened.at > red.at]
                yield from refused(red.part, red.output, complaint, between, self._folder)
            elif self._now - red.at < _FORGOTTEN_AFTER:
                left.append(red)
        if tests:
            left.append(Red(part=checks[-1], tests=tests, output=_kept(complaint), at=self._now))
        self._red = left[-_MOST_FAILED:]


def _complains(checks: list[Part], output: str) -> bool:
    """Say whether a check failed although its exit code was lost, as in `make test | tail`."""
    if not checks or any(is_formatter(part) for part in checks):
        return False
    tail = output[-2_000:]
    return any(
        sign in tail for sign in ("\nFAIL", "ERROR task failed", "error: Recipe", "npm ERR!", "make: ***")
    ) or any(diagnostic.rule for diagnostic in diagnostics(output))


def _failing(checks: list[Part], complaint: str, *, has_rule: bool) -> Part:
    """Return the check that most likely complained: the one that the output names, a linter for a rule, or the last."""
    for part in checks:
        if f"[{part.intent[-1]}] ERROR" in complaint or (has_rule and "lint" in " ".join(part.intent)):
            return part
    return checks[-1]


def _kept(text: str) -> str:
    return beginning_and_end(text, _KEPT // 2)


def _short(call: Step) -> Step:
    return call.replace(text=call.text[:_KEPT], before=call.before[:_KEPT])
