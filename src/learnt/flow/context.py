"""The stores of one memory: looking a learning up wherever it is, and changing it where it lives.

Reading looks into the project's store, then the user-wide one, then other projects that are named as sources; a change
goes to the store that holds the learning, and sources are never changed.
"""

from __future__ import annotations

import os

from learnt import config
from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.flow.places import login_name
from learnt.model import TEXT_LIMIT, TITLE_LIMIT, is_id
from learnt.store import Store, events, learnings
from learnt.store.learnings import Change
from learnt.text.clean import fold
from learnt.text.records import without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self

    from learnt.model import Debrief, Event, Learning

COMPILED_SETTINGS = "settings.json"
MOST_ROWS = 1_000_000_000


def check_rows(*, limit: int, offset: int = 0) -> None:
    """Raise unless this many rows can be asked for."""
    if not (0 <= limit <= MOST_ROWS and 0 <= offset <= MOST_ROWS):
        raise WrongRequest(f"limit and offset go from 0 to {MOST_ROWS:,}", hint="leave them out for the first page")


class Stores:
    """Opened stores, the clock and the settings."""

    def __init__(
        self, stores: Sequence[Store], *, configuration: config.Configuration, clock: Callable[[], int]
    ) -> None:
        self._stores = tuple(stores)
        self._clock = clock
        self.configuration = configuration
        self.settings = configuration.settings
        self.person = fold(self.settings.person) or login_name()
        self.remarks: list[str] = []
        """What a person should know, though nothing failed: a source that is missing, for example."""
        self.mistake = ""
        """What is wrong with the settings, where they are used as they were before it was made."""
        self.redactions = 0
        """How many secrets were taken out of what came in by hand, and out of names."""
        self.tidies_when_done = False
        self.tell: Callable[[str], None] | None = None
        """Hears what was done beside what was asked for."""
        self._settings_files: list[str] = []
        self.root = ""
        """The folder of the project, where its settings are; empty for the user-wide store."""
        self._debriefed: dict[str, Debrief] = {}

    def close(self) -> None:
        """Let go of all connections."""
        for store in self._stores:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_valid = kind is None and self._settings_files and not self.mistake
        if is_valid and os.path.isdir(self.store.place.folder):
            config.keep_compiled(self._settings_files, os.path.join(self.store.place.folder, COMPILED_SETTINGS))
        if kind is None and self.tidies_when_done:
            self.tidy_when_due()
        self.close()

    def tidy_when_due(self) -> None:
        """Do what is to be done once a day; here, nothing."""

    @property
    def store(self) -> Store:
        """The project's own store, which takes what is new."""
        return self._stores[0]

    def sound_stores(self) -> tuple[Store, ...]:
        """Return the own store and those that can be read along; what cannot be is left out with a remark."""
        for store in self._stores[1:]:
            try:
                _ = store.database
            except LearntError as error:
                self._stores = tuple(other for other in self._stores if other is not store)
                self.remarks.append(f"left out: {error.message}; {error.hint}")
        return self._stores

    def get(self, id: str) -> Learning:
        """Return a learning from wherever it is kept."""
        return self._holder(id)[1]

    def history(self, id: str) -> list[Event]:
        """Return every change to a learning, oldest first."""
        return events.of(self._holder(id)[0].database, id)

    def _alter(
        self,
        id: str,
        what: str,
        decide: Callable[[Learning], dict[str, Any]],
        *,
        reason: str = "",
        undoes: str = "",
        also: Callable[[Store], object] = lambda _: None,
    ) -> Learning:
        """Change a learning where it lives, and do in the same transaction what belongs to it."""
        store, _ = self._holder(id, writable=True)

        def decide_without_circles(learning: Learning) -> dict[str, Any]:
            changes = decide(learning)
            self._refuse_circle(id, changes.get("superseded_by", ""))
            return changes

        with store.transaction():
            change = self._change(what, at=self._clock(), reason=reason, undoes=undoes)
            _, after = learnings.change(store.database, id, decide_without_circles, change)
            also(store)
        return after.replace(scope=store.place.scope)

    def _undo_mark(self, store: Store, event: Event) -> None:
        """Within the transaction that takes a change back: take back the mark that it came from; here, nothing."""

    def _change(self, what: str, *, at: int, reason: str = "", undoes: str = "") -> Change:
        return Change(what=what, who=self.person, at=at, reason=self._line(reason, TEXT_LIMIT), undoes=undoes)

    def _line(self, text: str, limit: int = TITLE_LIMIT) -> str:
        """Return a short text that came in: cleaned, on one line, without secrets."""
        if not text:
            return ""
        from learnt.text.redact import redact_line

        line, count = redact_line(text, limit)
        self.redactions += count
        return line

    def _record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a learning as they came in, without secrets."""
        safe, count = without_secrets(record)
        self.redactions += count
        return safe

    def _holder(self, id: str, *, writable: bool = False) -> tuple[Store, Learning]:
        """Return the store that holds a learning, and the learning."""
        for store in self.sound_stores() if is_id("learn", id) else ():
            learning = learnings.find(store.database, id)
            if learning is None:
                continue
            if writable and store.place.read_only:
                raise WrongRequest(
                    f"`{id}` belongs to the project `{store.place.scope}`, which is only read from here",
                    hint=f"change it there: `cd {os.path.dirname(store.place.folder)}`",
                )
            return store, learning.replace(scope=store.place.scope)
        raise NotFound(
            f"no learning `{fold(id[:100])}` in this project", hint="`learnt list --status all` shows the ids"
        )

    def _find_event(self, id: str) -> Event:
        missing = NotFound(f"no event `{id}`")
        for store in self.sound_stores():
            try:
                return events.get(store.database, id)
            except NotFound as error:
                missing = error
        raise missing

    def _refuse_circle(self, id: str, successor: str) -> None:
        """Raise when a learning would come to supersede itself, however far around."""
        seen = {id}
        way = id
        while successor:
            if successor in seen:
                raise WrongRequest(
                    f"`{id}` would supersede itself" + (f", by way of `{way}`" if way != id else ""),
                    hint="`learnt supersede OLD NEW`: the old one first, and not one that replaced the other",
                )
            seen.add(successor)
            way = successor
            try:
                successor = self.get(successor).superseded_by
            except NotFound:
                return  # purged, or not imported yet
