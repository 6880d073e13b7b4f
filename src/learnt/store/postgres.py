"""PostgreSQL through psycopg 3, for teams: one database contains many projects.

The SQL is the same as for SQLite; `:name` is translated into psycopg's form once per statement. A broken connection is
replaced at the next statement outside a transaction; a transaction that was interrupted is lost as a whole.

A connection goes where the address says and nowhere else, and beyond this machine it is encrypted.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from learnt.errors import InvalidValue, LearntError, TryAgain, WrongRequest
from learnt.store.database import SEARCHED_FIELDS, Database, WordMatch, insert_statement
from learnt.store.purge import TEXT_COLUMNS
from learnt.system.installation import install_command
from learnt.text.redact import without_password, without_password_of

if TYPE_CHECKING:
    from learnt.store.database import CutWords, Row

try:
    import psycopg
    from psycopg.rows import dict_row
except ImportError as error:
    raise LearntError(
        f"PostgreSQL is configured, but its driver cannot be loaded: {error}",
        hint=f"install it with `{install_command('postgres')}`",
    ) from None

# These parameters hide where a connection goes, or which file's password is sent there.
_HIDING = ("hostaddr", "service", "servicefile", "passfile")
# These modes connect without encryption if the server says so, whoever it is.
_OPPORTUNISTIC = ("", "allow", "prefer")
_SET_BY_US = ("options", "application_name", "connect_timeout")
_NO_TLS = "for a private network, add `?sslmode=disable` to the address"
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_MIGRATION_LOCK = 0x6C6561726E74  # "learnt" in hexadecimal
_OVER_A_LIMIT = "54"  # PostgreSQL's error class "program limit exceeded"
_WORDS_LOCK = 0x776F7264  # "word" in hexadecimal
_QUEUE_LOCK = 0x71756575  # "queu"
_SPENDING_LOCK = 0x7370656E  # "spen"
_TABLES_TO_SEARCH = (
    "learning, learning_words, learning_trigger, learning_name, posting, word, learning_vector, vector_block"
)
_TABLES_ABOUT_A_LEARNING = "event, injection, mark, operation, rendered_line"


# Vectors for the extension pgvector. The table is no part of the schema, because not every server has the extension.
_FOR_EXTENSION = "learning_pgvector"
_CREATE_FOR_EXTENSION = f"""
    create table if not exists {_FOR_EXTENSION} (
        project text not null,
        model text not null,
        number bigint not null,
        embedding vector not null,
        primary key (project, model, number),
        foreign key (project, model, number) references learning_vector on delete cascade
    )
