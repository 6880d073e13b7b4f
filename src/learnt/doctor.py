"""Examine a project: its settings, its stores, the agent that works for it and the clients that use it.

Nothing here changes anything, and nothing that is broken stops the examination: each part is examined on its own. The
only program that is started is a client that alone knows which hooks it trusts, where it is set up.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.util import find_spec

from learnt import __version__, config, project
from learnt.clients import registry
from learnt.clients.kit import run, setup
from learnt.clients.kit.run import RunRequest
from learnt.clients.kit.setup import ClientState
from learnt.config import Configuration
from learnt.errors import LearntError
from learnt.flow import context, install
from learnt.flow.diagnosis import (
    Clock,
    Diagnosis,
    can_note_hooks,
    examine_agents,
    examine_store,
    failed,
    fine,
    last_brief,
    queued_tasks,
    wrong,
)
from learnt.flow.disk import FILE, path_of, read
from learnt.flow.tasks import ENDED
from learnt.learnings_file.read import parse
from learnt.project import Project
from learnt.settings import Settings
from learnt.store import fired
from learnt.store.activity import Entry
from learnt.store.fired import Fired
from learnt.strategy.choose_model import Facts, choose
from learnt.strategy.figures import TrackRecord
from learnt.text.redact import without_password
from learnt.text.templates import split_command_line
from learnt.text.times import ago

Flaws = Callable[[str, Collection[str]], Iterable[tuple[str, str]]]
_SOME_MODEL = "some-model"
_BRIEF_FACTS = ("id", "at", "occasion", "learnings", "tokens")
_NOT_BY_US = (
    "`learnt install` has written nothing here: a plugin or a person set its hooks up, or they were taken out since"
)


def examine(start: str, *, clock: Clock, prompts: Flaws) -> Iterator[Diagnosis]:
    """Yield what is found for the project around a folder and for the user-wide store.

    `prompts` says what is wrong with the templates below a store's folder, given the types that tasks have.
    """
    yield fine("versions", f"learnt {__version__}, Python {platform.python_version()}")
    environ = dict(os.environ)
    here = project.find_project(start)
    settings, known = Settings(), False
    try:
        configuration = config.load(context.settings_files(here.root if here else None), environ)
    except LearntError as error:
        yield failed("settings", error)
    else:
        settings, known = configuration.settings, True
        yield from _examine_settings(configuration)
    if here is None:
        yield wrong("project", "none around this folder", "`learnt init` makes one")
    else:
        place = context.own_place(here, settings)
        yield from examine_store("store", place, clock)
        if known:
            known_tasks = queued_tasks(place, clock)
            yield from _examine_work(here, settings, open_tasks=sum(task.status not in ENDED for task in known_tasks))
            yield from _examine_provider(settings, project.user_settings_file(environ))
            yield from examine_agents(configuration, place, clock)
            yield from _examine_files(here)
            for detail, remedy in prompts(place.folder, {task.type for task in known_tasks}):
                yield wrong("work: prompts", detail, remedy)
    yield from _examine_clients(start, here, settings, clock)
    user = context.user_place(settings)
    if user.exists():
        yield from examine_store("user-wide store", user, clock)
    for path in settings.sources:
        try:
            place = context.source_place(path)
        except LearntError as error:
            yield failed("source", error)
        else:
            yield from examine_store(f"source {place.scope}", place, clock)


def _examine_settings(configuration: Configuration) -> Iterator[Diagnosis]:
    yield fine("settings", "valid; `learnt config` shows them")
    for origin in configuration.origins:
        in_file = os.path.isfile(origin.origin)
        if origin.setting.key == "database" and in_file and without_password(origin.value) != origin.value:
            remedy = "move the address into LEARNT_DATABASE, or the password into ~/.pgpass"
            yield wrong("settings", f"{origin.origin} holds a password", remedy)


def _examine_clients(start: str, here: Project | None, settings: Settings, clock: Clock) -> Iterator[Diagnosis]:
    """Yield for each client whether it is set up, trusts our hooks, and when they last did what."""
    events = fired.read(here.folder) if here else {}
    states = list(install.installed(start, ask=True))
    for installed in states:
        last = events.get(registry.client_name(installed.client))
        state = _correct(installed, last)
        if state.twice or here is None or not setup.has_hooks(state.client):
            yield Diagnosis(subject=f"client {state.client}", fine=state.fine, detail=state.detail, remedy=state.remedy)
        else:
            yield _examine_client(state, last, here, settings, clock)
    known = {registry.client_name(state.client) for state in states}
    for name, last in events.items():
        if here is not None and name not in known:
            client = registry.find(name)
            state = ClientState(client=registry.setup_name(client) if client else name, fine=True, detail=_NOT_BY_US)
            yield _examine_client(state, last, here, settings, clock, installed=False)


def _examine_client(
    state: ClientState, last: Fired | None, here: Project, settings: Settings, clock: Clock, *, installed: bool = True
) -> Diagnosis:
    brief = last_brief(context.own_place(here, settings), registry.client_name(state.client), clock)
    detail, remedy = _describe_firing(last, brief, now=clock(), deadline_ms=settings.hook_deadline_ms)
    if last is None and not can_note_hooks(here.folder):
        detail = f"whether a hook of it has fired cannot be known: {here.folder} is read-only"
        remedy = "make it writable for you"
    elif last is None and state.fine:
        remedy = f"start it in this project and send a prompt; if it has not fired then: {state.next_step}"
    facts = {
        "client": state.client,
        "installed": installed,
        "trusted": state.trusted,
        "last_fired": last and last.as_dict(),
        "last_brief": brief and {name: getattr(brief, name) for name in _BRIEF_FACTS},
    }
    return Diagnosis(
        subject=f"client {state.client}",
        fine=state.fine,
        detail=f"{state.detail}; {detail}",
        remedy=state.remedy or remedy,
        facts=facts,
    )


def _correct(state: ClientState, last: Fired | None) -> ClientState:
    """Return the state of a client; a hook that fired since its file was written proves that the client runs them."""
    if last is None or not state.unheard:
        return state
    try:
        if last.at < max(os.stat(path).st_mtime for path in state.unheard) * 1000:
            return state
    except OSError:
        return state
    return state.replace(fine=True, detail=f"in {', '.join(state.unheard)}, and it runs them", remedy="", trusted=None)


def _describe_firing(last: Fired | None, brief: Entry | None, *, now: int, deadline_ms: int) -> tuple[str, str]:
    """Return in words when the hooks of a client last did what, and what to do about it."""
    briefed = ""
    if brief is not None:
        many = f"{brief.learnings} learning{'s' * (brief.learnings != 1)}, {brief.tokens} tokens"
        briefed = f"; last brief {ago(brief.at, now)} ({brief.occasion}): {many}"
    if last is None:
        return f"no hook of it has fired here yet{briefed}", ""
    took = f"took {last.duration_ms:.0f} ms and gave {last.chars:,} characters"
    remedy = ""
    if deadline_ms and last.duration_ms > deadline_ms / 2:
        remedy = (
            f"that was more than half of the {deadline_ms} ms after which a hook says nothing: "
            "set a larger `hook_deadline_ms`, or see what slows the machine down"
        )
    return f"last fired {ago(last.at, now)} ({last.event}), {took}{briefed}", remedy


def _examine_work(here: Project, settings: Settings, *, open_tasks: int) -> Iterator[Diagnosis]:
    """Yield whether `learnt work` could work; what it lacks is wrong only while there is something to do."""
    try:
        yield _needed(_examine_agent(here, settings), open_tasks)
        if settings.work_isolation == "worktree":
            yield _needed(_examine_git(here), open_tasks)
        yield from _examine_models(settings)
    except LearntError as error:
        yield _needed(failed("work: agent", error), open_tasks)


def _examine_provider(settings: Settings, own: str) -> Iterator[Diagnosis]:
    """Yield whether the model in the user's own settings file can be called, without calling it."""
    provider = settings.model_provider
    if provider == "none":
        return
    try:
        words = split_command_line(settings.model_command, setting=f"`command` under [model] in {own}")
    except LearntError as error:
        yield failed("model", error)
        return
    if provider == "command":
        model = shutil.which(words[0]) if words else None
        missing = f"`{words[0]}` is not on PATH" if words else "no command is set"
        remedy = f"set `command` under [model] in {own}"
    else:
        model = settings.model_name if find_spec(provider) else None
        missing = f"no `name` is set for {provider}" if find_spec(provider) else f"the package {provider} is missing"
        remedy = f"`pip install 'learnt[{provider}]'`, and set `name` under [model] in {own}"
    if not model:
        yield wrong("model", missing, remedy)
        return
    caps = f"at most ${settings.model_daily_cap_usd:g} a day, ${settings.model_monthly_cap_usd:g} a month"
    yield fine("model", f"{provider} asks {model}, {caps}; `learnt usage` shows the calls")


