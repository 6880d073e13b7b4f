"""The account of a run: each task by its title, what was learnt, what waits for a person, and the cost by model."""

from __future__ import annotations

from typing import Any

from learnt.doors.output import format_count, now_ms, paint, say
from learnt.loop.attempt import AttemptResult
from learnt.loop.work import Summary
from learnt.memory import Memory
from learnt.model import Value
from learnt.store.reviews import Escalation

_ATTEMPT_FIELDS = ("attempt", "result", "model", "cost_usd", "duration_ms")
_SIGNS = {"done": ("✓", "green"), "interrupted": ("…", "dim")}


class ModelCost(Value):
    """What a model's attempts in a run came to."""

    model: str
    attempts: int
    done: int
    cost_usd: float
    unknown: int
    """How many attempts cost what nobody tells."""


class RunAccount(Value):
    """A run's result in words that need no ids."""

    summary: Summary
    tasks: tuple[tuple[AttemptResult, int, float], ...] = ()
    """Each task's last attempt in the run, how many there were, and what they cost."""
    learnt: tuple[tuple[str, str], ...] = ()
    """The new learnings: id and title."""
    waiting: tuple[tuple[Escalation, str], ...] = ()
    """The questions for a person that came up, each with the title of what it is about."""
    models: tuple[ModelCost, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Return the account for JSON."""
        fields = {name: value for name, value in self.summary.as_dict().items() if name != "ended"}
        attempts = [
            {"task": ended.task.id, **{name: getattr(ended, name) for name in _ATTEMPT_FIELDS}}
            for ended in self.summary.ended
            if ended.debrief
        ]
        tasks = [
            {
                "id": last.task.id,
                "title": last.task.title,
                "status": last.task.status,
                "attempts": count,
                "cost_usd": usd,
            }
            for last, count, usd in self.tasks
        ]
        waiting = [
            {"id": asked.id, "subject": asked.subject, "title": title, "question": asked.question}
            for asked, title in self.waiting
        ]
        learnt = [{"id": id, "title": title} for id, title in self.learnt]
        models = [model.as_dict() for model in self.models]
        account = {"tasks": tasks, "learnt": learnt, "waiting": waiting, "models": models}
        return {"id": "run", **fields, "attempts": attempts, **account}


def make_account(memory: Memory, summary: Summary) -> RunAccount:
    """Return the account of a run that has ended."""
    attempts: dict[str, list[AttemptResult]] = {}
    models: dict[str, list[AttemptResult]] = {}
    for ended in summary.ended:
        attempts.setdefault(ended.task.id, []).append(ended)
        if ended.debrief:
            models.setdefault(ended.model, []).append(ended)
    learnt = [id for ended in summary.ended if ended.debrief for id in ended.debrief.learnings]
    titles = memory.titles(learnt)
    began = now_ms() - summary.duration_ms
    asked = [one for one in memory.tasks.escalations() if one.subject in attempts or one.created_at >= began]
    names = {own[-1].task.id: own[-1].task.title for own in attempts.values()}
    names |= memory.titles([one.subject for one in asked])
    return RunAccount(
        summary=summary,
        # A cap may have ended a task after its last attempt.
        tasks=tuple(
            (own[-1].replace(task=memory.tasks.get(task)), sum(ended.debrief is not None for ended in own), _cost(own))
            for task, own in attempts.items()
        ),
        learnt=tuple((id, titles[id]) for id in dict.fromkeys(learnt) if id in titles),
        waiting=tuple((one, names.get(one.subject) or _title_of(memory, one.subject)) for one in asked),
        models=tuple(
            ModelCost(
                model=model,
                attempts=len(own),
                done=sum(ended.result == "done" for ended in own),
                cost_usd=_cost(own),
                unknown=sum(ended.cost_usd is None for ended in own),
            )
            for model, own in sorted(models.items())
        ),
    )


def print_account(account: RunAccount) -> None:
    """Print the account of a run. Its last line says how the run ended."""
    summary = account.summary
    if not summary.ended:
        say(f"Nothing was done: {summary.stopped or 'no task is ready'}.")
        return
    say("")
    for last, count, usd in account.tasks:
        sign, color = _SIGNS.get(last.result, ("✗", "red"))
        figures = [format_count(count, "attempt") if count else "", f"${usd:.2f}" if usd else ""]
        figures += [last.task.status if last.result != "done" else ""]
        say(f"  {paint(sign, color)} {last.task.title} ({last.task.id}): {', '.join(filter(None, figures))}")
    _print_list("Learnt", [f"{title} ({id})" for id, title in account.learnt])
    _print_list(
        f"{format_count(len(account.waiting), 'question')} for a person to decide (`learnt escalations`)",
        [f"{title} ({asked.id})" for asked, title in account.waiting],
    )
    if summary.cost_usd or len(account.models) > 1:
        _print_list("By model", [_describe_model(model) for model in account.models])
    _print_remarks(summary)
    _print_end(account)


def _print_remarks(summary: Summary) -> None:
    branches = [ended.task.branch for ended in summary.ended if ended.result == "done" and ended.task.branch]
    if branches:
        say(f"`git merge BRANCH` merges the finished work: {', '.join(branches)}")
    if summary.spent_usd > summary.cost_usd:
        say(f"Attempts of unknown cost count at their model's price: ${summary.spent_usd:.2f} in all.")
    if summary.over_usd:
        say(f"${summary.over_usd:.2f} more than the budget: what an attempt really costs is known when it has ended.")


def _print_end(account: RunAccount) -> None:
    summary = account.summary
    failed = sum(ended.result in ("failed", "incomplete") for ended in summary.ended)
    cost = f", ${summary.cost_usd:.2f}" if summary.cost_usd else ""
    results = f"{format_count(summary.done, 'task')} done, {format_count(failed, 'attempt')} failed"
    made = sum(count for _, count, _ in account.tasks)
    say(f"{format_count(made, 'attempt')}: {results}{cost}, {summary.duration_ms / 1000:.1f} s.")
    if summary.stopped:
        say(f"Ended early: {summary.stopped}.")


def _print_list(heading: str, lines: list[str]) -> None:
    if lines:
        say(f"{heading}:")
    for line in lines:
        say(f"  {line}")


def _describe_model(model: ModelCost) -> str:
    cost = f"${model.cost_usd:.2f}" if model.unknown < model.attempts else "cost unknown"
    also = (
        f" and {format_count(model.unknown, 'attempt')} of unknown cost" if 0 < model.unknown < model.attempts else ""
    )
    name = model.model or "the client's default"
    return f"{name}: {format_count(model.attempts, 'attempt')}, {model.done} done, {cost}{also}"


def _cost(attempts: list[AttemptResult]) -> float:
    return sum(ended.cost_usd or 0.0 for ended in attempts)


def _title_of(memory: Memory, subject: str) -> str:
    return next((task.title for task in memory.tasks.select(queued=False) if task.id == subject), subject)
