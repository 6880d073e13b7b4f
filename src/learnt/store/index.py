"""Find learnings by their fields, their words and their triggers.

For both engines, our own code splits texts into words. Each engine finds candidates in its own way and returns their
words; the caller ranks the candidates by one rule.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain

from learnt.errors import WrongRequest
from learnt.model import KINDS, PARAGRAPHS, STATUSES, Learning, Value
from learnt.store import vectors
from learnt.store.database import SEARCHED_FIELDS, CutWords, insert_statement
from learnt.system import watched
from learnt.text.meaning import DIMENSIONS, MODEL, embed_in_order
from learnt.text.triggers import anchor_of, list_names
from learnt.text.words import count_joined, indexed_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from learnt.store.database import Condition, Database, Row, WordMatch

FIELDS = SEARCHED_FIELDS
_ABOUT_FIRST = ("title", "cues", "tags", *PARAGRAPHS)  # in this order, a learning says first what it is about
_RANKING_COLUMNS = (
    "learning.id, learning.confidence, learning.created_at, learning.pinned, learning.vouched, learning.task, "
    "learning.category, learning.loaded_from, learning.number"
)
LAST_LETTER = "\uffff"  # sorts behind all words with the same beginning
_MAX_TRIGGERED = 500
_MAX_KEPT_WORDS = 20_000
_EQUALITY_FIELDS = ("status", "domain", "category", "kind", "goal", "task", "vouched")
_PARTLY_INDEXED = ("domain", "goal", "task")
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
    pinned: bool = False
    """List only pinned learnings."""
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
        # The indexes of these fields leave out learnings without them.
        conditions += [f"learning.{field} <> ''" for field in _PARTLY_INDEXED if parameters.get(field)]
        if self.pinned:
            conditions.append("learning.pinned = 1")
            if self.trusted_from is not None:
                conditions.append(f"{_TRUST} = 1")  # this is what trusted and pinned ones have, and the index finds it
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
        likes = []
        for letter, pattern in zip("abcdefghijklmnopqrstuvwxyz", self.exclude_loaded, strict=False):
            likes.append(f"learning.loaded_from like :loaded_{letter} escape '\\'")
            parameters[f"loaded_{letter}"] = _escape_like(pattern).replace("*", "%")
        if likes:  # hardly any learning stands in a file, so the patterns are compared with few
            excluded.append(f"learning.loaded_from <> '' and ({' or '.join(likes)})")
        if excluded or self.only_excluded:
            conditions.append(f"{'' if self.only_excluded else 'not '}({' or '.join(excluded) or '1 = 0'})")
        return " and ".join(conditions), parameters


class Candidate:
    """A learning that might match, with the wanted words that it contains but without its text."""

    __slots__ = (
        *("category", "confidence", "created_at", "id", "likeness", "loaded_from", "match", "number", "pinned", "task"),
        *("vector", "vouched"),
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
        self.number: int = row["number"]
        self.match: WordMatch = row["match"]
        self.vector: bytes | None = None
        """What it means by the embedded table."""
        self.likeness: float | None = None
        """How like it is to a text by these vectors, as far as that is known."""
        if not isinstance(self.confidence, int | float) or not isinstance(self.created_at, int):
            raise TypeError("its figures are not numbers")
        if self.match is None:
            raise TypeError("its words are not text")

    def is_trusted(self, min_confidence: float) -> bool:
        """Return whether somebody vouches for the learning, and it is pinned or has at least this confidence."""
        return bool(self.vouched) and (self.pinned or self.confidence >= min_confidence)


class Counts(Value):
    """How many learnings are indexed, how many words they have, and how many learnings contain each word."""

    learnings: int
    words: int
    frequencies: Mapping[str, int]


class Entry:
    """What the index holds of a learning. It is made outside transactions, because that takes longest."""

    __slots__ = ("cut", "names", "triggers", "vector")

    def __init__(self, cut: CutWords, vector: bytes | None, triggers: list[Row], names: list[str]) -> None:
        self.cut = cut
        self.vector = vector
        self.triggers = triggers
        self.names = names
        """The distinctive identifiers that it names; see `store.names`."""

    @classmethod
    def of(cls, learning: Learning) -> Entry:
        """Return a learning's entry."""
        by_field = [indexed_words(text_of(learning, field)) for field in FIELDS]
        # The length includes only the words of the text, not the additional forms of identifiers.
        length = sum(len(words) - count_joined(words) for words in by_field)
        cut, by_name = CutWords(learning.id, by_field, length), dict(zip(FIELDS, by_field, strict=True))
        vector = embed_in_order(chain.from_iterable([by_name[field] for field in _ABOUT_FIRST]))
        names = list_names(learning.title, learning.action) or list_names(learning.observation)
        return cls(cut, vector, _trigger_rows(learning), [*names])

    def as_plain(self) -> tuple[Any, ...]:
        """Return the entry as plain values, which can be sent to another process."""
        return (self.cut.learning, self.cut.by_field, self.cut.length, self.vector, self.triggers, self.names)

    @classmethod
    def from_plain(cls, values: tuple[Any, ...]) -> Entry:
        """Return the entry of plain values."""
        learning, by_field, length, vector, triggers, names = values
        return cls(CutWords(learning, by_field, length), vector, triggers, names)


