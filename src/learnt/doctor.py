"""Examine a project's stores, the agent that works for it and the clients that use it, and say what is wrong.

Nothing here changes anything, and nothing that is broken stops the examination: each part is looked at on its own. The
only program that is started is Codex, where it is set up: it alone knows what it trusts.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys

from learnt import __version__, config, project
from learnt.clients import programs
from learnt.clients.shapes import Request
from learnt.errors import LearntError
from learnt.flow import agent_categories, background, context, install
from learnt.flow.disk import FILE, path_of, read
from learnt.flow.tasks import ENDED
from learnt.learnings_file import parse
from learnt.model import Value
from learnt.settings import Settings
from learnt.store import HOOK_LOG, Place, Store, activity, fired, learnings, tasks, unfinished_purge
from learnt.store.index import Filter
from learnt.store.mirror import Mirror
from learnt.strategy.choose_model import Facts, choose
from learnt.strategy.figures import Record
from learnt.text import command_line
from learnt.text.names import client_name
from learnt.text.redact import without_password
from learnt.text.times import ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Any

    from learnt.clients.setup.examine import Found
    from learnt.model import Task
    from learnt.project import Project
    from learnt.store.activity import Entry
    from learnt.store.fired import Fired

    Flaws = Callable[[str, Collection[str]], Iterable[tuple[str, str]]]

_LITTLE_SPACE = 100 * 1024 * 1024
_SOME_MODEL = "some-model"
_NOT_BY_US = (
    "`learnt install` has written nothing here: a plugin or a person set its hooks up, or they were taken out since"
)
# What it means when reading what a client sent fails.
_SENT = {
    "JSONDecodeError": "a client sent what is no JSON",
    "RecursionError": "a client sent JSON that is nested far too deeply",
    "ValueError": "a client sent a number that nobody can read",
}


class Finding(Value):
    """One thing that was looked at."""

    subject: str
    fine: bool
    detail: str
    remedy: str = ""
    facts: Mapping[str, Any] = {}
    """Of a client: what is known of it, for programs."""


def examine(start: str, *, clock: Callable[[], int], prompts: Flaws) -> Iterator[Finding]:
    """Yield what is found for the project around a folder and for the user-wide store.

    `prompts` tells what is wrong with the templates below a store's folder, given the types that tasks have.
    """
    yield _fine("versions", f"learnt {__version__}, Python {platform.python_version()}")
    environ = dict(os.environ)
    here = project.find_project(start)
    settings, known = Settings(), False
    try:
        configuration = config.load(context.settings_files(here.root if here else None), environ)
    except LearntError as error:
        yield _wrong("settings", error)
    else:
        settings, known = configuration.settings, True
        yield from _examine_settings(configuration)
    if here is None:
        yield Finding(subject="project", fine=False, detail="none around this folder", remedy="`learnt init` makes one")
    else:
        yield from _examine_store("store", context.own_place(here, settings), clock)
        if known:
            place = context.own_place(here, settings)
            known_tasks = _tasks(place, clock)
            yield from _examine_work(here, settings, open_tasks=sum(task.status not in ENDED for task in known_tasks))
            yield from _examine_provider(settings, project.user_settings_file(environ))
            yield from _examine_agents(configuration, place, clock)
            yield from _examine_files(here)
            for detail, remedy in prompts(place.folder, {task.type for task in known_tasks}):
                yield Finding(subject="work: prompts", fine=False, detail=detail, remedy=remedy)
    yield from _examine_clients(start, here, settings, clock)
    user = context.user_place(settings)
    if user.exists():
        yield from _examine_store("user-wide store", user, clock)
    for path in settings.sources:
        try:
            place = context.source_place(path)
        except LearntError as error:
            yield _wrong("source", error)
        else:
            yield from _examine_store(f"source {place.scope}", place, clock)


def _examine_settings(configuration: config.Configuration) -> Iterator[Finding]:
    yield _fine("settings", "valid; `learnt config` shows them")
    for origin in configuration.origins:
        in_file = os.path.isfile(origin.origin)
        if origin.setting.key == "database" and in_file and without_password(origin.value) != origin.value:
            remedy = "move the address into LEARNT_DATABASE, or the password into ~/.pgpass"
            yield Finding(subject="settings", fine=False, detail=f"{origin.origin} holds a password", remedy=remedy)


def _examine_store(subject: str, place: Place, clock: Callable[[], int]) -> Iterator[Finding]:
    try:
        store = Store(place.replace(read_only=True), version=__version__, clock=clock)
        try:
            yield from _examine_database(subject, store)
        finally:
            store.close()
    except LearntError as error:
        yield _wrong(subject, error)
        if not place.exists():
            return
    try:
        yield from _examine_folder(subject, place, clock)
    except OSError as error:
        detail = f"cannot look into {error.filename}: {error.strerror}"
        yield Finding(subject=subject, fine=False, detail=detail, remedy="check who owns the folder and its files")


def _examine_folder(subject: str, place: Place, clock: Callable[[], int]) -> Iterator[Finding]:
    if not os.path.isdir(place.folder):
        return  # on a server, until something has to wait here
    yield from _examine_spool(f"{subject}: spool", place)
    if unfinished_purge(place.folder):
        remedy = "repeat the `learnt purge ID` that was interrupted"
        yield Finding(subject=subject, fine=False, detail="a purge was not finished", remedy=remedy)
    yield from _examine_permissions(f"{subject}: permissions", place)
    yield from _examine_hook_log(f"{subject}: hook", place.folder)
    yield from _examine_worker(f"{subject}: worker", place.folder)
    if place.address and not place.read_only:
        yield _examine_mirror(f"{subject}: mirror", place, clock)
    yield from _examine_space(f"{subject}: disk", place.folder)


def _examine_database(subject: str, store: Store) -> Iterator[Finding]:
    database = store.database
    count = learnings.count(database, Filter(status=None))
    versions = ", ".join(f"{name} {version}" for name, version in database.versions().items())
    schema = database.schema_number()
    yield _fine(subject, f"{database.path}: {count:,} learning{'' if count == 1 else 's'}, schema {schema}, {versions}")
    found = store.check()
    if found:
        remedy = "put a backup in its place: `learnt backup --restore FILE` keeps the damaged file aside"
        yield Finding(subject=f"{subject}: integrity", fine=False, detail="; ".join(found[:3]), remedy=remedy)
    else:
        yield _fine(f"{subject}: integrity", "ok")


def _examine_spool(subject: str, place: Place) -> Iterator[Finding]:
    spool = place.spool()
    waiting, refused, elsewhere = len(spool.waiting()), spool.refused(), spool.waiting_for_others()
    if refused:
        remedy = f"look at {spool.refused_path}, and delete it when it is dealt with"
        yield Finding(subject=subject, fine=False, detail=f"{_records(refused)} could not be applied", remedy=remedy)
    if waiting:
        remedy = "any other learnt command takes them up when the database can be written"
        wait = "waits" if waiting == 1 else "wait"
        yield Finding(subject=subject, fine=False, detail=f"{_records(waiting)} {wait}", remedy=remedy)
    if elsewhere:
        detail = f"kept for another database than the present one: {_records(elsewhere)}"
        remedy = f"name that database once more, and they are taken up; or delete them in {place.folder}"
        yield Finding(subject=subject, fine=False, detail=detail, remedy=remedy)
    if not refused and not waiting and not elsewhere:
        yield _fine(subject, "empty")


def _records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def _examine_permissions(subject: str, place: Place) -> Iterator[Finding]:
    folder = place.folder
    if not os.path.exists(os.path.join(folder, ".gitignore")):
        remedy = "`learnt init` writes it anew"
        yield Finding(subject=subject, fine=False, detail=f"{folder} has lost its .gitignore", remedy=remedy)
    if sys.platform == "win32":
        return
    # Files for people (learnings.md) may be shared; the database, its log and the spool may not.
    private = ("learnt.db", "mirror", "spool", "backups", "settings", "hook", "fired", "worker")
    with os.scandir(folder) as entries:
        modes = {entry.path: entry.stat().st_mode for entry in entries if entry.name.startswith(private)}
    open_ones = sorted(path for path, mode in modes.items() if stat.S_IMODE(mode) & 0o077)
    if os.stat(folder).st_mode & 0o022:
        open_ones.append(folder)  # that others may list it is for its owner to say; each private file has its own mode
    if open_ones:
        yield Finding(
            subject=subject,
            fine=False,
            detail=f"others can read or change {', '.join(open_ones)}",
            remedy=f"`chmod -R go= {folder}`",
        )
    elif not all(os.access(path, os.W_OK) for path in (folder, place.path) if os.path.exists(path)):
        yield Finding(subject=subject, fine=False, detail=f"{folder} is read-only", remedy="make it writable for you")
    else:
        yield _fine(subject, "only yours")


def _examine_hook_log(subject: str, folder: str) -> Iterator[Finding]:
    path = os.path.join(folder, HOOK_LOG)
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.readlines()
    if not lines:
        yield _fine(subject, "nothing in the log")
        return
    detail = (
        f"{len(lines)} {'entry' if len(lines) == 1 else 'entries'} in the log, the last: {_in_words(lines[-1].strip())}"
    )
    yield Finding(subject=subject, fine=False, detail=detail, remedy=f"delete {path} when it is dealt with")


def _in_words(line: str) -> str:
    """Return an entry of the hooks' log, with what the name of an error means."""
    moment, _, remark = line.partition(" ")
    name, _, place = remark.partition(": ")
    if not place.startswith("at "):
        return line  # it has words of its own
    sent = _SENT.get(name) if place.startswith("at doors/hook.py") else None
    return f"{moment} {sent or f'a mistake of learnt itself, {name}'} ({place})"


