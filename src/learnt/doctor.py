"""Examine a project: its settings, its stores, the agent that works on its tasks and the clients that use it.

Nothing is changed. Each part is examined separately, so a broken part does not stop the examination. The only
programs that are started are our own hooks and server, as the clients start them, a client that is set up here, if
only the client itself knows which hooks it trusts, and git, if the project wants our merge driver.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib.util import find_spec

from learnt import __version__, project
from learnt.clients import registry
from learnt.clients.kit import run, setup
from learnt.clients.kit.examine import ClientState
from learnt.clients.kit.run import RunRequest
from learnt.config import Configuration
from learnt.errors import LearntError
from learnt.flow.diagnosis import Clock, Diagnosis, StoreCheck
from learnt.flow.git_setup import GitSetup
from learnt.flow.install import ClientSetup
from learnt.flow.tasks import ENDED
from learnt.memory import Memory
from learnt.project import Project
from learnt.settings import Settings
from learnt.store.activity import ActivityEntry
from learnt.store.deliveries import Deliveries
from learnt.store.fired import Fired
from learnt.strategy.choose_model import Facts, choose
from learnt.strategy.figures import TrackRecord
from learnt.system.installation import install_command
from learnt.text.redact import without_password
from learnt.text.templates import split_command_line
from learnt.text.times import ago
from learnt.trust import is_tracked

PromptCheck = Callable[[str, Collection[str]], Iterable[tuple[str, str]]]
_ANY_MODEL = "some-model"
_BRIEF_FACTS = ("id", "at", "occasion", "learnings", "tokens")
_NOT_BY_US = "not set up by `learnt install`: its hooks come from a plugin or a person, or have been removed since"


def examine(start: str, *, clock: Clock, check_prompts: PromptCheck) -> Iterator[Diagnosis]:
    """Yield the diagnoses of the project that contains a folder and of the user-wide store.

    `check_prompts` takes the tasks' types, and returns the problems in the prompt templates below a store's folder,
    with their remedies.
    """
    yield Diagnosis.healthy("versions", f"learnt {__version__}, Python {platform.python_version()}")
    here = project.find_project(start)
    configuration = None
    try:
        configuration = Memory.load_configuration(start)
    except LearntError as error:
        yield Diagnosis.from_error("settings", error)
    else:
        yield from _examine_settings(configuration)
    settings = configuration.settings if configuration else Settings()
    store = None
    if here is None:
        yield Diagnosis.problem("project", "none around this folder", "`learnt init` creates one")
    else:
        try:
            store = StoreCheck.of_project(here, settings, clock)
        except LearntError as error:
            yield Diagnosis.from_error("project", error)
    clients = ClientSetup(start)
    states = list(clients.states(ask=True))
    if here is not None and store is not None:
        yield from store.examine("store", hooks_answer=any(state.answers.get("hooks") for state in states))
        if configuration:
            yield from _examine_project(here, store, configuration, check_prompts)
    yield from _examine_clients(clients, states, store, settings, clock)
    yield from _examine_deliveries(store)
    yield from _examine_other_stores(settings, clock)


def _examine_project(
    here: Project, store: StoreCheck, configuration: Configuration, check_prompts: PromptCheck
) -> Iterator[Diagnosis]:
    settings, tasks = configuration.settings, store.queued_tasks()
    if is_tracked(here.folder):
        detail = "git tracks it: whoever can push to the repository can change it"
        yield Diagnosis.problem("store", detail, "`git rm -r --cached .learnt`, then `git add .learnt/learnings*`")
    yield from _examine_work(here, settings, open_tasks=sum(task.status not in ENDED for task in tasks))
    yield from _examine_provider(settings, project.user_settings_file(dict(os.environ)))
    yield from store.examine_encoder(settings)
    yield from store.examine_agents(configuration)
    yield from store.examine_learnings_file(here.root)
    yield from _examine_merging(here)
    for detail, remedy in check_prompts(store.folder, {task.type for task in tasks}):
        yield Diagnosis.problem("work: prompts", detail, remedy)


def _examine_merging(here: Project) -> Iterator[Diagnosis]:
    """Yield how git merges the files that learnt writes, if the project wants our merge driver."""
    try:
        state = GitSetup(here.root).state()
    except LearntError as error:
        yield Diagnosis.from_error("git", error)
        return
    if state.files and not state.program:
        detail = ".gitattributes names a merge driver that is not set up in this clone"
        yield Diagnosis.problem("git", detail, "`learnt install --git`")
    elif state.files and not shutil.which(state.program):
        detail = f"the merge driver starts {state.program}, which does not exist any more"
        yield Diagnosis.problem("git", detail, "`learnt install --git`")
    elif state.files and not state.is_current:
        detail = ".gitattributes does not name all files that learnt writes now"
        yield Diagnosis.problem("git", detail, "`learnt install --git`")
    elif state.files:
        yield Diagnosis.healthy("git", "merges the files that learnt writes by `learnt merge-file`")


def _examine_other_stores(settings: Settings, clock: Clock) -> Iterator[Diagnosis]:
    user = StoreCheck.of_user(settings, clock)
    if user.exists():
        yield from user.examine("user-wide store")
    for path in settings.sources:
        try:
            source = StoreCheck.of_source(path, clock)
        except LearntError as error:
            yield Diagnosis.from_error("source", error)
        else:
            yield from source.examine(f"source {source.scope}")


def _examine_settings(configuration: Configuration) -> Iterator[Diagnosis]:
    yield Diagnosis.healthy("settings", "valid; `learnt config` shows them")
    for origin in configuration.origins:
        in_file = os.path.isfile(origin.origin)
        if origin.setting.key == "database" and in_file and without_password(origin.value) != origin.value:
            remedy = "move the address into LEARNT_DATABASE, or the password into ~/.pgpass"
            yield Diagnosis.problem("settings", f"{origin.origin} contains a password", remedy)


def _examine_clients(
    clients: ClientSetup, states: Sequence[ClientState], store: StoreCheck | None, settings: Settings, clock: Clock
) -> Iterator[Diagnosis]:
    """Yield for each client what is wrong, or that it is set up, and when its hooks last fired."""
    events = store.last_events() if store else {}
    for installed in states:
        last = events.get(registry.client_name(installed.client))
        yield from _examine_client(_correct(installed, last), last, store, settings, clock)
    examined = {registry.client_name(state.client) for state in states}
    for name, last in events.items():
        if name not in examined:
            client = registry.find(name)
            state = ClientState(client=registry.setup_name(client) if client else name)
            yield from _examine_client(state, last, store, settings, clock)
    if store is not None and not states and not events:
        found = clients.find_clients(user=False)
        remedy = f"`learnt install {' '.join(found)}`" if found else "`learnt install claude-code`, or another client"
        yield Diagnosis(subject="clients", fine=True, detail="none is set up here", remedy=remedy)


def _examine_client(
    state: ClientState, last: Fired | None, store: StoreCheck | None, settings: Settings, clock: Clock
) -> Iterator[Diagnosis]:
    """Yield one diagnosis for each fault of a client, or one that it has none; the first one has the facts."""
    name = registry.client_name(state.client)
    brief = store.last_brief(name) if store else None
    faults = [Diagnosis.problem(f"client {state.client}", one.detail, one.remedy) for one in state.list_faults()]
    first, *others = faults or [_describe_health(state, last, brief, store, settings, clock)]
    if store is not None and setup.has_hooks(state.client):
        facts = {
            "client": state.client,
            "installed": bool(state.files),
            "trusted": state.trusted,
            "answers": dict(state.answers),
            "last_fired": last and last.as_dict(),
            "last_brief": brief and {name: getattr(brief, name) for name in _BRIEF_FACTS},
        }
        first = first.replace(facts=facts)
    yield from (first, *others)


def _describe_health(  # noqa: PLR0917 - one sentence
    state: ClientState,
    last: Fired | None,
    brief: ActivityEntry | None,
    store: StoreCheck | None,
    settings: Settings,
    clock: Clock,
) -> Diagnosis:
    """Return the diagnosis of a client without a fault: where it is set up, and what its hooks did last."""
    subject, detail, remedy = f"client {state.client}", _describe_setup(state), ""
    if store is None or not setup.has_hooks(state.client):
        return Diagnosis.healthy(subject, detail)
    if last is None and not store.can_record_events():
        fired = f"whether its hooks have fired is unknown, because {store.folder} is read-only"
    else:
        fired, remedy = _describe_firing(last, brief, now=clock(), deadline_ms=settings.hook_deadline_ms)
    if last is None and not remedy and state.is_used and store.can_record_events():
        remedy = f"start it in this project and send a prompt; if no hook has fired then: {state.next_step}"
    return Diagnosis(subject=subject, fine=True, detail=f"{detail}; {fired}", remedy=remedy)


def _describe_setup(state: ClientState) -> str:
    if not state.files:
        return _NOT_BY_US
    names = list(state.answers)
    tried = f", and {' and '.join(names)} answer{'s' * (names == ['server'])}" if names else ""
    trusted = ", and trusted" if state.trusted else ""
    client = registry.get(state.client, "setup")
    absent = "" if state.is_used else f"; {client.title} is not on this machine"
    return f"in {', '.join(state.files)}{trusted}{tried}{absent}"


def _examine_deliveries(store: StoreCheck | None) -> Iterator[Diagnosis]:
    """Yield the clients that ran our hooks in their latest conversation, but dropped all text of an occasion."""
    dropped: dict[str, list[Deliveries]] = {}
    for latest in store.latest_deliveries() if store else ():
        if latest.missed and not latest.delivered:
            dropped.setdefault(latest.client, []).append(latest)
    for name, occasions in dropped.items():
        client = registry.find(name)
        if client is None:
            continue
        missed = sum(latest.missed for latest in occasions)
        briefs = f"{missed} brief{'s' * (missed != 1)}"
        where = ", ".join(latest.occasion for latest in occasions)
        detail = f"{client.title} ran our hooks and dropped their text: {briefs} in its last conversation ({where})"
        install = f"`learnt install {registry.setup_name(client)}`"
        remedy = f"{install}, update {client.title}, start a new conversation; `learnt activity` shows it"
        yield Diagnosis.problem(f"client {registry.setup_name(client)}", detail, remedy)


def _correct(state: ClientState, last: Fired | None) -> ClientState:
    """Return a client's state without the faults that a hook has disproved, because it fired all the same."""
    if last is None:
        return state
    if state.distrust and _is_disproved(state.distrust, last):
        state = state.replace(distrust=None, trusted=None)
    return state.replace(faults=tuple(fault for fault in state.faults if not _is_disproved(fault, last)))


