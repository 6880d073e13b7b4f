"""Replay real transcripts through the hooks, and count how often an agent is warned, and about what.

    python -m tools.warning_check FOLDER [--no-lessons] [--accept] [--show N]

The conversations in a folder are replayed into one new store, in the order in which they began. Each call is reported
before its result, as a client does. After each conversation, rules learn from it, as at the end of a real conversation
(except with `--no-lessons`). `docs/hooks.md` shows the result. A warning before a call that succeeded was needless; at
most 2 % of these calls may be warned of, and at most 0.5 % stopped.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from learnt import Memory
from learnt.clients.kit.events import HookEvent
from learnt.clients.kit.transcript import Step, about, steps
from learnt.errors import LearntError
from learnt.flow.hook_events import Reply
from learnt.weigh.confidence import is_persons


class Clock:
    """Returns the time in the transcript that is being replayed."""

    now = 0

    def __call__(self) -> int:
        return self.now


def main() -> None:
    """Replay, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-lessons", action="store_true")
    accept = "let a person accept all learnings, so that each speaks at the calls that it names"
    parser.add_argument("--accept", action="store_true", help=accept)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N needless warnings")
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.rglob("*.jsonl"), key=lambda path: about(str(path)).started_at)
    counts: Counter[str] = Counter()
    shown = 0
    clock = Clock()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Memory.open(folder, clock=clock) as memory:
        for path in paths:
            for needless in _replay(memory, clock, path, counts):
                shown += 1
                if shown <= arguments.show:
                    print(f"{path.name}: {needless}\n")
            if not arguments.no_lessons:
                try:
                    memory.transcripts.debrief(str(path))
                except LearntError as error:
                    counts[f"not learnt from: {type(error).__name__}"] += 1
            if arguments.accept:
                _accept(memory, counts)
    _print(counts)


def _accept(memory: Memory, counts: Counter[str]) -> None:
    for learning in memory.learnings(limit=1_000).learnings:
        if not is_persons(learning):
            memory.like(learning.id)
            counts["learnings accepted"] += 1


def _replay(memory: Memory, clock: Clock, path: Path, counts: Counter[str]) -> Iterator[str]:
    """Send a conversation to the hooks, event by event; yield the needless warnings."""
    counts["conversations"] += 1
    open_calls: dict[str, tuple[Step, Reply]] = {}
    folder = about(str(path)).folder
    for step in steps(str(path)):
        clock.now = max(clock.now + 1, step.at)
        if step.kind == "call":
            event = _event(path, step, "PreToolUse", "call", folder)
            open_calls[step.call] = step, _serve(memory, event)
        elif step.kind == "result" and step.call in open_calls:
            call, warning = open_calls.pop(step.call)
            if step.denied:
                continue
            event = _event(path, call, "PostToolUse", "result", folder)
            answer = _serve(memory, event.replace(failed=step.failed, output=step.text))
            ended = "failed" if step.failed else "succeeded"
            counts[f"calls that {ended}"] += 1
            counts[f"{_kind(warning)} before calls that {ended}"] += bool(warning.text)
            counts["answers to failures"] += bool(answer.text)
            if warning.text and not step.failed:
                yield f"{call.text[:300]}{call.path}\n{warning.text}"


def _event(path: Path, step: Step, name: str, kind: str, folder: str) -> HookEvent:
    return HookEvent(
        client="claude",
        name=name,
        kind=kind,
        session=path.stem,
        agent_id="aside" if step.aside else "",
        command=step.text.replace(folder, ".") if step.does == "run" and folder else "",
        paths=(step.path,) if step.does == "edit" else (),
    )


def _serve(memory: Memory, event: HookEvent) -> Reply:
    return memory.hooks.serve(event, loop_task="", began_ns=time.perf_counter_ns())


def _kind(warning: Reply) -> str:
    if warning.denies:
        return "stops"
    return "warnings about missteps" if "Failed Here Before" in warning.text else "warnings from learnings"


def _print(counts: Counter[str]) -> None:
    for name, count in sorted(counts.items()):
        if count:
            print(f"{count:8,} {name}")
    kinds = ("stops", "warnings about missteps", "warnings from learnings")
    needless = {kind: counts[f"{kind} before calls that succeeded"] for kind in kinds}
    succeeded = max(counts["calls that succeeded"], 1)
    print(f"{sum(needless.values()) / succeeded:8.2%} of the calls that succeeded had a warning or were stopped")
    print(f"{needless['stops'] / succeeded:8.2%} of the calls that succeeded were stopped")


if __name__ == "__main__":
    main()
