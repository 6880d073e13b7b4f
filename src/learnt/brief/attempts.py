"""Tell an agent which approaches at its task have failed: each once, the newest first, at several lengths.

Attempts that tried the same, or failed the same way without a word about what they tried, are one approach, with how
often it was tried. What an entry has said already is not said again, neither by it nor by an older entry. Nothing is
cut in the middle of a word.

The same attempts always give the same text, so a brief can be rendered again from its receipt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from learnt.brief.render import Past
from learnt.model import NO_REPORT, Failure, Value
from learnt.text.clean import fold
from learnt.text.fence import quoted_line
from learnt.text.titles import REFUTED_PREFIX, cut_words, normalised_error, share_most_words

# The limits of an entry's fields, in characters, and those of an entry that is only a line; the longest form first.
_FIELD_LIMITS = (500, 200)
_LINE_LIMITS = (110, 50)
_MAX_NUMBERS = 4
_MAX_REASONS = 2
_MIN_LINE_LENGTH = 3
# Before version 7 of the renderer, every attempt stood for itself, with its fields cut anywhere.
OWN_ENTRIES = 7
_MIN_FIELD_LENGTH = 80


class FailedAttempt(Value):
    """A failed attempt at a task, with its report."""

    number: int
    result: str
    model: str
    failure: Failure
    error: str = ""
    """Its error in the form in which errors are compared; empty if it is unknown."""

    def as_entry(self) -> dict[str, str | int]:
        """Return the attempt for a receipt."""
        return {"attempt": self.failure.attempt, "number": self.number, "result": self.result, "model": self.model}


def group_attempts(attempts: Sequence[FailedAttempt]) -> list[list[FailedAttempt]]:
    """Return the attempts by approach, the newest first, both within an approach and by its latest attempt."""
    groups: list[list[FailedAttempt]] = []
    for attempt in attempts:
        group = next((group for group in groups if _is_same_approach(group[0], attempt)), None)
        if group is None:
            groups.append([attempt])
        else:
            group.append(attempt)
    return groups


def tell_approaches(groups: Sequence[Sequence[FailedAttempt]]) -> tuple[Past, ...]:
    """Return each approach in its different lengths."""
    told: dict[str, int] = {}
    approaches = []
    for group in groups:
        approach = _Approach(group, told, is_newest=group is groups[0])
        forms = [*map(approach.in_full, _FIELD_LIMITS), *map(approach.on_a_line, _LINE_LIMITS)]
        approaches.append(
            Past(attempts=tuple(attempt.as_entry() for attempt in group), forms=tuple(dict.fromkeys(forms)))
        )
        for key in approach.reason_keys:
            told.setdefault(key, group[0].number)
    return tuple(approaches)


def tell_as_before(attempt: FailedAttempt, longest: int) -> Past:
    """Return an attempt as versions before 7 told it, for their receipts; `longest` limits each field."""
    model = f" ({quoted_line(attempt.model)})" if attempt.model else ""
    failure, limit = attempt.failure, longest or _MIN_FIELD_LENGTH
    fields = {
        "Tried": failure.tried,
        "Failed because": failure.reason,
        "Files": ", ".join(failure.files),
        "Error": failure.error[-limit:],
        "Avoid": failure.avoid,
        "Suggestion": failure.suggestion,
    }
    if not longest:
        fields = {"Failed because": failure.reason, "Avoid": failure.avoid}
    lines = [f"- {name}: {quoted_line(text)[:limit]}\n" for name, text in fields.items() if text]
    text = f"### Attempt {attempt.number}: {attempt.result}{model}\n\n{''.join(lines)}"
    return Past(attempts=(attempt.as_entry(),), forms=(text,))


def _is_same_approach(one: FailedAttempt, other: FailedAttempt) -> bool:
    tried = [set(re.findall(r"\w+", attempt.failure.tried.lower())) for attempt in (one, other)]
    if any(tried):
        return all(tried) and share_most_words(*tried)
    return bool(one.error) and one.error == other.error


class _Approach:
    """One approach: what its attempts tried, and why they failed."""

    def __init__(self, group: Sequence[FailedAttempt], told: Mapping[str, int], *, is_newest: bool) -> None:
        self._group = group
        self._is_newest = is_newest
        self._failures = [attempt.failure for attempt in group]
        reasons = {_reason_key(failure): _reason(failure) for failure in reversed(self._failures) if failure.reason}
        self.reason_keys = list(reasons)[::-1]
        by_age = [(key, reasons[key]) for key in self.reason_keys[:_MAX_REASONS]]
        self._reasons = [f"as in attempt {told[key]}" if key in told else reason for key, reason in by_age]

    def in_full(self, limit: int) -> str:
        """Return a heading, and a line for each field."""
        lines = [f"- {name}: {text}\n" for name, text in self._list_fields(limit)]
        return f"### {self._label()}: {self._ending()}{self._models()}\n\n{''.join(lines)}"

    def on_a_line(self, limit: int) -> str:
        """Return one line with what must not be repeated."""
        parts = [
            self._pair("tried", self._find("tried"), limit),
            self._pair("because", "; before: ".join(self._reasons), 2 * limit),
            self._pair("avoid", self._find("avoid"), limit),
            self._pair("next", self._find("suggestion") if self._is_newest else "", limit),
        ]
        return f"- {self._label()}{self._models()}, {self._ending()}: {'; '.join(filter(None, parts))}"

    def _list_fields(self, limit: int) -> Iterator[tuple[str, str]]:
        """Yield the fields that say something new, each with its name."""
        said = ""
        for name, text in (
            ("Tried", self._find("tried")),
            ("Failed because", "; before: ".join(self._reasons)),
            ("Files", ", ".join(dict.fromkeys(file for failure in self._failures for file in failure.files))),
            ("Error", self._find("error")),
            ("Avoid", self._find("avoid")),
            ("Suggestion", self._find("suggestion")),
        ):
            rest = " | ".join(_without_said(text, said)) if name == "Error" else text
            if rest and fold(rest).lower() not in said:
                said += f" {fold(rest).lower()}"
                yield name, cut_words(quoted_line(rest), limit)

    def _find(self, field: str) -> str:
        """Return a field of the latest report that has it."""
        return next(filter(None, (str(getattr(failure, field)) for failure in self._failures)), "")

    def _pair(self, name: str, text: str, limit: int) -> str:
        return f"{name} {cut_words(quoted_line(text), limit)}" if text else ""

    def _label(self) -> str:
        numbers = [str(attempt.number) for attempt in self._group]
        if len(numbers) == 1:
            return f"Attempt {numbers[0]}"
        first, last = numbers[:-1], numbers[-1]
        if len(numbers) > _MAX_NUMBERS:
            first, last = numbers[: _MAX_NUMBERS - 1], f"{len(numbers) - _MAX_NUMBERS + 1} more"
        return f"Attempts {', '.join(first)} and {last}"

    def _ending(self) -> str:
        results = ["said done, and refuted" if _is_refuted(one.failure) else one.result for one in self._group]
        times = f"tried {len(results)} times, " if len(results) > 1 else ""
        return times + " or ".join(dict.fromkeys(results))

    def _models(self) -> str:
        models = [quoted_line(attempt.model) for attempt in self._group if attempt.model]
        return f" ({', '.join(dict.fromkeys(models))})" if models else ""


def _without_said(text: str, said: str) -> Iterator[str]:
    """Yield the lines of a text that were not said before, each once."""
    lines: dict[str, str] = {}
    for line in map(fold, text.splitlines()):
        if len(line) >= _MIN_LINE_LENGTH and line.lower() not in said:
            lines.setdefault(line.lower(), line)
    yield from lines.values()


def _reason(failure: Failure) -> str:
    """Return why an attempt failed, without how it was found out."""
    reason = failure.reason.partition(f"{NO_REPORT}: ")[2] or failure.reason
    return reason.removeprefix(REFUTED_PREFIX)


def _reason_key(failure: Failure) -> str:
    return normalised_error(_reason(failure)) or failure.reason


def _is_refuted(failure: Failure) -> bool:
    return failure.reason.startswith(REFUTED_PREFIX)