def _is_disproved(fault: setup.Fault, last: Fired) -> bool:
    """Return whether a hook fired after the files that show the fault were written."""
    return bool(fault.files) and last.at >= max(map(_changed_at_ms, fault.files))


def _changed_at_ms(path: str) -> float:
    try:
        return os.stat(path).st_mtime * 1000
    except OSError:
        return 0.0  # the client keeps no such file yet


def _describe_firing(last: Fired | None, brief: ActivityEntry | None, *, now: int, deadline_ms: int) -> tuple[str, str]:
    """Return a description of when a client's hooks last fired and what they did, and a remedy if they were slow."""
    briefed = ""
    if brief is not None:
        many = f"{brief.learnings} learning{'s' * (brief.learnings != 1)}, {brief.tokens} tokens"
        briefed = f"; last brief {ago(brief.at, now)} ({brief.occasion}): {many}"
    if last is None:
        return f"none of its hooks has fired here yet{briefed}", ""
    took = f"took {last.duration_ms:.0f} ms and returned {last.chars:,} characters"
    remedy = ""
    if deadline_ms and last.duration_ms > deadline_ms / 2:
        remedy = (
            f"that is more than half of the {deadline_ms} ms after which a hook gives up: "
            "increase `hook_deadline_ms`, or find out what slows the machine down"
        )
    return f"last fired {ago(last.at, now)} ({last.event}), {took}{briefed}", remedy


