"""The commands of the loop: work, status, stop, log, strategy."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time

from learnt.clients import registry
from learnt.debrief.sigils import is_sigil
from learnt.doors.cli.arguments import open_memory
from learnt.doors.cli.files import state_line, state_record
from learnt.doors.cli.review import told_waiting
from learnt.doors.cli.screen import counted, is_terminal, note, paint, say, show_json, show_table
from learnt.doors.cli.tasks import tell_waiting_in_vain
from learnt.errors import LearntError, WrongRequest
from learnt.flow.review import OPINIONS
from learnt.loop import runs
from learnt.loop.attempt import LOGS, check_agent
from learnt.settings import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from learnt.loop.work import Notice, Summary
    from learnt.memory import Memory
    from learnt.strategy.figures import Figure

_MOST_JOBS = next(setting.most for setting in SETTINGS if setting.key == "work.jobs")
_STOPPED_BY = "stopped by "
_STOP_PATIENCE_S = 30.0
_GLANCE_S = 1.0
_QUESTION = "Did the learnings help? [y]es / [n]o / [u]nsure / [d]on't ask again "
_OPINIONS = {"y": "yes", "n": "no", "u": "unsure", "d": "don't ask again"}
_OTHER_SCREEN, _OWN_SCREEN, _CLEARED = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H\x1b[J"


def work_arguments(parser: argparse.ArgumentParser) -> None:
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--tasks", type=int, default=1, metavar="N", help="work on so many tasks; one if not given")
    how_many.add_argument("--all", action="store_true", help="work until nothing is left to do")
    parser.add_argument("--jobs", type=int, metavar="J", help="how many at once (setting `work.jobs`)")
    parser.add_argument("--budget-usd", type=float, metavar="X", help="begin nothing more once X is spent")
    parser.add_argument("--max-iterations", type=int, metavar="N", help="make at most N attempts")
    parser.add_argument("--background", action="store_true", help="go on without this terminal")


def work_run(arguments: argparse.Namespace) -> int:
    from learnt.loop.work import LoopRun, Plan
    from learnt.memory import Memory

    for name in ("tasks", "jobs", "max_iterations"):
        given = getattr(arguments, name)
        most = _MOST_JOBS if name == "jobs" else math.inf
        if given is not None and not 1 <= given <= most:
            to = "on" if most == math.inf else f"to {most}"
            raise WrongRequest(f"--{name.replace('_', '-')} is {given}", hint=f"give a whole number from 1 {to}")
    if arguments.budget_usd is not None and not 0 < arguments.budget_usd < 1e9:
        raise WrongRequest(f"--budget-usd is {arguments.budget_usd}", hint="give an amount of USD above 0")
    with open_memory(arguments) as memory:
        root, folder, settings = memory.root, memory.folder, memory.settings
        if arguments.background:
            check_agent(memory, root=root, environ=os.environ)  # here, where somebody sees it
    plan = Plan(
        tasks=0 if arguments.all else arguments.tasks,
        jobs=arguments.jobs or settings.work_jobs,
        attempts=arguments.max_iterations or 0,
        budget_usd=arguments.budget_usd or 0.0,
    )
    if plan.budget_usd and not settings.models and registry.get(settings.work_agent, "run").reports != "cost":
        note("nobody tells what an attempt costs: `[[models]]` with a price would; else the budget is never reached")
    if plan.jobs > 1 and settings.work_isolation == "none":
        note('several agents will work in the same folder; `isolation = "worktree"` under [work] gives each its own')
    if arguments.background:
        return _in_background(arguments, folder)
    screen = _Screen(quiet=arguments.json)
    worker = LoopRun(lambda: Memory.open(root, create=False), plan, root=root, environ=os.environ, tell=screen.show)
    endings = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    before = {
        number: signal.signal(number, lambda number, _: worker.stop(_STOPPED_BY + signal.Signals(number).name))
        for number in endings
    }
    with runs.Registered(folder):
        summary = worker.run()
    if not arguments.json:
        _tell_summary(summary)
        with open_memory(arguments) as memory:
            tell_waiting_in_vain(memory.tasks.blocked())
            stands = state_line(state_record(memory.file.state()))
            if stands:
                note(stands)
            for number, handler in before.items():
                signal.signal(number, handler)  # there is nothing left to stop but a question
            _ask_opinion(memory, summary)
    else:
        show_json(_summary_record(summary))
    return 1 if summary.escalated or summary.stopped else 0


class _Screen:
    """Shows what happens while agents work; in a pipe, one line each."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._one_at_a_time = threading.Lock()
        self._spent = 0.0

    def show(self, event: Notice) -> None:
        if self._quiet:
            return
        with self._one_at_a_time:
            try:
                for line in self._lines(event):
                    say(line)
                sys.stdout.flush()
            except OSError:
                self._quiet = True  # the reader has gone; the work goes on

    def _lines(self, event: Notice) -> list[str]:
        if event.what == "started":
            return [paint(f"▶ {event.task}  attempt {event.attempt}  {event.title}", "bold")]
        if event.what == "progress":
            return [] if is_sigil(event.text) else [paint(f"  {event.task}  {event.text}", "dim")]
        if event.what == "waiting":
            return [paint(f"… {event.task} is {event.text}; waiting", "dim")]
        if event.what == "stopped" or event.ended is None:
            return [paint(f"■ stopping: {event.text}", "yellow")]
        ended = event.ended
        self._spent += ended.cost_usd or 0.0
        figures = [ended.model, f"{ended.duration_ms / 1000:.1f} s"]
        figures += [f"${ended.cost_usd:.2f}"] if ended.cost_usd is not None else []
        figures += [f"on {ended.task.branch}"] if ended.result == "done" and ended.task.branch else []
        figures += [f"so far ${self._spent:.2f}"] if self._spent else []
        sign, color = ("✓", "green") if ended.result == "done" else ("✗", "red")
        lines = [paint(f"{sign} {event.task}  {ended.result}", color) + f"  {'  '.join(one for one in figures if one)}"]
        lines += [f"  {ended.reason}"] if ended.reason else []
        if ended.debrief:
            lines += [f"  learnt {id}" for id in ended.debrief.learnings]
        if ended.task.status == "escalated":
            lines.append(paint("  it waits for a person: `learnt escalations`", "yellow"))
        return lines


