"""The plain reader of command lines says the same as argparse, or leaves the line to it."""

from __future__ import annotations

import itertools
import random

import pytest

from learnt.doors.cli import COMMANDS, Command
from learnt.doors.cli.arguments import Parser, Unclear, describe_arguments, full_parser, read_arguments
from learnt.errors import WrongRequest

WORDS = (
    "text",
    "two words",
    "",
    "7",
    "-1",
    "0.5",
    "-",
    "--",
    "all",
    "active",
    "gotcha",
    "--nonsense",
    "-h5",
    "learn_1",
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_plain_line_is_read_like_argparse_reads_it(command: Command) -> None:
    options = [name for name in full_parser(command)._option_string_actions if name not in ("-h", "--help")]
    chance = random.Random(command.name)
    lines = [[], ["text"], ["text", "more"], ["add", "more"]]
    for _ in range(400):
        line = [
            chance.choice((*WORDS, *options, *(f"{name}=7" for name in options))) for _ in range(chance.randrange(1, 6))
        ]
        lines.append(line)
    read = 0
    for line in lines:
        plain = Parser()
        describe_arguments(command, plain)
        try:
            ours = vars(plain.read(line))
        except Unclear:
            continue
        read += 1
        assert ours == vars(full_parser(command).parse_args(line)), line
    # Lines of a command that needs an option are left to argparse.
    assert read > 0 or any(action.required and action.option_strings for action in full_parser(command)._actions)


def test_what_is_not_plain_gets_the_words_of_the_full_parser() -> None:
    [add] = [command for command in COMMANDS if command.name == "add"]
    for line in itertools.chain([["--kind", "nonsense"], ["--confidence", "high"], ["--tag"], ["--unknown"]]):
        with pytest.raises(WrongRequest) as caught:
            read_arguments(add, ["title", *line])
        assert "learnt add --help" in caught.value.hint
    assert read_arguments(add, ["title", "--avoid"]).polarity == "avoid"
