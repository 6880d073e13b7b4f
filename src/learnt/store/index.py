"""The words and triggers of learnings in the database, and the candidates that they give.

Words are cut by our own code before either engine sees them. SQLite finds candidates with its full-text index,
PostgreSQL with a table of postings; both hand over the words themselves, and the caller makes the order, by one rule.
"""

from __future__ import annotations

from learnt.model import PARAGRAPHS, Learning, Value
from learnt.text.triggers import anchor_of
from learnt.text.words import indexed_words, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from learnt.store.database import Database, Row

FIELDS = ("title", *PARAGRAPHS, "tags")
_CUT = ", ".join((*(f"learning_words.{field} as cut_{field}" for field in FIELDS), "learning_words.length"))
# What a candidate is judged by.
_JUDGED = "learning.id, learning.confidence, learning.created_at, learning.pinned, learning.task, learning.category"
_MOST_TRIGGERED = 500


class Counts(Value):
    """How many learnings are indexed, how many words they have, and in how many some words stand."""

    learnings: int
    words: int
    frequencies: Mapping[str, int]


def put(database: Database, learning: Learning) -> None:
    """Index a learning, or index it anew."""
    remove(database, learning.id)
    cut = {field: indexed_words(_text_of(learning, field)) for field in FIELDS}
    everything = [word for field in FIELDS for word in cut[field]]
    # Only words that stand there make a learning long: the other ways to find an identifier do not.
    length = sum(len(words(_text_of(learning, field))) for field in FIELDS)
    database.execute(
        f"""
        insert into learning_words (project, learning, {", ".join(FIELDS)}, length)
        values (:project, :learning, {", ".join(f":{field}" for field in FIELDS)}, :length)
        """,
        learning=learning.id,
        length=length,
        **{field: " ".join(cut[field]) for field in FIELDS},
    )
    if database.engine == "postgres":
        _put_postings(database, learning.id, everything)
    _count(database, sorted(set(everything)), learnings=1, length=length)
    _put_triggers(database, learning)


def remove(database: Database, id: str) -> None:
    """Take a learning out of the index, as far as it is in it."""
    row = database.row(f"select {_CUT} from learning_words where project = :project and learning = :id", id=id)
    if row is None:
        return
    held = {word for field in FIELDS for word in row[f"cut_{field}"].split()}
    _count(database, sorted(held), learnings=-1, length=-row["length"])
    for table in ("learning_words", "learning_trigger", *(("posting",) if database.engine == "postgres" else ())):
        database.execute(f"delete from {table} where project = :project and learning = :id", id=id)


def counts(database: Database, wanted: Sequence[str]) -> Counts:
    """Return what must be known of all learnings to weigh these words."""
    corpus = database.row("select learnings, words from corpus where project = :project")
    rows = database.rows(
        f"select word, learnings from word where project = :project and {database.one_of('word', 'wanted')}",
        wanted=database.list_value(wanted),
    )
    return Counts(
        learnings=corpus["learnings"] if corpus else 0,
        words=corpus["words"] if corpus else 0,
        frequencies={row["word"]: row["learnings"] for row in rows},
    )


def candidates(
    database: Database,
    weights: Mapping[str, float],
    conditions: str,
    parameters: dict[str, Any],
    *,
    limit: int,
    newest: int | None,
) -> list[tuple[Row, dict[str, list[str]]]]:
    """Return what the likeliest learnings are judged by that hold one of the words, each with its words.

    `newest` bounds how many learnings, counted from the newest, are looked at, as long as they give enough.
    """
    parameters = {**parameters, "limit": limit}
    find = _found_by_postings if database.engine == "postgres" else _found_by_index
    rows = find(database, weights, conditions, parameters, newest)
    if newest is not None and len(rows) < limit:  # what the conditions ask for is older
        rows = find(database, weights, conditions, parameters, None)
    return [(row, _by_field(row)) for row in rows]


def triggered(
    database: Database,
    anchors: Mapping[str, set[str]],
    holds: Callable[[str, str], bool],
    conditions: str,
    parameters: dict[str, Any],
) -> dict[str, str]:
    """Return the learnings with a trigger that holds, by id, each with the first such trigger.

    A pattern is tried once, however many learnings have it, and only where its anchor occurs.
    """
    found: dict[str, str] = {}
    for kind in (kind for kind, occurring in anchors.items() if occurring):
        of_kind = {"trigger_kind": kind, "anchors": database.list_value(sorted(anchors[kind]))}
        patterns = database.rows(
            f"""
            select distinct pattern
              from learning_trigger
             where project = :project
               and kind = :trigger_kind
               and {database.one_of("anchor", "anchors")}
            """,
            **of_kind,
        )
        holding = [row["pattern"] for row in patterns if holds(kind, row["pattern"])]
        for row in _learnings_with(database, of_kind, holding, conditions, parameters) if holding else ():
            found.setdefault(row["id"], f"{kind}: {row['pattern']}")
    return found


