"""Find what a turn of a conversation teaches as a whole: what failed first, and what had done it when the turn ended.

`corrections` compares commands of the same kind. But what works in the end is often another program altogether: `make`
fails, `cmake --preset lab` builds. Within one turn an agent pursues one purpose, so the last thing that it ran with
success is what the first failure should have been, if nothing but looking around happened in between: no edit, and
few other commands. What the agent then says about it is the best title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from learnt.mine.calls import FailedCall, PastCall, fit_title, format_command, show_command
from learnt.mine.causes import find_cause
from learnt.mine.complaint import passes_by_itself
from learnt.mine.sentence_model import FINALS, rate
from learnt.mine.shell import Part, changes_state, is_about_files, is_check
from learnt.model import TITLE_LIMIT, Discovery
from learnt.text.clean import fold
from learnt.text.sentences import is_whole, split_sentences

_MAX_ACTIONS = 2
_MIN_ODDS = -0.5
_MIN_TARGET = 4
_FINDINGS = re.compile(
    r"\b[1-9]\d* (?:issue|problem|error|warning|failure|failed|offen[cs]e|finding|violation)", re.IGNORECASE
)
_TARGET = re.compile(r"[A-Za-z][\w.-]{3,}")


class TurnWatch:
    """The calls since the last prompt, and what the agent said after them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._failures: list[FailedCall] = []
        self._calls: list[PastCall] = []
        self._said = ""

    def add_failure(self, failure: FailedCall) -> None:
        """Add a call that failed."""
        self._failures.append(failure)

    def add_success(self, call: PastCall) -> None:
        """Add a call that worked."""
        self._calls.append(call)
        self._said = ""

    def say(self, text: str) -> None:
        """Add a message of the agent."""
        self._said = f"{self._said}\n\n{text}" if self._said else text

    def find_lesson(self, settled: Sequence[FailedCall]) -> Iterator[Discovery]:
        """Yield what the turn teaches, unless its first failure is among those that another rule has settled."""
        failure = next((one for one in self._failures if _is_telling(one)), None)
        if failure is None or failure in settled or failure.wrong_part is None:
            return
        since = [past for past in self._calls if past.at > failure.at]
        actions = [past for past in since if any(map(_does, past.parts))]
        if any(past.call.does == "edit" for past in since) or not 0 < len(actions) <= _MAX_ACTIONS:
            return
        worked = [part for part in actions[-1].parts if _does(part)][-1]
        if _serves_same_purpose(failure.wrong_part, worked, self._said):
            yield self._describe(failure, failure.wrong_part, worked)

    def _describe(self, failure: FailedCall, wrong: Part, right: Part) -> Discovery:
        failed, worked = (show_command(part, self._folder) for part in (wrong, right))
        words = self._find_words(wrong, right)
        error = failure.general_error(self._folder)
        head = f"Use `{format_command(right, self._folder)}` instead of `{' '.join(wrong.intent)}`"
        text = words or (fit_title(head, failure.reason(self._folder)) if len(head) <= TITLE_LIMIT else head)
        discovery = failure.explain(text, failed=failed, worked=worked, folder=self._folder)
        observed = f"`{failed}` failed: {error}. `{worked}` worked."
        cause = find_cause([self._said], (wrong.text, right.text)) if self._said else ""
        return discovery.replace(
            observed=fold(f"{observed} {cause if cause != words else ''}"), advice=f"Use `{worked}`."
        )

    def _find_words(self, wrong: Part, right: Part) -> str:
        """Return the sentence in which the agent says what to use; empty if there is none."""
        names = _list_targets(right) - _list_targets(wrong)
        sentences = ["", *split_sentences(self._said), ""]
        for before, sentence, after in zip(sentences, sentences[1:], sentences[2:], strict=False):
            is_short = len(sentence) <= TITLE_LIMIT and is_whole(sentence)
            is_about = any(name in sentence.lower() for name in names)
            if is_short and is_about and rate(FINALS, sentence, before=before, after=after) > _MIN_ODDS:
                return sentence
        return ""


def _is_telling(failure: FailedCall) -> bool:
    """Return whether a failure is about how something was called, not about unfinished code or one moment."""
    part = failure.wrong_part
    if failure.call.does != "run" or part is None or is_about_files(part):
        return False
    is_finding = is_check(part) and _FINDINGS.search(failure.error) is not None
    return not (failure.is_in_code or is_finding or passes_by_itself(failure.error))


def _does(part: Part) -> bool:
    """Return whether a program does something, rather than look at something."""
    return not is_about_files(part) and (changes_state(part) or is_check(part))


def _serves_same_purpose(wrong: Part, right: Part, said: str) -> bool:
    """Return whether another command has done what the failed one should have done."""
    if wrong.program == right.program or (is_check(wrong) and is_check(right)):
        return False  # `corrections` has not found them alike, or another check passed
    if _list_targets(wrong) & _list_targets(right):
        return True
    return all(part.program.lower() in said.lower() for part in (wrong, right)) or right.text in said


def _list_targets(part: Part) -> set[str]:
    """Return the names in a command by which two commands can be known to be about the same thing."""
    words = [word for word in part.words[1:] if len(word) >= _MIN_TARGET]
    return {part.program.lower(), *(name.lower() for word in words for name in _TARGET.findall(word))}
