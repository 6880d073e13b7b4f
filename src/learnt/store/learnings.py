"""Learnings in the database, and their history.

Every change to a learning is stored together with its event, in the caller's transaction.
"""

from __future__ import annotations

import json

from learnt.errors import InvalidValue, NotFound
from learnt.model import CUE_FIELDS, PROGRAM, Event, Learning, Triggers, Value, new_id
from learnt.store import index
from learnt.store.database import UNREADABLE, clean_row, read_json
from learnt.store.index import Filter
from learnt.system import watched
from learnt.text.clean import fold
from learnt.text.records import as_record, triggers_record
from learnt.text.titles import has_same_signs, text_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from learnt.store.database import Database, Row

_FIELDS = tuple(field for field in Learning.fields if field != "scope")
COLUMNS = tuple({"commit": "git_commit"}.get(field, field) for field in _FIELDS)
_COLUMN_OF = tuple(zip(_FIELDS, COLUMNS, strict=True))
# Events do not record these fields, because an event has its own time and version.
_NOT_IN_EVENTS = ("id", "updated_at", "version", "scope")
# These columns are derived from other fields and stored for lookups.
DERIVED = ("sameness", "title_sameness")
_SEARCHED = (*index.FIELDS, *CUE_FIELDS, "triggers")
_UPDATE = f"""
    update learning
       set {", ".join(f"{column} = :{column}" for column in (*COLUMNS, *DERIVED) if column != "id")}
     where project = :project
       and id = :id
"""
# Each learning is looked up first: there are few batches and many learnings. (The plus keeps SQLite from starting with
# the batches.)
_FOLDED = """
    learning
    join import_batch on import_batch.project = learning.project and import_batch.number = +learning.batch
    where learning.project = :project
"""
SIMILAR_TO = "similar to "  # the start of an event's reason, followed by a learning's id
_ROWS_PER_CANDIDATE = 4
_MAX_SAME = 5

# The event that records a creation contains the differences from this empty learning.
_BLANK = Learning(id="learn_0", title="-")


# A field whose default is None has a time, or None.
_NO_TRIGGERS = Triggers()
_TYPES: dict[str, tuple[type, ...]] = {
    field: {float: (int, float), type(None): (int, type(None))}.get(type(value), (type(value),))
    for field, value in _BLANK.as_dict().items()
}


class Change(Value):
    """Who changes a learning, with which verb, when and why."""

    what: str
    who: str
    at: int
    reason: str = ""
    undoes: str = ""


def add(database: Database, learning: Learning, change: Change) -> None:
    """Insert a learning and the event that records its creation."""
    row, entry = make_row(learning), index.Entry.of(learning)
    database.lock_words()
    number = index.next_number(database)
    database.insert("learning", {**row, "number": number})
    index.put_new(database, [entry], number=number)
    database.renew_learnings_stamp()
    _append_event(database, learning, change, old={}, new=_difference(_BLANK, learning)[1])


def unfold(database: Database, id: str) -> None:
    """Within a transaction, before anything about a learning changes: store the event of its import as a row."""
    for event in map(_folded_event, _folded(database, id)):
        _insert_event(database, event)
        database.execute("update learning set batch = null where project = :project and id = :id", id=id)


def change(
    database: Database, id: str, decide: Callable[[Learning], dict[str, Any]], change: Change
) -> tuple[Learning, Learning]:
    """Apply the changes that `decide` returns for the current learning; return the learning before and after."""
    database.lock_words()
    before = get(database, id, for_update=True)
    after = before.replace(**decide(before))
    old, new = _difference(before, after)
    if not new:
        return before, before
    unfold(database, id)
    after = after.replace(version=before.version + 1, updated_at=max(change.at, before.updated_at))
    database.execute(_UPDATE, **make_row(after))
    if any(name in new for name in _SEARCHED):
        index.put(database, after)
    elif "vouched" in new or "status" in new:
        watched.forget(database.path)  # its names are occasions from now on, or no longer
    database.renew_learnings_stamp()
    _append_event(database, after, change, old=old, new=new)
    return before, after


