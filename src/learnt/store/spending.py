"""What the user has spent in all projects, in two files in the user's data folder: on model calls, and on attempts.

The spending caps are the user's, so a call in one project counts in all of them. A file has one line per call or
attempt of the last month, and is replaced as a whole. A damaged line is left out. What a project's attempts cost is in
its store, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from learnt.errors import cannot_write
from learnt.system import files
from learnt.system.files import Locked, replace_file
from learnt.text.times import MONTH_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.store.database import Database

CALLS, ATTEMPTS = "spending.jsonl", "attempts.jsonl"
_LOCK = "spending.lock"
_MAX_BYTES = 100_000_000


class Spending:
    """The costs of the user's calls or attempts."""

    def __init__(self, path: str, calls: dict[str, tuple[int, float]]) -> None:
        self._path = path
        self._calls = calls

    def since(self, at: int) -> float:
        """Return what was spent since the given time."""
        return sum(self.each_since(at).values())

    def each_since(self, at: int) -> dict[str, float]:
        """Return the cost of each call since the given time, by its id."""
        return {id: cost for id, (began_at, cost) in self._calls.items() if began_at >= at}

    def put(self, call_id: str, *, at: int, cost_usd: float) -> None:
        """Add a call, or change what it cost."""
        began_at = self._calls.get(call_id, (at, 0.0))[0]
        calls = {id: call for id, call in self._calls.items() if call[0] >= at - MONTH_MS}
        self._calls = {**calls, call_id: (began_at, cost_usd)}
        lines = [json.dumps([id, began_at, cost]) + "\n" for id, (began_at, cost) in self._calls.items()]
        replace_file(self._path, "".join(lines).encode())


@contextmanager
def user_spending(folder: str, file: str = CALLS) -> Iterator[Spending]:
    """Open the user's spending; other processes wait meanwhile, so that two calls cannot exceed a cap together."""
    path = os.path.join(folder, file)
    try:
        files.make_folders(folder)
        with Locked(os.path.join(folder, _LOCK)):
            yield Spending(path, _read(path))
    except OSError as error:
        raise cannot_write(path, error, hint="costs are recorded there: make the folder writable") from None


def _read(path: str) -> dict[str, tuple[int, float]]:
    calls: dict[str, tuple[int, float]] = {}
    try:
        lines = files.read_own(path, max_bytes=_MAX_BYTES).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return calls
    for line in lines:
        try:
            id, at, cost = json.loads(line)
            calls[str(id)] = (int(at), float(cost))
        except (ValueError, TypeError):
            continue
    return calls


def spent_on_attempts(database: Database, *, since: int, task: str = "") -> dict[str, float]:
    """Return what each attempt since the given time has cost, or may still cost, by its price; of all tasks or one."""
    rows = database.rows(
        """
        select id, coalesce(cost_usd, price_usd, 0) as usd
          from attempt
         where project = :project
           and started_at >= :since
           and (:task = '' or task = :task)
         union all
        select attempt as id, price_usd as usd
          from claim
         where project = :project
           and started_at >= :since
           and (:task = '' or task = :task)
        """,
        since=since,
        task=task,
    )
    return {row["id"]: float(row["usd"]) for row in rows}
