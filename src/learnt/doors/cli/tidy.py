"""The command that does what time asks for."""

from __future__ import annotations

from learnt.doors.cli.arguments import add_user, open_memory
from learnt.doors.cli.screen import say, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def tidy_arguments(parser: argparse.ArgumentParser) -> None:
    add_user(parser)


def tidy_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        tidied = memory.tidy()
        titles = memory.titles(tidied.proposed)
    if arguments.json:
        show_json(tidied.as_dict())
    else:
        say(f"Faded: {tidied.decayed}; archived, as old and unused: {tidied.archived}")
        if tidied.failures_archived:
            say(f"Failure reports of tasks long done, put away: {tidied.failures_archived}")
        for id, title in titles.items():
            say(f"Proposed {id}: {title}")
        if titles:
            say(
                "`learnt show ID`: what it would replace; `learnt restore ID` accepts it, `learnt archive ID` does not."
            )