def recur(database: Database, existing: Learning, *, task: str, who: str, at: int) -> Learning:
    """Within a transaction: count that a task taught a known learning again; return the learning.

    It is counted once per task, and not for the task that taught it first. If the program archived the learning, it
    becomes active again, and its confidence does not decay for the next month. If a person archived it, it stays
    archived.
    """

    def decide(learning: Learning) -> dict[str, Any]:
        events = history(database, learning.id)
        counted = learning.task == task or any((event.what, event.reason) == ("recur", task) for event in events)
        changes: dict[str, Any] = {} if counted else {"recurrences": learning.recurrences + 1}
        archived_by = next((event.who for event in reversed(events) if "status" in event.new), "")
        if learning.status == "archived" and archived_by == PROGRAM:
            changes |= {"status": "active", "last_decayed_at": at}
        return changes

    return change(database, existing.id, decide, Change(what="recur", who=who, at=at, reason=task))[1]


def put_copy(database: Database, learning: Learning) -> None:
    """Store a copy of a learning whose history is in another database; index it again if its text has changed."""
    stored = find(database, learning.id)
    if stored is None:
        database.insert("learning", {**make_row(learning), "number": index.next_number(database)})
    else:
        database.execute(_UPDATE, **make_row(learning))
    if stored is None or any(getattr(stored, name) != getattr(learning, name) for name in _SEARCHED):
        index.put(database, learning)


def find(database: Database, id: str, *, for_update: bool = False) -> Learning | None:
    """Return a learning, or None."""
    lock = database.for_update if for_update else ""
    row = database.row(f"select * from learning where project = :project and id = :id{lock}", id=id)
    try:
        return None if row is None else read_row(row)
    except UNREADABLE as error:
        raise InvalidValue(
            f"learning `{fold(id)}` cannot be read: {fold(str(error))[:200]}", hint="`learnt purge ID` deletes its row"
        ) from None


def unreadable_ids(database: Database, rows: Sequence[Row]) -> set[str]:
    """Return the ids of the rows that cannot be read."""
    return {row["id"] for row in rows} - {learning.id for learning in database.readable(read_row, rows, "learning")}


def exists(database: Database, id: str) -> bool:
    """Return whether there is a row for this learning, even if it cannot be read."""
    return database.has("select id from learning where project = :project and id = :id", id=id)


def existing(database: Database, ids: Sequence[str]) -> set[str]:
    """Return which of these learnings there are, even those that cannot be read."""
    sql = f"select id from learning where project = :project and {database.one_of('id', 'ids')}"
    return set(database.column(sql, ids=database.list_value(ids)))


def get(database: Database, id: str, *, for_update: bool = False) -> Learning:
    """Return a learning, or raise NotFound."""
    learning = find(database, id, for_update=for_update)
    if learning is None:
        raise NotFound(f"no learning `{id}`", hint="`learnt list` shows the ids")
    return learning


def history(database: Database, id: str) -> list[Event]:
    """Return a learning's events, oldest first."""
    sql = "select * from event where project = :project and subject = :id order by version"
    events = database.readable(_event, database.rows(sql, id=id), "event")
    folded = [] if events and events[0].version == 1 else _folded(database, id)
    return [*database.readable(_folded_event, folded, "learning"), *events]


def get_event(database: Database, id: str) -> Event:
    """Return one event, or raise NotFound."""
    row = database.row("select * from event where project = :project and id = :id", id=id)
    if row is not None:
        return _event(row)
    for folded in _folded(database, _subject_of(id)):
        return _folded_event(folded)
    raise NotFound(f"no event `{id}`", hint="`learnt history ID` shows a learning's events")


def get_all(database: Database, ids: Sequence[str]) -> dict[str, Learning]:
    """Return the learnings with these ids, by id."""
    rows = database.rows(
        f"select * from learning where project = :project and {database.one_of('id', 'ids')}",
        ids=database.list_value(ids),
    )
    return {learning.id: learning for learning in database.readable(read_row, rows, "learning")}


