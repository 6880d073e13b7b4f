"""Delete learnings and missteps permanently, with all copies of their texts in the database.

This happens only when a person purges something, in the caller's transaction. A deleted learning's id is remembered, so
that no file brings the learning back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from learnt.model import CUE_FIELDS, PARAGRAPHS, Brief
from learnt.store import cues, index, learnings, missteps, regenerations
from learnt.store.database import Database
from learnt.store.missteps import Misstep
from learnt.text.redact import PURGED, long_enough

TEXT_COLUMNS = {
    "task": ("title", "text", "acceptance"),
    "goal": ("title", "text"),
    "failure": ("tried", "reason", "error", "avoid", "suggestion"),
    "attempt": ("summary", "ignored"),
    "brief": ("receipt",),
    "material": ("text",),
    "discovery": ("text", "failed", "error", "worked", "excerpt"),
    "regeneration": ("reason", "text", "bullets", "loose"),
    "escalation": ("question", "detail", "answer"),
    "consolidation": ("entries",),
    "model_call": ("reason",),
    "misstep": ("command", "error", "worked"),
}
"""Columns that might contain copies of a purged text."""
_JSON_COLUMNS = ("receipt", "bullets", "loose", "detail", "entries")


def find_topic_file(database: Database, id: str) -> str:
    """Return the topic file of a learning, whether its row can be read or not; empty if it has none."""
    sql = "select topic_file from learning where project = :project and id = :id"
    path = database.value(sql, id=id)
    return path if isinstance(path, str) else ""


def purge_learning(database: Database, id: str) -> None:
    """Delete a learning with its events, injections and marks, and the copies of its texts in tasks and reports."""
    database.lock_words()
    database.renew_learnings_stamp()
    black_out(database, texts_ever(database, id))
    regenerations.forget(database, id)
    index.remove(database, id)
    database.forget_words()
    database.execute("delete from learning where project = :project and id = :id", id=id)
    for table in ("event", "escalation", "notice"):
        database.execute(f"delete from {table} where project = :project and subject = :id", id=id)
    database.execute("delete from escalation where project = :project and detail like :other", other=f'%"{id}"%')
    database.execute(
        "update event set reason = '' where project = :project and reason like :similar",
        similar=f"{learnings.SIMILAR_TO}{id} %",
    )
    database.execute("delete from already_read where project = :project and id = :id", id=f"{cues.ASKED_ABOUT}{id}")
    for table in ("mark", "injection", "discovery", "evidence"):
        database.execute(f"delete from {table} where project = :project and learning = :id", id=id)


def texts_ever(database: Database, id: str) -> set[str]:
    """Return the titles, paragraphs and cues of all versions of a learning."""
    versions = [event.new for event in learnings.history(database, id)]
    texts = {version.get(name, "") for version in versions for name in ("title", *PARAGRAPHS)}
    situations = {cue for version in versions for field in CUE_FIELDS for cue in version.get(field, ())}
    return (texts | situations) - {""}


def black_out(database: Database, texts: Iterable[str]) -> int:
    """Replace these texts in tasks, failure reports, receipts and similar columns; return how many rows changed."""
    changed = 0
    for text in long_enough(texts):
        in_json = json.dumps(text, ensure_ascii=False)[1:-1]
        for table, columns in TEXT_COLUMNS.items():
            for column in columns:
                changed += database.execute(
                    f"""
                    update {table}
                       set {column} = replace({column}, :sought, '{PURGED}')
                     where project = :project
                       and {column} <> replace({column}, :sought, '{PURGED}')
                    """,
                    sought=in_json if column in _JSON_COLUMNS else text,
                )
    return changed


def signs_in(database: Database, brief: Brief) -> list[str]:
    """Return the signs of the missteps that a brief warned about.

    If a later warning has replaced the brief's warning, the missteps are found by the commands in the receipt.
    """
    signs = database.column("select sign from warning where project = :project and brief = :brief", brief=brief.id)
    if signs:
        return signs
    commands = [failure["command"] for failure in brief.receipt.get("failed", ()) if failure["command"] != PURGED]
    which = f"project = :project and {database.one_of('command', 'commands')}"
    sql = f"select sign from misstep where {which} order by sign"
    return database.column(sql, commands=database.list_value(commands))


def forget_missteps(database: Database, signs: Sequence[str]) -> list[Misstep]:
    """Delete missteps and return those that existed; the outcomes of the warnings about them are kept."""
    existing = [misstep for misstep in (missteps.find(database, sign) for sign in signs) if misstep]
    for misstep in existing:
        database.execute("delete from misstep where project = :project and sign = :sign", sign=misstep.sign)
    return existing


def purge_missteps(database: Database, signs: Sequence[str], commands: Sequence[str]) -> bool:
    """Delete missteps, their warnings and all copies of their commands; return whether anything was deleted.

    Their errors and replacing commands are deleted only from the receipts of their own warnings, because elsewhere the
    same text is about something else. `commands` are the commands as a brief shows them.
    """
    existing = forget_missteps(database, signs)
    all_commands = {*commands, *(misstep.command for misstep in existing)} - {PURGED}
    count = len(existing) + database.execute(
        f"delete from misstep where project = :project and {database.one_of('command', 'all_commands')}",
        all_commands=database.list_value(sorted(all_commands)),
    )
    for sign in signs:
        count += database.execute("delete from warning where project = :project and sign = :sign", sign=sign)
    for id, receipt in _receipts_with(database, all_commands):
        count += _purge_receipt(database, id, receipt, all_commands)
    count += black_out(database, all_commands)
    # A purged command might have replaced another misstep. It is useless as advice once it is redacted, so it is
    # deleted.
    database.execute(
        "update misstep set worked = '', asked = '', wrong = '[]' where project = :project and worked like :purged",
        purged=f"%{PURGED}%",
    )
    return count > 0


def _purge_receipt(database: Database, id: str, receipt: dict[str, Any], commands: Collection[str]) -> int:
    for failure in receipt["failed"]:
        if failure["command"] in commands:  # this also finds commands that are too short for `black_out`
            failure.update(command=PURGED, error=PURGED, worked=PURGED)
    count = database.execute("delete from warning where project = :project and brief = :id", id=id)
    return count + database.execute(
        "update brief set receipt = :receipt where project = :project and id = :id",
        id=id,
        receipt=json.dumps(receipt, ensure_ascii=False),
    )


def _receipts_with(database: Database, commands: Collection[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the ids and receipts of the briefs that warned about any of these commands."""
    rows = database.rows(
        """
        select id, receipt
          from brief
         where project = :project
           and occasion in ('tool', 'failure')
         order by id
        """
    )
    receipts = [(row["id"], json.loads(row["receipt"])) for row in rows]
    return [
        (id, receipt)
        for id, receipt in receipts
        if any(failure["command"] in commands for failure in receipt.get("failed", ()))
    ]
