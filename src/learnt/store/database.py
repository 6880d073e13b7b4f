"""One connection to a database: statements with `:name` parameters, and transactions.

This is the part that both engines share; `sqlite.py` and `postgres.py` connect, run statements and translate errors.
Every statement may use `:project`: a connection serves one project.
"""

from __future__ import annotations

import os

from learnt.errors import LearntError, NewerDatabase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    Row = dict[str, Any]
    Condition = tuple[str, dict[str, Any]]  # SQL, and its parameters


MIGRATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")


def newest_schema(folder: str = MIGRATIONS) -> int:
    """Return the number of the last migration that this program knows."""
    return max(int(file.partition("_")[0]) for file in os.listdir(folder) if file.endswith(".sql"))


def insert_statement(table: str, row: Collection[str], otherwise: str = "") -> str:
    """Return the statement that inserts a row with these columns, and the project's."""
    columns = dict.fromkeys(("project", *row))
    return f"insert into {table} ({', '.join(columns)}) values (:{', :'.join(columns)}) {otherwise}"


class Database:
    """A connection to either engine."""

    engine = ""
    begin_statement = "begin"
    # Appended to a select whose row is about to change; SQLite's write lock covers the whole file already.
    for_update = ""
    # Skips rows that another process has locked.
    skip_locked = ""
    # A join that reads its left side first, for an engine that would choose the wrong order.
    then_join = "join"

    def __init__(self, path: str, project: str) -> None:
        self.path = path
        self.project = project
        self.read_only = False

    def run(self, sql: str, parameters: dict[str, Any]) -> tuple[list[Row], int]:
        """Run one statement; return its rows and how many rows it changed."""
        raise NotImplementedError(self.engine)

    def script(self, sql: str) -> None:
        """Run many statements that take no parameters."""
        raise NotImplementedError(self.engine)

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError(self.engine)

    def rows(self, sql: str, **parameters: Any) -> list[Row]:
        """Return all rows of a query."""
        return self.run(sql, {"project": self.project, **parameters})[0]

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
        """Say whether a query returns any row."""
        return bool(self.rows(sql, **parameters))

    def execute(self, sql: str, **parameters: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self.run(sql, {"project": self.project, **parameters})[1]

    def insert(self, table: str, row: Row, *, otherwise: str = "") -> int:
        """Insert a row of this project; `otherwise` says what to do on a conflict. Return how many rows changed."""
        return self.execute(insert_statement(table, row, otherwise), **row)

    def counter(self, name: str) -> int:
        """Return the value of a counter."""
        return int(self.value("select value from counter where project = :project and name = :name", name=name) or 0)

    def count(self, name: str, number: int = 1) -> None:
        """Within a transaction: add a number to a counter."""
        on = "on conflict (project, name) do update set value = counter.value + :value"
        self.insert("counter", {"name": name, "value": number}, otherwise=on)

    def execute_many(self, sql: str, parameters: Sequence[dict[str, Any]]) -> None:
        """Run a statement once for each set of parameters."""
        raise NotImplementedError(self.engine)

    def one_of(self, column: str, name: str) -> str:
        """Return a condition: the column holds one of the values of the list parameter `name`."""
        raise NotImplementedError(self.engine)

    def list_value(self, values: Sequence[str]) -> object:
        """Return a list as the parameter that `one_of` takes."""
        raise NotImplementedError(self.engine)

    def put_postings(self, learning: str, words: Sequence[str]) -> None:
        """Within a transaction: store the words of a learning, if the engine has no full-text index."""

    def remove_postings(self, learning: str) -> None:
        """Within a transaction: delete the words of a learning."""

    def match_words(
        self, weights: Mapping[str, float], columns: tuple[str, str], which: Condition, newest: int | None
    ) -> list[Row]:
        """Return columns of `learning` and `learning_words` for the `:limit` best matches of the words.

        `newest`: search only this many of the newest learnings; None: search all.
        """
        raise NotImplementedError(self.engine)

    def for_update_of(self, table: str) -> str:
        """Return the clause that locks the rows of one table in a join."""
        return f"{self.for_update} of {table}" if self.for_update else ""

    def refuse_writing(self) -> LearntError:
        """Return the error for a write to a database that is open for reading only."""
        return LearntError(
            f"cannot write {self.path}: it is open for reading only",
            hint="check who owns the file and its folder, or name another store",
        )

    def transaction(self) -> Transaction:
        """Return a context manager in which all changes take effect, or none."""
        return Transaction(self)

    def wait_at_most(self, wait_ms: int) -> int:
        """Set how long a statement waits for other writers; return the previous value. No effect on a server."""
        return wait_ms

    def lock_words(self) -> None:
        """Within a transaction: make other writers of the word index wait until it ends."""

    def lock_queue(self) -> None:
        """Within a transaction: make other processes that link tasks wait until it ends."""

    def lock_spending(self) -> None:
        """Within a transaction: make other processes that are about to spend wait until it ends."""

    def now_ms(self, here: int) -> int:
        """Return the time by the clock that all users of this database share; `here`: the local time."""
        return here

    def lock_schema(self) -> None:
        """Within a transaction: keep other migrating processes out until it ends."""

    def enforce_foreign_keys(self, enforced: bool) -> None:
        """Turn foreign key checks on or off, if the engine can; call it outside transactions."""

    def broken_references(self) -> list[str]:
        """Describe the rows whose foreign keys refer to missing rows."""
        return []

    def schema_number(self) -> int:
        """Return the number of the last applied migration, 0 for an empty database."""
        # Check `learning` first: both are created in one transaction, so a process that sees it also sees `migration`.
        has_learnings = self.has_table("learning")
        if not self.has_table("migration"):
            if has_learnings:
                raise LearntError(f"{self.path} is not a store of learnt", hint="choose another database")
            return 0
        return int(self.value("select max(number) as newest from migration") or 0)

    def check_schema(self, folder: str = MIGRATIONS) -> int:
        """Return the number of the schema; raise if it is newer than this program."""
        number, newest = self.schema_number(), newest_schema(folder)
        if number > newest:
            theirs = self.value("select learnt from migration where number = :number", number=number)
            raise NewerDatabase(
                f"{self.path} was written by learnt {theirs} (schema {number}); this one knows schema {newest}",
                hint="upgrade with `pip install -U learnt`, or open a backup",
            )
        return number

    def analyze(self) -> None:
        """Update the statistics that the query planner uses."""

    def has_table(self, name: str) -> bool:
        """Say whether the database has this table."""
        raise NotImplementedError(self.engine)

    def check(self) -> list[str]:
        """Return the faults that an integrity check finds."""
        raise NotImplementedError(self.engine)

    def copy_to(self, path: str) -> bool:
        """Write a consistent copy into a new file and return True; False if the engine has no file to copy."""
        return False

    def scrub(self) -> None:
        """Remove the traces of deleted rows from the database files."""
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
            return  # the connection and its transaction are gone; report the first error
