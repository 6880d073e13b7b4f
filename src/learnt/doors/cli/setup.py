"""Commands that set up a store and maintain it: init, config, tidy."""

from __future__ import annotations

import os
from typing import Any

from learnt import config, project
from learnt.doors.cli.arguments import (
    Arguments,
    Parser,
    add_user,
    let_agent_speak,
    open_memory,
    refuse_agent,
    report_redactions,
    watch_calls,
)
from learnt.doors.cli.transfer import read_bytes, read_records
from learnt.doors.output import paint, say, show_json, use_color
from learnt.errors import LearntError, WrongRequest
from learnt.flow.project_trust import ProjectTrust
from learnt.flow.rules_files import RulesFiles
from learnt.flow.transfer import Transfer
from learnt.memory import Memory
from learnt.model import Value
from learnt.settings import BY, as_toml
from learnt.settings_text import render_template
from learnt.text.redact import without_password


def init_arguments(parser: Parser) -> None:
    parser.add_argument("--database", metavar="ADDRESS", help="store the learnings in this PostgreSQL database")
    parser.add_argument(
        "--template",
        action="append",
        default=[],
        metavar="NAME",
        help=f"start with common learnings: {', '.join(Transfer.templates())}, or a file that `learnt export` wrote; "
        "`list` shows what each is about; repeatable",
    )
    add_user(parser, "create the user-wide store instead")


def init_run(arguments: Arguments) -> None:
    if "list" in arguments.template:
        _list_templates(arguments)
        return
    if arguments.database is not None:
        refuse_agent("init --database")
    chosen = {name: _read_template(name) for name in arguments.template}  # fails before anything is created
    here = None if arguments.user else project.find_project(".") or project.new_project(".")
    if here and arguments.database is not None:
        _check_new_database(here, arguments.database)
    with Memory.open(arguments.database or ".") if here else Memory.open_user() as memory:
        let_agent_speak(memory)
        place = memory.database_path
        remarks = [*_describe_existing(memory), *_describe_agents(memory)] if here else []
        started = {name: memory.transfer.start_with(records, template=name) for name, records in chosen.items()}
    written = _write_settings(here, arguments.database) if here else None
    if here and written:
        ProjectTrust(here).accept_settings()
    if here:
        watch_calls()
    if arguments.json:
        templates_used = {"templates": {name: added.as_dict() for name, added in started.items()}} if started else {}
        show_json({"id": place, "database": place, "settings": written, **templates_used})
        return
    say(f"Learnings are stored in {place}")
    for remark in remarks:
        say(remark)
    if written:
        say(f"Settings are in {written}" + ("" if arguments.database else ", all commented out"))
    for name, added in started.items():
        known = f"; {added.known} were there already" if added.known else ""
        say(f"Template {name}: {added.added} learnings added{known}")
    report_redactions(memory)
    _print_next_steps(arguments)


def _print_next_steps(arguments: Arguments) -> None:
    if arguments.user:
        say('Next: `learnt add --user "…"` adds a learning')
        return
    say('Next: `learnt add "…"` adds a learning, and `learnt search "…"` finds it;')
    say(
        "`learnt install` finds your agent clients and lets them use learnings automatically; `learnt doctor` tries it."
    )
    if found := RulesFiles.find("."):
        say(f"`learnt import {found[0]}` takes over the rules in {' and '.join(found)}, after a preview.")
    say("learnt will write .learnt/learnings.md later: commit it to share it with your team, or let git ignore it.")


def _list_templates(arguments: Arguments) -> None:
    if arguments.json:
        show_json([{"id": name, "about": about} for name, about in Transfer.templates().items()])
        return
    for name, about in Transfer.templates().items():
        say(f"{name:<12} {about}")


def _read_template(name: str) -> list[dict[str, Any]]:
    """Return the learnings in a built-in template, or in a file if the name looks like a path."""
    if name not in Transfer.templates() and (os.path.basename(name) != name or "." in name):
        return list(read_records(read_bytes(name), name, None))
    return Transfer.template(name)


def config_arguments(parser: Parser) -> None:
    parser.add_argument("key", nargs="?", metavar="KEY", help="show only this setting")


