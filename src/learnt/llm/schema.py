"""Find JSON in a model's answer, and check it against the subset of JSON Schema that our requests use.

The subset is: `type` (object, array, string, number, integer, boolean), `enum`, `required`, `properties`,
`additionalProperties: false`, `items`, `minItems`, `maxItems` and `maxLength`. Other keywords, such as `description`
and `$ref`, are for the model only. Any text can be checked without raising an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
}
_START = re.compile(r"[{\[]")
# A useless answer can consist of nothing but brackets, so the number of attempts to parse is limited.
_MAX_STARTS = 1_000


def find_value(text: str, schema: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the first complete JSON value in the text that fits the schema, or None and the reason."""
    flaw = ""
    for value in _values(text):
        misfit = check(value, schema)
        if not misfit:
            return value, ""
        flaw = flaw or f"the answer does not fit the schema: {misfit}"
    if flaw:
        return None, flaw
    return None, "the JSON in the answer is broken or cut off" if _START.search(text) else "the answer contains no JSON"


def check(value: Any, schema: Mapping[str, Any], path: str = "") -> str:
    """Return what is wrong with a value, and where; empty if it fits the schema."""
    name = path or "the value"
    wanted = schema.get("type")
    if wanted and not _has_type(value, wanted):
        return f"{name} is {_type_name(value)}, not {_with_article(wanted)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{name} is {_format(value)}, not one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        return f"{name} has {len(value):,} characters; at most {schema['maxLength']:,} are allowed"
    if isinstance(value, list):
        return _check_list(value, schema, path)
    return _check_fields(value, schema, path) if isinstance(value, dict) else ""


def _check_list(values: list[Any], schema: Mapping[str, Any], path: str) -> str:
    name = path or "the value"
    if len(values) < schema.get("minItems", 0):
        return f"{name} has {len(values)} entries; at least {schema['minItems']} are needed"
    if len(values) > schema.get("maxItems", len(values)):
        return f"{name} has {len(values)} entries; at most {schema['maxItems']} are allowed"
    flaws = (check(value, schema.get("items", {}), f"{path}[{index}]") for index, value in enumerate(values))
    return next(filter(None, flaws), "")


def _check_fields(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> str:
    below = f"{path}." if path else ""
    properties = schema.get("properties", {})
    missing = [field for field in schema.get("required", ()) if field not in value]
    if missing:
        return f"{below}{missing[0]} is missing"
    unknown = [field for field in value if field not in properties]
    if unknown and schema.get("additionalProperties") is False:
        return f"{path or 'the value'} has an unknown field {_format(unknown[0])}"
    flaws = (check(value[field], properties[field], f"{below}{field}") for field in properties if field in value)
    return next(filter(None, flaws), "")


def _values(text: str) -> Iterator[Any]:
    """Yield the outermost JSON values in a text: the text itself, or values in it that begin with a bracket."""
    decoder = json.JSONDecoder(parse_constant=_reject_constant)
    position, start = 0, re.search(r"\S", text)
    for _ in range(_MAX_STARTS):
        if start is None:
            return
        try:
            value, position = decoder.raw_decode(text, start.start())
            yield value
        except (ValueError, RecursionError):
            position = start.start() + 1
        start = _START.search(text, position)


def _reject_constant(constant: str) -> Any:
    raise ValueError(constant)  # NaN and Infinity, which Python would accept


def _has_type(value: Any, wanted: str) -> bool:
    return isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


def _type_name(value: Any) -> str:
    return (
        "null"
        if value is None
        else _with_article(next(name for name in ("boolean", *_TYPES) if _has_type(value, name)))
    )


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def _format(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
