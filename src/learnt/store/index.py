"""Find learnings by their fields, their words and their triggers.

For both engines, our own code splits texts into words. Each engine finds candidates in its own way and returns their
words; the caller ranks the candidates by one rule.
"""

from __future__ import annotations

import json

from learnt.errors import WrongRequest
from learnt.model import KINDS, PARAGRAPHS, STATUSES, Learning, Value
from learnt.store.database import insert_statement
from learnt.system import watched
from learnt.text.triggers import anchor_of, list_names
from learnt.text.words import indexed_words, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from learnt.store.database import Condition, Database, Row

FIELDS = ("title", *PARAGRAPHS, "tags", "cues")
_WORD_COLUMNS = ", ".join((*(f"learning_words.{field} as cut_{field}" for field in FIELDS), "learning_words.length"))
_RANKING_COLUMNS = (
    "learning.id, learning.confidence, learning.created_at, learning.pinned, learning.vouched, learning.task, "
    "learning.category, learning.loaded_from"
)
_MAX_TRIGGERED = 500
_EQUALITY_FIELDS = ("status", "domain", "category", "kind", "goal", "task", "vouched")
# An index has exactly this expression.
_TRUST = "(case when learning.vouched = '' then -1 when learning.pinned = 1 then 1 else learning.confidence end)"
_COMPARISONS = {
    "exclude_goal": "learning.goal != :exclude_goal",
    "min_confidence": "learning.confidence >= :min_confidence",
    "trusted_from": f"{_TRUST} >= :trusted_from",
    "doubted_below": f"{_TRUST} < :doubted_below",
}


class Filter(Value):
    """Which learnings to list; None means any.

    `conditions` returns the filter as SQL. `accepts` applies trust, categories and exclusions to a candidate that was
    read for several filters at once.
    """

    status: str | None = "active"
    domain: str | None = None
    category: str | None = None
    tag: str | None = None
    kind: str | None = None
    goal: str | None = None
    task: str | None = None
    vouched: str | None = None
    exclude_goal: str | None = None
    min_confidence: float | None = None
    trusted_from: float | None = None
    """List only vouched learnings that are pinned or have at least this confidence."""
    doubted_below: float | None = None
    """List only the others: learnings that nobody vouches for, or with less confidence and not pinned."""
    exclude_task: str | None = None
    """Leave out learnings from this task."""
    exclude_ids: tuple[str, ...] = ()
    exclude_loaded: tuple[str, ...] = ()
    """Leave out learnings that stand in files with these paths; a `*` in a path stands for any text."""
    only_excluded: bool = False
    """List only learnings that `exclude_task`, `exclude_ids` and `exclude_loaded` would leave out."""
    in_categories: tuple[str, ...] = ()
    """List only learnings in these categories, in exactly this spelling; empty means any."""
    not_in_categories: tuple[str, ...] = ()

    def check(self) -> None:
        for name, choices in (("status", STATUSES), ("kind", KINDS)):
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise WrongRequest(f"there is no {name} `{value}`", hint=f"choose one of: {', '.join(choices)}")
        if self.min_confidence is not None and not 0.0 <= self.min_confidence <= 1.0:
            raise WrongRequest(
                f"the minimum confidence must be between 0 and 1, not {self.min_confidence}",
                hint="learnings have confidences from 0.1 to 1.0",
            )

    def accepts(self, candidate: Candidate, *, triggered: bool = False) -> bool:
        """Return whether trust, categories and exclusions allow a candidate; the database has checked the rest.

        A candidate with a matching trigger is accepted whatever its category, but not if `in_categories` is set.
        """
        category, is_trusted = candidate.category, candidate.is_trusted
        if self.in_categories and (triggered or category not in self.in_categories):
            return False
        if category in self.not_in_categories and not triggered:
            return False
        if self.trusted_from is not None and not is_trusted(self.trusted_from):
            return False
        if self.doubted_below is not None and is_trusted(self.doubted_below):
            return False
        excluded = candidate.id in self.exclude_ids or (bool(self.exclude_task) and candidate.task == self.exclude_task)
        excluded = excluded or self.leaves_out_file(candidate.loaded_from)
        return excluded == self.only_excluded

    def leaves_out_file(self, path: str) -> bool:
        """Return whether `exclude_loaded` leaves out the learnings that stand in a file."""
        return bool(path) and any(_fits(pattern, path) for pattern in self.exclude_loaded)

    def conditions(self, database: Database) -> Condition:
        """Return the filter as SQL, and its parameters."""
        comparisons = {**{field: f"learning.{field} = :{field}" for field in _EQUALITY_FIELDS}, **_COMPARISONS}
        parameters = {field: getattr(self, field) for field in comparisons if getattr(self, field) is not None}
        conditions = ["learning.project = :project", *(comparisons[field] for field in parameters)]
        if self.tag is not None:
            conditions.append("learning.tags like :tag escape '\\'")
            parameters["tag"] = f"%{_escape_like(json.dumps(self.tag.lower(), ensure_ascii=False))}%"
        for field, negation in (("in_categories", ""), ("not_in_categories", "not ")):
            if getattr(self, field):
                conditions.append(f"{negation}({database.one_of('learning.category', field)})")
                parameters[field] = database.list_value(getattr(self, field))
        excluded = []
        if self.exclude_task:
            excluded.append("learning.task = :exclude_task")
            parameters["exclude_task"] = self.exclude_task
        if self.exclude_ids:
            excluded.append(database.one_of("learning.id", "exclude_ids"))
            parameters["exclude_ids"] = database.list_value(self.exclude_ids)
        for letter, pattern in zip("abcdefghijklmnopqrstuvwxyz", self.exclude_loaded, strict=False):
            excluded.append(f"learning.loaded_from like :loaded_{letter} escape '\\'")
            parameters[f"loaded_{letter}"] = _escape_like(pattern).replace("*", "%")
        if excluded or self.only_excluded:
            conditions.append(f"{'' if self.only_excluded else 'not '}({' or '.join(excluded) or '1 = 0'})")
        return " and ".join(conditions), parameters