"""


class PostgresDatabase(Database):
    """A store in a shared database."""

    engine = "postgres"
    word_columns = ", ".join(f"learning_words.{column} as cut_{column}" for column in (*SEARCHED_FIELDS, "length"))
    is_words_of_learning = "learning_words.project = learning.project and learning_words.learning = learning.id"
    for_update = " for update"
    skip_locked = " for update skip locked"

    def __init__(self, address: str, *, project: str, wait_ms: int) -> None:
        super().__init__(without_password(address), project)
        self._address = address
        self._wait_ms = wait_ms
        self._translations: dict[str, str] = {}
        self._connection: psycopg.Connection[Any] | None = None
        self._skew_ms: int | None = None
        self._in_transaction = False
        self._has_extension: bool | None = None

    def run(self, sql: str, parameters: dict[str, Any]) -> tuple[list[Row], int]:
        try:
            cursor = self._execute(sql, parameters)
            return (cursor.fetchall() if cursor.description else []), cursor.rowcount
        except psycopg.Error as error:
            raise self._as_our_error(error) from None
        finally:
            if sql in ("commit", "rollback"):
                self._in_transaction = False

    def _execute(self, sql: str, parameters: dict[str, Any]) -> psycopg.Cursor[Any]:
        """Run a statement; retry on a new connection if the old one was dead before the transaction began."""
        is_first = sql == self.begin_statement or (not self._in_transaction and sql.lstrip().startswith("select"))
        statement = self._translate(sql)
        try:
            cursor = self._connect().execute(statement, parameters or None, prepare=True)
        except psycopg.OperationalError:
            if not is_first or self._connection is None or not self._connection.closed:
                raise
            cursor = self._connect().execute(statement, parameters or None, prepare=True)
        self._in_transaction = self._in_transaction or sql == self.begin_statement
        return cursor

    def execute_many(self, sql: str, parameters: Sequence[dict[str, Any]]) -> None:
        try:
            with self._connect().cursor() as cursor:
                cursor.executemany(self._translate(sql), [{"project": self.project, **row} for row in parameters])
        except psycopg.Error as error:
            raise self._as_our_error(error) from None

    def one_of(self, column: str, name: str) -> str:
        return f"{column} = any (:{name})"

    def list_value(self, values: Sequence[str] | Sequence[int]) -> object:
        return list(values)

    def each_number(self, name: str, alias: str) -> str:
        return f"unnest(:{name}::bigint[]) as {alias} (value)"

    def each_text(self, name: str, alias: str) -> str:
        return f"unnest(:{name}::text[]) as {alias} (value)"

    def put_words(self, entries: Sequence[CutWords]) -> None:
        words, postings = [], []
        counts: Counter[str] = Counter()
        for entry in entries:
            joined = {field: " ".join(cut) for field, cut in zip(SEARCHED_FIELDS, entry.by_field, strict=True)}
            words.append({"learning": entry.learning, **joined, "length": entry.length})
            times = Counter(word for cut in entry.by_field for word in cut)
            counts.update(times.keys())
            postings += [{"word": word, "learning": entry.learning, "times": count} for word, count in times.items()]
        self._count_words(counts)
        self.execute_many(insert_statement("learning_words", ("learning", *SEARCHED_FIELDS, "length")), words)
        self.execute_many(insert_statement("posting", ("word", "learning", "times")), postings)
        self.count_in_corpus(learnings=len(entries), words=sum(entry.length for entry in entries))

    def remove_words(self, learning: str, number: int) -> None:
        row = self.row("select * from learning_words where project = :project and learning = :id", id=learning)
        if row is None:
            return
        self._count_words(dict.fromkeys((word for field in SEARCHED_FIELDS for word in row[field].split()), -1))
        self.count_in_corpus(learnings=-1, words=-row["length"])
        for table in ("learning_words", "posting"):
            self.execute(f"delete from {table} where project = :project and learning = :id", id=learning)

    def clear_words(self) -> None:
        for table in ("learning_words", "posting", "word", "corpus"):
            self.execute(f"delete from {table} where project = :project")

    def _count_words(self, counts: Mapping[str, int]) -> None:
        add_up = "on conflict (project, word) do update set learnings = word.learnings + :learnings"
        rows = [{"word": word, "learnings": counts[word]} for word in sorted(counts)]
        self.execute_many(insert_statement("word", ("word", "learnings"), add_up), rows)

    def rank_words(self, weights: Mapping[str, float], *, limit: int | None, newest: int | None) -> list[int]:
        # The steps are materialized, because without statistics the planner would join everything with everything.
        return self.column(
            """
            with found as materialized (
                select posting.learning, sum(wanted.weight) as score
                  from posting
                  join unnest(:words::text[], :weights::float8[]) as wanted (word, weight) on wanted.word = posting.word
                 where posting.project = :project
                   and posting.learning > :floor
                 group by posting.learning
            )
            select learning.number
              from found
              join learning on learning.project = :project and learning.id = found.learning
             order by found.score desc, learning.number desc
             limit :limit
            """,
            words=list(weights),
            weights=list(weights.values()),
            floor="" if newest is None else self._id_before_newest(newest),
            limit=limit,
        )

    def match_words(self, rows: list[Row], wanted: Collection[str]) -> list[Row]:
        is_wanted = frozenset(wanted).__contains__
        for row in rows:
            row["match"] = _match_row(row, is_wanted)
        return rows

    def _id_before_newest(self, newest: int) -> str:
        """Return the id just before the newest learnings' ids; a newer learning has a greater id."""
        floor = self.value(
            "select id from learning where project = :project order by id desc offset :newest limit 1", newest=newest
        )
        return str(floor or "")

    def prepare_extension(self) -> bool:
        if self._uses_extension() or not self.has("select 1 from pg_available_extensions where name = 'vector'"):
            return False
        try:
            self.run("create extension if not exists vector", {})
            self.run(_CREATE_FOR_EXTENSION, {})
        except LearntError:
            return False  # not permitted: our own search is used
        self._has_extension = True
        return True

    def put_for_extension(self, rows: Sequence[Row]) -> None:
        if rows and self._uses_extension():
            columns = "project, model, number, embedding"
            sql = f"insert into {_FOR_EXTENSION} ({columns}) values (:project, :model, :number, :embedding ::vector)"
            texts = [{**row, "embedding": _as_numbers(row["vector"])} for row in rows]
            self.execute_many(f"{sql} on conflict do nothing", texts)

    def find_by_extension(self, model: str, vector: bytes, *, limit: int) -> list[int] | None:
        if not self._uses_extension():
            return None
        return self.column(
            f"""
            select number
              from {_FOR_EXTENSION}
             where project = :project
               and model = :model
               and vector_dims(embedding) = :dimensions
             order by embedding <=> :vector ::vector
             limit :limit
            """,
            model=model,
            dimensions=len(vector),
            vector=_as_numbers(vector),
            limit=limit,
        )

    def _uses_extension(self) -> bool:
        if self._has_extension is None:
            self._has_extension = self.has_table(_FOR_EXTENSION)
        return self._has_extension

    def lock_words(self) -> None:
        # All learnings in a project share the rows of `word`, so without this lock writers could deadlock.
        self._lock_for_project(_WORDS_LOCK)

    def lock_queue(self) -> None:
        self._lock_for_project(_QUEUE_LOCK)

    def lock_spending(self) -> None:
        self._lock_for_project(_SPENDING_LOCK)

    def _lock_for_project(self, key: int) -> None:
        self.run("select pg_advisory_xact_lock(:key, hashtext(:project))", {"key": key, "project": self.project})

    def now_ms(self, local_ms: int) -> int:
        # The clocks of different machines disagree, so the server's clock is used. The difference is measured once.
        if self._skew_ms is None:
            row = self.row("select (extract(epoch from clock_timestamp()) * 1000)::bigint as now")
            self._skew_ms = (row["now"] if row else 0) - time.time_ns() // 1_000_000
        return local_ms + self._skew_ms

    def script(self, sql: str) -> None:
        try:
            self._connect().execute(sql.encode())
        except psycopg.Error as error:
            raise self._as_our_error(error) from None

    def lock_schema(self) -> None:
        self.run("select pg_advisory_xact_lock(:key)", {"key": _MIGRATION_LOCK})

    def analyze(self) -> None:
        self.run(f"analyze {_TABLES_TO_SEARCH}", {})

    def which_tables(self, *names: str) -> list[str]:
        # `to_regclass` is not used, because it can cache that the table was missing.
        return self.column(
            f"""
            select tablename
              from pg_catalog.pg_tables
             where schemaname = any (current_schemas(false))
               and {self.one_of("tablename", "names")}
            """,
            names=self.list_value(names),
        )

    def check(self) -> list[str]:
        return []  # the server checks its own pages, and foreign keys are always enforced

    def scrub(self) -> None:
        self.run(f"vacuum {', '.join((_TABLES_TO_SEARCH, _TABLES_ABOUT_A_LEARNING, *TEXT_COLUMNS))}", {})

    def versions(self) -> dict[str, str]:
        server = self._connect().info.server_version
        return {"PostgreSQL": f"{server // 10000}.{server % 10000}", "psycopg": psycopg.__version__}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                **_read_address(self._address, self.path),
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=max(2, self._wait_ms // 1000),
                application_name="learnt",
                options=self._options(),
            )
        return self._connection

    def _options(self) -> str:
        """Return the options in the address, followed by our own."""
        theirs = psycopg.conninfo.conninfo_to_dict(self._address).get("options") or ""
        ours = f"-c lock_timeout={self._wait_ms} -c client_min_messages=warning -c synchronous_commit=on"
        return f"{theirs} {ours}".strip()

    def _translate(self, sql: str) -> str:
        translation = self._translations.get(sql)
        if translation is None:
            translation = _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
            self._translations[sql] = translation
        return translation

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
            return TryAgain(f"{self.path} is out of disk space: {detail}", hint="free some space on the server")
        if isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
            return LearntError(
                f"permission denied by {self.path}: {detail}",
                hint="ask the database's owner for the privilege to create and change tables",
            )
        if (error.sqlstate or "").startswith(_OVER_A_LIMIT):
            return InvalidValue(f"the text is too large for {self.path}: {detail}", hint="shorten the longest text")
        if isinstance(error, psycopg.OperationalError) and "does not support SSL" in detail:
            return LearntError(
                f"cannot reach {self.path} safely: {detail}", hint=f"set up TLS on the server; {_NO_TLS}"
            )
        if isinstance(error, psycopg.OperationalError):
            return TryAgain(
                f"cannot reach {self.path}: {detail}",
                hint="check that the server is running and that the setting `database` points to it; "
                "`learnt config` shows the address",
            )
        if isinstance(error, psycopg.IntegrityError | psycopg.DataError):
            return InvalidValue(f"the database rejected the value: {detail}")
        return LearntError(f"{self.path}: {detail}", hint="`learnt doctor` checks the store")


