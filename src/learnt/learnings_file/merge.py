"""Merge three versions: the file, the rendering that it is based on, and the current store.

The file's trailer identifies its rendering: if a bullet is in the rendering but no longer in the file, a person has
removed it. If the rendering is not known, nothing is hidden. A person's text takes precedence over the store's text.
But a learning that is hidden in the store stays hidden, even if a merge of branches brings its bullet back; a remark
says how to restore it. A text from an earlier rendering is not an edit.

Merging a file again after its edits have been applied finds no edits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from learnt.learnings_file.lines import (
    ON_TRIAL,
    bullet_key,
    category_of,
    drop_ids,
    edit_fields,
    heading_of,
    line_of,
    split_line,
    statement_of,
)
from learnt.learnings_file.read import Bullet, ParsedFile
from learnt.learnings_file.write import Rendering
from learnt.model import Learning, Value

_MAX_QUOTE_LENGTH = 60


class Edits(Value):
    """Changes that people made in the file, to be applied to the store."""

    added: tuple[tuple[str, str, str], ...] = ()
    """The section and the text of each new bullet, and its id if it comes from another store."""
    changed: tuple[tuple[str, str], ...] = ()
    """The id and the new text of each changed bullet."""
    removed: tuple[str, ...] = ()
    """The ids of the learnings to hide."""
    moved: tuple[tuple[str, str], ...] = ()
    """The id and the new category of each bullet that was moved to another section."""
    accepted: tuple[str, ...] = ()
    """The ids of the bullets that were moved out of the section for learnings on trial."""
    remarks: tuple[str, ...] = ()
    """Messages for the person."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.moved or self.accepted)


def merge(
    parsed: ParsedFile,
    base: Rendering | None,
    *,
    store: Mapping[str, Learning],
    known_text: Callable[[str, str], bool],
    find: Callable[[str], Learning | None],
) -> Edits:
    """Return the changes that people have made since the rendering `base`, which is None if it is not known.

    `store` contains the learnings in the file and in the base, whatever their status. `known_text` returns whether any
    rendering has shown a learning with a text. `find` returns a learning with the same `bullet_key`, if possible an
    active one.
    """
    if parsed.conflict:
        return Edits(remarks=("the file contains merge conflict markers, so nothing was read from it",))
    merge_state = _Merge(base, store, known_text, find)
    by_id, unnamed = merge_state.sort_bullets(parsed.bullets)
    for id, bullets in by_id.items():
        merge_state.merge_known(store[id], bullets)
    for bullet in [*unnamed, *merge_state.extra]:
        merge_state.merge_unnamed(bullet, by_id)
    return merge_state.edits(by_id)