def count(database: Database, which: Filter) -> int:
    """Return how many learnings match."""
    where, parameters = which.conditions(database)
    return int(database.value(f"select count(*) as fitting from learning where {where}", **parameters))


def pinned_titles(database: Database, *, limit: int) -> list[str]:
    """Return the titles of some pinned learnings."""
    return database.column(
        "select title from learning where project = :project and pinned = 1 order by id limit :limit", limit=limit
    )


def page(database: Database, which: Filter, *, limit: int, offset: int = 0) -> list[Learning]:
    """Return the matching learnings, newest first."""
    where, parameters = which.conditions(database)
    rows = database.rows(
        f"""
        select *
          from learning
         where {where}
         order by created_at desc, id desc
         limit :limit
        offset :offset
        """,
        limit=limit,
        offset=offset,
        **parameters,
    )
    return database.readable(read_row, rows, "learning")


def each(database: Database, which: Filter, *, at_once: int = 500) -> Iterator[Learning]:
    """Yield the matching learnings, oldest first, reading a batch at a time."""
    where, parameters = which.conditions(database)
    created_at, id = -1, ""
    while True:
        rows = database.rows(
            f"""
            select *
              from learning
             where {where}
               and (created_at, id) > (:created_at, :id)
             order by created_at, id
             limit :limit
            """,
            created_at=created_at,
            id=id,
            limit=at_once,
            **parameters,
        )
        yield from database.readable(read_row, rows, "learning")
        if len(rows) < at_once:
            return
        created_at, id = rows[-1]["created_at"], rows[-1]["id"]


def find_same(database: Database, text: str) -> Learning | None:
    """Return a learning whose text or title equals the given text, or None.

    Learnings with this text are preferred to those with this title, then active learnings, then the oldest.
    """
    rows = database.rows(
        """
        select *
          from learning
         where project = :project
           and (substr(sameness, 1, 8) = :start and sameness = :sameness
                or substr(title_sameness, 1, 8) = :start and title_sameness = :sameness)
         order by case when sameness = :sameness then 0 else 1 end,
                  case when status = 'active' then 0 else 1 end,
                  created_at,
                  id
         limit :limit
        """,
        sameness=text_key(text),
        start=text_key(text)[:8],
        limit=_MAX_SAME,
    )
    same = database.readable(read_row, rows, "learning")
    return next((one for one in same if any(_says_exactly(own, text) for own in (one.observation, one.title))), None)


def _says_exactly(own: str, text: str) -> bool:
    return text_key(own) == text_key(text) and has_same_signs(own, text)


def find_by_title(database: Database, title: str) -> list[Learning]:
    """Return the learnings with a title, ignoring case and punctuation, whatever their status."""
    sql = """
        select *
          from learning
         where project = :project
           and substr(title_sameness, 1, 8) = :start
           and title_sameness = :sameness
         order by created_at, id
    """
    key = text_key(title)
    return database.readable(read_row, database.rows(sql, start=key[:8], sameness=key), "learning")


def imported_by(database: Database, id: str) -> list[str]:
    """Return the ids of the learnings that an import added or changed, the latest change first."""
    subjects = database.column(
        """
        select subject
          from event
         where project = :project
           and reason = :id
           and what = 'import'
         order by at desc, subject
        """,
        id=id,
    )
    if database.has("select number from import_batch where project = :project and id = :id limit 1", id=id):
        subjects += database.column(f"select learning.id from {_FOLDED} and import_batch.id = :id", id=id)
    return list(dict.fromkeys(subjects))


def has_proposal(database: Database, id: str) -> bool:
    """Return whether there is a proposed learning that would replace only this learning."""
    sql = "select id from learning where project = :project and status = 'proposed' and replaces = :replaces"
    return database.has(sql, replaces=json.dumps([id]))


def stamp(database: Database) -> int:
    """Return a number that changes whenever any process adds, changes or removes a learning.

    The number is renewed in the transaction that makes the change, under the lock that writers hold anyway. Counting
    uses does not change it: see `uses`.
    """
    return database.learnings_stamp()