def put(database: Database, learning: Learning) -> None:
    """Index a learning, replacing its old entry."""
    remove(database, learning.id)
    put_new(database, [Entry.of(learning)], number=_number_of(database, learning.id))


def put_new(database: Database, entries: Sequence[Entry], *, number: int) -> None:
    """Index learnings that are not indexed, from this number on; many at once are faster than one by one."""
    for place, entry in enumerate(entries, number):
        entry.cut.number = place
    database.put_words([entry.cut for entry in entries])
    vectors.put(database, {entry.cut.number: entry.vector for entry in entries if entry.vector})
    rows = [row for entry in entries for row in entry.triggers]
    database.execute_many(insert_statement("learning_trigger", ("learning", "kind", "pattern", "anchor")), rows)
    names = [{"learning": entry.cut.learning, "name": name} for entry in entries for name in entry.names]
    database.execute_many(insert_statement("learning_name", ("learning", "name")), names)
    if rows or names:
        watched.forget(database.path)


def put_cut(database: Database, rows: Sequence[Row]) -> None:
    """Index learnings by words that another database has stored: the same code has split them."""
    ids = database.list_value([row["learning"] for row in rows])
    sql = f"select id, number from learning where project = :project and {database.one_of('id', 'ids')}"
    numbers = {row["id"]: row["number"] for row in database.rows(sql, ids=ids)}
    entries = [CutWords(row["learning"], [row[field].split() for field in FIELDS], row["length"]) for row in rows]
    for entry in entries:
        entry.number = numbers[entry.learning]
    database.put_words(entries)


def remove(database: Database, id: str) -> None:
    """Remove a learning from the index, if it is indexed."""
    number = _number_of(database, id)
    database.remove_words(id, number)
    vectors.remove(database, number)
    for table in ("learning_trigger", "learning_name"):
        database.execute(f"delete from {table} where project = :project and learning = :id", id=id)


def clear(database: Database) -> None:
    """Remove all learnings from the index."""
    database.clear_words()
    vectors.clear(database)
    for table in ("learning_trigger", "learning_name"):
        database.execute(f"delete from {table} where project = :project")
    database.renew_learnings_stamp()


def next_number(database: Database) -> int:
    """Within a transaction that holds the lock on the words: return the number for a new learning."""
    return database.last_number() + 1


def _number_of(database: Database, id: str) -> int:
    """Return a learning's number; 0 if there is no such learning."""
    return int(database.value("select number from learning where project = :project and id = :id", id=id) or 0)


def counts(database: Database, wanted: Sequence[str]) -> Counts:
    """Return the counts that are needed to weigh these words."""
    kept = database.renew_kept()
    if kept.corpus is None:
        corpus = database.row("select learnings, words from corpus where project = :project")
        kept.corpus = (corpus["learnings"], corpus["words"]) if corpus else (0, 0)
    if len(kept.frequencies) > _MAX_KEPT_WORDS:
        kept.frequencies.clear()
    unknown = [word for word in wanted if word not in kept.frequencies]
    if unknown:
        sql = f"select word, learnings from word where project = :project and {database.one_of('word', 'wanted')}"
        kept.frequencies |= dict.fromkeys(unknown, 0)
        kept.frequencies |= database.tuples(sql, wanted=database.list_value(unknown))
    learnings, length = kept.corpus
    frequencies = {word: count for word in wanted if (count := kept.frequencies[word])}
    return Counts(learnings=learnings, words=length, frequencies=frequencies)


