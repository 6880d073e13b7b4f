"""Spooled debriefs, material to be mined, discoveries, and how much of each source has been mined."""

from __future__ import annotations

import json

from learnt.model import Attempt, Discovery, Failure, Task, Value, digest, text_id
from learnt.store.database import clean_row, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from learnt.store.database import Database, Row
    from learnt.store.happened import Body


SAID = "person"
"""The rule of the discoveries in what people say to agents."""
STATED = "stated"
"""The rule of the discoveries that somebody wrote."""
_NEW_TASK_FIELDS = ("agent", "type", "client", "parent")
_RECENT_TASKS = """
    select attempt.task, max(attempt.started_at) as at
      from attempt
      join task on task.project = attempt.project and task.id = attempt.task
     where attempt.project = :project
       and task.skip_learnings = 0
       and (task.type = 'session' or (task.status = 'done' and attempt.result = 'done'))
       and (:any_goal = 1 or task.goal = :goal)
     group by attempt.task
     order by 2 desc, 1 desc
     limit :limit
"""
_VERIFIED_FIELDS = ("tried", "reason", "error", "avoid", "suggestion", "category", "files")


class Turn(Value):
    """The latest turn of a conversation."""

    client: str = ""
    parent: str = ""
    size: int | None = None
    """How much of the transcript has been read; None if it has not been read yet."""
    last: str | None = None
    """The turn's last message; None until the transcript has been read."""
    asked: str | None = None
    """The conversation's first prompt."""


class DebriefRecord(Value):
    """An agent's output, without secrets, before it is parsed."""

    kind = "debrief"
    attempt: Attempt
    result: str
    """The result that the caller passed; empty if the output states the result."""
    output: str
    task: Task
    """The task, which is created if it does not exist."""
    at: int
    claim: bool = False
    """Whether a worker had claimed the task for this attempt."""
    failure: Failure | None = None
    """The failure that a verification found."""
    turn: Turn | None = None
    """Set if the output is a turn of a conversation."""
    conversation: str = ""
    """The conversation that the agent takes part in, if it is not the task."""
    since: int = 0
    """When that conversation began, if it might also be known by another id."""

    @property
    def verified(self) -> dict[str, Any]:
        """The fields of the failure that a verification found; they override the fields from the output."""
        return {} if self.failure is None else {name: value for name, value in _verified(self.failure) if value}

    @property
    def is_empty(self) -> bool:
        """Whether the record has neither output nor a result, for example after an interrupted turn."""
        return self.turn is not None and self.turn.size is None and not self.result and not self.output.strip()

    @property
    def ends_turn(self) -> bool:
        """Whether an agent has just said its last words in a turn, which it said after whatever happened before.

        Neither a transcript that is read later nor a task's whole output tells: its words may be older.
        """
        ends = self.turn is not None and self.turn.size is None and self.result != "interrupted"
        return ends and bool(self.output.strip())

    def as_body(self) -> Body:
        """Return the JSON body."""
        task = {name: getattr(self.task, name) for name in _NEW_TASK_FIELDS}
        output = {"result": self.result, "output": self.output, "task": task, "at": self.at}
        if self.conversation:
            output |= {"conversation": self.conversation, "since": self.since}
        body = {"attempt": self.attempt.as_dict(), **output}
        if self.turn is not None:
            turn = {name: value for name, value in self.turn.as_dict().items() if value is not None}
            return {**body, "turn": turn}
        return {**body, "claim": self.claim, "failure": self.failure and dict(_verified(self.failure))}

    @classmethod
    def from_body(cls, body: Body) -> DebriefRecord:
        """Return the record of a body."""
        attempt, at = Attempt(**body["attempt"]), body["at"]
        failure, turn = body.get("failure"), body.get("turn")
        return cls(
            attempt=attempt,
            result=body["result"],
            output=body["output"],
            task=Task(id=attempt.task, title=attempt.task, created_at=at, updated_at=at, **body["task"]),
            at=at,
            claim=bool(body.get("claim")),
            conversation=body.get("conversation", ""),
            since=body.get("since", 0),
            failure=_read_failure({"attempt": attempt.id, "task": attempt.task, **failure}) if failure else None,
            turn=None if turn is None else Turn(**{name: turn[name] for name in Turn.fields if name in turn}),
        )


def _verified(failure: Failure) -> list[tuple[str, Any]]:
    return [(name, getattr(failure, name)) for name in _VERIFIED_FIELDS]


def _read_failure(body: Body) -> Failure:
    return Failure(**{**body, "files": tuple(body["files"])})


class Material(Value):
    """What an agent said in an attempt, to be mined."""

    attempt: str
    task: str
    text: str
    created_at: int
    commit: str = ""