def categories(database: Database) -> list[str]:
    """Return the learnings' categories as they are spelt, without the empty category."""
    # The query steps through the index from one category to the next, because there are many learnings and few
    # categories.
    return database.column(
        """
        with recursive found (category) as (
            select min(category) from learning where project = :project and category > ''
             union all
            select (select min(category) from learning where project = :project and category > found.category)
              from found
             where found.category is not null
        )
        select category
          from found
         where category is not null
        """
    )


def standing_candidates(database: Database, which: Filter, *, limit: int, helpful_only: bool = False) -> list[Learning]:
    """Return candidates for standing learnings in no particular order: pinned, helpful, recurring and new learnings.

    An index provides this bounded selection; `brief.standing` makes the choice. With `helpful_only`, only learnings
    that are pinned or were helpful more often than not are returned.
    """
    # Each category is read separately, because the index has this order within a category.
    rows = [row for category in which.in_categories for row in _candidates_of(database, which, category, limit)]
    eligible = [row for row in rows if not helpful_only or row["pinned"] or row["helped"] > 0]
    best = sorted(eligible, key=lambda row: tuple(row.values()), reverse=True)[:limit]
    return list(get_all(database, [row["id"] for row in best]).values()) if best else []


def _candidates_of(database: Database, which: Filter, category: str, limit: int) -> list[Row]:
    """Return the foremost learnings of a category that a filter allows.

    Mostly, they are among the first rows of the index, so all others are read only if these are not enough.
    """
    wanted = which.replace(category=category, in_categories=())
    first = _foremost(database, Filter(status=which.status, category=category), wanted, _ROWS_PER_CANDIDATE * limit)
    fitting = [row for row in first if row["fits"]][:limit]
    is_enough = len(fitting) == limit or len(first) < _ROWS_PER_CANDIDATE * limit
    return fitting if is_enough else _foremost(database, wanted, wanted, limit)


def _foremost(database: Database, among: Filter, wanted: Filter, limit: int) -> list[Row]:
    """Return the foremost learnings among some, and whether each is wanted."""
    (where, _), (fits, parameters) = among.conditions(database), wanted.conditions(database)
    return database.rows(
        f"""
        select pinned, times_helpful - times_not_helpful as helped, recurrences, created_at, id,
               case when {fits} then 1 else 0 end as fits
          from learning
         where {where}
         order by pinned desc, times_helpful - times_not_helpful desc, recurrences desc, created_at desc, id desc
         limit :limit
        """,
        limit=limit,
        **parameters,
    )