class Candidate:
    """A learning that might match, with the words of each field but without the text."""

    __slots__ = (
        *("category", "confidence", "created_at", "id", "length", "loaded_from", "pinned", "task", "texts", "vouched"),
    )

    def __init__(self, row: Row) -> None:
        self.id: str = row["id"]
        self.category: str = row["category"]
        self.confidence: float = row["confidence"]
        self.created_at: int = row["created_at"]
        self.pinned = bool(row["pinned"])
        self.vouched: str = row["vouched"]
        self.task: str = row["task"]
        self.loaded_from: str = row["loaded_from"]
        self.length: int = row["length"]
        self.texts: dict[str, str] = {field: row[f"cut_{field}"] for field in FIELDS}
        """The words of each field, separated by spaces."""
        if not isinstance(self.confidence, int | float) or not isinstance(self.created_at, int):
            raise TypeError("its figures are not numbers")
        if not isinstance(self.length, int) or not all(isinstance(text, str) for text in self.texts.values()):
            raise TypeError("its words are not text")

    def words(self) -> list[str]:
        """Return the words of all fields, with repetitions."""
        return " ".join(self.texts.values()).split()

    def is_trusted(self, min_confidence: float) -> bool:
        """Return whether somebody vouches for the learning, and it is pinned or has at least this confidence."""
        return bool(self.vouched) and (self.pinned or self.confidence >= min_confidence)


class Counts(Value):
    """How many learnings are indexed, how many words they have, and how many learnings contain each word."""

    learnings: int
    words: int
    frequencies: Mapping[str, int]


def put(database: Database, learning: Learning) -> None:
    """Index a learning, replacing its old entry."""
    remove(database, learning.id)
    by_field = {field: indexed_words(text_of(learning, field)) for field in FIELDS}
    all_words = [word for field in FIELDS for word in by_field[field]]
    # The length includes only the words of the text, not the additional forms of identifiers.
    length = sum(len(words(text_of(learning, field))) for field in FIELDS)
    joined = {field: " ".join(by_field[field]) for field in FIELDS}
    database.insert("learning_words", {"learning": learning.id, **joined, "length": length})
    database.put_postings(learning.id, all_words)
    _count(database, sorted(set(all_words)), learnings=1, length=length)
    _put_triggers(database, learning)


def remove(database: Database, id: str) -> None:
    """Remove a learning from the index, if it is indexed."""
    row = database.row(f"select {_WORD_COLUMNS} from learning_words where project = :project and learning = :id", id=id)
    if row is None:
        return
    indexed = {word for field in FIELDS for word in row[f"cut_{field}"].split()}
    _count(database, sorted(indexed), learnings=-1, length=-row["length"])
    for table in ("learning_words", "learning_trigger"):
        database.execute(f"delete from {table} where project = :project and learning = :id", id=id)
    database.remove_postings(id)


def counts(database: Database, wanted: Sequence[str]) -> Counts:
    """Return the counts that are needed to weigh these words."""
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


def find_ids(database: Database, which: Filter, *, limit: int) -> list[str]:
    """Return the ids of some matching learnings, in no particular order."""
    where, parameters = which.conditions(database)
    return database.column(f"select learning.id from learning where {where} limit :limit", limit=limit, **parameters)


