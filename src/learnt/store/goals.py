"""Goals: what a set of tasks serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from learnt.errors import InvalidValue, NotFound
from learnt.model import LONG_TEXT_LIMIT, TITLE_LIMIT, Value, check_goal
from learnt.store.database import Database, clean_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Row


class Goal(Value):
    """What a set of tasks serves; the title and the text tell the agents what it wants."""

    name: str
    title: str = ""
    text: str = ""
    created_at: int = 0
    updated_at: int = 0

    def check(self) -> None:
        check_goal(self.name)
        for name, text, limit in (("title", self.title, TITLE_LIMIT), ("text", self.text, LONG_TEXT_LIMIT)):
            if len(text) > limit:
                raise InvalidValue(f"{name} of goal {self.name} has more than {limit:,} characters")

    def describe(self) -> str:
        """Return what the goal wants: its title and its text, or what its name says."""
        said = "\n".join(part for part in (self.title, self.text) if part)
        return said or " ".join(self.name.replace("-", " ").replace("_", " ").split())


def find(database: Database, name: str) -> Goal | None:
    """Return a goal, or None."""
    row = database.row("select * from goal where project = :project and name = :name", name=name)
    return None if row is None else _goal(row)


def describe(database: Database, name: str) -> str:
    """Return what a goal wants: its title and its text, or what its name says; empty without a goal."""
    return (find(database, name) or Goal(name=name)).describe() if name else ""


def get(database: Database, name: str) -> Goal:
    """Return a goal, or raise NotFound."""
    goal = find(database, name)
    if goal is None:
        raise NotFound(f"no goal `{name[:100]}`", hint="`learnt goal list` shows the names")
    return goal


def select(database: Database) -> list[Goal]:
    """Return all goals, oldest first."""
    rows = database.rows("select * from goal where project = :project order by created_at, name")
    return database.readable(_goal, rows, "goal")


def put(database: Database, goal: Goal) -> None:
    """Store a goal, or replace its title and its text."""
    changes = "title = :title, text = :text, updated_at = :updated_at"
    database.insert("goal", goal.as_dict(), otherwise=f"on conflict (project, name) do update set {changes}")


def count_tasks(database: Database) -> Mapping[str, Mapping[str, int]]:
    """Return the number of tasks of each goal, by status; conversations are left out."""
    rows = database.rows(
        """
        select goal, status, count(*) as tasks
          from task
         where project = :project
           and goal != ''
           and type != 'session'
         group by goal, status
         order by goal, status
        """
    )
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        counts.setdefault(row["goal"], {})[row["status"]] = int(row["tasks"])
    return counts


def cost(database: Database, names: Sequence[str]) -> Mapping[str, float]:
    """Return what the attempts at the tasks of each goal have cost, as far as it is known."""
    rows = database.rows(
        f"""
        select task.goal, sum(attempt.cost_usd) as usd
          from attempt
          join task on task.project = attempt.project and task.id = attempt.task
         where attempt.project = :project
           and {database.one_of("task.goal", "names")}
         group by task.goal
        """,
        names=database.list_value(names),
    )
    return {row["goal"]: float(row["usd"] or 0.0) for row in rows}


def _goal(row: Row) -> Goal:
    return Goal.from_row(clean_row(row))