def add_up(every: Sequence[Counts]) -> Counts:
    """Return the counts of several stores as if they were one."""
    if len(every) == 1:
        return every[0]
    frequencies: Counter[str] = Counter()
    for some in every:
        frequencies.update(some.frequencies)
    return Counts(
        learnings=sum(some.learnings for some in every),
        words=sum(some.words for some in every),
        frequencies=frequencies,
    )


def complete_words(database: Database, beginnings: Sequence[str], *, most: int) -> dict[str, dict[str, int]]:
    """Return for each beginning the words that begin with it, each with the number of learnings that contain it.

    At most so many words are returned for each beginning, the most frequent ones.
    """
    kept = database.kept.completions
    if len(kept) > _MAX_KEPT_WORDS:
        kept.clear()
    unknown = [beginning for beginning in beginnings if (beginning, most) not in kept]
    if unknown:
        kept |= {(beginning, most): {} for beginning in unknown}
        sql = f"""
            select beginning, word, learnings
              from (
                select beginning.value as beginning, word.word, word.learnings,
                       row_number() over (partition by beginning.value order by word.learnings desc, word.word) as place
                  from {database.each_text("beginnings", "beginning")}
                  {database.then_join} word
                    on word.project = :project
                   and word.word > beginning.value
                   and word.word < beginning.value || :last_letter
                   and word.learnings > 0
                   ) as completion
             where place <= :most
             order by beginning, place
        """
        listed = database.list_value(unknown)
        for beginning, word, count in database.tuples(sql, beginnings=listed, last_letter=LAST_LETTER, most=most):
            kept[beginning, most][word] = count
    return {beginning: longer for beginning in beginnings if (longer := kept[beginning, most])}


def find_ids(database: Database, which: Filter, *, limit: int) -> list[str]:
    """Return the ids of some matching learnings, in no particular order."""
    where, parameters = which.conditions(database)
    return database.column(f"select learning.id from learning where {where} limit :limit", limit=limit, **parameters)


