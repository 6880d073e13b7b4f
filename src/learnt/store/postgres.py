"""PostgreSQL through psycopg 3, for teams: one database holds many projects.

The SQL is the same as on SQLite; `:name` is translated into psycopg's form once per statement. A broken connection is
replaced at the next statement outside a transaction; a transaction that it interrupts is lost as a whole.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from learnt.errors import InvalidValue, LearntError, TryAgain
from learnt.store.database import Database, insert_statement
from learnt.store.purge import TEXT_COLUMNS
from learnt.text.redact import without_password, without_password_of

if TYPE_CHECKING:
    from learnt.store.database import Condition, Row

try:
    import psycopg
    from psycopg.rows import dict_row
except ImportError as error:
    raise LearntError(
        f"PostgreSQL is configured, but its driver cannot be loaded: {error}",
        hint="install it with `pip install 'learnt[postgres]'`",
    ) from None

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_MIGRATION_LOCK = 0x6C6561726E74  # "learnt" in hexadecimal
_OVER_A_LIMIT = "54"  # PostgreSQL's error class "program limit exceeded"
_WORDS_LOCK = 0x776F7264  # "word" in hexadecimal
_QUEUE_LOCK = 0x71756575  # "queu"
_SPENDING_LOCK = 0x7370656E  # "spen"
_TABLES_TO_SEARCH = "learning, learning_words, learning_trigger, posting, word"
_TABLES_WITH_ROWS_OF_ONE = "event, injection, mark, operation, rendered_line"


class PostgresDatabase(Database):
    """A store in a shared database."""

    engine = "postgres"
    for_update = " for update"
    skip_locked = " for update skip locked"

    def __init__(self, address: str, *, project: str, wait_ms: int) -> None:
        super().__init__(without_password(address), project)
        self._address = address
        self._wait_ms = wait_ms
        self._translations: dict[str, str] = {}
        self._connection: psycopg.Connection[Any] | None = None
        self._skew_ms: int | None = None
        self._is_inside = False

    def run(self, sql: str, parameters: dict[str, Any]) -> tuple[list[Row], int]:
        try:
            cursor = self._execute(sql, parameters)
            return (cursor.fetchall() if cursor.description else []), cursor.rowcount
        except psycopg.Error as error:
            raise self._as_our_error(error) from None
        finally:
            if sql in ("commit", "rollback"):
                self._is_inside = False

    def _execute(self, sql: str, parameters: dict[str, Any]) -> psycopg.Cursor[Any]:
        """Run a statement; retry on a new connection if the old one was dead before the transaction began."""
        is_first = sql == self.begin_statement or (not self._is_inside and sql.lstrip().startswith("select"))
        statement = self._translate(sql)
        try:
            cursor = self._connect().execute(statement, parameters or None, prepare=True)
        except psycopg.OperationalError:
            if not is_first or self._connection is None or not self._connection.closed:
                raise
            cursor = self._connect().execute(statement, parameters or None, prepare=True)
        self._is_inside = self._is_inside or sql == self.begin_statement
        return cursor

    def execute_many(self, sql: str, parameters: Sequence[dict[str, Any]]) -> None:
        try:
            with self._connect().cursor() as cursor:
                cursor.executemany(self._translate(sql), [{"project": self.project, **row} for row in parameters])
        except psycopg.Error as error:
            raise self._as_our_error(error) from None

    def one_of(self, column: str, name: str) -> str:
        return f"{column} = any (:{name})"

    def list_value(self, values: Sequence[str]) -> object:
        return list(values)

    def put_postings(self, learning: str, words: Sequence[str]) -> None:
        rows = [{"word": word, "learning": learning, "times": times} for word, times in Counter(words).items()]
        self.execute_many(insert_statement("posting", ("word", "learning", "times")), rows)

    def remove_postings(self, learning: str) -> None:
        self.execute("delete from posting where project = :project and learning = :id", id=learning)

    def match_words(
        self, weights: Mapping[str, float], columns: tuple[str, str], which: Condition, newest: int | None
    ) -> list[Row]:
        (judged, cut), (conditions, parameters) = columns, which
        # Materialized steps: without statistics, the planner would join everything with everything.
        return self.rows(
            f"""
            with found as materialized (
                select posting.learning, sum(wanted.weight * posting.times / (posting.times + 1.0)) as score
                  from posting
                  join unnest(:words::text[], :weights::float8[]) as wanted (word, weight) on wanted.word = posting.word
                 where posting.project = :project
                   and posting.learning > :floor
                 group by posting.learning
            ), best as materialized (
                select {judged}, found.score
                  from found
                  join learning on learning.project = :project and learning.id = found.learning
                 where {conditions}
                 order by found.score desc, learning.id desc
                 limit :limit
            )
            select best.*, {cut}
              from best
              join learning_words on learning_words.project = :project and learning_words.learning = best.id
             order by best.score desc, best.id desc
            """,
            words=list(weights),
            weights=list(weights.values()),
            floor="" if newest is None else self._oldest_of_newest(newest),
            **parameters,
        )

    def _oldest_of_newest(self, newest: int) -> str:
        """Return the id just before the newest ones; ids grow with time."""
        floor = self.value(
            "select id from learning where project = :project order by id desc offset :newest limit 1", newest=newest
        )
        return str(floor or "")

    def lock_words(self) -> None:
        # All learnings of a project share rows of words: without this lock, writers could deadlock.
        self._lock_for_project(_WORDS_LOCK)

    def lock_queue(self) -> None:
        self._lock_for_project(_QUEUE_LOCK)

    def lock_spending(self) -> None:
        self._lock_for_project(_SPENDING_LOCK)

    def _lock_for_project(self, key: int) -> None:
        self.run("select pg_advisory_xact_lock(:key, hashtext(:project))", {"key": key, "project": self.project})

    def now_ms(self, here: int) -> int:
        # Clocks of machines differ, so the server's counts. The difference is measured once.
        if self._skew_ms is None:
            row = self.row("select (extract(epoch from clock_timestamp()) * 1000)::bigint as now")
            self._skew_ms = (row["now"] if row else 0) - time.time_ns() // 1_000_000
        return here + self._skew_ms

    def script(self, sql: str) -> None:
        try:
            self._connect().execute(sql.encode())
        except psycopg.Error as error:
            raise self._as_our_error(error) from None

    def lock_schema(self) -> None:
        self.run("select pg_advisory_xact_lock(:key)", {"key": _MIGRATION_LOCK})

    def analyze(self) -> None:
        self.run(f"analyze {_TABLES_TO_SEARCH}", {})

    def has_table(self, name: str) -> bool:
        # Not `to_regclass`, which may cache that the table was missing.
        return self.has(
            """
            select tablename
              from pg_catalog.pg_tables
             where schemaname = any (current_schemas(false))
               and tablename = :name
            """,
            name=name,
        )

    def check(self) -> list[str]:
        return []  # the server checks its own pages, and foreign keys are always enforced

    def scrub(self) -> None:
        self.run(f"vacuum {', '.join((_TABLES_TO_SEARCH, _TABLES_WITH_ROWS_OF_ONE, *TEXT_COLUMNS))}", {})

    def versions(self) -> dict[str, str]:
        server = self._connect().info.server_version
        return {"PostgreSQL": f"{server // 10000}.{server % 10000}", "psycopg": psycopg.__version__}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            # `_options` includes the options of the address.
            self._connection = psycopg.connect(
                self._address,
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=max(2, self._wait_ms // 1000),
                application_name="learnt",
                options=self._options(),
            )
        return self._connection

    def _options(self) -> str:
        """Return the session's settings: those of the address, and ours."""
        theirs = psycopg.conninfo.conninfo_to_dict(self._address).get("options") or ""
        ours = f"-c lock_timeout={self._wait_ms} -c client_min_messages=warning -c synchronous_commit=on"
        return f"{theirs} {ours}".strip()

    def _translate(self, sql: str) -> str:
        known = self._translations.get(sql)
        if known is None:
            known = _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
            self._translations[sql] = known
        return known

    def _as_our_error(self, error: psycopg.Error) -> LearntError:
        detail = without_password_of(self._address, str(error).strip().split("\n")[0])
        conflicts = (
            psycopg.errors.LockNotAvailable,
            psycopg.errors.DeadlockDetected,
            psycopg.errors.SerializationFailure,
            psycopg.errors.UniqueViolation,
        )
        if isinstance(error, conflicts):
            return TryAgain(f"{self.path} is busy: {detail}", hint="try again; `wait_ms` sets how long to wait")
        if isinstance(error, psycopg.errors.DiskFull):
            return TryAgain(f"{self.path} cannot take more: {detail}", hint="free some space on the server")
        if isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
            return LearntError(
                f"{self.path} refuses: {detail}", hint="ask for the privilege to create and change tables"
            )
        if (error.sqlstate or "").startswith(_OVER_A_LIMIT):
            return InvalidValue(f"{self.path} cannot hold it: {detail}", hint="shorten the longest text")
        if isinstance(error, psycopg.OperationalError):
            return TryAgain(
                f"cannot reach {self.path}: {detail}",
                hint="check that the server runs and that `database` names it; `learnt config` shows the address",
            )
        if isinstance(error, psycopg.IntegrityError | psycopg.DataError):
            return InvalidValue(f"the database refuses it: {detail}")
        return LearntError(f"{self.path}: {detail}", hint="`learnt doctor` checks the store")