def find_by_words(
    database: Database, weights: Mapping[str, float], which: Filter, *, limit: int, newest: int | None = None
) -> list[Candidate]:
    """Return the learnings that match the words best.

    If `newest` is set, only this many of the newest learnings are searched first, and all if that finds too few.
    """
    columns = (_RANKING_COLUMNS, _WORD_COLUMNS)
    where, parameters = which.conditions(database)
    parameters["limit"] = limit
    rows = database.match_words(weights, columns, (where, parameters), newest)
    if newest is not None and len(rows) < limit:
        rows = database.match_words(weights, columns, (where, parameters), None)
    return database.readable(Candidate, rows, "learning")


def read_candidates(database: Database, ids: Sequence[str]) -> list[Candidate]:
    """Return the candidates with these ids."""
    rows = database.rows(
        f"""
        select {_RANKING_COLUMNS}, {_WORD_COLUMNS}
          from learning
          join learning_words on learning_words.project = learning.project and learning_words.learning = learning.id
         where learning.project = :project
           and {database.one_of("learning.id", "ids")}
        """,
        ids=database.list_value(ids),
    )
    return database.readable(Candidate, rows, "learning")


def find_by_triggers(
    database: Database, anchors: Mapping[str, set[str]], matches: Callable[[str, str], bool], which: Filter
) -> dict[str, str]:
    """Return the ids of the learnings that have a matching trigger, each with its trigger.

    If there are very many, only the most trusted learnings are returned. `matches` tests a kind and a pattern; each
    pattern is tested once, and only if its anchor occurs.
    """
    conditions = which.conditions(database)
    triggered: dict[str, str] = {}
    for kind in (kind for kind, occurring in anchors.items() if occurring):
        kind_parameters = {"trigger_kind": kind, "anchors": database.list_value(sorted(anchors[kind]))}
        patterns = database.rows(
            f"""
            select distinct pattern
              from learning_trigger
             where project = :project
               and kind = :trigger_kind
               and {database.one_of("anchor", "anchors")}
            """,
            **kind_parameters,
        )
        matching = [row["pattern"] for row in patterns if matches(kind, row["pattern"])]
        for row in _find_by_patterns(database, kind_parameters, matching, conditions) if matching else ():
            triggered.setdefault(row["id"], f"{kind}: {row['pattern']}")
    return triggered


def _find_by_patterns(
    database: Database, kind_parameters: dict[str, Any], patterns: list[str], conditions: Condition
) -> list[Row]:
    where, parameters = conditions
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
           and {where}
         order by learning.confidence desc, learning.created_at desc, learning.id, learning_trigger.pattern
         limit :most
        """,
        patterns=database.list_value(patterns),
        most=_MAX_TRIGGERED,
        **kind_parameters,
        **parameters,
    )


def _count(database: Database, distinct: list[str], *, learnings: int, length: int) -> None:
    add_up = "on conflict (project, word) do update set learnings = word.learnings + :learnings"
    rows = [{"word": word, "learnings": learnings} for word in distinct]
    database.execute_many(insert_statement("word", ("word", "learnings"), add_up), rows)
    sums = "learnings = corpus.learnings + :learnings, words = corpus.words + :words"
    corpus = {"learnings": learnings, "words": length}
    database.insert("corpus", corpus, otherwise=f"on conflict (project) do update set {sums}")


def _put_triggers(database: Database, learning: Learning) -> None:
    rows = [
        {"learning": learning.id, "kind": kind, "pattern": pattern, "anchor": anchor_of(kind, pattern)}
        for kind, patterns in learning.triggers.as_dict().items()
        for pattern in patterns
    ]
    database.execute_many(insert_statement("learning_trigger", ("learning", "kind", "pattern", "anchor")), rows)
    if rows:
        watched.forget(database.path)


def put_names(database: Database, learning: Learning) -> None:
    """Store the distinctive identifiers that a learning names, in place of its old ones; see `store.names`."""
    database.execute("delete from learning_name where project = :project and learning = :id", id=learning.id)
    named = list_names(learning.title, learning.action) or list_names(learning.observation)
    if named:
        rows = [{"learning": learning.id, "name": name} for name in named]
        database.execute_many(insert_statement("learning_name", ("learning", "name")), rows)
        watched.forget(database.path)


def list_anchors(database: Database, kinds: Sequence[str]) -> dict[str, list[str]]:
    """Return all anchors of the triggers of these kinds."""
    sql = "select distinct anchor from learning_trigger where project = :project and kind = :kind"
    return {kind: database.column(sql, kind=kind) for kind in kinds}


def text_of(learning: Learning, field: str) -> str:
    """Return the text of one of the fields that are searched."""
    value = learning.all_cues if field == "cues" else getattr(learning, field)
    return value if isinstance(value, str) else (" " if field == "tags" else "; ").join(value)


def _fits(pattern: str, path: str) -> bool:
    """Return whether a path is one that a pattern with at most one `*` stands for."""
    start, star, end = pattern.partition("*")
    if not star:
        return path == pattern
    return len(path) >= len(start) + len(end) and path.startswith(start) and path.endswith(end)


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