def _as_numbers(vector: bytes) -> str:
    """Return a vector as the extension reads it."""
    return str(memoryview(vector).cast("b").tolist())


def _match_row(row: Row, is_wanted: Callable[[str], bool]) -> WordMatch:
    by_field = {field: row[f"cut_{field}"].split() for field in SEARCHED_FIELDS}
    times = Counter(word for words in by_field.values() for word in words if is_wanted(word))
    return WordMatch(
        times,
        length=row["cut_length"],
        cue_words=len(by_field["cues"]),
        list_fields=lambda: tuple(field for field, words in by_field.items() if any(map(is_wanted, words))),
    )


def _read_address(address: str, shown: str) -> dict[str, Any]:
    """Return the parameters of an address, with encryption beyond this machine; raise if it hides where it leads."""
    given = psycopg.conninfo.conninfo_to_dict(address)
    hiding = next((name for name in _HIDING if given.get(name)), "")
    if hiding:
        raise WrongRequest(
            f"the address {shown} has the parameter `{hiding}`, which hides where it leads",
            hint="write out the host, the port and the database: `postgresql://anna@db.example.org:5432/learnt`",
        )
    hosts = str(given.get("host") or f"{_default('host')},{_default('hostaddr')}").split(",")
    parameters = {name: value for name, value in given.items() if name not in _SET_BY_US}
    if given.get("host"):
        parameters["hostaddr"] = ""  # otherwise the variable PGHOSTADDR would lead elsewhere
    mode = given.get("sslmode") or _default("sslmode")
    if mode in _OPPORTUNISTIC and not all(map(_is_local, hosts)):
        parameters["sslmode"] = "require"
    return parameters


def _default(name: str) -> str:
    """Return what the driver uses for a parameter that the address lacks: from the user's variables, or its own."""
    options = {option.keyword.decode(): option.val for option in psycopg.pq.Conninfo.get_defaults()}
    return (options.get(name) or b"").decode("utf-8", "replace")


def _is_local(host: str) -> bool:
    """Return whether a host is this machine: a socket, or a loopback address."""
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