def _learnings_with(
    database: Database, of_kind: dict[str, Any], patterns: list[str], conditions: str, parameters: dict[str, Any]
) -> list[Row]:
    return database.rows(
        f"""
        select learning.id, learning_trigger.pattern
          from learning_trigger
          {database.then_join} learning
            on learning.project = learning_trigger.project and learning.id = learning_trigger.learning
         where learning_trigger.project = :project
           and learning_trigger.kind = :trigger_kind
           and {database.one_of("learning_trigger.anchor", "anchors")}
           and {database.one_of("learning_trigger.pattern", "patterns")}
           and {conditions}
         order by learning.confidence desc, learning.created_at desc, learning.id, learning_trigger.pattern
         limit :most
        """,
        patterns=database.list_value(patterns),
        most=_MOST_TRIGGERED,
        **of_kind,
        **parameters,
    )


def words_of(database: Database, ids: Sequence[str]) -> list[tuple[Row, dict[str, list[str]]]]:
    """Return what some learnings are judged by, each with its words."""
    rows = database.rows(
        f"""
        select {_JUDGED}, {_CUT}
          from learning
          join learning_words on learning_words.project = learning.project and learning_words.learning = learning.id
         where learning.project = :project
           and {database.one_of("learning.id", "ids")}
        """,
        ids=database.list_value(ids),
    )
    return [(row, _by_field(row)) for row in rows]


def _found_by_index(
    database: Database, weights: Mapping[str, float], conditions: str, parameters: dict[str, Any], newest: int | None
) -> list[Row]:
    last = database.value("select max(number) as last from learning_words") or 0
    return database.rows(
        f"""
        select {_JUDGED}, {_CUT}
          from learning_index
         cross join learning_words on learning_words.number = learning_index.rowid -- cross: in this order
         cross join learning on learning.project = learning_words.project and learning.id = learning_words.learning
         where learning_index match :match
           and learning_index.rowid > :floor
           and {conditions}
         order by learning_index.rank
         limit :limit
        """,
        match=" OR ".join(f'"{word}"' for word in weights),
        floor=0 if newest is None else last - newest,
        **parameters,
    )


def _found_by_postings(
    database: Database, weights: Mapping[str, float], conditions: str, parameters: dict[str, Any], newest: int | None
) -> list[Row]:
    # Step by step, each result kept: a server that has no statistics yet would join everything with everything.
    return database.rows(
        f"""
        with found as materialized (
            select posting.learning, sum(wanted.weight * posting.times / (posting.times + 1.0)) as score
              from posting
              join unnest(:words::text[], :weights::float8[]) as wanted (word, weight) on wanted.word = posting.word
             where posting.project = :project
               and posting.learning > :floor
             group by posting.learning
        ), best as materialized (
            select {_JUDGED}, found.score
              from found
              join learning on learning.project = :project and learning.id = found.learning
             where {conditions}
             order by found.score desc, learning.id desc
             limit :limit
        )
        select best.*, {_CUT}
          from best
          join learning_words on learning_words.project = :project and learning_words.learning = best.id
         order by best.score desc, best.id desc
        """,
        words=list(weights),
        weights=list(weights.values()),
        floor="" if newest is None else _oldest_of_newest(database, newest),
        **parameters,
    )


def _oldest_of_newest(database: Database, newest: int) -> str:
    """Return the id below the newest ones; ids grow with time."""
    floor = database.value(
        "select id from learning where project = :project order by id desc offset :newest limit 1", newest=newest
    )
    return str(floor or "")


def _put_postings(database: Database, id: str, everything: list[str]) -> None:
    times: dict[str, int] = {}
    for word in everything:
        times[word] = times.get(word, 0) + 1
    database.execute_many(
        """
        insert into posting (project, word, learning, times)
        values (:project, :word, :learning, :times)
        """,
        [{"word": word, "learning": id, "times": count} for word, count in times.items()],
    )


def _count(database: Database, distinct: list[str], *, learnings: int, length: int) -> None:
    database.execute_many(
        """
        insert into word (project, word, learnings)
        values (:project, :word, :step)
        on conflict (project, word) do update set learnings = word.learnings + :step
        """,
        [{"word": word, "step": learnings} for word in distinct],
    )
    database.execute(
        """
        insert into corpus (project, learnings, words)
        values (:project, :step, :length)
        on conflict (project) do update set learnings = corpus.learnings + :step, words = corpus.words + :length
        """,
        step=learnings,
        length=length,
    )


def _put_triggers(database: Database, learning: Learning) -> None:
    database.execute_many(
        """
        insert into learning_trigger (project, learning, kind, pattern, anchor)
        values (:project, :learning, :kind, :pattern, :anchor)
        """,
        [
            {"learning": learning.id, "kind": kind, "pattern": pattern, "anchor": anchor_of(kind, pattern)}
            for kind, patterns in learning.triggers.as_dict().items()
            for pattern in patterns
        ],
    )


def _by_field(row: Row) -> dict[str, list[str]]:
    return {field: row[f"cut_{field}"].split() for field in FIELDS}


def _text_of(learning: Learning, field: str) -> str:
    return " ".join(learning.tags) if field == "tags" else str(getattr(learning, field))