def config_run(arguments: Arguments) -> None:
    configuration = Memory.load_configuration(".")
    own_file = project.user_settings_file(dict(os.environ))
    use_color(configuration.settings.color)
    origins = [
        origin
        for origin in configuration.origins
        if arguments.key in (None, origin.setting.key, origin.setting.table or None)
    ]
    if not origins:
        raise WrongRequest(f"there is no setting `{arguments.key}`", hint="`learnt config` lists the settings")
    if arguments.json:
        show_json([_record(origin, configuration.ignored) for origin in origins])
        return
    meaning = ""
    for origin in origins:
        value = as_toml(_hide_password(origin))
        say(f"{paint(origin.setting.key, 'bold')} = {value}  {paint('(' + origin.origin + ')', 'dim')}")
        if origin.setting.meaning != meaning:  # the entries of a table share one meaning, which is printed once
            say(f"    {origin.setting.meaning}")
        meaning = origin.setting.meaning
        if origin.setting.by != "anybody":
            say(f"    Set by {BY[origin.setting.by]}. Yours: {own_file} or {origin.setting.variable}.")
        if origin.setting.key in configuration.ignored:
            say("    The project's file sets it, without effect: `learnt trust` shows the value and asks.")


def _record(origin: config.Origin, ignored: tuple[str, ...]) -> dict[str, object]:
    value = _hide_password(origin)
    if isinstance(value, tuple):
        value = [item.as_dict() if isinstance(item, Value) else item for item in value]
    return {
        "id": origin.setting.key,
        "value": value,
        "origin": origin.origin,
        "meaning": origin.setting.meaning,
        "personal": origin.setting.by in ("person", "user"),
        "by": origin.setting.by,
        "ignored": origin.setting.key in ignored,
    }


def _hide_password(origin: config.Origin) -> object:
    return without_password(origin.value) if origin.setting.key == "database" and origin.value else origin.value


def _describe_existing(memory: Memory) -> list[str]:
    """Return a remark if the server already has learnings, from the team or from another project with the same name."""
    name, total = memory.server_project, memory.learnings(status=None, scope="project", limit=0).total
    if not (name and total):
        return []
    other = "if it is another one, set `project` in learnt.toml"
    return [f"Project `{name}` exists already with {total:,} learnings; {other}"]


def _describe_agents(memory: Memory) -> list[str]:
    """Return remarks about the agents to which the settings assign categories."""
    if not memory.configuration.agents_from:
        return []
    return [
        f"Agents: {remark.detail}{f'; {remark.remedy}' if remark.remedy else ''}" for remark in memory.agents.remarks()
    ]


def _check_new_database(here: project.Project, database: str) -> None:
    config.check_address(database, "--database")
    if without_password(database) != database:
        raise WrongRequest(
            "the address contains a password, but learnt.toml is meant to be committed",
            hint="set it in the environment: `export LEARNT_DATABASE=…`, then run `learnt init`",
        )
    path = os.path.join(here.root, project.SETTINGS_FILE)
    if os.path.exists(path):
        raise WrongRequest(f"{path} exists already", hint=f"set `database = {as_toml(database)}` in it")


def _write_settings(here: project.Project, database: str | None) -> str | None:
    """Write learnt.toml unless it exists; return its path if it was written."""
    path = os.path.join(here.root, project.SETTINGS_FILE)
    if os.path.exists(path):
        return None
    content = render_template()
    if database is not None:
        content = f"database = {as_toml(database)}\nproject = {as_toml(here.name)}\n\n{content}"
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise LearntError(f"cannot write {path}: {error.strerror}", hint="choose a folder you can write to") from None
    return path


tidy_arguments = add_user


def tidy_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        tidied = memory.tidy()
        titles = memory.titles(tidied.proposed)
    if arguments.json:
        show_json(tidied.as_dict())
        return
    say(f"Lowered confidence: {tidied.decayed}; archived as old and unused: {tidied.archived}")
    if tidied.failures_archived:
        say(f"Archived failure reports of finished tasks: {tidied.failures_archived}")
    if tidied.duplicates:
        pairs = f"{tidied.duplicates} pair{'s' * (tidied.duplicates != 1)}"
        say(f"Found {pairs} of learnings that say the same: `learnt review --kind duplicate`")
    for id, title in titles.items():
        say(f"Proposed {id}: {title}")
    if titles:
        shows = "`learnt show ID` shows what it would replace"
        say(f"{shows}; `learnt restore ID` accepts, `learnt archive ID` rejects it.")
