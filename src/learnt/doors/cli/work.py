"""The loop's commands: work, status, stop, log, strategy."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from typing import Any, TextIO

from learnt.clients import registry
from learnt.doors.cli.arguments import Arguments, Parser, open_memory, print_result
from learnt.doors.cli.files import format_state, state_record
from learnt.doors.cli.review import describe_open
from learnt.doors.cli.tasks import report_blocked
from learnt.doors.cli.terminal import Keys, is_at_keyboard
from learnt.doors.cli.transfer import write_whole
from learnt.doors.cli.work_account import make_account, print_account
from learnt.doors.cli.work_shown import make_printer
from learnt.doors.output import format_count, is_terminal, note, now_ms, paint, printable, say, show_json, show_table
from learnt.errors import LearntError, WrongRequest
from learnt.flow.review import OPINIONS
from learnt.loop import runs
from learnt.loop.attempt import LOGS, RUNNING, check_agent
from learnt.loop.work import LoopRun, Plan, Summary
from learnt.memory import Memory
from learnt.settings import SETTINGS, Model, Settings
from learnt.strategy.choose_model import format_money
from learnt.strategy.figures import Figure, Share
from learnt.strategy.plot import plot
from learnt.system.files import list_names, open_private, read_end

_MAX_JOBS = next(setting.most for setting in SETTINGS if setting.key == "work.jobs")
_STOPPED_BY = "stopped by "
_POLL_S = 1.0
_QUESTION = "Did the learnings help? [y]es / [n]o / [u]nsure / [d]on't ask again "
_OPINIONS = {"y": "yes", "n": "no", "u": "unsure", "d": "don't ask again"}
_ALTERNATE_SCREEN, _MAIN_SCREEN, _CLEAR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H\x1b[J"


def work_arguments(parser: Parser) -> None:
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--tasks", type=int, metavar="N", help="how many tasks; default: 1")
    how_many.add_argument("--all", action="store_true", help="work until no task is left")
    parser.add_argument("--jobs", type=int, metavar="J", help="how many agents at once (setting `work.jobs`)")
    parser.add_argument(
        "--budget-usd", type=float, metavar="X", help="start no attempt that may cost more than is left of X"
    )
    parser.add_argument("--max-iterations", type=int, metavar="N", help="make at most N attempts")
    parser.add_argument("--background", action="store_true", help="run in the background")


def work_run(arguments: Arguments) -> int:
    _check_limits(arguments)
    with open_memory(arguments) as memory:
        root, folder, settings = memory.root, memory.folder, memory.settings
        if arguments.background:
            check_agent(memory)  # now, while a person can see the error
    plan = Plan(
        tasks=0 if arguments.all else arguments.tasks or 1,
        jobs=arguments.jobs or settings.work_jobs,
        attempts=arguments.max_iterations or 0,
        budget_usd=arguments.budget_usd or 0.0,
    )
    if plan.budget_usd:
        _warn_of_unknown_costs(settings)
    if plan.jobs > 1 and settings.work_isolation == "none":
        note('several agents will work in the same folder; `isolation = "worktree"` under [work] gives each its own')
    if arguments.background:
        return _start_in_background(arguments, folder)
    printer = make_printer(plan, quiet=arguments.json)
    run = LoopRun(root, plan, report=printer.show)
    endings = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    before = {
        number: signal.signal(number, lambda number, _: run.stop(_STOPPED_BY + signal.Signals(number).name))
        for number in endings
    }
    with runs.register(folder):
        with printer:
            summary = run.run()
        _show_account(arguments, summary)
        sys.stdout.flush()  # whoever sees that the run has ended can read its account
    if not arguments.json:
        for number, handler in before.items():
            signal.signal(number, handler)  # from here on, signals only interrupt the question
        with open_memory(arguments) as memory:
            _ask_opinion(memory, summary)
    return 1 if summary.escalated or summary.stopped else 0


def _show_account(arguments: Arguments, summary: Summary) -> None:
    with open_memory(arguments) as memory:
        account = make_account(memory, summary)
        if arguments.json:
            show_json(account.as_record())
            return
        report_blocked(memory.tasks.blocked())
        state = format_state(state_record(memory.file.state()))
        if state:
            note(state)
        print_account(account)  # last, because `status` shows how a run in the background ended


def _warn_of_unknown_costs(settings: Settings) -> None:
    """Say which attempts a budget cannot limit, because nobody tells what they cost."""
    models = settings.models or (Model(name="the client's default model"),)
    reported = registry.get(settings.work_agent, "run").reports
    names = ", ".join(model.name for model in models if not model.is_priced(reported))
    if names:
        note(f"what attempts with {names} cost is unknown, so the budget does not limit them: set prices in [[models]]")


def _check_limits(arguments: Arguments) -> None:
    hint = "`learnt work --help` shows the options"
    for name in ("tasks", "jobs", "max_iterations"):
        value = getattr(arguments, name)
        maximum = _MAX_JOBS if name == "jobs" else math.inf
        if value is not None and not 1 <= value <= maximum:
            bounds = "at least 1" if maximum == math.inf else f"from 1 to {maximum}"
            raise WrongRequest(f"--{name.replace('_', '-')} must be {bounds}, not {value}", hint=hint)
    budget_usd = arguments.budget_usd
    if budget_usd is not None and not 0 < budget_usd < 1e9:
        raise WrongRequest(f"--budget-usd must be above 0 and below 1e9, not {budget_usd}", hint=hint)


def _ask_opinion(memory: Memory, summary: Summary) -> None:
    """At a terminal, ask whether the learnings helped, if agents were given any; an answer is optional."""
    began = now_ms() - summary.duration_ms
    is_wanted = memory.settings.learnings_ask and summary.done and not summary.stopped.startswith(_STOPPED_BY)
    if not (is_wanted and is_at_keyboard() and is_terminal(sys.stderr)):
        return
    if not memory.work.were_given_learnings([ended.task.id for ended in summary.ended], since=began):
        return
    try:
        with Keys() as keys:
            keys.discard_input()
            print(_QUESTION, end="", file=sys.stderr, flush=True)
            answer = _OPINIONS.get(keys.read(), "")
        print(answer, file=sys.stderr)
        if answer in OPINIONS:
            memory.review.record_opinion(answer)
        elif answer:
            note("`ask = false` under [learnings] in learnt.toml turns this question off")
    except KeyboardInterrupt:
        print(file=sys.stderr)
    except LearntError as error:
        note(f"the answer could not be saved: {error.message}")  # the run itself went well


def _start_in_background(arguments: Arguments, folder: str) -> int:
    """Start the same run as a background process."""
    words = ["--all"] if arguments.all else ["--tasks", str(arguments.tasks or 1)]
    for name in ("jobs", "budget_usd", "max_iterations"):
        if getattr(arguments, name):
            words += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
    run = runs.start([sys.executable, "-m", "learnt", "work", *words], folder)
    line = f"Working in the background, process {run.pid}. `learnt status` shows its progress, `learnt stop` stops it."
    print_result(arguments, {"id": f"run_{run.pid}", **run.as_dict()}, line)
    return 0


def status_arguments(parser: Parser) -> None:
    parser.add_argument("--once", action="store_true", help="print once, even on a terminal")


def status_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        state = _read_state(memory)
        if arguments.json:
            show_json(state)
            return
        if is_terminal() and not arguments.once and _is_active(state):
            state = _watch(memory, state)
        _show_state(state)


def _is_active(state: dict[str, Any]) -> bool:
    return bool(state["running"] or state["runs"])


def _watch(memory: Memory, state: dict[str, Any]) -> dict[str, Any]:
    """Show the state on an alternate screen until all work ends or the person presses Ctrl-C; return the last state."""
    sys.stdout.write(_ALTERNATE_SCREEN)
    try:
        while _is_active(state):
            sys.stdout.write(_CLEAR)
            say(paint("learnt status; Ctrl-C stops it", "dim"))
            _show_state(state)
            sys.stdout.flush()
            time.sleep(_POLL_S)
            state = _read_state(memory)
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write(_MAIN_SCREEN)
        sys.stdout.flush()
    return state


def _read_state(memory: Memory) -> dict[str, Any]:
    now = now_ms()
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
                "last": _read_last_line(os.path.join(folder, LOGS, f"{claim.attempt}.log")),
            }
        )
    return {
        "id": "status",
        "running": running,
        "runs": [run.as_dict() for run in runs.living(folder)],
        "last_background": _read_last_line(os.path.join(folder, runs.LOG)),
        "tasks": memory.tasks.counts(),
        "escalations": len(memory.tasks.escalations()),
        "learnings_file": state_record(memory.file.state()),
        "review": memory.review.counts(),
    }


def _show_state(state: dict[str, Any]) -> None:
    for run in state["running"]:
        lost = "" if run["held"] else "  (its worker does not respond)"
        figures = f"attempt {run['number']}  {run['model']}  {run['seconds']} s  {run['host']}:{run['pid']}"
        say(f"{paint('▶ ' + run['task'], 'bold')}  {run['title']}  {figures}{lost}")
        if run["last"]:
            say(paint(f"  {run['last']}", "dim"))
    counts = ", ".join(f"{count} {status}" for status, count in sorted(state["tasks"].items()))
    say(f"Tasks: {counts or 'none'}.")
    if state["escalations"]:
        say(f"{format_count(state['escalations'], 'escalation')} for you to decide: `learnt escalations`")
    line = format_state(state["learnings_file"])
    if line:
        say(line)
    if state["review"]:
        say(f"{describe_open(state['review'])}: `learnt review`")
    if not state["runs"]:
        say("No run is active on this machine.")
        if state["last_background"]:
            say(paint(f"The last background run ended with: {state['last_background']}", "dim"))


def _read_last_line(path: str) -> str:
    try:
        return read_end(path, max_bytes=500).decode("utf-8", "replace").strip().rpartition("\n")[2]
    except OSError:
        return ""


def stop_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        folder = memory.folder
    stopped = runs.stop_all(folder)
    line = f"Stopped {format_count(len(stopped), 'run')}." if stopped else "No run is active on this machine."
    print_result(arguments, {"id": "stop", "stopped": [run.pid for run in stopped]}, line)


def log_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="a task or an attempt; default: the latest attempt")
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing as the log grows")


def log_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        attempt, path = _find_log(memory, arguments.id)
        with _open_log(path) as file:
            if arguments.json:
                show_json({"id": attempt, "path": path, "lines": file.read().splitlines()})
                return
            scratch = os.path.join(memory.folder, RUNNING, attempt)
            while True:
                # Asked before the log is read: its last line is written after the task has been released.
                is_running = arguments.follow and _is_running(memory, attempt, scratch)
                sys.stdout.write(printable(file.read()))
                sys.stdout.flush()
                if not is_running:
                    return
                time.sleep(_POLL_S / 4)


def _is_running(memory: Memory, attempt: str, scratch: str) -> bool:
    return os.path.isdir(scratch) or any(claim.attempt == attempt for claim in memory.work.claims())


def _open_log(path: str) -> TextIO:
    try:
        return open(path, encoding="utf-8", errors="replace", opener=open_private)
    except OSError as error:
        raise LearntError(f"cannot read {path}: {error.strerror}", hint="look at the file, or remove it") from None


def _find_log(memory: Memory, id: str | None) -> tuple[str, str]:
    folder = os.path.join(memory.folder, LOGS)
    if id is None:
        names = list_names(folder)
        newest = max(names, key=lambda name: os.lstat(os.path.join(folder, name)).st_mtime, default="")
        attempts = [newest.removesuffix(".log")]
    elif id.startswith("attempt_"):
        attempts = [id]
    else:
        held = [claim.attempt for claim in memory.work.claims() if claim.task == id]
        made = [attempt.id for attempt in memory.tasks.attempts(memory.tasks.get(id).id)]
        # What could not be begun is no attempt, but there is a question about it.
        asked = [asked.detail.get("attempt", "") for asked in memory.tasks.escalations(status=None, subject=id)]
        attempts = held or sorted({*made, *asked}, reverse=True)
    for attempt in attempts:
        path = os.path.join(folder, f"{attempt}.log")
        if os.path.lexists(path):
            return attempt, path
    raise WrongRequest("there is no such log on this machine", hint="`learnt task show ID` shows the attempts")


def strategy_arguments(parser: Parser) -> None:
    parser.add_argument("--type", default="", metavar="TYPE", help="only for this type of task")
    parser.add_argument("--plot", metavar="FILE", help="write a chart of success against cost (SVG)")


def strategy_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        picture = memory.work.model_overview(types=[arguments.type] if arguments.type else ())
        chosen_by = memory.settings.strategy
    if arguments.plot:
        write_whole(arguments.plot, [plot(picture.figures)])
        note(f"wrote {arguments.plot}")
    figures = [figure for figure in picture.by_type if arguments.type in ("", figure.type)]
    if arguments.json:
        choices = [
            {"type": type, "model": choice.model, "reason": choice.reason, "draws": dict(picture.draws[type])}
            for type, choice in picture.choices
        ]
        records = [_figure_record(figure) for figure in (*picture.figures, *figures)]
        show_json({"id": "strategy", "strategy": chosen_by, "figures": records, "choices": choices})
        return
    if figures:
        heads = ("model", "type", "done", "of", "share", "first try", "after a failure", "mean cost", "median time")
        show_table(heads, [*map(_table_row, figures)], wide=0, always_heads=True)
    else:
        say(f"No attempts{' at tasks of this type' if arguments.type else ''} are recorded yet.")
    for type, choice in picture.choices:
        model = choice.model or "the client's default"
        say(f"\nFor a new `{type}` task, `{chosen_by}` starts with {model}:")
        say(f"  {choice.reason}")
        others = {name: share for name, share in picture.draws[type].items() if name != choice.model}
        if others:
            often = ", ".join(f"{name} {share:.0%}" for name, share in others.items())
            say(f"  To learn more about the others, some tasks start with them: {often}.")


def _format_tries(share: Share, cost_usd: float | None) -> str:
    """Return a share as the reasons for choices name it."""
    cost = f" at {format_money(cost_usd)}" if cost_usd is not None else ""
    return f"{share.done:.0f} of {share.attempts:.0f}{cost}" if share.attempts else ""


def _table_row(figure: Figure) -> tuple[str, ...]:
    low, high = figure.share.interval
    return (
        figure.model or "(the default)",
        figure.type,
        f"{figure.share.done:.0f}",
        f"{figure.share.attempts:.0f}",
        f"{figure.share.share:.0%} ({low:.0%} to {high:.0%})",
        _format_tries(figure.first, figure.first_cost_usd),
        _format_tries(figure.later, figure.later_cost_usd),
        f"${figure.mean_cost_usd:.3f}" if figure.mean_cost_usd is not None else "",
        f"{figure.median_ms / 1000:.0f} s" if figure.median_ms is not None else "",
    )


def _figure_record(figure: Figure) -> dict[str, Any]:
    return {
        "model": figure.model,
        "type": figure.type,
        "done": figure.share.done,
        "attempts": figure.share.attempts,
        "share": figure.share.share,
        "interval": list(figure.share.interval),
        "mean_cost_usd": figure.mean_cost_usd,
        "total_cost_usd": figure.total_cost_usd,
        "median_ms": figure.median_ms,
        "first": {"done": figure.first.done, "attempts": figure.first.attempts, "cost_usd": figure.first_cost_usd},
        "later": {"done": figure.later.done, "attempts": figure.later.attempts, "cost_usd": figure.later_cost_usd},
    }
