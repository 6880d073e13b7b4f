"""The documents of a project that consolidation reads and writes: the topic files and their index.

No link is followed, and nothing outside the project is read. Text that is not UTF-8 comes back as it was.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from learnt.clients.registry import LOADED_FILES
from learnt.consolidate.memory_index import (
    POINTER,
    IndexFault,
    add_pointer,
    check_index,
    choose_words,
    list_files,
    list_words,
    read_index,
    remove_pointer,
    repair_index,
)
from learnt.consolidate.topics import CallingWords, Topic, find_topic_files, list_entries
from learnt.errors import WrongRequest
from learnt.flow.context import Context, load_configuration
from learnt.flow.staging_file import refuse_conflict
from learnt.mine.rules_file import read_rules
from learnt.model import PROGRAM, Learning, Value, text_id
from learnt.project import find_project
from learnt.settings import Settings
from learnt.store import learnings
from learnt.store.index import Filter
from learnt.store.learnings import Change
from learnt.system.files import list_names, read_own
from learnt.system.replacements import Replacement, replace_all
from learnt.text.clean import clean

POINTED_FROM = ("CLAUDE.md", "AGENTS.md")
"""The files that get a pointer to the index, if they exist."""
_SKILLS = (".claude/skills", ".agents/skills")
_SKILL = "SKILL.md"
_ENDING = ".md"
_MAX_BYTES = 20_000_000
_MAX_FILES = 2_000
ENCODING = ("utf-8", "surrogateescape")


class Documents(Value):
    """The topic files and their index."""

    root: str
    topics: tuple[Topic, ...] = ()
    folder: str
    """The folder of new topic files; like all paths, below the project's folder, with `/`."""
    index_path: str
    index: str | None = None
    """The text of the index; None if there is none."""
    others: tuple[str, ...] = ()
    """The files that the index names and that exist, but are no topic files."""
    pointing: Mapping[str, str] = {}
    """The texts of the files that get a pointer to the index."""
    has_pointer: bool = True
    """Whether they shall have it."""
    missing: tuple[str, ...] = ()
    """The topic files that a person named and that do not exist yet."""
    reserved: tuple[str, ...] = ()
    """The paths that no new topic file gets: those of the index, of the staging file and of other files."""

    def text_of(self, path: str) -> str | None:
        """Return the text of one of these files; None if it does not exist."""
        texts = {topic.path: topic.text for topic in self.topics if topic.path not in self.missing}
        return {self.index_path: self.index, **self.pointing, **texts}.get(path)

    @property
    def calling(self) -> CallingWords:
        """The words of the index that call for each file."""
        return list_words(read_index(self.index or "", self.index_path))


class IndexReport(Value):
    """What is wrong with an index, or was until it was repaired."""

    path: str
    topic_files: int = 0
    faults: tuple[IndexFault, ...] = ()
    changed: tuple[str, ...] = ()
    """The files that were changed."""
    remarks: tuple[str, ...] = ()
    """Which learnings stand in more than one topic file, as after a merge: only a person can choose."""


