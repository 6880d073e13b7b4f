"""The command for agent clients; plain `learnt hook` goes to their own door without coming by here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def hook_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--client", metavar="NAME", help="the client that sends the event")


def hook_run(arguments: argparse.Namespace) -> int:
    from learnt.doors.hook import run_hook

    return run_hook()
