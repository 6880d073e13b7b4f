"""One connection to a database: statements with `:name` parameters, and transactions.

This is the part that both engines share; `sqlite.py` and `postgres.py` connect, run statements and translate errors.
A connection serves one project, and every statement can use `:project`.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from itertools import chain

from learnt.errors import InvalidValue, LearntError, NewerDatabase
from learnt.model import PARAGRAPHS
from learnt.text.clean import clean, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, TypeVar

    Row = dict[str, Any]
    Condition = tuple[str, dict[str, Any]]  # SQL, and its parameters
    Noun = TypeVar("Noun")


SEARCHED_FIELDS = ("title", *PARAGRAPHS, "tags", "cues")
_STAMP = "stamp of learnings"
"""The counter that changes whenever a learning is added, changed or removed."""
MIGRATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")


# What building a value from a row can raise: other programs and other versions write rows, too.
UNREADABLE = (InvalidValue, ValueError, TypeError, KeyError, AttributeError, RecursionError)


def clean_row(row: Row) -> Row:
    """Return a row without characters that we would not have stored: somebody else may have written it."""
    all_texts = "".join([value for value in row.values() if type(value) is str])
    if all_texts.isascii() and all_texts.replace("\n", "").isprintable():  # most rows: none of their texts would change
        return row
    return {name: clean(value) if isinstance(value, str) else value for name, value in row.items()}


def read_json(text: str) -> Any:
    """Return the value of a JSON column, without characters that we would not have stored."""
    if text == "[]":  # most are empty
        return []
    return _clean_value(json.loads(text))


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_value(entry) for entry in value]
    if isinstance(value, dict):
        return {clean(name): _clean_value(entry) for name, entry in value.items()}
    return value


@lru_cache
def newest_schema(folder: str = MIGRATIONS) -> int:
    """Return the number of the newest migration in a folder."""
    return max(int(file.partition("_")[0]) for file in os.listdir(folder) if file.endswith(".sql"))


def insert_statement(table: str, row: Collection[str], otherwise: str = "") -> str:
    """Return the statement that inserts a row with these columns and `project`."""
    columns = dict.fromkeys(("project", *row))
    return f"insert into {table} ({', '.join(columns)}) values (:{', :'.join(columns)}) {otherwise}"


class CutWords:
    """The words of one learning, in the order of `SEARCHED_FIELDS`."""

    __slots__ = ("by_field", "distinct", "learning", "length", "number")

    def __init__(self, learning: str, by_field: list[list[str]], length: int) -> None:
        self.learning = learning
        self.number = 0
        """The learning's place in the index, as soon as it is known."""
        self.by_field = by_field
        self.length = length
        """How many words the text has, without the additional forms of identifiers."""
        self.distinct = [*dict.fromkeys(chain.from_iterable(by_field))]
        """The words of all fields, each once, in order."""


class WordMatch:
    """Which of the wanted words a learning contains."""

    __slots__ = ("cue_words", "length", "list_fields", "times")

    def __init__(
        self, times: dict[str, int], *, length: int, cue_words: int, list_fields: Callable[[], tuple[str, ...]]
    ) -> None:
        self.times = times
        """How often it contains each of them."""
        self.length = length
        """How many words it has."""
        self.cue_words = cue_words
        """How many words its cues have."""
        self.list_fields = list_fields
        """Return the fields that contain any of them."""


class Kept:
    """What a process that searches again keeps of the learnings, as long as no process changes one."""

    __slots__ = ("completions", "corpus", "frequencies", "has_triggers", "signs", "vectors")

    def __init__(self) -> None:
        self.corpus: tuple[int, int] | None = None
        """How many learnings are indexed, and how many words they have."""
        self.has_triggers: bool | None = None
        """Whether any learning has a trigger."""
        self.frequencies: dict[str, int] = {}
        """How many learnings contain a word, also for words that none contains."""
        self.completions: dict[tuple[str, int], dict[str, int]] = {}
        """The most frequent words with a beginning, for so many of them, each with its frequency."""
        self.signs: dict[int, list[bytes]] = {}
        self.vectors: dict[int, bytes] = {}