class StoredDiscovery(Value):
    """A stored discovery, and its outcome."""

    id: str
    discovery: Discovery
    sign: str
    learning: str
    skipped: str
    created_at: int

    def as_record(self) -> dict[str, Any]:
        """Return the discovery and what became of it, for JSON."""
        outcome = {"learning": self.learning, "skipped": self.skipped, "created_at": self.created_at}
        return {"id": self.id, **self.discovery.as_evidence(), **outcome}


def add_material(database: Database, material: Material) -> None:
    """Store material to be mined, replacing older material from the same attempt."""
    row = material.as_dict()
    row["git_commit"] = row.pop("commit")
    changes = "text = :text, git_commit = :git_commit, created_at = :created_at"
    database.insert("material", row, otherwise=f"on conflict (project, attempt) do update set {changes}")


def material_of(database: Database, task: str) -> list[Material]:
    """Return the material from a task, oldest first."""
    sql = "select * from material where project = :project and task = :task order by created_at, attempt"
    return [Material.from_row(clean_row(row), commit=row["git_commit"]) for row in database.rows(sql, task=task)]


def drop_material(database: Database, task: str) -> None:
    """Delete the material from a task."""
    database.execute("delete from material where project = :project and task = :task", task=task)


def drop_read(database: Database, material: Sequence[Material]) -> bool:
    """Delete material that has been read; return False if there was none.

    Material that has been replaced since it was read stays.
    """
    sql = "delete from material where project = :project and attempt = :attempt and text = :text"
    counts = [database.execute(sql, attempt=part.attempt, text=part.text) for part in material]
    return any(counts)


def drop_older_material(database: Database, *, keep: int, before: int) -> None:
    """Delete the material from ended tasks except the latest `keep`, and all material that is older than `before`.

    One statement does it all, so that material that another process adds meanwhile stays.
    """
    database.execute(
        f"""
        delete from material
         where project = :project
           and (created_at < :before
                or (task not in (select task from ({_RECENT_TASKS}) as recent)
                    and task in (
                        select id
                          from task
                         where project = :project
                           and (status in ('done', 'cancelled') or type = 'session')
                    )))
        """,
        before=before,
        any_goal=1,
        goal="",
        limit=keep,
    )


def recent_tasks(database: Database, *, limit: int, goal: str | None = None) -> list[str]:
    """Return the latest finished tasks and conversations that are allowed to yield learnings, newest first.

    If `goal` is set, only tasks with this goal are returned; if it is empty, only tasks without a goal.
    """
    return database.column(_RECENT_TASKS, any_goal=int(goal is None), goal=goal or "", limit=limit)


def goals(database: Database) -> list[str]:
    """Return the goals of the tasks that have material."""
    return database.column(
        """
        select distinct task.goal
          from material
          join task on task.project = material.project and task.id = material.task
         where material.project = :project
           and task.goal != ''
         order by 1
        """
    )


def first_attempt_at(database: Database, tasks: Sequence[str]) -> int:
    """Return when the first attempt at any of these tasks began; 0 if there is none."""
    in_tasks = database.one_of("task", "tasks")
    sql = f"select min(started_at) as began from attempt where project = :project and {in_tasks}"
    return int(database.value(sql, tasks=database.list_value(tasks)) or 0)


def add(database: Database, discovery: Discovery, *, at: int, learning: str = "", skipped: str = "") -> int:
    """Store a discovery once per task; return in how many tasks it has been made."""
    sign = discovery_key(discovery)
    outcome = {"sign": sign, "learning": learning, "skipped": skipped, "created_at": at}
    row = {"id": text_id("disc", f"{sign} {discovery.task}"), **discovery.as_evidence(), **outcome}
    row["git_commit"] = row.pop("commit")
    row["files"] = json.dumps(discovery.files, ensure_ascii=False)
    changes = "learning = :learning, skipped = :skipped"
    database.insert("discovery", row, otherwise=f"on conflict (project, sign, task) do update set {changes}")
    return count_tasks(database, discovery)


def get(database: Database, discovery: Discovery) -> StoredDiscovery:
    """Return a task's discovery as it is stored."""
    sql = "select * from discovery where project = :project and sign = :sign and task = :task"
    rows = database.rows(sql, sign=discovery_key(discovery), task=discovery.task)
    return _read_discovery(rows[0])


def select(database: Database, *, type: str, task: str, learning: str, limit: int) -> list[StoredDiscovery]:
    """Return the discoveries of a type, a task and a learning, latest first; an empty one means any."""
    rows = database.rows(
        """
        select *
          from discovery
         where project = :project
           and (:type = '' or type = :type)
           and (:task = '' or task = :task)
           and (:learning = '' or learning = :learning)
         order by created_at desc, id desc
         limit :limit
        """,
        type=type,
        task=task,
        learning=learning,
        limit=limit,
    )
    return database.readable(_read_discovery, rows, "discovery")