def find(
    database: Database,
    which: Filter,
    *,
    weights: Mapping[str, float] | None = None,
    limit: int = 0,
    newest: int | None = None,
    meanings: Sequence[tuple[bytes, str]] = (),
    near: int = 0,
    wanted: Collection[str] = (),
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the `limit` learnings that match weighted words best, and the `near` ones that mean something similar.

    Each comes with what it contains of all wanted words. If `newest` is set, only this many of the newest learnings are
    searched for words first, and all if that finds too few. `meanings` are vectors, each with its model; the learnings
    are returned in the order of the likeness to the first, then to the second. All are read together.
    """
    database.renew_kept()
    candidates = _Candidates(database, which, wanted)
    ranked = database.rank_words(weights, limit=limit, newest=newest) if weights else []
    alike: list[list[int]] = []
    for vector, model in meanings:
        found = vectors.find(database, vector, limit=near, model=model, also=ranked if model == MODEL else ())
        alike.append(found.numbers)
        if model == MODEL:
            candidates.compared = found
    candidates.read([*ranked, *(number for numbers in alike for number in numbers[:near])])
    by_words = candidates.take_first(ranked, limit)
    if weights and len(by_words) < limit:
        by_words = _find_more(candidates, weights, ranked, limit=limit, newest=newest)
    return by_words, [one for numbers in alike for one in candidates.take_first(numbers, near)]


def _find_more(
    candidates: _Candidates, weights: Mapping[str, float], ranked: Sequence[int], *, limit: int, newest: int | None
) -> list[Candidate]:
    """Return the learnings that match best when a filter has not accepted enough of the first; `ranked` are those."""
    found: list[Candidate] = []
    for some in (newest, None) if newest is not None else (None,):
        for most in (limit, None):
            numbers = ranked if (some, most) == (newest, limit) else candidates.rank(weights, limit=most, newest=some)
            found = candidates.take_first(numbers, limit)
            if len(found) >= limit:
                return found
            if len(numbers) < limit:
                break
    return found


class _Candidates:
    """The candidates that a filter accepts; each is read once."""

    def __init__(self, database: Database, which: Filter, wanted: Collection[str]) -> None:
        self._database = database
        self._condition = which.conditions(database)
        self._wanted = wanted
        self._known: dict[int, Candidate | None] = {}
        """What has been read, by number; None if the filter does not accept it."""
        self.compared = vectors.Compared([], {}, {})
        self.rank = database.rank_words

    def read(self, numbers: Iterable[int]) -> None:
        """Read candidates, as far as they have not been read."""
        unknown = [number for number in dict.fromkeys(numbers) if number not in self._known]
        if not unknown:
            return
        where, parameters = self._condition
        database = self._database
        tables = f"""
            {database.each_number("numbers", "chosen")}
            {database.then_join} learning on learning.project = :project and learning.number = chosen.value
        """
        condition = (where, {**parameters, "numbers": database.list_value(unknown)})
        self._known |= dict.fromkeys(unknown)
        read = _read(database, tables, condition, self._wanted, self.compared)
        self._known |= {one.number: one for one in read}

    def take_first(self, numbers: Sequence[int], limit: int) -> list[Candidate]:
        """Return the first of the candidates with these numbers, in the order given."""
        found: list[Candidate] = []
        start, size = 0, limit
        while start < len(numbers) and len(found) < limit:
            some = numbers[start : start + size]
            self.read(some)
            found += [one for number in some if (one := self._known[number])]
            start, size = start + size, size * 4
        return found[:limit]


def read_candidates(database: Database, ids: Sequence[str], wanted: Collection[str]) -> list[Candidate]:
    """Return the candidates with these ids, each with what it contains of the wanted words."""
    if not ids:
        return []
    which = f"learning.project = :project and {database.one_of('learning.id', 'ids')}"
    condition = (which, {"ids": database.list_value(ids)})
    return _read(database, "learning", condition, wanted, vectors.Compared([], {}, {}))


def _read(
    database: Database, tables: str, which: Condition, wanted: Collection[str], compared: vectors.Compared
) -> list[Candidate]:
    """Return the learnings of some tables that fulfil a condition, each with what it contains of the wanted words."""
    where, parameters = which
    rows = database.rows(
        f"""
        select {_RANKING_COLUMNS}, {database.word_columns}
          from {tables}
          {database.then_join} learning_words on {database.is_words_of_learning}
         where {where}
        """,
        **parameters,
    )
    found = database.readable(Candidate, database.match_words(rows, wanted), "learning")
    others = [one.number for one in found if one.number not in compared.vectors]
    read = vectors.read_by_number(database, others, MODEL, DIMENSIONS) if others else {}
    for one in found:
        one.vector = compared.vectors.get(one.number) or read.get(one.number)
        one.likeness = compared.likeness.get(one.number)
    return found


def read_vectors(database: Database, ids: Sequence[str], *, model: str = MODEL) -> dict[str, bytes]:
    """Return the vectors of learnings, by id; a learning without words has none of the embedded table."""
    return vectors.read(database, ids, model=model)


def has_triggers(database: Database) -> bool:
    """Return whether any learning has a trigger: many stores have none."""
    if database.kept.has_triggers is None:
        database.kept.has_triggers = database.has(
            "select 1 as found from learning_trigger where project = :project limit 1"
        )
    return database.kept.has_triggers


def find_by_triggers(
    database: Database, anchors: Mapping[str, set[str]], matches: Callable[[str, str], bool], which: Filter
) -> dict[str, str]:
    """Return the ids of the learnings that have a matching trigger, each with its trigger.

    If there are very many, only the most trusted learnings are returned. `matches` tests a kind and a pattern; each
    pattern is tested once, and only if its anchor occurs.
    """
    occurring = {kind: database.list_value(sorted(some)) for kind, some in anchors.items() if some}
    if not occurring:
        return {}
    of_kinds = (
        f"""
        select distinct kind, pattern
          from learning_trigger
         where project = :project
           and kind = '{kind}'
           and {database.one_of("anchor", kind)}
        """
        for kind in occurring
    )
    matching: dict[str, list[str]] = {}
    for kind, pattern in database.tuples(" union all ".join(of_kinds), **occurring):
        if matches(kind, pattern):
            matching.setdefault(kind, []).append(pattern)
    triggered: dict[str, str] = {}
    for kind in filter(matching.__contains__, occurring):
        kind_parameters = {"trigger_kind": kind, "anchors": occurring[kind]}
        for row in _find_by_patterns(database, kind_parameters, matching[kind], which.conditions(database)):
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


def _trigger_rows(learning: Learning) -> list[Row]:
    if not learning.triggers:
        return []
    return [
        {"learning": learning.id, "kind": kind, "pattern": pattern, "anchor": anchor_of(kind, pattern)}
        for kind, patterns in learning.triggers.as_dict().items()
        for pattern in patterns
    ]


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