class TopicFiles:
    """The topic files of a project and their index."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def check_index(self) -> IndexReport:
        """Return what is wrong with the index; nothing is changed."""
        return _report(read_documents(self._context))

    def fix_index(self) -> IndexReport:
        """Repair the index, and return what was wrong. Topic files are neither changed nor deleted."""
        documents = read_documents(self._context)
        note_places(self._context, documents)
        return _fix(documents, list_stored(self._context, documents))

    @staticmethod
    def check_without_store(start: str) -> IndexReport:
        """Return what is wrong with the index where there is no store."""
        return _report(_read_without_store(start))

    @staticmethod
    def fix_without_store(start: str) -> IndexReport:
        """Repair the index where there is no store, which would know the triggers of learnings."""
        return _fix(_read_without_store(start), {})


def read_documents(context: Context) -> Documents:
    """Return the topic files of a project and their index."""
    return _read_documents(context.root, context.settings)


def _read_without_store(start: str) -> Documents:
    here = find_project(start)
    return _read_documents(here.root if here else os.path.realpath(start), load_configuration(start).settings)


def _read_documents(root: str, settings: Settings) -> Documents:
    folder, index_path = (
        _normalise(path) for path in (settings.consolidate_topics_folder, settings.consolidate_index_file)
    )
    staging_path = _normalise(settings.consolidate_staging_file)
    named = [_normalise(path) for path in settings.consolidate_topic_files]
    present = _list_files(root, folder)
    paths = [path for path in present if _is_plain(path.removeprefix(f"{folder}/"))]
    if len(paths) > _MAX_FILES:
        raise WrongRequest(f"{folder} has {len(paths):,} Markdown files", hint=f"at most {_MAX_FILES:,} are read")
    apart = (index_path, staging_path)
    texts = {path: read_document(root, path) for path in paths if path not in (*apart, *named)}
    topics = [Topic(path=path, text=text) for path, text in texts.items() if text is not None]
    topics += (topic for path in named if path != index_path and (topic := _read_named(root, path)))
    index = read_document(root, index_path)
    for path, content in (*((topic.path, topic.text) for topic in topics), (index_path, index or "")):
        refuse_conflict(path, content)
    known = {topic.path for topic in topics}
    mentioned = [path for path in list_files(read_index(index or "", index_path)) if path not in known]
    pointing = {path: text for path in POINTED_FROM if path not in apart and (text := _read_if_regular(root, path))}
    return Documents(
        root=root,
        topics=tuple(topics),
        folder=folder,
        index_path=index_path,
        index=index,
        others=tuple(path for path in mentioned if _is_inside(path) and _read_if_regular(root, path) is not None),
        pointing=pointing,
        has_pointer=settings.consolidate_pointer,
        missing=tuple(path for path in named if read_document(root, path) is None),
        reserved=(index_path, staging_path, *(path for path in present if path not in known)),
    )


def _normalise(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _read_named(root: str, path: str) -> Topic | None:
    """Return a topic file that a person named; one that clients load is not made for it."""
    text, loaded = read_document(root, path), is_loaded(path)
    return None if loaded and text is None else Topic(path=path, text=text or "", is_named=True, is_loaded=loaded)


def is_loaded(path: str) -> bool:
    """Return whether a client loads a file by itself."""
    return Filter(exclude_loaded=LOADED_FILES).leaves_out_file(path)


def _list_files(root: str, folder: str) -> list[str]:
    """Return the paths of the Markdown files in the folder of the topic files."""
    place = os.path.join(root, *folder.split("/"))
    try:
        names = list_names(place)
    except OSError as error:
        raise WrongRequest(f"cannot use {place}: {error.strerror}", hint="put a folder of your own there") from None
    return [f"{folder}/{name}" for name in names if name.casefold().endswith(_ENDING)]


def _is_plain(name: str) -> bool:
    """Return whether a file's name can stand in the index as it is."""
    is_visible = name.isprintable() and clean(name) == name and not name.startswith(".")
    return is_visible and name.endswith(_ENDING) and "\\" not in name


def read_document(root: str, path: str) -> str | None:
    """Return the text of a file of the project; None if there is none."""
    place = os.path.join(root, *path.split("/"))
    try:
        return read_own(place, max_bytes=_MAX_BYTES).decode(*ENCODING)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongRequest(f"cannot use {place}: {error.strerror}", hint="put a file of your own there") from None


def _read_if_regular(root: str, path: str) -> str | None:
    """Return the text of a file of the project; None also if it is a link or cannot be read."""
    try:
        return read_document(root, path)
    except WrongRequest:
        return None


def _is_inside(path: str) -> bool:
    return not path.startswith(("../", "/")) and "\\" not in path and ":" not in path.partition("/")[0]


def _report(documents: Documents) -> IndexReport:
    faults = check_index(documents.index or "", documents.index_path, documents.topics, others=documents.others)
    pointers = [
        IndexFault(
            kind=POINTER, file=path, message=f"it should {'' if documents.has_pointer else 'not '}name the index"
        )
        for path in update_pointers(documents)
    ]
    return IndexReport(
        path=documents.index_path,
        topic_files=len(documents.topics),
        faults=(*faults, *pointers),
        remarks=tuple(_list_doubled(documents.topics)),
    )