def list_areas(database: Database, which: Filter, *, limit: int) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the id, category and tags of the matching learnings, the most important first."""
    where, parameters = which.conditions(database)
    rows = database.rows(
        f"""
        select id, category, tags
          from learning
         where {where}
         order by pinned desc, times_helpful - times_not_helpful desc, recurrences desc, created_at desc, id desc
         limit :limit
        """,
        limit=limit,
        **parameters,
    )
    return [(row["id"], row["category"], tuple(read_json(row["tags"]))) for row in rows]


def uses(database: Database, ids: Sequence[str]) -> dict[str, int]:
    """Return how often each of these learnings was shown, by id."""
    rows = database.rows(
        f"select id, times_injected from learning where project = :project and {database.one_of('id', 'ids')}",
        ids=database.list_value(ids),
    )
    return {row["id"]: row["times_injected"] for row in rows}


def superseded_by(database: Database, id: str) -> list[str]:
    """Return the ids of the learnings that this learning has replaced."""
    return database.column(
        "select id from learning where project = :project and superseded_by = :id and superseded_by <> '' order by id",
        id=id,
    )


def count_without_event(database: Database) -> int:
    """Return how many learnings lack the event for their last change; it should be 0."""
    count = database.value(
        """
        select count(*) as lost
          from learning
         where project = :project
           and (batch is null or version > 1)
           and not exists (
               select 1
                 from event
                where event.project = learning.project
                  and event.subject = learning.id
                  and event.version = learning.version
           )
        """
    )
    return int(count)


def _difference(before: Learning, after: Learning) -> tuple[dict[str, Any], dict[str, Any]]:
    old, new = as_record(before), as_record(after)
    changed = [name for name in new if name not in _NOT_IN_EVENTS and new[name] != old[name]]
    return {name: old[name] for name in changed}, {name: new[name] for name in changed}


def _append_event(
    database: Database, learning: Learning, change: Change, *, old: dict[str, Any], new: dict[str, Any]
) -> None:
    subject: dict[str, Any] = {"subject": learning.id, "version": learning.version, "old": old, "new": new}
    _insert_event(database, Event(id=new_id("event", change.at), **subject, **change.as_dict()))


def _insert_event(database: Database, event: Event) -> None:
    as_json = {name: json.dumps(getattr(event, name), ensure_ascii=False) for name in ("old", "new")}
    row = {**event.as_dict(), **as_json}
    del row["role"]  # the server itself writes who has logged in
    database.insert("event", row)


def _folded(database: Database, id: str) -> list[Row]:
    """Return a learning whose event is stored together with others, with the columns of the event."""
    columns = "learning.*, import_batch.id as import, import_batch.at, import_batch.who, import_batch.role"
    return database.rows(f"select {columns} from {_FOLDED} and learning.id = :id", id=id)


def _folded_event(row: Row) -> Event:
    """Return the event of an import: until it is stored as a row, nothing but the import has changed the learning."""
    new = _difference(_BLANK, read_row(row))[1]
    about = {name: row[name] for name in ("at", "who", "role")}
    return Event(
        id=_event_of(row["id"]),
        subject=row["id"],
        version=1,
        what="import",
        old={},
        new=new,
        reason=row["import"],
        **about,
    )


def _event_of(id: str) -> str:
    """Return the id of the event of a learning's import."""
    return f"event_{id.removeprefix('learn_')}"


def _subject_of(event: str) -> str:
    return f"learn_{event.removeprefix('event_')}"


def make_row(learning: Learning) -> dict[str, Any]:
    """Return a learning's row."""
    fields = learning.__dict__
    row = {column: fields[field] for field, column in _COLUMN_OF}
    for field in ("tags", *CUE_FIELDS, "replaces"):
        row[field] = json.dumps(row[field], ensure_ascii=False) if row[field] else "[]"
    triggers = learning.triggers
    row["triggers"] = json.dumps(triggers_record(triggers), ensure_ascii=False) if triggers else "{}"
    row["pinned"] = int(learning.pinned)
    return row | derive(learning)


def derive(learning: Learning) -> dict[str, str]:
    """Return the columns that are derived from other fields."""
    key = text_key(learning.title)
    return {"sameness": text_key(learning.observation) if learning.observation else key, "title_sameness": key}


def read_row(row: Row) -> Learning:
    """Return a row's learning; raise if a column is not what it should be, since other programs write rows, too."""
    clean = clean_row(row)
    # While an old schema is migrated, columns of later ones are missing.
    fields = {field: clean[column] for field, column in _COLUMN_OF if column in clean}
    fields["id"] = row["id"]  # an id that had to be cleaned would be another learning's
    fields["title"] = " ".join(fields["title"].split())
    for field in ("tags", *CUE_FIELDS, "replaces"):
        fields[field] = tuple(read_json(row.get(field, "[]")))
    fields["triggers"] = _read_triggers(row["triggers"])
    if row["pinned"] not in (0, 1):
        raise InvalidValue("pinned is neither 0 nor 1")
    fields["pinned"] = bool(row["pinned"])
    for field, value in fields.items():
        if type(value) not in _TYPES[field]:
            raise InvalidValue(f"{field} is {type(value).__name__}")
    return Learning(**fields)


def _read_triggers(text: str) -> Triggers:
    if text == "{}":  # most learnings have none
        return _NO_TRIGGERS
    return Triggers(**{kind: tuple(words) for kind, words in read_json(text).items()})


def _event(row: Row) -> Event:
    values = {name: read_json(row[name]) for name in ("old", "new")}
    if not all(isinstance(value, dict) for value in values.values()):
        raise InvalidValue("its values are not objects")
    return Event.from_row(clean_row(row), **values)
