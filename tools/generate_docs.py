"""Write the pages in docs/ that are generated from the code: commands, configuration, schema.

`make docs` writes the pages. A test compares them with this module's output, so that they cannot go stale.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from learnt.doors.cli import COMMANDS, GROUPS, Command
from learnt.doors.cli.arguments import full_parser
from learnt.settings import SETTINGS, as_toml
from learnt.settings_text import example_lines
from learnt.store.database import MIGRATIONS
from learnt.store.migrate import bring_up_to_date
from learnt.store.sqlite import SqliteDatabase

DOCS = Path(__file__).parent.parent / "docs"
_NOTE = "<!-- Written by `make docs` from the code: change the code, not this page. -->\n"
_LISTS = (
    "In the environment, the items of a list are separated as in PATH: `LEARNT_SOURCES=../a:../b`. Models are\n"
    "separated by commas, and a price follows the model's name: `LEARNT_MODELS=small=0.1,large`. Agents are\n"
    "separated by semicolons and their categories by commas: `LEARNT_AGENTS=engineer=git,pytest;tester=pytest`. The\n"
    "agents in the example are the defaults."
)


_DIAGRAM_REMARK = (
    "Every key starts with `project`, which is left out of the lines below. A solid line is a foreign key: what",
    "belongs to a row goes with it. A dotted line is a name only: the other row may be in another store, or gone.",
    "The diagram shows keys and references; the migrations below show all columns.",
)
_COLUMNS = "select name, type, pk from pragma_table_info('{}')"
_FOREIGN_KEYS = """select "from", "table" from pragma_foreign_key_list('{}')"""
# Columns that name a row of another table without a foreign key.
_REFERENCES = {
    "task": "task",
    "attempt": "attempt",
    "learning": "learning",
    "brief": "brief",
    "goal": "goal",
    "based_on": "task",
    "parent": "task",
    "needs": "task",
    "superseded_by": "learning",
    "regeneration": "regeneration",
}


def pages() -> dict[str, str]:
    """Return the generated pages by file name."""
    return {"commands.md": commands(), "configuration.md": configuration(), "schema.md": schema()}


def commands() -> str:
    """Return the command reference."""
    lines = [
        "# Commands",
        "",
        _NOTE,
        "Every command takes `--json` (print JSON; the shapes are promised), `-C FOLDER` (work as if started there)",
        "and `--help`. Results go to stdout, remarks to stderr. Exit codes: 0 done, 1 our failure, 2 wrong request,",
        "3 try again (the database is busy, full or unreachable): nothing was changed, except by `import`, which works",
        "in parts and can be repeated without duplicating anything, and `purge`, which continues where it stopped.",
        "",
    ]
    for group in GROUPS:
        lines += [f"## {group}", ""]
        for command in COMMANDS:
            if command.group == group:
                lines += _command(command)
    return "\n".join(lines)


def configuration() -> str:
    """Return the page about settings."""
    lines = [
        "# Configuration",
        "",
        _NOTE,
        "Settings are read from these sources, each of which overrides the one before: the default, your user-wide",
        "file (`~/.config/learnt/learnt.toml`, or where the platform keeps such files), the project's `learnt.toml`,",
        "and `LEARNT_*` in the environment. In a git worktree, `learnt.toml` is read from that worktree. An unknown",
        "key or a wrong type is an error; its message contains the file, the key and the remedy.",
        "A project that you clone must not choose a program to run, or where your words and passwords go. So each",
        "setting says who may set it (column *by*): `anybody`; `lower` or `higher`: a project's file may only tighten",
        "your limit; `person`: a project's value has no effect until you accept it with `learnt trust`, which shows it",
        "and asks, and asks again when it changes (the same holds for a looser limit); `user`: never a project.",
        "`learnt config` shows every current value, where it comes from and what it means.",
        "",
        "| key | default | by | environment | meaning |",
        "|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        choices = f" One of: {', '.join(setting.choices)}." if setting.choices else ""
        default = "see below" if setting.key == "agents" else f"`{as_toml(setting.default)}`"
        lines.append(
            f"| `{setting.key}` | {default} | {setting.by} | `{setting.variable}` | {setting.meaning}{choices} |"
        )
    lines += ["", "An example of a user-wide file with every key:", "", "```toml"]
    lines += [line for setting in SETTINGS for line in example_lines(setting)]
    lines += ["```", "", _LISTS, ""]
    return "\n".join(lines)


def schema() -> str:
    """Return the page about the database's tables, which is generated from the migrations."""
    lines = ["# Schema", "", _NOTE, "## How the tables belong together", "", *_DIAGRAM_REMARK, "", *_diagram(), ""]
    for path in sorted(Path(MIGRATIONS).glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        lines += [f"## Migration `{path.stem}`", "", *_preamble(text), ""]
        for remark, table, columns, rest in _tables(text):
            lines += [f"### `{table}`", "", remark, "", "| column | type | remark |", "|---|---|---|", *columns, ""]
            lines += [f"- {line}" for line in rest] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _diagram() -> list[str]:
    """Return an entity-relationship diagram of the newest schema: keys, references and what they refer to."""
    database = SqliteDatabase(":memory:", wait_ms=0, own=False)
    try:
        bring_up_to_date(database, version="docs", now_ms=0)
        made = set(re.findall(r"^create table (\w+) \(", "".join(map(_read, _migrations())), re.MULTILINE))
        tables = made & set(database.column("select name from sqlite_master where type = 'table'"))
        drawn = [_draw_table(database, table) for table in sorted(tables)]
    finally:
        database.close()
    relations = [line for lines, _ in drawn for line in lines]
    return ["```mermaid", "erDiagram", *relations, *(line for _, lines in drawn for line in lines), "```"]


def _draw_table(database: SqliteDatabase, table: str) -> tuple[list[str], list[str]]:
    """Return the lines for a table's references, and for the table."""
    keys = {row["from"]: row["table"] for row in database.rows(_FOREIGN_KEYS.format(table)) if row["from"] != "project"}
    references = {**_REFERENCES, **keys}
    relations, entity = [], [f"    {table} {{"]
    for column in database.rows(_COLUMNS.format(table)):
        name = column["name"]
        marks = ", ".join([*["PK"] * bool(column["pk"]), *["FK"] * (name in keys)])
        if name in references:
            line = "||--o{" if name in keys else "|o..o{"
            relations.append(f"    {references[name]} {line} {table} : {name}")
        if column["pk"] or name in references:
            entity.append(f"        {column['type'].split()[0]} {name} {marks}".rstrip())
    return relations, [*entity, "    }"]


def _migrations() -> list[Path]:
    return sorted(Path(MIGRATIONS).glob("*.sql"))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _command(command: Command) -> list[str]:
    parser = full_parser(command)
    actions = [action for action in parser._actions if action.dest not in ("help", "json", "folder")]
    usage = " ".join(["learnt", command.name, *(_usage(action) for action in actions if not action.option_strings)])
    options = [action for action in actions if action.option_strings]
    lines = [f"### {command.name}", "", f"{command.summary}.", "", f"    {usage}{' [options]' if options else ''}", ""]
    if actions:
        lines += ["| argument | meaning |", "|---|---|", *(_argument(action) for action in actions), ""]
    return lines


def _usage(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return f"[{name}]" if action.nargs == "?" else name


def _argument(action: argparse.Action) -> str:
    name = ", ".join(action.option_strings) or str(action.metavar)
    takes = action.option_strings and action.nargs != 0
    value = "|".join(action.choices) if action.choices else str(action.metavar)
    shown = f"{name} {value}" if takes else name
    return f"| `{shown.replace('|', chr(92) + '|')}` | {action.help} |"


def _preamble(text: str) -> list[str]:
    first = text.split("\n\n", 1)[0]
    return [line.removeprefix("-- ") for line in first.split("\n") if line.startswith("--")]


def _tables(text: str) -> list[tuple[str, str, list[str], list[str]]]:
    tables = []
    for remark, name, body, after in re.findall(
        r"-- ([^\n]+)\ncreate table (\w+) \(\n(.*?)\n\);\n((?:create [^\n]+\n)*)", text, re.DOTALL
    ):
        columns, rest = [], []
        for line in body.split("\n"):
            definition, _, comment = line.partition("--")
            definition = definition.strip().rstrip(",")
            if definition.startswith(("primary", "unique", "foreign")):
                rest.append(definition)
            else:
                column, _, kind = definition.partition(" ")
                columns.append(f"| `{column}` | {kind.replace('|', chr(92) + '|')} | {comment.strip()} |")
        rest += [line.removeprefix("create ").rstrip(";") for line in after.strip().split("\n") if line]
        tables.append((remark, name, columns, rest))
    return tables


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