def _examine_work(here: Project, settings: Settings, *, open_tasks: int) -> Iterator[Diagnosis]:
    """Yield whether `learnt work` can run; anything missing is a problem only while there are open tasks."""
    try:
        yield _excuse_if_idle(_examine_agent(here, settings), open_tasks)
        if settings.work_isolation == "worktree":
            yield _excuse_if_idle(_examine_git(here), open_tasks)
        yield from _examine_models(settings)
    except LearntError as error:
        yield _excuse_if_idle(Diagnosis.from_error("work: agent", error), open_tasks)


def _examine_provider(settings: Settings, own: str) -> Iterator[Diagnosis]:
    """Yield whether the model in the user's own settings file could be called, without calling it."""
    provider = settings.model_provider
    if provider == "none":
        return
    try:
        words = split_command_line(settings.model_command, setting=f"`command` under [model] in {own}")
    except LearntError as error:
        yield Diagnosis.from_error("model", error)
        return
    if provider == "command":
        model = shutil.which(words[0]) if words else None
        missing = f"`{words[0]}` is not on PATH" if words else "no command is set"
        remedy = f"set `command` under [model] in {own}"
    else:
        model = settings.model_name if find_spec(provider) else None
        missing = f"no `name` is set for {provider}" if find_spec(provider) else f"the package {provider} is missing"
        remedy = f"`{install_command(provider)}`, and set `name` under [model] in {own}"
    if not model:
        yield Diagnosis.problem("model", missing, remedy)
        return
    caps = f"at most ${settings.model_daily_cap_usd:g} a day, ${settings.model_monthly_cap_usd:g} a month"
    yield Diagnosis.healthy("model", f"{provider} asks {model}, {caps}; `learnt usage` shows the calls")


