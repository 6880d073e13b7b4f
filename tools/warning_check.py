"""Replay real transcripts through the hooks, and count how often an agent is warned, and about what.

    python -m tools.warning_check FOLDER [--no-lessons] [--accept] [--obey] [--show N]

The conversations in a folder are replayed into one new store, in the order in which they began. Each call is reported
before its result, as a client does. After each conversation, rules learn from it, as at the end of a real conversation
(except with `--no-lessons`). `docs/hooks.md` shows the result. A warning before a call that succeeded was needless; at
most 2 % of these calls may be warned of, and at most 0.5 % stopped.

In the real conversations, no call was stopped, so each stop is followed by the call's result. With `--obey`, the agent
does without the calls that are stopped and goes on with its next ones: the result in the transcript is the stop, and
the worker reads what came of it. Each stop is printed with its outcome and what came after it, to be checked by hand.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from learnt import Memory
from learnt.clients.kit.events import HookEvent
from learnt.clients.kit.transcript import Step, about, steps
from learnt.errors import LearntError
from learnt.flow.hook_events import Reply
from learnt.model import text_id
from learnt.weigh.confidence import is_persons

_MAX_COMMAND_CHARS = 160
_CALLS_SHOWN = 6


class Clock:
    """Returns the time in the transcript that is being replayed, later if an earlier one ended after that."""

    now = 0
    ahead = 0

    def __call__(self) -> int:
        return self.now

    def begin(self, at: int) -> None:
        """Begin a transcript whose first step was at this time."""
        self.ahead = max(0, self.now + 1 - at)

    def follow(self, at: int) -> None:
        """Go on to the time of a step, if it is known."""
        self.now = max(self.now + 1, at + self.ahead if at else 0)


def main() -> None:
    """Replay, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-lessons", action="store_true")
    accept = "let a person accept all learnings, so that each speaks at the calls that it names"
    parser.add_argument("--accept", action="store_true", help=accept)
    parser.add_argument("--obey", action="store_true", help="let the agent do without stopped calls; print outcomes")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N needless warnings")
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.rglob("*.jsonl"), key=lambda path: about(str(path)).started_at)
    counts: Counter[str] = Counter()
    shown = 0
    clock = Clock()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Memory.open(folder, clock=clock) as memory:
        for path in paths:
            stops: dict[str, str] = {}
            for needless in _replay(memory, clock, path, counts, stops=stops if arguments.obey else None):
                shown += 1
                if shown <= arguments.show:
                    print(f"{path.name}: {needless}\n")
            if stops:
                _show_outcomes(memory, _write_obedient(path, stops, clock.ahead, Path(folder)), stops, counts)
            elif not arguments.no_lessons:
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


def _replay(
    memory: Memory, clock: Clock, path: Path, counts: Counter[str], *, stops: dict[str, str] | None
) -> Iterator[str]:
    """Send a conversation to the hooks, event by event; yield the needless warnings.

    If `stops` is given, the calls that are stopped have no result, and `stops` gets what was said instead.
    """
    counts["conversations"] += 1
    clock.begin(about(str(path)).started_at)
    open_calls: dict[str, tuple[Step, Reply]] = {}
    folder = about(str(path)).folder
    for step in steps(str(path)):
        clock.follow(step.at)
        if step.kind == "call":
            event = _event(path, step, "PreToolUse", "call", folder)
            open_calls[step.call] = step, _serve(memory, event)
        elif step.kind == "result" and step.call in open_calls:
            call, warning = open_calls.pop(step.call)
            if stops is not None and warning.denies:
                stops[step.call] = warning.text
            if step.denied or step.call in (stops or ()):
                continue
            event = _event(path, call, "PostToolUse", "result", folder)
            answer = _serve(memory, event.replace(failed=step.failed, output=step.text))
            ended = "failed" if step.failed else "succeeded"
            counts[f"calls that {ended}"] += 1
            counts[f"{_kind(warning)} before calls that {ended}"] += bool(warning.text)
            counts["answers to failures"] += bool(answer.text)
            if warning.text and not step.failed:
                yield f"{call.text[:300]}{call.path}\n{warning.text}"


def _write_obedient(path: Path, stops: dict[str, str], ahead_ms: int, folder: Path) -> Path:
    """Write the transcript as it would be if the agent did without the stopped calls; return its path."""
    copy = folder / path.name
    with path.open(encoding="utf-8", errors="replace") as source, copy.open("w", encoding="utf-8") as target:
        for line in source:
            record = json.loads(line)
            if at := record.get("timestamp"):
                later = datetime.fromisoformat(at).timestamp() + ahead_ms / 1000
                record["timestamp"] = datetime.fromtimestamp(later, UTC).isoformat(timespec="milliseconds")
            # What a sub-agent did stands inside records of its progress.
            of_sub_agent = record["data"].get("message") if record.get("type") == "progress" else None
            inner = of_sub_agent if isinstance(of_sub_agent, dict) else record
            content = (inner.get("message") or {}).get("content")
            for block in content if isinstance(content, list) else ():
                if block.get("type") == "tool_result" and block.get("tool_use_id") in stops:
                    block.update(content=stops[block["tool_use_id"]], is_error=True)
            target.write(json.dumps(record) + "\n")
    return copy


def _show_outcomes(memory: Memory, transcript: Path, stops: dict[str, str], counts: Counter[str]) -> None:
    """Let the worker read a transcript with stops, and print the outcomes beside the calls."""
    task = text_id("task", f"claude {transcript.stem} ")
    memory.hooks.end_turn(task, "", client="claude", transcript=str(transcript))
    memory.worker.catch_up()
    entries = [entry for entry in memory.reports.activity(what="warning", limit=1_000).entries if entry.denied]
    outcome_of = {entry.id: f"{entry.outcome}, {entry.delivery}" for entry in entries}
    all_steps = [step for step in steps(str(transcript)) if step.kind != "said" or step.text]
    for number, step in enumerate(all_steps):
        if step.kind != "call" or step.call not in stops:
            continue
        outcome = next((outcome_of[id] for id in outcome_of if id in stops[step.call]), "of a sub-agent, not read")
        counts[f"stops with the outcome {outcome}"] += 1
        print(f"{transcript.name}: {outcome}\n  STOPPED {step.text[:_MAX_COMMAND_CHARS]!r}")
        for later in all_steps[number + 1 : number + 1 + _CALLS_SHOWN]:
            failed = " failed" if later.failed else ""
            print(f"  {later.kind}{failed} {(later.text or later.path)[:_MAX_COMMAND_CHARS]!r}")


def _event(path: Path, step: Step, name: str, kind: str, folder: str) -> HookEvent:
    return HookEvent(
        client="claude",
        name=name,
        kind=kind,
        session=path.stem,
        agent_id="aside" if step.aside else "",
        command=step.text.replace(folder, ".") if step.does == "run" and folder else "",
        paths=(step.path,) if step.does == "edit" else (),
        edit=f"{step.before}\n{step.text}" if step.does == "edit" else "",
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