def _summary_record(summary: Summary) -> dict[str, Any]:
    attempts = [
        {
            "task": ended.task.id,
            "attempt": ended.attempt,
            "result": ended.result,
            "model": ended.model,
            "cost_usd": ended.cost_usd,
            "duration_ms": ended.duration_ms,
        }
        for ended in summary.ended
    ]
    fields = {name: value for name, value in summary.as_dict().items() if name != "ended"}
    return {"id": "run", **fields, "attempts": attempts}


def _tell_summary(summary: Summary) -> None:
    if not summary.ended:
        say(f"Nothing was done: {summary.stopped or 'no task is ready'}.")
        return
    failed = sum(ended.result in ("failed", "incomplete") for ended in summary.ended)
    cost = f", ${summary.cost_usd:.2f}" if summary.cost_usd else ""
    ways = f"{counted(summary.done, 'task')} done, {counted(failed, 'attempt')} failed"
    say(f"\n{counted(len(summary.ended), 'attempt')}: {ways}{cost}, {summary.duration_ms / 1000:.1f} s.")
    branches = [ended.task.branch for ended in summary.ended if ended.result == "done" and ended.task.branch]
    if branches:
        say(f"`git merge BRANCH` brings in what was done: {', '.join(branches)}")
    if summary.escalated:
        say(f"{_waiting(summary.escalated)} for a person: `learnt escalations`")
    if summary.stopped:
        say(f"Ended early: {summary.stopped}.")


def _ask_opinion(memory: Memory, summary: Summary) -> None:
    """At a terminal, ask once whether the learnings helped, if there were any; no answer is fine."""
    from learnt.doors.cli.keys import Keys, is_at_keyboard

    began = time.time_ns() // 1_000_000 - summary.duration_ms
    is_wanted = memory.settings.learnings_ask and summary.done and not summary.stopped.startswith(_STOPPED_BY)
    if not (is_wanted and is_at_keyboard() and is_terminal(sys.stderr)):
        return
    if not memory.work.were_given_learnings([ended.task.id for ended in summary.ended], since=began):
        return
    try:
        with Keys() as keys:
            keys.forget_typed_ahead()
            print(_QUESTION, end="", file=sys.stderr, flush=True)
            answer = _OPINIONS.get(keys.read(), "")
        print(answer, file=sys.stderr)
        if answer in OPINIONS:
            memory.review.tell_opinion(answer)
        elif answer:
            note("`ask = false` under [learnings] in learnt.toml switches this question off")
    except KeyboardInterrupt:
        print(file=sys.stderr)
    except LearntError as error:
        note(f"the answer could not be kept: {error.message}")  # the run itself went well


