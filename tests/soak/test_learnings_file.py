"""learnings.md in the hands of people, programs, branches and killers: no word of anybody is lost."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from learnt import LearntError, Memory
from learnt.errors import WrongRequest
from learnt.flow.learnings_file import Update
from learnt.flow.merge_file import FileMerge
from learnt.learnings_file import write
from learnt.learnings_file.lines import bullet_key, line_of, statement_of
from learnt.learnings_file.read import parse
from learnt.model import Learning
from learnt.store import regenerations
from learnt.text.words import estimate_tokens
from tests.conftest import Clock
from tests.soak import seed_of
from tests.support import faults
from tests.support.hands import WORD, Hands, merged, resolved

pytestmark = pytest.mark.soak

SEQUENCES = 2_000
STEPS = 16
POSTGRES_EACH = 10
KILL_EACH = 20
TRAILER = re.compile(r"<!--[^\S\n]*learnt:([^<>\n]*)-->")
GOALS = ("", "", "checkout", "search")
BOUNDS = (150, 400, 2_000, 20_000)
ID = re.compile(r"(?<=<!-- )(?:learn_|learnt: r_)[a-z0-9]{14}(?= -->)")
DEAREST_ID = "learn_" + "a1" * 7


class Killed(BaseException):
    """What ends an update in the middle, as a kill does: nothing of ours catches it."""


class Life:
    """A project's file and its store through a row of steps, with all that must hold after each."""

    def __init__(self, root: Path, chance: random.Random, words: itertools.count[int], counted: Counter[str]) -> None:
        self.root = root
        self.path = root / ".learnt" / "learnings.md"
        self.chance = chance
        self.counted = counted
        self.hands = Hands(chance, words)
        self.clock = Clock()
        self.memory = self._open()
        self._known: set[str] = set()
        self._safe: set[str] = set()
        self._written: set[bytes] = set()
        self._window = 15
        self._branches: list[tuple[bytes, bytes]] = []  # each as it was when it began, and as it is

    def _open(self) -> Memory:
        return Memory.open(self.root, clock=self.clock)

    def close(self) -> None:
        self.memory.close()

    # Steps

    def edit(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            path = self.chance.choice(self._paths())
            self._write(self.hands.edited(path.read_bytes().decode() if path.exists() else "").encode(), path)
            self.counted["edits"] += 1

    def carry(self) -> None:
        """Move a line from one file to another."""
        source, target = (self.chance.choice(self._paths()) for _ in range(2))
        if source.exists() and target.exists():
            lines = source.read_bytes().decode().split("\n")
            line = lines.pop(self.chance.randrange(len(lines)))
            self._write("\n".join(lines).encode(), source)
            others = target.read_bytes().decode().split("\n")
            others.insert(self.chance.randrange(len(others) + 1), line)
            self._write("\n".join(others).encode(), target)
            self.counted["edits"] += 1

    def delete(self) -> None:
        if self.chance.random() < 0.3:
            self.chance.choice(self._paths()).unlink(missing_ok=True)
            self.counted["edits"] += 1

    def command(self) -> None:
        """Change a learning in the store, or add one."""
        known = self._stored()
        self.counted["commands"] += 1
        if len(known) < 2 or self.chance.random() < 0.3:
            category = self.chance.choice(("", "testing", "code_structure", "API & Co"))
            action = self.chance.choice(("", f"Run `{self.hands.word()}` first."))
            self.memory.add(
                f"Added {self.hands.word()} by command",
                action=action,
                category=category,
                goal=self.chance.choice(GOALS),
            )
            return
        one, other = self.chance.sample(known, 2)
        act = self.chance.choice(
            ("edit", "edit", "hide", "archive", "restore", "restore", "pin", "like", "supersede", "mark", "undo")
        )
        try:
            self._act(act, one, other)
        except WrongRequest:
            self.counted["refusals"] += 1  # such as undoing what was changed again

    def _act(self, act: str, one: Learning, other: Learning) -> None:
        if act == "edit":
            action = self.chance.choice((one.action, "", f"Run `{self.hands.word()}` first."))
            title = f"Edited {self.hands.word()} by command"
            self.memory.edit(one.id, title=title, action=action, category=other.category)
        elif act == "pin":
            self.memory.pin(one.id, pinned=not one.pinned)
        elif act == "supersede":
            self.memory.supersede(one.id, other.id)
        elif act == "mark":
            task = f"task_{self.hands.word()}"
            for id in self.memory.brief(one.title, task=task).learning_ids[:1]:
                self.memory.mark(id, task, helpful=self.chance.random() < 0.7)
        else:
            getattr(self.memory, act)(one.id)

    def debrief(self) -> None:
        """Let an agent finish a task, and tell what it learnt."""
        word = self.hands.word()
        told = self.chance.choice(
            (
                f"Never run `bin/{word}` with `STAGE=prod`: it deletes the data.",
                f"Use `make {word}` instead of `make all`, because `make all` deletes the cache.",
                f"<learning>Run `make {word}` before each commit</learning>",
                f"All done with {word}.",
            )
        )
        task = self.memory.tasks.add(f"Do {word}", goal=self.chance.choice(GOALS))
        self.memory.debrief(task.id, f"{told}\n<task-done>did it</task-done>", result="done")
        self.counted["debriefs"] += 1

    def settle(self) -> None:
        """Change the settings, and open the store with them."""
        settings = self.root / "learnt.toml"
        kept = settings.read_text().partition("[learnings]")[0] if settings.exists() else ""
        strategy = self.chance.choice(("none", "both"))
        settings.write_text(
            f'{kept}[learnings]\nmax_tokens = {self.chance.choice(BOUNDS)}\ninjection_strategy = "{strategy}"\n'
        )
        self.memory.close()
        self.memory = self._open()

    def branch(self) -> None:
        """Begin a branch here, and edit the file on it."""
        base = self._content()
        theirs = base.decode()
        for _ in range(self.chance.choice((0, 0, 1, 3))):
            theirs = self.hands.edited(theirs)
        self._branches.append((base, theirs.encode()))

    def switch(self) -> None:
        """Go to another branch; the one that is left can be come back to."""
        if self._branches:
            base, theirs = self._branches.pop(self.chance.randrange(len(self._branches)))
            self._branches.append((base, self._content()))
            self._write(theirs)
            self.counted["switches"] += 1
            self._perhaps_update()

    def merge(self) -> None:
        """Merge a branch as git does; while it is in conflict, an update refuses."""
        if not self._branches:
            return
        base, theirs = self._branches.pop(self.chance.randrange(len(self._branches)))
        way = self.chance.choice(("lines", "union", "bullets"))
        ours = self._content()
        if way == "bullets":
            content, conflict = self._merge_bullets(ours, base, theirs), False
        else:
            content, conflict = merged(ours, base, theirs, folder=self.root.parent, union=way == "union")
        self._write(content)
        self.counted[f"merges by {way}"] += 1
        if conflict:
            self.counted["conflicts"] += 1
            if parse(content.decode()).conflict:  # one inside a person's code is as good as an example of one
                self._check_refusal(content)
            self._write(resolved(content.decode(), self.chance).encode())
        elif way != "lines" and self._written.issuperset((base, theirs, ours)):
            self._written.add(content)
        self._perhaps_update()

    def _merge_bullets(self, ours: bytes, base: bytes, theirs: bytes) -> bytes:
        """Return the merge of our merge driver."""
        paths = [self.root.parent / name for name in ("base", "ours", "theirs")]
        for path, content in zip(paths, (base, ours, theirs), strict=True):
            path.write_bytes(content)
        names = [str(path) for path in paths]
        context = self.memory.context
        assert FileMerge(context, context.settings).merge(names[0], names[1], names[2], ".learnt/learnings.md") == 0
        content = paths[1].read_bytes()
        typed = {*WORD.findall((ours + theirs).decode())} - {*WORD.findall(base.decode())}
        lost = typed - self._words_in_store() - {*WORD.findall(content.decode())}
        assert not lost, f"{lost} of\n{ours.decode()}\nor\n{theirs.decode()}\nis not in\n{content.decode()}"
        return content

    def _perhaps_update(self) -> None:
        if self.chance.random() < 0.7:
            self.update()

    def update(self) -> None:
        """Make the file anew, and again."""
        before, active = self._contents(), self._active()
        self._check_update(self._update(), before, active)

    def update_while_edited(self) -> None:
        """Save the file in an editor while an update is about to write it."""
        typed = self.hands.edited(self._text())
        unsaved = [typed]

        def save() -> None:
            while unsaved:
                self._write(unsaved.pop().encode())

        with _before("fsync", save):
            self._update()
        if not unsaved:
            self._check_words(typed, b"\n".join(self._contents().values()).decode())
            self.counted["races"] += 1
        self.update()  # which also sees what was saved after the file had been read

    def update_and_die(self) -> None:
        """Be killed in an update: what comes of it is what would have come without."""
        expected = self._undisturbed()
        before, active = self._contents(), self._active()
        with suppress(Killed), _dying(self.memory, self.chance.randint(1, 60)):
            self.memory.file.update()
            self.counted["kills"] -= 1  # it was done before
        self.counted["kills"] += 1
        self._check_after_kill(before)
        self._check_update(self._update(window=15), before, active)
        assert self._told() == expected

    def update_and_be_killed(self) -> None:
        """Kill a real process that makes the file anew."""
        before, active = self._contents(), self._active()
        self.memory.close()
        process = subprocess.Popen(
            [sys.executable, "-m", "learnt", "update"],
            cwd=self.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        time.sleep(self.chance.uniform(0.05, 0.25))  # when it is hit is chance; nothing is asserted of it
        process.kill()
        _, told = process.communicate()
        assert process.returncode in (0, -9), told.decode()
        self.counted["real kills"] += process.returncode == -9
        self.memory = self._open()
        if self.memory.context.store.database.engine == "postgres":
            faults.wait_for_others(self.memory.context.store.database)
        self._check_after_kill(before)
        self._check_update(self._update(), before, active)

    # What must hold

    def check(self) -> None:
        """Check what holds after every step: nothing is gone from the store, and its events tell all of it."""
        stored = {learning.id for learning in self.memory.transfer.export()}
        assert self._known <= stored, "a learning is gone"
        self._known = stored
        assert faults.contradictions(self.memory) == []

    def _check_update(self, update: Update, before: dict[Path, bytes], active: set[str]) -> None:
        after = self._contents()
        stored = {learning.id: learning for learning in self.memory.transfer.export()}
        text = b"\n".join(before.values()).decode()
        if before and self._written.issuperset(before.values()):
            assert update.taken == (), "what the program wrote itself is nobody's edit"
        self._check_words(text, b"\n".join(after.values()).decode())
        gone = {id for id in active if stored[id].status != "active"}
        assert not [id for id in gone if f"<!-- {id} -->" in text], "what stands in a file was hidden"
        if not any(len(set(TRAILER.findall(content.decode()))) == 1 for content in before.values()):
            assert not gone, "where no file names its rendering, or one names two, nothing is hidden"
        made = {file.path for file in update.files}
        for path, content in after.items():
            if str(path) in made:
                self._check_file(content.decode(), stored)
                self._written.add(content)
        again = self.memory.file.update(window=self._window)
        assert (again.taken, self._contents()) == ((), after), "an update that follows an update changes nothing"
        self.counted["updates"] += 1

    def _check_words(self, before: str, after: str) -> None:
        """Check that every word that a person typed is in the store, now or once, or still in a file."""
        in_store = self._words_in_store()
        assert self._safe <= in_store, "a word is gone from the store"
        self._safe = in_store
        lost = set(WORD.findall(before)) - in_store - set(WORD.findall(after))
        assert not lost, f"{lost} of\n{before}\nis not in\n{after}"

    def _words_in_store(self) -> set[str]:
        """Return every word that a person typed and the store knows, now or from before."""
        kept = "\n".join(
            str(value)
            for row in self.memory.context.store.database.rows("select old, new from event where project = :project")
            for value in row.values()
        )
        return set(WORD.findall(kept))

    def _check_file(self, text: str, stored: dict[str, Learning]) -> None:
        file = parse(text)
        assert regenerations.find(self.memory.context.store.database, file.rendering), text
        for bullet in file.bullets:
            assert stored[bullet.id].status == "active", f"{bullet.id} is shown"
            lines = (line_of(stored[bullet.id]), statement_of(stored[bullet.id]))
            assert bullet_key(bullet.text) in map(bullet_key, lines)
        if estimate_tokens(text) > self.memory.settings.learnings_max_tokens:
            assert not file.bullets, "more bullets than there is room for"
            assert file.loose

    def _check_refusal(self, content: bytes) -> None:
        before = self._stored()
        with pytest.raises(WrongRequest, match="merge conflict"):
            self.memory.file.update()
        assert self._content() == content
        assert self._stored() == before

    def _check_after_kill(self, before: dict[Path, bytes]) -> None:
        """Check that a kill left the old files, or new ones that the store knows."""
        for path, content in self._contents().items():
            if content != before.get(path):
                assert regenerations.find(self.memory.context.store.database, parse(content.decode()).rendering)
        self.check()

    # Looking

    def _undisturbed(self) -> Any:
        """Return what an update tells in a copy that nobody disturbs; None where a store cannot be copied."""
        if self.memory.context.store.place.address:
            return None
        copy = self.root.parent / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.root, copy)
        other = Life(copy, random.Random(0), itertools.count(), Counter())
        other.memory.context.clock = self.memory.context.clock
        other.memory.file.update(window=15)
        told = other._told()
        other.close()
        return told

    def _told(self) -> Any:
        """Return what store and file say, without ids and times."""
        if self.memory.context.store.place.address:
            return None
        lines = Counter((line_of(one), one.category, one.status, one.pinned) for one in self.memory.transfer.export())
        return lines, [re.sub(r"<!--.*?-->", "", content.decode()) for content in self._contents().values()]

    def _update(self, *, window: int | None = None) -> Update:
        self._window = window or self.chance.choice((1, 3, 15, 15, 100))
        return self.memory.file.update(window=self._window)

    def _active(self) -> set[str]:
        return {learning.id for learning in self.memory.transfer.export() if learning.status == "active"}

    def _stored(self) -> list[Learning]:
        return list(self.memory.transfer.export())

    def _content(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    def _text(self) -> str:
        return self._content().decode()

    def _write(self, content: bytes, path: Path | None = None) -> None:
        self.path.parent.mkdir(exist_ok=True)
        (path or self.path).write_bytes(content)

    def _paths(self) -> list[Path]:
        """Return the project's file, and those of goals that there are."""
        return [self.path, *sorted(self.path.parent.glob("learnings/*.md"))]

    def _contents(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self._paths() if path.exists()}


STEPS_OF_LIFE: tuple[tuple[Callable[[Life], None], int], ...] = (
    (Life.edit, 6),
    (Life.carry, 1),
    (Life.command, 6),
    (Life.debrief, 3),
    (Life.update, 6),
    (Life.update_while_edited, 1),
    (Life.update_and_die, 2),
    (Life.branch, 3),
    (Life.switch, 2),
    (Life.merge, 4),
    (Life.settle, 1),
    (Life.delete, 1),
)


@contextmanager
def _before(call: str, act: Callable[[], object]) -> Iterator[None]:
    """Do something before each of these calls of the system."""
    original = getattr(os, call)

    def step(*arguments: Any) -> Any:
        act()
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, step)
        yield


@contextmanager
def _dying(memory: Memory, number: int) -> Iterator[None]:
    """Be killed at the n-th step of those that last: statements, with commits counted twice, and file calls."""
    steps = itertools.count(1)
    kind = type(memory.context.store.database)
    run = kind.run

    def step() -> None:
        if next(steps) == number:
            raise Killed

    def dying_run(self: Any, sql: str, parameters: dict[str, Any]) -> Any:
        if sql != "rollback":
            step()
        done = run(self, sql, parameters)
        if sql == "commit":
            step()
        return done

    with pytest.MonkeyPatch.context() as patch, _before("fsync", step), _before("replace", step):
        patch.setattr(kind, "run", dying_run)
        yield


@pytest.fixture
def ids_of_equal_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all ids cost as many tokens as the dearest: they are random, and so would be how many bullets fit."""
    monkeypatch.setattr(write, "estimate_tokens", lambda text: estimate_tokens(ID.sub(DEAREST_ID, text)))


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A project with an empty store, to be copied."""
    folder = tmp_path / "template"
    folder.mkdir()
    with Memory.open(folder) as memory:
        assert memory.learnings().total == 0
    return folder


@pytest.mark.usefixtures("ids_of_equal_cost")
def test_whatever_happens_to_the_file_nothing_that_anybody_said_is_lost(
    template: Path,
    tmp_path: Path,
    share: Callable[[int], int],
    pytestconfig: pytest.Config,
    request: pytest.FixtureRequest,
) -> None:
    counted: Counter[str] = Counter()
    count = share(SEQUENCES)
    address = ""
    for number in range(count):
        chance = random.Random(f"{seed_of(pytestconfig)} {number}")
        root = tmp_path / str(number) / "shop"
        if number % POSTGRES_EACH == POSTGRES_EACH - 1:
            address = address or request.getfixturevalue("postgres").address()
            root.mkdir(parents=True)
            (root / "learnt.toml").write_text(f'database = "{address}"\nproject = "shop{number}"\n')
            counted["on PostgreSQL"] += 1
        else:
            shutil.copytree(template, root)
        _live(Life(root, chance, itertools.count(), counted), number, kill=number % KILL_EACH == 0)
        shutil.rmtree(root.parent)
    told = ", ".join(f"{counted[name]:,} {name}" for name in sorted(counted))
    print(f"\n{count:,} sequences (seed {seed_of(pytestconfig)}): {told}; nothing lost")


def _live(life: Life, number: int, *, kill: bool) -> None:
    """Take some steps by chance, the last of them an update."""
    acts, weights = zip(*STEPS_OF_LIFE, strict=True)
    steps = life.chance.choices(acts, weights, k=STEPS)
    if kill:
        steps.append(Life.update_and_be_killed)
    done = []
    try:
        for step in [*steps, Life.update]:
            done.append(step.__name__)
            step(life)
            life.check()
            life.counted["steps"] += 1
    except (AssertionError, LearntError) as error:
        raise AssertionError(f"sequence {number}: {', '.join(done)}: {error}") from error
    finally:
        life.close()
