"""Convert learnings to and from JSON objects, which have the same shape in `--json`, in JSONL files and in events.

The shape is a promise. Reading is strict: an unknown field or a wrong type is an error, because a misspelt field would
otherwise be lost silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from learnt.errors import InvalidValue
from learnt.model import CONTENT, COUNTERS, CUE_FIELDS, PARAGRAPHS, TEXT_LIMIT, TITLE_LIMIT, Learning, Triggers
from learnt.text.clean import clean, fold
from learnt.text.redact import redact_line, redact_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard

# People and programs can set these fields; the store sets the others.
WRITABLE = (*CONTENT, "confidence", "pinned")
# These fields depend on the store from which a learning is read.
PLACE = ("version", "scope")

# This is far beyond every limit, so a longer text is rejected before it is cleaned.
_MAX_LENGTH_READ = 1_000_000
_LISTS = ("tags", *CUE_FIELDS, "replaces")
_COUNTS = (
    *COUNTERS,
    *("created_at", "updated_at", "last_injected_at", "last_helpful_at", "last_decayed_at", "version"),
)


def as_record(learning: Learning) -> dict[str, Any]:
    """Return the learning as a JSON object."""
    lists = {field: list(getattr(learning, field)) for field in _LISTS}
    return {**learning.as_dict(), **lists, "triggers": triggers_record(learning.triggers)}


def triggers_record(triggers: Triggers) -> dict[str, list[str]]:
    """Return the triggers that are set, as lists."""
    return {field: list(words) for field, words in triggers.as_dict().items() if words}


def read_fields(record: Mapping[str, Any], *, allowed: tuple[str, ...] = WRITABLE) -> dict[str, Any]:
    """Return cleaned, typed fields for a Learning; raise InvalidValue for an unknown field or a wrong type."""
    fields: dict[str, Any] = {}
    for name, value in record.items():
        if name not in allowed:
            raise InvalidValue(f"a learning has no field `{name}` to set", hint=f"the fields are: {', '.join(allowed)}")
        fields[name] = _read(name, value)
    return fields


def without_secrets(record: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a record that has not been read yet with its secrets redacted, and how many secrets there were.

    A tag or trigger with a secret is left out, because the rest of it would mean something else. Invalid values stay
    unchanged; `read_fields` rejects them.
    """
    safe = {name: _redact_value(name, value) for name, value in record.items()}
    return {name: value for name, (value, _) in safe.items()}, sum(count for _, count in safe.values())


def _redact_value(name: str, value: Any) -> tuple[Any, int]:
    if isinstance(value, Triggers):
        value = triggers_record(value)
    if isinstance(value, str) and name != "id" and len(value) <= _MAX_LENGTH_READ:
        return redact_text(value, TEXT_LIMIT) if name in PARAGRAPHS else redact_line(value, TITLE_LIMIT)
    if isinstance(value, dict):
        parts = {field: _redact_words(words) for field, words in value.items()}
        return {field: words for field, (words, _) in parts.items()}, sum(count for _, count in parts.values())
    return _redact_cues(value) if name in CUE_FIELDS else _redact_words(value)


def _redact_cues(value: Any) -> tuple[Any, int]:
    if not _is_short_list(value):
        return value, 0
    safe = [redact_line(cue, TITLE_LIMIT) for cue in value]
    return [cue for cue, _ in safe], sum(count for _, count in safe)


def _redact_words(value: Any) -> tuple[Any, int]:
    if not _is_short_list(value):
        return value, 0
    counts = {word: redact_line(word, TITLE_LIMIT)[1] for word in value}
    return [word for word in value if not counts[word]], sum(counts.values())


def read_triggers(value: object) -> Triggers:
    """Return triggers from a JSON object of lists."""
    if isinstance(value, Triggers):
        value = triggers_record(value)
    if not isinstance(value, dict):
        raise _wrong_type("triggers", value, "an object of lists")
    unknown = [field for field in value if field not in Triggers.fields]
    if unknown:
        fields = ", ".join(Triggers.fields)
        raise InvalidValue(f"there is no kind of trigger `{unknown[0]}`", hint=f"the kinds are: {fields}")
    return Triggers(**{field: _words(f"triggers.{field}", words) for field, words in value.items()})


def _read(name: str, value: object) -> object:
    if name == "triggers":
        return read_triggers(value)
    if name == "tags":
        return tuple(sorted({tag.lower().removeprefix("#") for tag in _words(name, value)}))
    if name in _LISTS:
        return _words(name, value)
    if name == "pinned":
        if not isinstance(value, bool):
            raise _wrong_type(name, value, "true or false")
        return value
    if name == "confidence":
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
            raise _wrong_type(name, value, "a number")
        return float(value)
    return _read_count(name, value) if name in _COUNTS else _read_text(name, value)


def _read_count(name: str, value: object) -> int | None:
    if value is None and name.startswith("last_"):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise _wrong_type(name, value, f"a whole number from 0 to {2**53}")
    return value


def _read_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong_type(name, value, "a string")
    if len(value) > _MAX_LENGTH_READ:
        raise InvalidValue(f"{name} has {len(value):,} characters", hint=f"shorten {name} to a few sentences")
    return clean(value).strip() if name in PARAGRAPHS else fold(value)


def _words(name: str, value: object) -> tuple[str, ...]:
    if not _are_strings(value):
        raise _wrong_type(name, value, "a list of strings")
    if sum(map(len, value)) > _MAX_LENGTH_READ:
        raise InvalidValue(f"{name} is far too long", hint="use only a few short entries")
    return tuple(dict.fromkeys(fold(word) for word in value))


def _is_short_list(value: object) -> TypeGuard[Sequence[str]]:
    return _are_strings(value) and sum(map(len, value)) <= _MAX_LENGTH_READ


def _are_strings(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _wrong_type(name: str, value: object, wanted: str) -> InvalidValue:
    return InvalidValue(f"`{name}` is {type(value).__name__} {str(value)[:40]!r}", hint=f"`{name}` must be {wanted}")