def _waiting(number: int) -> str:
    return "1 waits" if number == 1 else f"{number} wait"


def _in_background(arguments: argparse.Namespace, folder: str) -> int:
    """Start the same run without a terminal, and return once it is on its way."""
    words = ["--all"] if arguments.all else ["--tasks", str(arguments.tasks)]
    words += ["--jobs", str(arguments.jobs)] if arguments.jobs else []
    words += ["--budget-usd", str(arguments.budget_usd)] if arguments.budget_usd else []
    words += ["--max-iterations", str(arguments.max_iterations)] if arguments.max_iterations else []
    run = runs.start([sys.executable, "-m", "learnt", "work", *words], folder)
    if arguments.json:
        show_json({"id": f"run_{run.pid}", **run.as_dict()})
    else:
        say(f"Working in the background, process {run.pid}. `learnt status` shows how it goes, `learnt stop` ends it.")
    return 0


def status_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="show it once, also on a terminal")


def status_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        state = _state(memory)
        if arguments.json:
            show_json(state)
            return
        if is_terminal() and not arguments.once and _goes_on(state):
            state = _watch(memory, state)
        _show_state(state)


def _goes_on(state: dict[str, Any]) -> bool:
    return bool(state["running"] or state["runs"])


def _watch(memory: Memory, state: dict[str, Any]) -> dict[str, Any]:
    """Show how it goes on a screen of its own until nothing goes on or the person has seen enough; return the last."""
    sys.stdout.write(_OTHER_SCREEN)
    try:
        while _goes_on(state):
            say(_CLEARED + paint("learnt status; Ctrl-C ends it", "dim"))
            _show_state(state)
            sys.stdout.flush()
            time.sleep(_GLANCE_S)
            state = _state(memory)
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write(_OWN_SCREEN)
        sys.stdout.flush()
    return state


def _state(memory: Memory) -> dict[str, Any]:
    now = time.time_ns() // 1_000_000
    folder = memory.folder
    running = []
    for claim in memory.work.claims():
        task = memory.tasks.get(claim.task)
        running.append(
            {
                "task": task.id,
                "title": task.title,
                "attempt": claim.attempt,
                "number": len(memory.tasks.attempts(task.id)) + 1,
                "model": claim.model,
                "model_reason": claim.model_reason,
                "seconds": max(0, now - claim.started_at) // 1000,
                "host": claim.host,
                "pid": claim.pid,
                "held": claim.held_until >= now,
                "last": _last_line(os.path.join(folder, LOGS, f"{claim.attempt}.log")),
            }
        )
    return {
        "id": "status",
        "running": running,
        "runs": [run.as_dict() for run in runs.living(folder)],
        "last_background": _last_line(os.path.join(folder, runs.LOG)),
        "tasks": memory.tasks.counts(),
        "escalations": len(memory.tasks.escalations()),
        "learnings_file": state_record(memory.file.state()),
        "review": memory.review.counts(),
    }


def _show_state(state: dict[str, Any]) -> None:
    for one in state["running"]:
        lost = "" if one["held"] else "  (no sign of life from its worker)"
        figures = f"attempt {one['number']}  {one['model']}  {one['seconds']} s  {one['host']}:{one['pid']}"
        say(f"{paint('▶ ' + one['task'], 'bold')}  {one['title']}  {figures}{lost}")
        if one["last"]:
            say(paint(f"  {one['last']}", "dim"))
    counts = ", ".join(f"{count} {status}" for status, count in sorted(state["tasks"].items()))
    say(f"Tasks: {counts or 'none'}.")
    if state["escalations"]:
        say(f"{_waiting(state['escalations'])} for you: `learnt escalations`")
    line = state_line(state["learnings_file"])
    if line:
        say(line)
    if state["review"]:
        say(f"{told_waiting(state['review'])}: `learnt review`")
    if not state["runs"]:
        say("Nobody works on this machine now.")
        if state["last_background"]:
            say(paint(f"The last run in the background ended with: {state['last_background']}", "dim"))