def _examine_files(here: Project) -> Iterator[Diagnosis]:
    """Yield a merge conflict in the project's learnings.md, or why it cannot be read."""
    path = path_of(here.root)
    try:
        content = read(path, here.root)
    except LearntError as error:
        yield failed(FILE, error)
        return
    if content is not None and parse(content.decode("utf-8")).conflict:
        yield wrong(FILE, f"{path} holds the markers of a merge conflict", "resolve it, then `learnt update`")


def _needed(diagnosis: Diagnosis, open_tasks: int) -> Diagnosis:
    if diagnosis.fine or open_tasks:
        return diagnosis
    return diagnosis.replace(fine=True, detail=f"{diagnosis.detail}; no task waits for it", remedy="")


def _examine_agent(here: Project, settings: Settings) -> Diagnosis:
    program = run.call(settings.work_agent, _request(here.root, settings)).argv[0]
    # A path is relative to the folder that the agent works in, a name is looked up on PATH.
    path = shutil.which(os.path.join(here.root, program) if os.path.dirname(program) else program)
    if path:
        return fine("work: agent", f"{settings.work_agent} is {path}")
    remedy = "install it, or set another `agent` under [work] in learnt.toml"
    where = "not there, or may not be executed" if os.path.dirname(program) else "not on PATH"
    return wrong("work: agent", f"`{program}` is {where}", remedy)


