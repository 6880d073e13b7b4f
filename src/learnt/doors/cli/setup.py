"""Commands that set a project up: init, config."""

from __future__ import annotations

import os

from learnt import config, project
from learnt.clients.registry import setup_names
from learnt.doors.cli.arguments import add_user, tell_redactions
from learnt.doors.cli.screen import paint, say, show_json, use_color
from learnt.errors import LearntError, WrongRequest
from learnt.flow.transfer import template, templates
from learnt.model import Value
from learnt.settings import as_toml, render_template
from learnt.text.redact import without_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from learnt.memory import Memory


def init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="ADDRESS", help="keep the learnings in this PostgreSQL database")
    parser.add_argument(
        "--template",
        action="append",
        default=[],
        metavar="NAME",
        help=f"start with common learnings: {', '.join(templates())}, or a file that `learnt import` reads; `list` "
        "tells what each is about; repeatable",
    )
    add_user(parser, "create the user-wide store instead")


def init_run(arguments: argparse.Namespace) -> None:
    from learnt.memory import Memory

    if "list" in arguments.template:
        _list_templates(arguments)
        return
    chosen = {name: _template(name) for name in arguments.template}  # before anything is made
    if arguments.user:
        with Memory.open_user() as memory:
            place = memory.database_path
            started = {name: memory.transfer.start_with(records, template=name) for name, records in chosen.items()}
        written, remark = None, ""
    else:
        here = project.find_project(".") or project.new_project(".")
        if arguments.database is not None:
            _check_new_database(here, arguments.database)
        with Memory.open(arguments.database or ".") as memory:
            place = memory.database_path
            remark = "\n".join([*_joined(memory), *_mapped(memory)])
            started = {name: memory.transfer.start_with(records, template=name) for name, records in chosen.items()}
        written = _write_settings(here, arguments.database)
    if arguments.json:
        told = {"templates": {name: one.as_dict() for name, one in started.items()}} if started else {}
        show_json({"id": place, "database": place, "settings": written, **told})
        return
    say(f"Learnings are kept in {place}")
    if remark:
        say(remark)
    if written:
        say(f"Settings are in {written}" + ("" if arguments.database else ", all commented out"))
    for name, one in started.items():
        known = f"; {one.known} were there already" if one.known else ""
        say(f"Template {name}: {one.added} learnings added{known}")
    tell_redactions(memory)
    _say_what_is_next(arguments)


def _say_what_is_next(arguments: argparse.Namespace) -> None:
    if arguments.user:
        say('Next: `learnt add "…"` keeps a learning, with `--user`')
        return
    say('Next: `learnt add "…"` keeps a learning;')
    first, *others = setup_names()
    say(f"`learnt install {first}` (or {', '.join(others)}) lets an agent client use them by itself.")
    say(".learnt/learnings.md may appear with time: commit it to share it, or let git ignore it, as your team likes.")


def _list_templates(arguments: argparse.Namespace) -> None:
    if arguments.json:
        show_json([{"id": name, "about": about} for name, about in templates().items()])
        return
    for name, about in templates().items():
        say(f"{name:<12} {about}")


def _template(name: str) -> list[dict[str, Any]]:
    """Return the learnings of a template that comes along, or of a file; what looks like a path is one."""
    from learnt.doors.cli.transfer import content_of, records_in

    if name not in templates() and (os.path.basename(name) != name or "." in name):
        return list(records_in(content_of(name), name, None))
    return template(name)


def config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", metavar="KEY", help="show this setting alone")


def config_run(arguments: argparse.Namespace) -> None:
    from learnt.flow.context import settings_files

    here = project.find_project(".")
    files = settings_files(here.root if here else None)
    configuration = config.load(files, dict(os.environ))
    use_color(configuration.settings.color)
    origins = [
        origin
        for origin in configuration.origins
        if arguments.key in (None, origin.setting.key, origin.setting.table or None)
    ]
    if not origins:
        raise WrongRequest(f"there is no setting `{arguments.key}`", hint="`learnt config` lists the settings")
    if arguments.json:
        show_json([_record(origin) for origin in origins])
        return
    told = ""
    for origin in origins:
        value = as_toml(_shown(origin))
        say(f"{paint(origin.setting.key, 'bold')} = {value}  {paint('(' + origin.origin + ')', 'dim')}")
        if origin.setting.meaning != told:  # the entries of a table share theirs
            say(f"    {origin.setting.meaning}")
        told = origin.setting.meaning
        if origin.setting.personal:
            say(f"    Yours alone: set it in {files[0]} or {origin.setting.variable}; a project's file may not.")


def _record(origin: config.Origin) -> dict[str, object]:
    value = _shown(origin)
    return {
        "id": origin.setting.key,
        "value": [_plain(item) for item in value] if isinstance(value, tuple) else value,
        "origin": origin.origin,
        "meaning": origin.setting.meaning,
        "personal": origin.setting.personal,
    }


def _plain(item: object) -> object:
    return item.as_dict() if isinstance(item, Value) else item


def _shown(origin: config.Origin) -> object:
    return without_password(origin.value) if origin.setting.key == "database" and origin.value else origin.value


def _joined(memory: Memory) -> list[str]:
    """Tell of learnings that are already there: of a team, or of another project with the same name."""
    total = memory.learnings(status=None, scope="project", limit=0).total
    if not (total and memory.server_project):
        return []
    name = memory.server_project
    return [
        f"Project `{name}` is there already and holds {total:,}; if it is another one, set `project` in learnt.toml"
    ]


def _mapped(memory: Memory) -> list[str]:
    """Tell what is to be said on the agents that the settings give categories, if they do."""

    if not memory.configuration.agents_from:
        return []
    found = memory.agents.remarks()
    return [f"Agents: {one.detail}{f'; {one.remedy}' if one.remedy else ''}" for one in found]


def _check_new_database(here: project.Project, database: str) -> None:
    config.check_address(database, "--database")
    if without_password(database) != database:
        raise WrongRequest(
            "the address holds a password, and learnt.toml is meant to be committed",
            hint="set it in the environment: `export LEARNT_DATABASE=…`, then run `learnt init`",
        )
    path = os.path.join(here.root, project.SETTINGS_FILE)
    if os.path.exists(path):
        raise WrongRequest(f"{path} exists already", hint=f"set `database = {as_toml(database)}` in it")


def _write_settings(here: project.Project, database: str | None) -> str | None:
    """Write learnt.toml unless there is one; return its path when it was written."""
    path = os.path.join(here.root, project.SETTINGS_FILE)
    content = render_template()
    if database is not None:
        chosen = {"database": database, "project": here.name}
        content = "".join(f"{key} = {as_toml(value)}\n" for key, value in chosen.items()) + "\n" + content
    if os.path.exists(path):
        return None
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise LearntError(
            f"cannot write {path}: {error.strerror}", hint="choose a folder that you can write to"
        ) from None
    return path