def _last_line(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 500))
            return file.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
    except OSError:
        return ""


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes no arguments of its own."""


def stop_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        folder = memory.folder
    asked = runs.living(folder)
    for run in asked:
        runs.ask_to_stop(run)
    deadline = time.monotonic() + _STOP_PATIENCE_S
    while time.monotonic() < deadline and any(runs.is_alive(run) for run in asked):
        time.sleep(0.05)
    left = [run.pid for run in asked if runs.is_alive(run)]
    if left:
        raise LearntError(f"process {left[0]} does not end", hint=f"look at it: `ps -p {left[0]}`")
    if arguments.json:
        show_json({"id": "stop", "stopped": [run.pid for run in asked]})
    else:
        say(f"Stopped {counted(len(asked), 'run')}." if asked else "Nobody works on this machine now.")


def log_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="a task or an attempt; the latest attempt if not given")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as more is written")


def log_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        attempt, path = _log_of(memory, arguments.id)
        if arguments.json:
            with open(path, encoding="utf-8", errors="replace") as file:
                show_json({"id": attempt, "path": path, "lines": file.read().splitlines()})
            return
        with open(path, encoding="utf-8", errors="replace") as file:
            while True:
                sys.stdout.write(file.read())
                sys.stdout.flush()
                if not arguments.follow or all(claim.attempt != attempt for claim in memory.work.claims()):
                    return
                time.sleep(_GLANCE_S / 4)


def _log_of(memory: Memory, id: str | None) -> tuple[str, str]:
    folder = os.path.join(memory.folder, LOGS)
    if id is None:
        names = os.listdir(folder) if os.path.isdir(folder) else []
        newest = max(names, key=lambda name: os.path.getmtime(os.path.join(folder, name)), default="")
        attempts = [newest.removesuffix(".log")]
    elif id.startswith("attempt_"):
        attempts = [id]
    else:
        held = [claim.attempt for claim in memory.work.claims() if claim.task == id]
        attempts = held or [one.id for one in memory.tasks.attempts(memory.tasks.get(id).id)]
    for attempt in attempts:
        path = os.path.join(folder, f"{attempt}.log")
        if os.path.isfile(path):
            return attempt, path
    raise WrongRequest("there is no log of that on this machine", hint="`learnt task show ID` shows the attempts")


def strategy_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", default="", metavar="TYPE", help="only for this type of task")
    parser.add_argument("--plot", metavar="FILE", help="write a picture of success against cost (SVG)")


def strategy_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        picture = memory.work.picture(types=[arguments.type] if arguments.type else ())
        chosen_by = memory.settings.strategy
    if arguments.plot:
        from learnt.strategy.plot import plot

        _write(arguments.plot, plot(picture.figures))
        note(f"wrote {arguments.plot}")
    figures = [one for one in picture.by_type if arguments.type in ("", one.type)]
    if arguments.json:
        choices = [{"type": type, "model": one.model, "reason": one.reason} for type, one in picture.choices]
        shown = [_figure_record(one) for one in (*picture.figures, *figures)]
        show_json({"id": "strategy", "strategy": chosen_by, "figures": shown, "choices": choices})
        return
    if figures:
        heads = ("model", "type", "done", "of", "share", "mean cost", "median time")
        show_table(heads, [*map(_row, figures)], wide=0, always_heads=True)
    else:
        say(f"No attempts{' at tasks of this type' if arguments.type else ''} are recorded yet.")
    for type, choice in picture.choices:
        say(f"\nFor a new `{type}` task, `{chosen_by}` starts with {choice.model or 'the default of the client'}:")
        say(f"  {choice.reason}")


def _row(figure: Figure) -> tuple[str, ...]:
    low, high = figure.share.interval
    return (
        figure.model or "(the default)",
        figure.type,
        f"{figure.share.done:.0f}",
        f"{figure.share.attempts:.0f}",
        f"{figure.share.share:.0%} ({low:.0%} to {high:.0%})",
        f"${figure.mean_cost_usd:.3f}" if figure.mean_cost_usd is not None else "",
        f"{figure.median_ms / 1000:.0f} s" if figure.median_ms is not None else "",
    )


def _figure_record(figure: Figure) -> dict[str, Any]:
    low, high = figure.share.interval
    return {
        "model": figure.model,
        "type": figure.type,
        "done": figure.share.done,
        "attempts": figure.share.attempts,
        "share": figure.share.share,
        "interval": [low, high],
        "mean_cost_usd": figure.mean_cost_usd,
        "total_cost_usd": figure.total_cost_usd,
        "median_ms": figure.median_ms,
    }


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise WrongRequest(f"cannot write {path}: {error.strerror}", hint="choose another file") from None