def _list_doubled(topics: Sequence[Topic]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for topic in topics:
        for entry in list_entries(topic.text):
            places.setdefault(entry.id, []).append(topic.path)
    for id, paths in places.items():
        if id and len(paths) > 1:
            where = f"twice in {paths[0]}" if len({*paths}) == 1 else f"in {' and in '.join(dict.fromkeys(paths))}"
            yield f"{id} stands {where}: remove one of the entries"


def _fix(documents: Documents, known: Mapping[str, Learning]) -> IndexReport:
    report = _report(documents)
    index = update_index(documents, {}, known)
    after = {**({} if index is None else {documents.index_path: index}), **update_pointers(documents)}
    replace_all(
        [
            Replacement(
                path=os.path.join(documents.root, *path.split("/")),
                before=None if (old := documents.text_of(path)) is None else old.encode(*ENCODING),
                after=text.encode(*ENCODING),
                closed=documents.root,
            )
            for path, text in after.items()
        ]
    )
    return report.replace(changed=tuple(after))


def update_index(documents: Documents, files: Mapping[str, str], known: Mapping[str, Learning]) -> str | None:
    """Return the index for the topic files with new texts; None if it needs no change.

    `known` are the learnings of entries, by id: new lines get their triggers.
    """
    topics = {topic.path: topic for topic in documents.topics}
    topics |= {path: topics.get(path, Topic(path=path, text="")).replace(text=text) for path, text in files.items()}
    before = documents.index or ""
    after = repair_index(
        before,
        documents.index_path,
        list(topics.values()),
        others=documents.others,
        choose_words=lambda entry: choose_words(entry, known.get(entry.id)),
    )
    return None if after == before else after


def update_pointers(documents: Documents, files: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the new texts of the files whose pointer to the index is missing or not wanted.

    `files` are the new texts of topic files: one of them may be such a file, and with them there is an index.
    """
    has_index = bool(files) or documents.index is not None or any(topic.text for topic in documents.topics)
    texts = {path: (files or {}).get(path, text) for path, text in documents.pointing.items()}
    updated = {
        path: add_pointer(text, documents.index_path) if documents.has_pointer and has_index else remove_pointer(text)
        for path, text in texts.items()
    }
    return {path: text for path, text in updated.items() if text != texts[path]}


def list_stored(context: Context, documents: Documents) -> dict[str, Learning]:
    """Return the learnings of the entries in the topic files, by id, as far as this store has them."""
    ids = sorted({entry.id for topic in documents.topics for entry in list_entries(topic.text) if entry.id})
    return dict(learnings.get_all(context.store.database, ids)) if ids else {}


def note_places(context: Context, documents: Documents) -> None:
    """Store where the learnings stand whose entries a split, a merge or a person has moved to another topic file."""
    homes = find_topic_files(documents.topics)
    stored = list_stored(context, documents)
    standing = {(entry.id, topic.path) for topic in documents.topics for entry in list_entries(topic.text)}
    moved = {
        id: homes[id]
        for id, learning in stored.items()
        if learning.topic_file and (id, learning.topic_file) not in standing
    }
    if not moved:
        return
    change = Change(what="relocate", who=PROGRAM, at=context.clock())
    with context.store.transaction():
        for id, path in moved.items():
            learnings.change(context.store.database, id, partial(_relocate, path=path), change)


def _relocate(learning: Learning, path: str) -> dict[str, str]:
    was_loaded = learning.loaded_from == learning.topic_file
    loaded_from = path if is_loaded(path) else "" if was_loaded else learning.loaded_from
    return {"topic_file": path, "loaded_from": loaded_from}


def read_loaded(root: str) -> dict[str, list[Learning]]:
    """Return the rules in the files that agents are given anyway, by the files' paths."""
    texts = {path: _read_if_regular(root, path) for path in (*POINTED_FROM, *_list_skills(root))}
    return {path: _read_rules(remove_pointer(text)) for path, text in texts.items() if text}


def _list_skills(root: str) -> list[str]:
    found = []
    for folder in _SKILLS:
        try:
            names = list_names(os.path.join(root, *folder.split("/")))
        except OSError:
            continue  # a link, or not a folder
        found += [f"{folder}/{name}/{_SKILL}" for name in names[:_MAX_FILES]]
    return found


def _read_rules(text: str) -> list[Learning]:
    rules = read_rules(text).rules
    return [
        Learning(id=text_id("learn", rule.text), title=rule.title, observation=rule.text, polarity=rule.polarity)
        for rule in rules
    ]