class _Merge:
    """Collects the decisions of a merge."""

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
        self._accepted: list[str] = []
        self._remarks: list[str] = []
        self._texts: set[str] = set()  # texts of bullets with an id
        self._recognised: set[str] = set()
        self.extra: list[Bullet] = []
        """Bullets that repeat the id of another bullet with another text."""

    def sort_bullets(self, bullets: Sequence[Bullet]) -> tuple[dict[str, list[Bullet]], list[Bullet]]:
        """Return the bullets of stored learnings by id, and the bullets that might be new.

        A bullet that has lost its comment is recognised by its text. Bullets of deleted learnings are left out.
        """
        by_id: dict[str, list[Bullet]] = {}
        for bullet in bullets:
            if bullet.id in self._store:
                by_id.setdefault(bullet.id, []).append(bullet)
        missing: dict[str, str] = {}
        for id in [id for id in self._was if id in self._store and id not in by_id]:
            for text in (self._was[id].text, *_present_texts(self._store[id])):
                missing.setdefault(bullet_key(text), id)
        unnamed = []
        for bullet in bullets:
            id = missing.get(bullet_key(bullet.text), "")
            if bullet.id in self._store or (bullet.id and self._was_shown(bullet.id, bullet.text)):
                continue
            if id and id not in by_id:
                by_id[id] = [bullet]
            else:
                unnamed.append(bullet)
        return by_id, unnamed

    def merge_known(self, learning: Learning, bullets: Sequence[Bullet]) -> None:
        """Decide on a learning's text and section."""
        was = self._was.get(learning.id)
        self._merge_texts(learning, was, bullets)
        if was is None and learning.status != "active" and learning.id not in self._changed:
            self._remark_hidden(learning, bullets[0].text)
        changed = self._changed.get(learning.id)
        self._texts.update(map(bullet_key, [changed] if changed else _present_texts(learning)))
        if was is None or learning.status != "active":
            return
        if learning.id not in self._changed:
            self._texts.update(map(bullet_key, (was.text, split_line(was.text)[0])))
        sections = [bullet.section for bullet in bullets]
        if ON_TRIAL in sections:
            return  # it is there already, or a person cannot put it there
        if was.section == ON_TRIAL and not learning.vouched:
            self._accepted.append(learning.id)
        categories = [category_of(section) for section in sections]
        is_elsewhere = not {category_of(was.section), _category_in_file(learning)} & set(categories)
        if is_elsewhere or (was.section == ON_TRIAL and _category_in_file(learning) not in categories):
            self._moved[learning.id] = categories[0]

    def merge_unnamed(self, bullet: Bullet, by_id: Mapping[str, object]) -> None:
        """Decide whether a bullet without an id is new or belongs to an existing learning."""
        key = bullet_key(bullet.text)
        if key in self._texts or key in self._added:
            return
        learning = self._find(bullet.text)
        if learning is None or learning.id in self._changed:
            used_ids = {id for _, _, id in self._added.values()}
            self._added[key] = (bullet.section, bullet.text, "" if bullet.id in used_ids else bullet.id)
        elif learning.id in by_id or learning.id in self._recognised:
            return
        elif learning.status != "active":
            self._recognised.add(learning.id)
            self._remark_hidden(learning, bullet.text)
        else:
            self._recognised.add(learning.id)
            category = category_of(bullet.section)
            if category and category != _category_in_file(learning):
                self._moved[learning.id] = category

    def edits(self, by_id: Mapping[str, object]) -> Edits:
        """Return all decisions."""
        gone = [id for id in self._was if id in self._store and id not in by_id and id not in self._recognised]
        return Edits(
            added=tuple(self._added.values()),
            changed=tuple(self._changed.items()),
            removed=tuple(id for id in gone if self._store[id].status == "active"),
            moved=tuple(self._moved.items()),
            accepted=tuple(self._accepted),
            remarks=tuple(dict.fromkeys(self._remarks)),
        )

    def _merge_texts(self, learning: Learning, was: Bullet | None, bullets: Sequence[Bullet]) -> None:
        present = _present_text(learning)
        texts: dict[str, Bullet] = {}
        for bullet in bullets:
            texts.setdefault(bullet.text, bullet)
        seen = was.text if was else None
        new_texts = [text for text in texts if edit_fields(learning, text, seen=seen)]
        # If the person saw another text, even one of an earlier rendering is an edit.
        if not was or len(texts) > 1:
            new_texts = [text for text in new_texts if not self._was_shown(learning.id, text)]
        if len(texts) > 1:
            # If the present text was never rendered, it comes from this file: its first new text is already applied.
            is_applied = present in texts and not self._was_shown(learning.id, present)
            others = [text for text in new_texts if is_applied or self._belongs_to_another(text, learning)]
            others += [text for text in new_texts if text not in others][1:]
            self.extra += [texts[text].replace(id="") for text in texts if text in others]
            new_texts = [text for text in new_texts if text not in others]
        if new_texts:
            self._change(learning, was, new_texts[0])

    def _change(self, learning: Learning, was: Bullet | None, text: str) -> None:
        self._changed[learning.id] = text
        if was and _present_text(learning) != was.text:
            self._remarks.append(
                f"{learning.id} was changed here and in the file: the file's `{_shorten(text)}` replaces "
                f"`{_shorten(_present_text(learning))}`; `learnt undo {learning.id}` reverts this"
            )
        if learning.status != "active":
            self._remark_hidden(learning, text)

    def _remark_hidden(self, learning: Learning, text: str) -> None:
        self._remarks.append(
            f"`{_shorten(text)}` stays {learning.status}: `learnt restore {learning.id}` brings it back"
        )

    def _was_shown(self, id: str, text: str) -> bool:
        was = self._was.get(id)
        return (was is not None and was.text == text) or self._known_text(id, text)

    def _belongs_to_another(self, text: str, learning: Learning) -> bool:
        other = self._find(text)
        return other is not None and other.id != learning.id


def _present_text(learning: Learning) -> str:
    """Return the learning's text as a file shows it."""
    return drop_ids(line_of(learning))


def _present_texts(learning: Learning) -> tuple[str, ...]:
    """Return the learning's text as a file shows it, with its action and without."""
    return _present_text(learning), drop_ids(statement_of(learning))


def _category_in_file(learning: Learning) -> str:
    """Return the category that the learning's heading is read as, because two categories can have the same heading."""
    return category_of(heading_of(learning.category))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_QUOTE_LENGTH else text[: _MAX_QUOTE_LENGTH - 1] + "…"