def _excuse_if_idle(diagnosis: Diagnosis, open_tasks: int) -> Diagnosis:
    if diagnosis.fine or open_tasks:
        return diagnosis
    return diagnosis.replace(fine=True, detail=f"{diagnosis.detail}; no open task needs it", remedy="")


def _examine_agent(here: Project, settings: Settings) -> Diagnosis:
    program = run.build_call(settings.work_agent, _request(here.root, settings)).argv[0]
    # A path is relative to the agent's working folder; a name is looked up on PATH.
    path = shutil.which(os.path.join(here.root, program) if os.path.dirname(program) else program)
    if path:
        return Diagnosis.healthy("work: agent", f"{settings.work_agent} is {path}")
    remedy = "install it, or set another `agent` under [work] in learnt.toml"
    where = "missing, or not executable" if os.path.dirname(program) else "not on PATH"
    return Diagnosis.problem("work: agent", f"`{program}` is {where}", remedy)


def _examine_git(here: Project) -> Diagnosis:
    remedy = '{}, or set `isolation = "none"` under [work] in learnt.toml'
    git = shutil.which("git")
    if git is None:
        detail = "git is not on PATH, but `isolation` is `worktree`"
        return Diagnosis.problem("work: git", detail, remedy.format("install it"))
    if not os.path.exists(os.path.join(here.root, ".git")):
        detail = f"{here.root} is not a git repository, but `isolation` is `worktree`"
        return Diagnosis.problem("work: git", detail, remedy.format("`git init`, then commit"))
    return Diagnosis.healthy("work: git", git)


def _examine_models(settings: Settings) -> Iterator[Diagnosis]:
    names = [model.name for model in settings.models]
    mistakes = list(_find_mistakes(settings))
    yield from mistakes
    unpriced = [model.name for model in settings.models if not (model.input_price or model.output_price)]
    if not mistakes:
        chosen = f"`{settings.strategy}` chooses from {', '.join(names)}" if names else settings.work_model
        yield Diagnosis.healthy("work: models", chosen or "the client's own default")
    if unpriced and registry.get(settings.work_agent, "run").reports == "tokens":
        detail = f"{settings.work_agent} does not report costs, so the cost of {', '.join(unpriced)} is unknown"
        remedy = "set `input_price` and `output_price` for each model; --budget-usd and the strategy need them"
        yield Diagnosis(subject="work: models", fine=True, detail=detail, remedy=remedy)


def _find_mistakes(settings: Settings) -> Iterator[Diagnosis]:
    """Yield settings that contradict each other."""
    if settings.work_model and settings.models and settings.strategy != "fixed":
        detail = f"`work.model` is {settings.work_model}, but the strategy `{settings.strategy}` ignores it"
        yield Diagnosis.problem("work: models", detail, 'set `strategy = "fixed"`, or leave `work.model` out')
    elif settings.models and settings.strategy == "fixed":
        try:
            choose("fixed", settings.models, TrackRecord(), Facts(task=""), fixed=settings.work_model)
        except LearntError as error:
            yield Diagnosis.from_error("work: models", error)
    words = run.build_call(settings.work_agent, _request("", settings)).argv
    if len(settings.models) > 1 and not any(_ANY_MODEL in word for word in words):
        command = settings.work_agent == "command"
        where = "`work.command` does not contain {model}" if command else "`work.arguments` already sets one"
        remedy = "add {model} to the command" if command else "remove it from the arguments"
        detail = f"several models are configured, but the chosen one does not reach the agent: {where}"
        yield Diagnosis.problem("work: models", detail, remedy)
    client = registry.get(settings.work_agent, "run")
    without = [model.name for model in settings.models if client.models_need_provider and "/" not in model.name]
    if without:
        detail = f"{client.title} needs the provider in the model's name, but {without[0]} has none"
        yield Diagnosis.problem("work: models", detail, "write the name as `provider/model`")


def _request(folder: str, settings: Settings) -> RunRequest:
    command = settings.work_command if settings.work_agent == "command" else ""
    return RunRequest(
        prompt="", folder=folder, scratch="", model=_ANY_MODEL, arguments=settings.work_arguments, command=command
    )
