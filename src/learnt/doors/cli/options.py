"""Read a plain command line without `argparse`, which costs as much as starting Python once more.

A command describes its arguments once, to whatever offers `add_argument`. `PlainParser` takes the description and reads
what is clear: known options with fitting values, and positional arguments. For anything else, help included, it gives
up, and the caller lets `argparse` read the line and find the words for what is wrong.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Unclear(Exception):
    """The line is not plain: let argparse read it."""


class Arguments:
    """What was read, by name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


class _Argument:
    """One described argument."""

    def __init__(self, names: tuple[str, ...], options: dict[str, Any]) -> None:
        self.names = names
        self.is_option = names[0].startswith("-")
        self.dest = options.get("dest") or names[-1].lstrip("-").replace("-", "_")
        self.action = options.get("action", "store")
        self.nargs = options.get("nargs")
        self.type = options.get("type", str)
        self.choices = options.get("choices")
        self.const = options.get("const")
        self.required = bool(options.get("required"))
        self.default = options.get("default", {"store_true": False, "store_false": True}.get(self.action))

    def value(self, text: str) -> Any:
        try:
            value = self.type(text)
        except ValueError:
            raise Unclear from None
        if self.choices and value not in self.choices:
            raise Unclear
        return value


class PlainParser:
    """Takes the same descriptions as argparse, as far as our commands use them."""

    def __init__(self) -> None:
        self._arguments: list[_Argument] = []
        self._groups: list[PlainParser] = []

    def add_argument(self, *names: str, **options: Any) -> None:
        """Describe an argument."""
        self._arguments.append(_Argument(names, options))

    def add_mutually_exclusive_group(self, **_options: Any) -> PlainParser:
        """Describe options of which one may be given; a line that uses them is left to argparse."""
        group = PlainParser()
        self._groups.append(group)
        return group

    def read(self, words: list[str]) -> Arguments:
        """Return what a plain line says, or raise Unclear."""
        described = {name: argument for argument in self._arguments if argument.is_option for name in argument.names}
        everything = [*self._arguments, *(argument for group in self._groups for argument in group._arguments)]
        values = {argument.dest: argument.default for argument in reversed(everything)}
        given: list[str] = []
        in_a_row = False
        waiting = list(words)
        while waiting:
            word = waiting.pop(0)
            if not word.startswith("-") or word == "-":
                if given and not in_a_row and self._takes_many():
                    raise Unclear  # argparse would not see that these belong together
                given.append(word)
                in_a_row = True
                continue
            in_a_row = False
            name, equals, text = word.partition("=")
            argument = described.get(name)
            if argument is None:
                raise Unclear
            if argument.action in ("store_true", "store_const"):
                if equals:
                    raise Unclear
                values[argument.dest] = True if argument.action == "store_true" else argument.const
                continue
            if not equals:
                if not waiting or waiting[0].startswith("-"):
                    raise Unclear
                text = waiting.pop(0)
            _take(values, argument, argument.value(text))
        self._take_positionals(values, given)
        if any(argument.required and values[argument.dest] is None for argument in everything) or self._must_choose():
            raise Unclear
        return Arguments(values)

    def _takes_many(self) -> bool:
        positional = [argument for argument in self._arguments if not argument.is_option]
        return any(
            argument.nargs in ("+", "*") or (argument.nargs and argument is not positional[0])
            for argument in positional
        )

    def _must_choose(self) -> bool:
        return any(argument.action == "store_false" for group in self._groups for argument in group._arguments)

    def _take_positionals(self, values: dict[str, Any], given: list[str]) -> None:
        for argument in self._arguments:
            if argument.is_option:
                continue
            if argument.nargs in ("+", "*"):
                if not given and argument.nargs == "+":
                    raise Unclear
                values[argument.dest] = [argument.value(word) for word in given]
                given = []
            elif given:
                values[argument.dest] = argument.value(given.pop(0))
            elif argument.nargs != "?":
                raise Unclear
        if given:
            raise Unclear


def _take(values: dict[str, Any], argument: _Argument, value: Any) -> None:
    if argument.action == "append":
        values[argument.dest] = [*(values[argument.dest] or []), value]
    elif argument.action == "store":
        values[argument.dest] = value
    else:
        raise Unclear