def _examine_worker(subject: str, folder: str) -> Iterator[Finding]:
    """Say when the worker failed last, and whether it has done its work since."""
    path = os.path.join(folder, background.WORKER_LOG)
    if not os.path.exists(path) or not os.path.getsize(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        last = file.readlines()[-1].strip()
    what, since = background.worker_state(folder)
    if what == "done" and since >= os.stat(path).st_mtime:
        yield _fine(subject, f"it failed once, and has done its work since; the last time: {last}")
        return
    remedy = f"mend what it says; the next turn of a conversation starts it again, and {path} tells more"
    yield Finding(subject=subject, fine=False, detail=f"it failed last: {last}", remedy=remedy)


def _examine_mirror(subject: str, place: Place, clock: Callable[[], int]) -> Finding:
    """Say how old the copy is that hooks read; that there is none is no fault as long as no hook has asked."""
    mirror = Mirror(place.replace(read_only=True), version=__version__, clock=clock)
    try:
        return _fine(subject, f"refreshed {mirror.age_s():,} s ago")
    except LearntError:
        return _fine(subject, "none that can be read; the worker makes one as soon as a hook asks for it")
    finally:
        mirror.close()


def _examine_space(subject: str, folder: str) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_SPACE:
        yield Finding(
            subject=subject, fine=False, detail=f"{free / 1e6:,.0f} MB are free", remedy="free some disk space"
        )


def _examine_clients(
    start: str, here: Project | None, settings: Settings, clock: Callable[[], int]
) -> Iterator[Finding]:
    """Say of each client whether it is set up, trusts our hooks, and when they last did what."""
    events = fired.read(here.folder) if here else {}
    installed = list(install.installed(start, ask=True))
    for one in installed:
        subject, name = f"client {one.client}", client_name(one.client)
        found = _believed(one, events.get(name))
        if found.twice or here is None or found.client == "aider":  # aider only reads a file
            yield Finding(subject=subject, fine=found.fine, detail=found.detail, remedy=found.remedy)
            continue
        last, brief = events.get(name), _last_brief(context.own_place(here, settings), name, clock)
        detail, remedy = _told_firing(last, brief, now=clock(), deadline_ms=settings.hook_deadline_ms)
        if last is None and not _can_write(here.folder):
            detail = f"whether a hook of it has fired cannot be known: {here.folder} is read-only"
            remedy = "make it writable for you"
        elif last is None and found.fine:
            remedy = f"start it in this project and send a prompt; if it has not fired then: {found.wants}"
        yield Finding(
            subject=subject,
            fine=found.fine,
            detail=f"{found.detail}; {detail}",
            remedy=found.remedy or remedy,
            facts=_client_facts(found.client, last, brief, installed=True, trusted=found.trusted),
        )
    known = {client_name(one.client) for one in installed}
    if here is not None:
        others = {name: last for name, last in events.items() if name not in known}
        yield from _examine_others(here, others, settings, clock)


def _examine_others(
    here: Project, events: Mapping[str, Fired], settings: Settings, clock: Callable[[], int]
) -> Iterator[Finding]:
    """Say of clients whose hooks fired although nothing of ours is in their settings what they did."""
    from learnt.clients.setup import CLIENTS

    for name, last in events.items():
        client = next((one for one in CLIENTS if client_name(one) == name), name)
        brief = _last_brief(context.own_place(here, settings), name, clock)
        detail, remedy = _told_firing(last, brief, now=clock(), deadline_ms=settings.hook_deadline_ms)
        yield Finding(
            subject=f"client {client}",
            fine=True,
            detail=f"{_NOT_BY_US}; {detail}",
            remedy=remedy,
            facts=_client_facts(client, last, brief, installed=False, trusted=None),
        )


def _can_write(folder: str) -> bool:
    """Say whether a hook could leave a note in a store's folder; where there is none, it leaves none."""
    kept = os.path.join(folder, fired.FOLDER)
    return os.access(kept if os.path.isdir(kept) else folder, os.W_OK) or not os.path.isdir(folder)


def _believed(found: Found, last: Fired | None) -> Found:
    """Return what was found of a client; that a hook has fired since its file was written stands above a distrust."""
    if last is None or not found.unheard:
        return found
    try:
        written = max(os.stat(path).st_mtime for path in found.unheard)
    except OSError:
        return found
    if last.at < written * 1000:
        return found
    return found.replace(fine=True, detail=f"in {', '.join(found.unheard)}, and it runs them", remedy="", trusted=None)


def _told_firing(last: Fired | None, brief: Entry | None, *, now: int, deadline_ms: int) -> tuple[str, str]:
    """Return in words when the hooks of a client last did what, and what to do about it."""
    given = ""
    if brief is not None:
        many = f"{brief.learnings} learning{'s' * (brief.learnings != 1)}, {brief.tokens} tokens"
        given = f"; last brief {ago(brief.at, now)} ({brief.occasion}): {many}"
    if last is None:
        return f"no hook of it has fired here yet{given}", ""
    took = f"took {last.duration_ms:.0f} ms and gave {last.chars:,} characters"
    remedy = ""
    if deadline_ms and last.duration_ms > deadline_ms / 2:
        remedy = (
            f"that was more than half of the {deadline_ms} ms after which a hook says nothing: "
            "set a larger `hook_deadline_ms`, or see what slows the machine down"
        )
    return f"last fired {ago(last.at, now)} ({last.event}), {took}{given}", remedy


def _client_facts(
    client: str, last: Fired | None, brief: Entry | None, *, installed: bool, trusted: bool | None
) -> dict[str, Any]:
    return {
        "client": client,
        "installed": installed,
        "trusted": trusted,
        "last_fired": last and last.as_dict(),
        "last_brief": brief
        and {name: getattr(brief, name) for name in ("id", "at", "occasion", "learnings", "tokens")},
    }


def _last_brief(place: Place, client: str, clock: Callable[[], int]) -> Entry | None:
    """Return the last brief that was given in a client, as far as the store tells."""
    try:
        store = Store(place.replace(read_only=True), version=__version__, clock=clock)
        try:
            return next(iter(activity.latest(store.database, limit=1, what="brief", client=client)), None)
        finally:
            store.close()
    except LearntError:
        return None


def _tasks(place: Place, clock: Callable[[], int]) -> list[Task]:
    """Return the tasks in the queue; none where they cannot be known, which is told elsewhere."""
    try:
        store = Store(place.replace(read_only=True), version=__version__, clock=clock)
        try:
            return tasks.every(store.database)
        finally:
            store.close()
    except LearntError:
        return []


def _examine_work(here: Project, settings: Settings, *, open_tasks: int) -> Iterator[Finding]:
    """Say whether `learnt work` could work; what it lacks is wrong only while there is something to do."""
    try:
        yield _needed(_examine_agent(here, settings), open_tasks)
        if settings.work_isolation == "worktree":
            yield _needed(_examine_git(here), open_tasks)
        yield from _examine_models(settings)
    except LearntError as error:
        yield _needed(_wrong("work: agent", error), open_tasks)


def _examine_provider(settings: Settings, own: str) -> Iterator[Finding]:
    """Say whether the model that the user named, in their own settings file, can be asked, without asking it."""
    from importlib.util import find_spec

    provider = settings.model_provider
    if provider == "none":
        return
    try:
        words = command_line.split(settings.model_command, setting=f"`command` under [model] in {own}")
    except LearntError as error:
        yield _wrong("model", error)
        return
    if provider == "command":
        found = shutil.which(words[0]) if words else None
        told = f"`{words[0]}` is not on PATH" if words else "no command is set"
        remedy = f"set `command` under [model] in {own}"
    else:
        found = settings.model_name if find_spec(provider) else None
        told = f"no `name` is set for {provider}" if find_spec(provider) else f"the package {provider} is missing"
        remedy = f"`pip install 'learnt[{provider}]'`, and set `name` under [model] in {own}"
    if not found:
        yield Finding(subject="model", fine=False, detail=told, remedy=remedy)
        return
    caps = f"at most ${settings.model_daily_cap_usd:g} a day, ${settings.model_monthly_cap_usd:g} a month"
    yield _fine("model", f"{provider} asks {found}, {caps}; `learnt usage` shows the calls")


def _examine_agents(configuration: config.Configuration, place: Place, clock: Callable[[], int]) -> Iterator[Finding]:
    """Say whether the categories of agents fit the learnings and the agents that there are."""
    try:
        store = Store(place.replace(read_only=True), version=__version__, clock=clock)
        try:
            for one in agent_categories.remarks(store.database, configuration):
                yield Finding(subject="agents", fine=one.fine, detail=one.detail, remedy=one.remedy)
        finally:
            store.close()
    except LearntError:
        return  # why the store cannot be read is told elsewhere


def _examine_files(here: Project) -> Iterator[Finding]:
    """Say whether the project's learnings.md can be read."""
    path = path_of(here.root)
    try:
        content = read(path, here.root)
    except LearntError as error:
        yield _wrong(FILE, error)
        return
    if content is not None and parse(content.decode("utf-8")).conflict:
        detail = f"{path} holds the markers of a merge conflict"
        yield Finding(subject=FILE, fine=False, detail=detail, remedy="resolve it, then `learnt update`")


def _needed(finding: Finding, open_tasks: int) -> Finding:
    if finding.fine or open_tasks:
        return finding
    return finding.replace(fine=True, detail=f"{finding.detail}; no task waits for it", remedy="")


def _examine_agent(here: Project, settings: Settings) -> Finding:
    program = programs.call(settings.work_agent, _request(here.root, settings)).argv[0]
    # A path is seen from the folder that the agent works in, a name is looked for on PATH.
    found = shutil.which(os.path.join(here.root, program) if os.path.dirname(program) else program)
    if found:
        return _fine("work: agent", f"{settings.work_agent} is {found}")
    remedy = "install it, or set another `agent` under [work] in learnt.toml"
    where = "not there, or may not be executed" if os.path.dirname(program) else "not on PATH"
    return Finding(subject="work: agent", fine=False, detail=f"`{program}` is {where}", remedy=remedy)


def _examine_git(here: Project) -> Finding:
    remedy = '{}, or set `isolation = "none"` under [work] in learnt.toml'
    found = shutil.which("git")
    if found is None:
        detail = "git is not on PATH, and each task is to have a worktree"
        return Finding(subject="work: git", fine=False, detail=detail, remedy=remedy.format("install it"))
    if not os.path.exists(os.path.join(here.root, ".git")):
        detail = f"{here.root} is no git repository, and each task is to have a worktree"
        return Finding(subject="work: git", fine=False, detail=detail, remedy=remedy.format("`git init`, then commit"))
    return _fine("work: git", found)


def _examine_models(settings: Settings) -> Iterator[Finding]:
    names = [model.name for model in settings.models]
    mistakes = list(_mistakes_with_models(settings))
    yield from mistakes
    unpriced = [one.name for one in settings.models if not (one.input_price or one.output_price)]
    if not mistakes:
        chosen = f"`{settings.strategy}` chooses from {', '.join(names)}" if names else settings.work_model
        yield _fine("work: models", chosen or "the client's own default")
    if unpriced and settings.work_agent in programs.TELL_TOKENS_ONLY:
        detail = f"{settings.work_agent} tells no cost, so that of {', '.join(unpriced)} stays unknown"
        remedy = "state `input_price` and `output_price` of each, so that --budget-usd and the strategy can see it"
        yield Finding(subject="work: models", fine=True, detail=detail, remedy=remedy)


def _mistakes_with_models(settings: Settings) -> Iterator[Finding]:
    """Yield settings that contradict each other, whether or not there is something to do."""
    if settings.work_model and settings.models and settings.strategy != "fixed":
        detail = f"`work.model` is {settings.work_model}, but the strategy `{settings.strategy}` passes it over"
        remedy = 'set `strategy = "fixed"`, or leave `work.model` out'
        yield Finding(subject="work: models", fine=False, detail=detail, remedy=remedy)
    elif settings.models and settings.strategy == "fixed":
        try:
            choose("fixed", settings.models, Record(), Facts(task=""), fixed=settings.work_model)
        except LearntError as error:
            yield _wrong("work: models", error)
    words = programs.call(settings.work_agent, _request("", settings)).argv
    if len(settings.models) > 1 and not any(_SOME_MODEL in word for word in words):
        command = settings.work_agent == "command"
        where = "`work.command` does not say {model}" if command else "`work.arguments` name one already"
        remedy = "put {model} where it belongs" if command else "leave it out of the arguments"
        detail = f"several models are configured, but none that is chosen reaches the agent: {where}"
        yield Finding(subject="work: models", fine=False, detail=detail, remedy=remedy)
    without = [model.name for model in settings.models if settings.work_agent == "opencode" and "/" not in model.name]
    if without:
        detail = f"opencode does not know the model {without[0]} without its provider"
        yield Finding(subject="work: models", fine=False, detail=detail, remedy="write it as `provider/model`")


def _request(folder: str, settings: Settings) -> Request:
    command = settings.work_command if settings.work_agent == "command" else ""
    return Request(
        prompt="", folder=folder, scratch="", model=_SOME_MODEL, arguments=settings.work_arguments, command=command
    )


def _fine(subject: str, detail: str) -> Finding:
    return Finding(subject=subject, fine=True, detail=detail)


def _wrong(subject: str, error: LearntError) -> Finding:
    return Finding(subject=subject, fine=False, detail=error.message, remedy=error.hint)