def _examine_git(here: Project) -> Diagnosis:
    remedy = '{}, or set `isolation = "none"` under [work] in learnt.toml'
    git = shutil.which("git")
    if git is None:
        detail = "git is not on PATH, and each task is to have a worktree"
        return wrong("work: git", detail, remedy.format("install it"))
    if not os.path.exists(os.path.join(here.root, ".git")):
        detail = f"{here.root} is no git repository, and each task is to have a worktree"
        return wrong("work: git", detail, remedy.format("`git init`, then commit"))
    return fine("work: git", git)


def _examine_models(settings: Settings) -> Iterator[Diagnosis]:
    names = [model.name for model in settings.models]
    mistakes = list(_find_mistakes(settings))
    yield from mistakes
    unpriced = [model.name for model in settings.models if not (model.input_price or model.output_price)]
    if not mistakes:
        chosen = f"`{settings.strategy}` chooses from {', '.join(names)}" if names else settings.work_model
        yield fine("work: models", chosen or "the client's own default")
    if unpriced and registry.get(settings.work_agent, "run").reports == "tokens":
        detail = f"{settings.work_agent} reports no cost, so that of {', '.join(unpriced)} stays unknown"
        remedy = "state `input_price` and `output_price` of each, so that --budget-usd and the strategy can see it"
        yield Diagnosis(subject="work: models", fine=True, detail=detail, remedy=remedy)


def _find_mistakes(settings: Settings) -> Iterator[Diagnosis]:
    """Yield settings that contradict each other, whether or not there is something to do."""
    if settings.work_model and settings.models and settings.strategy != "fixed":
        detail = f"`work.model` is {settings.work_model}, but the strategy `{settings.strategy}` passes it over"
        yield wrong("work: models", detail, 'set `strategy = "fixed"`, or leave `work.model` out')
    elif settings.models and settings.strategy == "fixed":
        try:
            choose("fixed", settings.models, TrackRecord(), Facts(task=""), fixed=settings.work_model)
        except LearntError as error:
            yield failed("work: models", error)
    words = run.call(settings.work_agent, _request("", settings)).argv
    if len(settings.models) > 1 and not any(_SOME_MODEL in word for word in words):
        command = settings.work_agent == "command"
        where = "`work.command` does not say {model}" if command else "`work.arguments` name one already"
        remedy = "put {model} where it belongs" if command else "leave it out of the arguments"
        detail = f"several models are configured, but none that is chosen reaches the agent: {where}"
        yield wrong("work: models", detail, remedy)
    client = registry.get(settings.work_agent, "run")
    without = [model.name for model in settings.models if client.models_need_provider and "/" not in model.name]
    if without:
        detail = f"{client.title} does not know the model {without[0]} without its provider"
        yield wrong("work: models", detail, "write it as `provider/model`")


def _request(folder: str, settings: Settings) -> RunRequest:
    command = settings.work_command if settings.work_agent == "command" else ""
    return RunRequest(
        prompt="", folder=folder, scratch="", model=_SOME_MODEL, arguments=settings.work_arguments, command=command
    )