class Database:
    """A connection to either engine."""

    engine = ""
    begin_statement = "begin"
    # This clause locks the rows of a select that are about to change. SQLite's write lock already covers the whole
    # file.
    for_update = ""
    # This clause does the same, but skips rows that another process has locked.
    skip_locked = ""
    # This join reads its left side first, for an engine that would choose the wrong order.
    then_join = "join"
    # The columns with a learning's words, and the condition for joining them with `learning`.
    word_columns = ""
    is_words_of_learning = ""

    def __init__(self, path: str, project: str) -> None:
        self.path = path
        self.project = project
        self.read_only = False
        self.unreadable: dict[str, str] = {}
        """Why rows were set aside, by what they are."""
        self.kept = Kept()
        self._kept_at: int | None = None

    def readable(self, make: Callable[[Row], Noun], rows: Iterable[Row], noun: str) -> list[Noun]:
        """Return the values of rows; a row that is not valid is set aside, so that it does not hide the others."""
        values = []
        for row in rows:
            try:
                values.append(make(row))
            except UNREADABLE as error:
                self.unreadable[f"{noun} {fold(str(row.get('id', '')))[:100]}".rstrip()] = fold(str(error))[:200]
        return values

    def run(self, sql: str, parameters: dict[str, Any]) -> tuple[list[Row], int]:
        """Run one statement; return its rows and how many rows it changed."""
        raise NotImplementedError(self.engine)

    def script(self, sql: str) -> None:
        """Run several statements that have no parameters."""
        raise NotImplementedError(self.engine)

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError(self.engine)

    def rows(self, sql: str, **parameters: Any) -> list[Row]:
        """Return all rows of a query."""
        return self.run(sql, {"project": self.project, **parameters})[0]

    def tuples(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query without the names of their columns, which is faster if there are many."""
        return [tuple(row.values()) for row in self.rows(sql, **parameters)]

    def row(self, sql: str, **parameters: Any) -> Row | None:
        """Return the first row of a query, or None."""
        return next(iter(self.rows(sql, **parameters)), None)

    def value(self, sql: str, **parameters: Any) -> Any:
        """Return the only column of the first row."""
        row = self.row(sql, **parameters)
        return None if row is None else next(iter(row.values()))

    def column(self, sql: str, **parameters: Any) -> list[Any]:
        """Return the first column of all rows."""
        return [next(iter(row.values())) for row in self.rows(sql, **parameters)]

    def has(self, sql: str, **parameters: Any) -> bool:
        """Return whether a query returns any row."""
        return bool(self.rows(sql, **parameters))

    def execute(self, sql: str, **parameters: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self.run(sql, {"project": self.project, **parameters})[1]

    def insert(self, table: str, row: Row, *, otherwise: str = "") -> int:
        """Insert a row into this project; return how many rows changed. `otherwise` is the clause for a conflict."""
        return self.execute(insert_statement(table, row, otherwise), **row)

    def counter(self, name: str) -> int:
        """Return a counter's value; 0 if there is no such counter."""
        return int(self.value("select value from counter where project = :project and name = :name", name=name) or 0)

    def learnings_stamp(self) -> int:
        """Return a number that changes whenever any process changes the learnings of this project."""
        return self.counter(_STAMP)

    def renew_learnings_stamp(self) -> None:
        """Within a transaction that changes a learning or the index: change the stamp."""
        # The stamp is random, because after a restore a counter would repeat earlier values.
        row = {"name": _STAMP, "value": int.from_bytes(os.urandom(7), "big")}
        self.insert("counter", row, otherwise="on conflict (project, name) do update set value = :value")

    def renew_kept(self) -> Kept:
        """Forget what this process keeps of learnings if any process has changed one; return what it keeps.

        A search does so before it uses `kept`.
        """
        stamp = self.learnings_stamp()
        if stamp != self._kept_at:
            self.kept, self._kept_at = Kept(), stamp
        return self.kept

    def count(self, name: str, number: int = 1) -> None:
        """Within a transaction: add a number to a counter."""
        on = "on conflict (project, name) do update set value = counter.value + :value"
        self.insert("counter", {"name": name, "value": number}, otherwise=on)

    def execute_many(self, sql: str, parameters: Sequence[dict[str, Any]]) -> None:
        """Run a statement once for each set of parameters."""
        raise NotImplementedError(self.engine)

    def one_of(self, column: str, name: str) -> str:
        """Return the condition that the column has one of the values in the list parameter `name`."""
        raise NotImplementedError(self.engine)

    def list_value(self, values: Sequence[str] | Sequence[int]) -> object:
        """Return a list as a value for the parameter of `one_of`."""
        raise NotImplementedError(self.engine)

    def each_number(self, name: str, alias: str) -> str:
        """Return a table of the numbers in the list parameter `name`, with one column `value`."""
        raise NotImplementedError(self.engine)

    def each_text(self, name: str, alias: str) -> str:
        """Return a table of the texts in the list parameter `name`, with one column `value`."""
        raise NotImplementedError(self.engine)

    def put_words(self, entries: Sequence[CutWords]) -> None:
        """Within a transaction: index the words of learnings that are not indexed, and count them."""
        raise NotImplementedError(self.engine)

    def remove_words(self, learning: str, number: int) -> None:
        """Within a transaction: remove a learning from the word index, if it is indexed."""
        raise NotImplementedError(self.engine)

    def forget_words(self) -> None:
        """Within a transaction: delete the words that no learning has any more."""
        self.execute("delete from word where project = :project and learnings <= 0")

    def clear_words(self) -> None:
        """Within a transaction: remove all learnings from the word index."""
        raise NotImplementedError(self.engine)

    def rank_words(self, weights: Mapping[str, float], *, limit: int | None, newest: int | None) -> list[int]:
        """Return the numbers of the learnings that match the weighted words best, best first.

        `newest` is how many of the newest learnings to search; None means all.
        """
        raise NotImplementedError(self.engine)

    def match_words(self, rows: list[Row], wanted: Collection[str]) -> list[Row]:
        """Return rows with `word_columns`, each with a `match`: which of the wanted words its learning contains.

        It is None if the learning's words cannot be read.
        """
        raise NotImplementedError(self.engine)

    def last_number(self) -> int:
        """Return the number of the newest learning; 0 if there is none."""
        return int(self.value("select max(number) as last from learning where project = :project") or 0)

    def count_in_corpus(self, *, learnings: int, words: int) -> None:
        """Within a transaction: add to the number of learnings in the word index, and of their words."""
        sums = "learnings = corpus.learnings + :learnings, words = corpus.words + :words"
        corpus = {"learnings": learnings, "words": words}
        self.insert("corpus", corpus, otherwise=f"on conflict (project) do update set {sums}")

    def for_update_of(self, table: str) -> str:
        """Return the clause that locks only one table's rows in a join."""
        return f"{self.for_update} of {table}" if self.for_update else ""

    def read_only_error(self) -> LearntError:
        """Return the error for a write to a database that is open for reading only."""
        return LearntError(
            f"cannot write {self.path}: it is open for reading only",
            hint="check the owner and the permissions of the file and its folder, or use another store",
        )

    def transaction(self) -> Transaction:
        """Return a context manager in which either all changes take effect or none does."""
        return Transaction(self)

    def wait_at_most(self, wait_ms: int) -> int:
        """Set how long a statement waits for other writers; return the previous value. It has no effect on a server."""
        return wait_ms

    def prepare_extension(self) -> bool:
        """Prepare the search for vectors by an extension of the server; return whether this was just done."""
        return False

    def put_for_extension(self, rows: Sequence[Row]) -> None:
        """Store vectors for the extension as well, if it is used; they are removed together with the others."""

    def find_by_extension(self, model: str, vector: bytes, *, limit: int) -> list[int] | None:
        """Return the numbers of the learnings with the most similar vectors; None if there is no extension."""
        return None

    def lock_words(self) -> None:
        """Within a transaction: make other writers of the word index wait until the transaction ends."""

    def lock_queue(self) -> None:
        """Within a transaction: make other processes that link tasks wait until the transaction ends."""

    def lock_spending(self) -> None:
        """Within a transaction: make other processes that are about to spend wait until the transaction ends."""

    def now_ms(self, local_ms: int) -> int:
        """Return the time by the clock that all users of this database share; `local_ms` is the local time."""
        return local_ms

    def lock_schema(self) -> None:
        """Within a transaction: make other migrating processes wait until the transaction ends."""

    def enforce_foreign_keys(self, enforced: bool) -> None:
        """Turn foreign key checks on or off, if the engine supports it; call it outside transactions."""

    def broken_references(self) -> list[str]:
        """Return a description of each row whose foreign key refers to a missing row."""
        return []

    def schema_number(self) -> int:
        """Return the number of the last applied migration; 0 for an empty database."""
        # Both tables are created in one transaction, so one statement sees both or none.
        tables = self.which_tables("learning", "migration")
        if "migration" not in tables:
            if tables:
                raise LearntError(f"{self.path} is not a learnt store", hint="choose another database")
            return 0
        return int(self.value("select max(number) as newest from migration") or 0)

    def check_schema(self, folder: str = MIGRATIONS) -> int:
        """Return the schema's number; raise if the schema is newer than this program."""
        number, newest = self.schema_number(), newest_schema(folder)
        if number > newest:
            theirs = self.value("select learnt from migration where number = :number", number=number)
            raise NewerDatabase(
                f"{self.path} was written by learnt {theirs} (schema {number}); this version supports schema {newest}",
                hint="upgrade learnt (in its clone: `git pull`, then `pip install .`), or open a backup",
            )
        return number

    def analyze(self) -> None:
        """Update the statistics that the query planner uses."""

    def has_table(self, name: str) -> bool:
        """Return whether the database has this table."""
        return bool(self.which_tables(name))

    def which_tables(self, *names: str) -> list[str]:
        """Return which of these tables the database has."""
        raise NotImplementedError(self.engine)

    def check(self) -> list[str]:
        """Return the faults that an integrity check finds."""
        raise NotImplementedError(self.engine)

    def copy_to(self, path: str) -> bool:
        """Write a consistent copy to a new file and return True; return False if the engine has no file to copy."""
        return False

    def scrub(self) -> None:
        """Remove all traces of deleted rows from the database files."""
        raise NotImplementedError(self.engine)

    def versions(self) -> dict[str, str]:
        """Return the versions of the engine and its driver."""
        raise NotImplementedError(self.engine)


class Transaction:
    """Commits at the end of its block; rolls back if an exception is raised."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.run(self._database.begin_statement, {})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._database.run("commit", {})
            except BaseException:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        try:
            self._database.run("rollback", {})
        except LearntError:
            return  # the connection and its transaction are gone, so only the first error is reported
