"""Merge three ways: what stands in the file, what its rendering said, and what the store says now.

The rendering is the one that the file itself names: only what stood in it and is gone was removed by a person. Without
one nothing is hidden. A person's text wins over the store's; but what the store has put away stays away, whatever a
merge of branches brings back, and the person is told how to restore it. Texts that an earlier rendering showed are
nobody's edit.

Merging the same file again after its edits were applied gives no edits: what the file asks for is then what the store
has.
"""

from __future__ import annotations

from learnt.learnings_file.lines import category_of, heading_of, line_of, same_text, without_ids
from learnt.learnings_file.read import Bullet, Parsed
from learnt.model import Learning, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from learnt.learnings_file.write import Rendering

_QUOTED = 60


class Edits(Value):
    """What people did to the file, to be done to the store."""

    added: tuple[tuple[str, str, str], ...] = ()
    """The section and the text of each new bullet, and the id that another store gave it."""
    changed: tuple[tuple[str, str], ...] = ()
    """The id and the new text of each changed one."""
    removed: tuple[str, ...] = ()
    """The ids of those to hide."""
    moved: tuple[tuple[str, str], ...] = ()
    """The id and the new category of each that stands in another section."""
    remarks: tuple[str, ...] = ()
    """What a person should be told."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.moved)


def merge(
    parsed: Parsed,
    base: Rendering | None,
    *,
    store: Mapping[str, Learning],
    known_text: Callable[[str, str], bool],
    find: Callable[[str], Learning | None],
) -> Edits:
    """Return what people did to the file since its rendering `base`; None if that is not known.

    `store` holds the learnings that file and base name, of any status. `known_text` says whether some rendering showed
    a learning with a text; `find` gives a learning whose line is the same text by `same_text`, an active one first.
    """
    if parsed.conflict:
        return Edits(remarks=("the file holds the markers of a merge conflict: nothing was read from it",))
    merging = _Merging(base, store, known_text, find)
    by_id, nameless = merging.sorted_out(parsed.bullets)
    for id, bullets in by_id.items():
        merging.take_known(store[id], bullets)
    for bullet in [*nameless, *merging.more]:
        merging.take_nameless(bullet, by_id)
    return merging.edits(by_id)


class _Merging:
    """What was decided so far."""

    def __init__(
        self,
        base: Rendering | None,
        store: Mapping[str, Learning],
        known_text: Callable[[str, str], bool],
        find: Callable[[str], Learning | None],
    ) -> None:
        self._was = {bullet.id: bullet for bullet in (base.bullets if base else ())}
        self._store = store
        self._known_text = known_text
        self._find = find
        self._added: dict[str, tuple[str, str, str]] = {}
        self._changed: dict[str, str] = {}
        self._moved: dict[str, str] = {}
        self._remarks: list[str] = []
        self._told: set[str] = set()  # texts that stand in the file by an id
        self._kept: set[str] = set()
        self.more: list[Bullet] = []
        """Further texts under an id that others have already."""

    def sorted_out(self, bullets: Sequence[Bullet]) -> tuple[dict[str, list[Bullet]], list[Bullet]]:
        """Return the bullets of known learnings, and those that may be new.

        One that only lost its comment is known by its text. What we wrote of a learning that is no more is neither.
        """
        by_id: dict[str, list[Bullet]] = {}
        for bullet in bullets:
            if bullet.id in self._store:
                by_id.setdefault(bullet.id, []).append(bullet)
        lost: dict[str, str] = {}
        for id in [id for id in self._was if id in self._store and id not in by_id]:
            for text in (self._was[id].text, _present(self._store[id])):
                lost.setdefault(same_text(text), id)
        nameless = []
        for bullet in bullets:
            id = lost.get(same_text(bullet.text), "")
            if bullet.id in self._store or (bullet.id and self._was_shown(bullet.id, bullet.text)):
                continue
            if id and id not in by_id:
                by_id[id] = [bullet]
            else:
                nameless.append(bullet)
        return by_id, nameless

    def take_known(self, learning: Learning, bullets: Sequence[Bullet]) -> None:
        """Decide on the bullets of one learning: its text and its place."""
        was = self._was.get(learning.id)
        self._take_texts(learning, was, bullets)
        if was is None and learning.status != "active" and learning.id not in self._changed:
            self._stays_away(learning, bullets[0].text)
        self._told.add(same_text(self._changed.get(learning.id, _present(learning))))
        if was is None or learning.status != "active":
            return
        if learning.id not in self._changed:
            self._told.add(same_text(was.text))
        places = [category_of(bullet.section) for bullet in bullets]
        if not {category_of(was.section), _place(learning)} & set(places):
            self._moved[learning.id] = places[0]

    def take_nameless(self, bullet: Bullet, by_id: Mapping[str, object]) -> None:
        """Decide on a bullet without an id: new, or the text of a learning that there is."""
        same = same_text(bullet.text)
        if same in self._told or same in self._added:
            return
        found = self._find(bullet.text)
        if found is None or found.id in self._changed:
            taken = {id for _, _, id in self._added.values()}
            self._added[same] = (bullet.section, bullet.text, "" if bullet.id in taken else bullet.id)
        elif found.id in by_id or found.id in self._kept:
            return
        elif found.status != "active":
            self._kept.add(found.id)
            self._stays_away(found, bullet.text)
        else:
            self._kept.add(found.id)
            place = category_of(bullet.section)
            if place and place != _place(found):
                self._moved[found.id] = place

    def edits(self, by_id: Mapping[str, object]) -> Edits:
        """Return all that was decided."""
        gone = [id for id in self._was if id in self._store and id not in by_id and id not in self._kept]
        return Edits(
            added=tuple(self._added.values()),
            changed=tuple(self._changed.items()),
            removed=tuple(id for id in gone if self._store[id].status == "active"),
            moved=tuple(self._moved.items()),
            remarks=tuple(dict.fromkeys(self._remarks)),
        )

    def _take_texts(self, learning: Learning, was: Bullet | None, bullets: Sequence[Bullet]) -> None:
        present = _present(learning)
        texts: dict[str, Bullet] = {}
        for bullet in bullets:
            texts.setdefault(bullet.text, bullet)
        fresh = [text for text in texts if text != present and not self._was_shown(learning.id, text)]
        if was and len(texts) == 1:
            # The person had another text before them: even an old one is then their word.
            fresh = [text for text in texts if text not in (present, was.text)]
        elif len(texts) > 1:
            # The present text, if never rendered, comes from this very file: then its first new text is taken already.
            is_taken = present in texts and not self._was_shown(learning.id, present)
            others = [text for text in fresh if is_taken or self._belongs_to_another(text, learning)]
            others += [text for text in fresh if text not in others][1:]
            self.more += [texts[text].replace(id="") for text in texts if text in others]
            fresh = [text for text in fresh if text not in others]
        if fresh:
            self._change(learning, was, fresh[0])

    def _change(self, learning: Learning, was: Bullet | None, text: str) -> None:
        self._changed[learning.id] = text
        if was and _present(learning) != was.text:
            self._remarks.append(
                f"{learning.id} was changed here and in the file: the file's `{_short(text)}` replaces "
                f"`{_short(_present(learning))}`; `learnt undo {learning.id}` takes that back"
            )
        if learning.status != "active":
            self._stays_away(learning, text)

    def _stays_away(self, learning: Learning, text: str) -> None:
        self._remarks.append(f"`{_short(text)}` stays {learning.status}: `learnt restore {learning.id}` brings it back")

    def _was_shown(self, id: str, text: str) -> bool:
        was = self._was.get(id)
        return (was is not None and was.text == text) or self._known_text(id, text)

    def _belongs_to_another(self, text: str, learning: Learning) -> bool:
        found = self._find(text)
        return found is not None and found.id != learning.id


def _present(learning: Learning) -> str:
    """Return the learning's text as it is read from a file."""
    return without_ids(line_of(learning))


def _place(learning: Learning) -> str:
    """Return the learning's category as its heading is read: two categories may share one."""
    return category_of(heading_of(learning.category))


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"