def is_stored(database: Database, discovery: Discovery) -> bool:
    """Return whether a task's discovery is in the store."""
    sql = "select id from discovery where project = :project and sign = :sign and task = :task"
    return database.has(sql, sign=discovery_key(discovery), task=discovery.task)


def count_tasks(database: Database, discovery: Discovery) -> int:
    """Return in how many tasks the same discovery has been made."""
    sql = "select count(*) as found from discovery where project = :project and sign = :sign"
    return int(database.value(sql, sign=discovery_key(discovery)))


def discovery_key(discovery: Discovery) -> str:
    """Return a key that is equal for discoveries that differ only in case, white space and punctuation."""
    # A check makes several demands, which one change may fulfil.
    is_correction = discovery.failed and discovery.worked and discovery.rule != "verification"
    text = f"{discovery.failed} {discovery.worked}" if is_correction else discovery.text
    letters = "".join(letter for letter in text.lower() if letter.isalnum())
    return digest(f"{discovery.rule} {letters}")[:16]


def find_learning(database: Database, discovery: Discovery) -> str:
    """Return the id of the learning that an earlier, equal discovery became; empty if there is none."""
    sql = "select max(learning) as learning from discovery where project = :project and sign = :sign"
    return database.value(sql, sign=discovery_key(discovery)) or ""


def list_learnings(database: Database, rule: str, *, limit: int) -> list[str]:
    """Return the ids of the learnings that the discoveries of a rule became, latest first."""
    return database.column(
        """
        select learning, max(created_at) as latest
          from discovery
         where project = :project
           and rule = :rule
           and learning != ''
         group by learning
         order by latest desc, learning desc
         limit :limit
        """,
        rule=rule,
        limit=limit,
    )


def last_found_at(database: Database, learning: str) -> int:
    """Return when a discovery last became a learning; 0 if none did."""
    sql = "select max(created_at) as latest from discovery where project = :project and learning = :learning"
    return int(database.value(sql, learning=learning) or 0)


def findings_of(database: Database, task: str, rule: str) -> list[Discovery]:
    """Return a rule's discoveries in a task that did not become learnings, oldest first."""
    rows = database.rows(
        """
        select *
          from discovery
         where project = :project
           and task = :task
           and rule = :rule
           and skipped != ''
         order by created_at, id
        """,
        task=task,
        rule=rule,
    )
    return [stored.discovery for stored in database.readable(_read_discovery, rows, "discovery")]


def list_found_elsewhere(database: Database, rule: str, *, but: str, limit: int = 20) -> list[list[str]]:
    """Return the texts that a rule found in each of the latest tasks except one."""
    rows = database.rows(
        """
        select task, text
          from discovery
         where project = :project
           and rule = :rule
           and task != :but
           and task in (
               select task
                 from discovery
                where project = :project
                  and rule = :rule
                group by task
                order by max(created_at) desc, task
                limit :limit
           )
         order by task, created_at, id
        """,
        but=but,
        rule=rule,
        limit=limit,
    )
    by_task: dict[str, list[str]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row["text"])
    return list(by_task.values())


def evidence_for(database: Database, learning: str) -> list[StoredDiscovery]:
    """Return the discoveries that support a learning, oldest first."""
    sql = "select * from discovery where project = :project and learning = :learning"
    rows = database.rows(f"{sql} order by created_at, id", learning=learning)
    return database.readable(_read_discovery, rows, "discovery")


def size_read(database: Database, source: str) -> int:
    """Return how much of a source has been mined."""
    return sizes_read(database, [source]).get(source, 0)


def sizes_read(database: Database, sources: Sequence[str]) -> dict[str, int]:
    """Return how much of each source has been mined; sources that have never been mined are left out."""
    rows = database.rows(
        f"select id, size from already_read where project = :project and {database.one_of('id', 'ids')}",
        ids=database.list_value(sources),
    )
    return {row["id"]: int(row["size"]) for row in rows}


def read_at(database: Database, source: str) -> int:
    """Return when a source was last mined; 0 if it has never been mined."""
    return int(database.value("select read_at from already_read where project = :project and id = :id", id=source) or 0)


def forget_read(database: Database, source: str) -> None:
    """Forget that a source has been mined."""
    database.execute("delete from already_read where project = :project and id = :id", id=source)


def note_read(database: Database, source: str, *, size: int, task: str, at: int) -> None:
    """Record how much of a source has been mined."""
    row = {"id": source, "size": size, "task": task, "read_at": at}
    changes = "size = :size, read_at = :read_at"
    database.insert("already_read", row, otherwise=f"on conflict (project, id) do update set {changes}")


def _read_discovery(row: Row) -> StoredDiscovery:
    row = clean_row(row)
    unstored = {"observed": "", "advice": ""}
    discovery = Discovery.from_row(row, files=tuple(read_json(row["files"])), commit=row["git_commit"], **unstored)
    return StoredDiscovery.from_row(row, discovery=discovery)
