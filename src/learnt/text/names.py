"""Names that people spell in their own ways: agents and categories."""

from __future__ import annotations

from learnt.errors import WrongRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def key_of(name: str) -> str:
    """Return what a name is compared by: without case, and with `-` for underscores and blanks."""
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


_HINT = 'name the categories of each agent: `[agents.engineer]`, and below it `categories = ["git", "pytest"]`'
_VARIABLE = "LEARNT_AGENTS"
_HINT_FOR_VARIABLE = f'name the categories of each agent: `{_VARIABLE}="engineer=git,pytest;tester=pytest"`'
_LONGEST_MESSAGE = 300


def read_agents(value: Any, where: str) -> dict[str, tuple[str, ...]]:
    """Return the categories of each agent; raise on what is written otherwise, `where` it stands."""
    if where == _VARIABLE and isinstance(value, str):
        value = _agents_in(value)
    if not isinstance(value, dict):
        raise _wrong(f"{where} sets `agents` to {value!r}", hint=_hint(where))
    agents: dict[str, tuple[str, ...]] = {}
    for name, entry in value.items():
        if not key_of(name):
            raise _wrong(f"{where} gives categories to an agent without a name", hint=_hint(where))
        if key_of(name) in agents:
            raise _wrong(f"{where} names the agent `{name}` twice", hint="case, `_` and blanks make no other of it")
        agents[key_of(name)] = _categories(entry, f"agents.{name}", where)
    return agents


def _agents_in(text: str) -> Any:
    """Return the agents that `engineer=git,pytest;tester=pytest` names, and any other text as it is."""
    agents: dict[str, dict[str, list[str]]] = {}
    for part in filter(str.strip, text.split(";")):
        name, sign, categories = part.partition("=")
        if not sign or name.strip() in agents:
            return text
        agents[name.strip()] = {"categories": [one.strip() for one in categories.split(",") if one.strip()]}
    return agents


def _categories(entry: Any, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(entry, dict) or "categories" not in entry:
        raise _wrong(f"{where} sets `{key}` without `categories`")
    unknown = next((field for field in entry if field != "categories"), None)
    if unknown is not None:
        raise _wrong(f"{where} sets `{key}.{unknown}`, which is no setting")
    names = entry["categories"]
    if not isinstance(names, list) or not all(isinstance(one, str) and key_of(one) for one in names):
        example = f'`{key}.categories` is a list of texts, for example `["git", "pytest"]`'
        raise _wrong(f"{where} sets `{key}.categories` to {names!r}", hint=example)
    return tuple(dict.fromkeys(map(key_of, names)))


def _hint(where: str) -> str:
    return _HINT_FOR_VARIABLE if where == _VARIABLE else _HINT


def _wrong(message: str, *, hint: str = _HINT) -> WrongRequest:
    return WrongRequest(message[:_LONGEST_MESSAGE], hint=hint)
