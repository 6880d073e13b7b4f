"""Branches: git merges the staging file and learnings.md entry by entry, and nothing is lost or comes back."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from learnt import Memory
from learnt.consolidate.merge_entries import merge_entries, merge_index
from learnt.learnings_file.branches import merge_branches
from learnt.learnings_file.read import ParsedFile, parse
from learnt.store import learnings
from learnt.text.entries import split_entries
from learnt.text.three_way import MergedText, merge_files, merge_items, merge_texts
from tests.support.doors import Learnt, open_doors
from tests.support.repository import STAGING, Repository, entry

TIMES = iter(f"2026-03-{day:02}T{hour:02}:00:00+0000" for day in range(1, 29) for hour in range(24))
LEARNINGS = ".learnt/learnings.md"
ONE, TWO, THREE = entry("One", id="learn_1"), entry("Two"), entry("Three")


class Branches:
    """A repository with our merge driver, and two branches in it."""

    def __init__(self, folder: Path, *, driver: bool = True) -> None:
        self.repository = Repository(folder)
        self.learnt: Learnt = open_doors(folder)
        if driver:
            assert self.learnt("install", "--git").code == 0

    def fork(self, base: str, theirs: str, ours: str, name: str = STAGING) -> str:
        """Commit three versions of a file and merge their branch into ours; return what git said."""
        self.start(base, name)
        self.on("theirs", lambda: self.repository.write(theirs, name))
        self.repository.write(ours, name)
        self.commit()
        return self.merge("theirs")

    def start(self, base: str, name: str = STAGING) -> None:
        if base:
            self.repository.write(base, name)
        self.commit()

    def on(self, branch: str, act: Callable[[], object]) -> None:
        """Do something on a new branch."""
        self.repository.git("switch", "-q", "-c", branch)
        act()
        self.commit()
        self.repository.git("switch", "-q", "main")

    def commit(self) -> None:
        self.repository.commit(next(TIMES))

    def merge(self, branch: str) -> str:
        return self.repository.git("merge", "--no-edit", branch, check=False)

    def titles(self) -> list[str]:
        return [entry.title for entry in split_entries(self.repository.read())[1]]


@pytest.fixture
def branches(project: Path) -> Branches:
    return Branches(project)


def test_two_branches_that_both_append_merge_without_a_conflict(branches: Branches) -> None:
    said = branches.fork("# New\n\n" + ONE, theirs="# New\n\n" + ONE + TWO, ours="# New\n\n" + ONE + THREE)
    assert "CONFLICT" not in said
    assert branches.repository.read() == "# New\n\n" + ONE + THREE + TWO
    assert branches.repository.git("status", "--porcelain") == ""


def test_what_one_side_consolidated_does_not_come_back(branches: Branches) -> None:
    said = branches.fork(ONE + TWO, theirs=ONE + TWO + THREE, ours=TWO)
    assert "CONFLICT" not in said
    assert branches.titles() == ["Two", "Three"]


def test_what_they_consolidated_leaves_our_side_too_even_after_white_space_changed(branches: Branches) -> None:
    ours = (ONE.replace("build.", "build.  ") + TWO + THREE).replace("\n", "\r\n")
    said = branches.fork(ONE + TWO, theirs=TWO, ours=ours)
    assert "CONFLICT" not in said
    assert branches.titles() == ["Two", "Three"]
    assert branches.repository.read().count("\r\n") == branches.repository.read().count("\n")


def test_removed_here_and_edited_there_is_a_conflict_that_shows_the_edit(branches: Branches) -> None:
    edited = ONE.replace("second run", "third run")
    said = branches.fork(ONE + TWO, theirs=edited + TWO, ours=TWO)
    assert f"CONFLICT (content): Merge conflict in {STAGING}" in said
    text = branches.repository.read()
    assert f"<<<<<<< ours\n=======\n{edited.rstrip()}\n>>>>>>> theirs\n" in text
    assert text.count("## Two") == 1
    assert branches.repository.git("diff", "--name-only", "--diff-filter=U").split() == [STAGING]


def test_edits_of_different_lines_of_one_entry_are_both_kept(branches: Branches) -> None:
    base = entry("One", body="first\n\nsecond\n\nthird")
    said = branches.fork(base, theirs=base.replace("first", "1st"), ours=base.replace("third", "3rd"))
    assert "CONFLICT" not in said
    assert branches.repository.read() == entry("One", body="1st\n\nsecond\n\n3rd").rstrip("\n") + "\n"


def test_edits_of_the_same_line_are_a_conflict_with_both_texts_inside_the_entry(branches: Branches) -> None:
    base = entry("One", body="first\n\nsecond") + TWO
    said = branches.fork(base, theirs=base.replace("second", "2nd"), ours=base.replace("second", "No. 2") + THREE)
    assert "CONFLICT" in said
    conflict = "## One\n\nfirst\n\n<<<<<<< ours\nNo. 2\n=======\n2nd\n>>>>>>> theirs\n\n## Two"
    assert conflict in branches.repository.read()
    assert branches.titles() == ["One", "Two", "Three"]


def test_what_our_comment_says_besides_the_id_is_no_edit(branches: Branches) -> None:
    base, ours, theirs = (
        entry("One").replace("## One\n", f'## One\n<!-- learnt: {{"id": "learn_1", "confidence": {number}}} -->\n')
        for number in (0.5, 0.6, 0.7)
    )
    ours = ours.replace("## One", "## The first one")
    said = branches.fork(base + TWO, theirs=theirs.replace("second", "2nd") + TWO, ours=ours + TWO)
    assert "CONFLICT" not in said
    assert branches.repository.read().startswith(
        '## The first one\n<!-- learnt: {"id": "learn_1", "confidence": 0.6} -->'
    )
    assert branches.repository.read().count("learn_1") == 1
    assert "in the 2nd run" in branches.repository.read()


def test_an_entry_is_the_same_after_its_title_was_edited_or_it_got_its_id(branches: Branches) -> None:
    renamed = ONE.replace("## One", "## The first one") + entry("Two", id="learn_2")
    said = branches.fork(ONE + TWO, theirs=renamed, ours=ONE.replace("second run", "2nd run") + TWO + THREE)
    assert "CONFLICT" not in said
    assert branches.titles() == ["The first one", "Two", "Three"]
    assert "2nd run" in branches.repository.read()


def test_both_branches_can_make_the_file(branches: Branches) -> None:
    said = branches.fork("", theirs="# New\n\n" + ONE + TWO, ours="# New\n\n" + ONE + THREE)
    assert "CONFLICT" not in said
    assert branches.titles() == ["One", "Three", "Two"]


def test_a_consolidated_entry_that_the_common_version_lacks_does_not_come_back(project: Path) -> None:
    branches = Branches(project)
    known = consolidate(project)
    branches.start("# New\n\n" + TWO)
    branches.on("theirs", lambda: branches.repository.append(known + ONE))
    branches.repository.write(f"## Close the drawer\n<!-- {ID.findall(known)[0]} -->\n", SHOP)
    branches.repository.append(THREE)
    branches.commit()
    assert "CONFLICT" not in branches.merge("theirs")
    assert branches.titles() == ["Two", "Three", "One"]


def test_an_entry_that_was_edited_on_one_side_and_consolidated_on_the_other_is_never_dropped(project: Path) -> None:
    branches = Branches(project)
    known = consolidate(project, observation="It jams.")
    edited = known.replace("It jams.", "It jams in winter.")
    branches.start("# New\n\n" + TWO)
    branches.on("theirs", lambda: branches.repository.append(edited + ONE))
    branches.repository.write(f"## Close the drawer\n<!-- {ID.findall(known)[0]} -->\n\nIt jams.\n", SHOP)
    branches.repository.append(THREE)
    branches.commit()
    assert "CONFLICT" not in branches.merge("theirs")
    assert "It jams in winter." in branches.repository.read()

    merged = merge_entries(TWO + known, TWO, TWO + edited, is_consolidated=lambda *_: True)
    assert (merged.conflicts, "It jams in winter." in merged.text) == (1, True)


def test_an_older_text_of_a_consolidated_entry_does_not_come_back(project: Path) -> None:
    branches = Branches(project)
    known = consolidate(project, observation="It jams.")
    id = ID.findall(known)[0]
    with Memory.open(project) as memory:
        memory.edit(id, observation="It jams in winter.")
    branches.start("# New\n\n" + TWO)
    branches.on("theirs", lambda: branches.repository.append(known))
    branches.repository.write(f"## Close the drawer\n<!-- {id} -->\n\nIt jams in winter.\n", SHOP)
    branches.repository.append(THREE)
    branches.commit()
    branches.merge("theirs")
    assert branches.titles() == ["Two", "Three"]


SHOP = "docs/learnings/shop.md"
ID = re.compile(r"learn_\w+")


def consolidate(project: Path, observation: str = "") -> str:
    """Store a learning that stands in a topic file, and return the entry that it had in the staging file."""
    with Memory.open(project) as memory:
        learning = memory.add("Close the drawer", observation=observation)
        store, change = memory.context.store, memory.context.change("consolidate", at=memory.context.clock())
        with store.transaction():
            learnings.change(store.database, learning.id, lambda _: {"topic_file": SHOP}, change)
    return entry("Close the drawer", id=learning.id, body=f"**Observation**: {observation}")


def test_an_entry_whose_topic_file_is_not_here_is_kept(project: Path) -> None:
    branches = Branches(project)
    known = consolidate(project)
    branches.fork(TWO, theirs=TWO + known, ours=TWO + THREE)
    assert branches.titles() == ["Two", "Three", "Close the drawer"]


def test_nothing_is_lost_or_doubled_whatever_two_branches_do(
    chance: random.Random, share: Callable[[int], int]
) -> None:
    for _ in range(share(5_000)):
        base = [f"Entry {number}" for number in range(chance.randrange(6))]
        ours, theirs = (_change(base, side, chance) for side in ("ours", "theirs"))
        texts = [_write(version) for version in (dict.fromkeys(base, ""), ours, theirs)]
        merged = merge_entries(*texts)
        _check(merged, dict.fromkeys(base, ""), ours, theirs)


def _change(base: list[str], side: str, chance: random.Random) -> dict[str, str]:
    """Return the entries of a branch by title; the value is the edit."""
    version: dict[str, str] = {}
    for title in base:
        what = chance.random()
        if what < 0.7:
            version[title] = "" if what < 0.5 else chance.choice((side, "alike"))
    for number in range(chance.randrange(3)):
        version[chance.choice((f"New {number}", f"New {number} of {side}"))] = chance.choice((side, "alike", ""))
    return version


def _write(version: dict[str, str]) -> str:
    return "# New\n\n" + "".join(entry(title, body=f"text {title} {edit}\n\nend") for title, edit in version.items())


def _check(merged: MergedText, base: dict[str, str], ours: dict[str, str], theirs: dict[str, str]) -> None:
    conflicts = 0
    for title in {**ours, **theirs}:
        sides = [version.get(title) for version in (ours, theirs)]
        changed = [side for side in sides if side != base.get(title)]
        if None in sides and title in base:
            wanted = {side for side in changed if side is not None}
            conflicts += bool(wanted)
        else:
            wanted = {side for side in changed or sides if side is not None}
            conflicts += len(wanted) > 1
        assert merged.text.count(f"## {title}\n") == (1 if wanted else 0), (title, merged.text)
        for edit in wanted:
            assert merged.text.count(f"text {title} {edit}\n") == 1, (title, edit, merged.text)
    assert merged.conflicts == conflicts
    assert merged.text.count("<<<<<<<") == conflicts


# Topic files and their index

INDEX = "docs/learnings/memory-index.md"


def topic(*names: str) -> str:
    return "# Shop\n\n<!-- learnt-topic -->\n" + "".join(
        f"\n## {name}\n<!-- learn_{name.lower()} -->\n\nWhat {name} says.\n" for name in names
    )


def test_two_branches_that_both_consolidate_into_one_topic_file_merge_without_a_conflict(branches: Branches) -> None:
    said = branches.fork(topic("A"), theirs=topic("A", "B", "C"), ours=topic("A", "D"), name=SHOP)
    assert "CONFLICT" not in said
    assert branches.repository.read(SHOP) == topic("A", "D", "B", "C")
    branches.learnt("index", "--fix")
    assert branches.learnt("index", "--check").code == 0


def test_two_branches_that_both_make_a_topic_file_and_the_index_merge_without_a_conflict(branches: Branches) -> None:
    branches.start("")

    def write(*names: str) -> None:
        branches.repository.write(topic(*names), SHOP)
        assert branches.learnt("index", "--fix").code == 0

    branches.on("theirs", lambda: write("A", "B"))
    write("A", "C")
    branches.commit()
    assert "CONFLICT" not in branches.merge("theirs")
    assert branches.repository.read(SHOP) == topic("A", "C", "B")
    assert branches.learnt("index", "--fix").code == 0
    index = branches.repository.read(INDEX)
    assert [index.count(f"<!-- learn_{name} -->") for name in "abc"] == [1, 1, 1]
    assert index.count("## [shop.md](shop.md)") == 1


@pytest.mark.parametrize("end", ["\n", "\n\n\n"])
def test_a_conflict_above_the_entries_does_not_swallow_the_first_heading(branches: Branches, end: str) -> None:
    base, ours, theirs = (f"# Testing\n{text}\n{ONE}" for text in ("", f"\nSee also: a{end}", "\nSee also: b\n\n"))
    said = branches.fork(base, theirs=theirs, ours=ours, name="docs/learnings/testing.md")
    assert "CONFLICT" in said
    text = branches.repository.read("docs/learnings/testing.md")
    assert [entry.title for entry in split_entries(text)[1]] == ["One"]
    assert "\n>>>>>>> theirs\n" in text


def test_an_entry_that_both_branches_edited_in_a_topic_file_is_a_conflict(branches: Branches) -> None:
    base = topic("A", "B")
    said = branches.fork(
        base, theirs=base.replace("A says", "A said"), ours=base.replace("A says", "A knows"), name=SHOP
    )
    assert "CONFLICT" in said
    refused = branches.learnt("index", "--fix")
    assert (refused.code, "conflict markers" in refused.err) == (2, True)


def test_a_topic_file_that_is_merged_by_hand_keeps_what_stands_only_in_it(project: Path, tmp_path: Path) -> None:
    learnt = open_doors(project)
    learnt("init")
    id = ID.findall(consolidate(project))[0]
    written = f"\n## Close the drawer\n<!-- {id} -->\n"
    texts = topic("A"), topic("A"), topic("A") + written
    paths = [project / SHOP if name == "ours" else tmp_path / name for name in ("base", "ours", "theirs")]
    for path, text in zip(paths, texts, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert learnt("merge-file", *map(str, paths)).code == 0
    assert paths[1].read_text() == texts[2]
    assert learnt("merge-file", str(paths[0]), str(paths[1]), str(paths[0])).code == 0
    assert paths[1].read_text() == texts[2]


def test_nothing_that_a_person_wrote_into_the_index_is_lost_by_a_merge() -> None:
    base = "# Index\n\n## [a.md](a.md)\n\nAsk Jana.\n\n- One — one <!-- learn_1 -->\n"
    ours = base.replace("Ask Jana.", "Ask Jana or Ben.").replace("# Index", "# Our index") + "- Two <!-- learn_2 -->\n"
    theirs = base.replace("Ask Jana.", "Ask Jana, not Ben.") + "- Three <!-- learn_3 -->\n\n## Notes\n\nMine.\n"
    merged = merge_index(base, ours, theirs)
    assert merged.conflicts == 0
    for text in ("# Our index", "Ask Jana or Ben.", "Ask Jana, not Ben.", "learn_1", "learn_2", "learn_3", "Mine."):
        assert merged.text.count(text) == 1
    assert merge_index(base, base, theirs).text == theirs
    assert merge_index(base, ours, base).text == ours
    removed = "# Index\n"
    assert merge_index(base, removed, base).text == removed
    assert "Ask Jana, not Ben." in merge_index(base, removed, theirs).text


# learnings.md


def rendering(id: str, *bullets: str, date: str = "2026-01-01", head: str = "") -> str:
    lines = [
        "# Project Learnings",
        "",
        f"Last updated: {date} (from 1 recent tasks)",
        "",
        *([head, ""] if head else []),
    ]
    return "\n".join([*lines, *(f"- {bullet}" for bullet in bullets), "", f"<!-- learnt: {id} -->", ""])


def merged_bullets(base: str, ours: str, theirs: str, *, rendered: tuple[str, ...] = ()) -> list[str]:
    merged = merge_branches(base, ours, theirs, is_rendered=lambda _, text: text in rendered)
    assert not merged.conflicts
    assert not parse(merged.text).conflict
    return [bullet.text for bullet in parse(merged.text).bullets]


A, B, C, D = (f"{letter} <!-- learn_{letter.lower()} -->" for letter in "ABCD")


def test_two_branches_that_both_rendered_the_file_merge_without_a_conflict(branches: Branches) -> None:
    branches.repository.write("*.db*\n", ".gitignore")
    said = branches.fork(
        rendering("r_1", A, B),
        ours=rendering("r_2", A, C, date="2026-01-03"),
        theirs=rendering("r_3", D, A, B, date="2026-01-02"),
        name=LEARNINGS,
    )
    assert "CONFLICT" not in said
    text = branches.repository.read(LEARNINGS)
    assert {bullet.text for bullet in parse(text).bullets} == {"A", "C", "D"}
    assert text.count("Last updated:") == 1
    assert "Last updated: 2026-01-03" in text
    assert "<!-- learnt: r_2 -->\n<!-- learnt: r_3 -->" in text
    assert parse(text).rendering == ""  # so that no bullet counts as removed


def test_a_rendering_on_one_side_only_stays_the_base_of_the_next_update() -> None:
    merged = merge_branches(
        rendering("r_1", A, B), rendering("r_1", A, B, "mine"), rendering("r_2", A, C), is_rendered=lambda *_: False
    )
    parsed = parse(merged.text)
    assert parsed.rendering == "r_2"
    assert [bullet.text for bullet in parsed.bullets] == ["A", "mine", "C"]


def test_a_persons_text_wins_over_a_rendering_and_two_unknown_texts_both_stay() -> None:
    base = rendering("r_1", A, B)
    ours, theirs = (
        rendering("r_2", A.replace("A", "A by us", 1), B),
        rendering("r_3", A.replace("A", "A by them", 1), B),
    )
    assert merged_bullets(base, ours, theirs, rendered=("A by us",)) == ["A by them", "B"]
    assert merged_bullets(base, ours, theirs, rendered=("A by them",)) == ["A by us", "B"]
    assert merged_bullets(base, ours, theirs) == ["A by us", "A by them", "B"]


def test_a_removed_bullet_stays_away_unless_a_person_edited_it_on_the_other_side() -> None:
    base, ours = rendering("r_1", A, B, C), rendering("r_1", A, C)
    theirs = rendering("r_2", A, B.replace("B", "B anew", 1), C)
    assert merged_bullets(base, ours, rendering("r_2", A, B, C, D)) == ["A", "C", "D"]
    assert merged_bullets(base, ours, theirs, rendered=("B anew",)) == ["A", "C"]
    assert merged_bullets(base, ours, theirs) == ["A", "B anew", "C"]


def test_an_action_that_only_one_side_had_room_for_stays() -> None:
    base, ours = rendering("r_1", A), rendering("r_2", "X → do it <!-- learn_x -->", A)
    assert merged_bullets(base, ours, rendering("r_3", "X <!-- learn_x -->", A)) == ["X → do it", "A"]


def test_sections_and_the_words_between_them_are_merged_too() -> None:
    base = rendering("r_1", A, head="Read this first.")
    ours = base.replace("first.", "first!").replace("<!-- learnt", f"## Testing\n- {B}\n\n<!-- learnt")
    theirs = base.replace("<!-- learnt", f"## Git\n- {C}\n\n<!-- learnt")
    merged = merge_branches(base, ours, theirs, is_rendered=lambda *_: False)
    bullets = {bullet.text: bullet.section for bullet in parse(merged.text).bullets}
    assert bullets == {"A": "", "B": "Testing", "C": "Git"}
    assert "Read this first!" in merged.text


def test_no_bullet_is_lost_or_comes_back_whatever_two_renderings_do(
    chance: random.Random, share: Callable[[int], int]
) -> None:
    for _ in range(share(5_000)):
        base = {f"learn_{number}": ("", chance.choice(SECTIONS)) for number in range(chance.randrange(8))}
        ours, theirs = (_change_bullets(base, side, chance) for side in ("ours", "theirs"))
        versions = [_render(version, id) for version, id in ((base, "r_1"), (ours, "r_2"), (theirs, "r_3"))]
        merged = parse(merge_branches(*versions, is_rendered=lambda *_: False).text)
        for id in {**base, **ours, **theirs}:
            _check_bullet(id, merged, base.get(id), ours.get(id), theirs.get(id))


SECTIONS = ("Git", "Testing", "Ui")
Placed = tuple[str, str]  # the edit of a bullet, and its section


def _change_bullets(base: dict[str, Placed], side: str, chance: random.Random) -> dict[str, Placed]:
    version: dict[str, Placed] = {}
    for id, (_, section) in base.items():
        what = chance.random()
        if what < 0.8:
            version[id] = (side if what > 0.6 else "", section if what < 0.75 else chance.choice(SECTIONS))
    for number in range(chance.randrange(3)):
        version[f"learn_{side}{number}"] = ("", chance.choice(SECTIONS))
    version[f"learn_both{chance.randrange(2)}"] = ("", chance.choice(SECTIONS))
    return version


def _render(version: dict[str, Placed], id: str) -> str:
    lines = ["# Project Learnings", "", "Last updated: 2026-01-01 (from 1 recent tasks)", ""]
    for section in SECTIONS:
        bullets = [f"- Text of {id} {edit} <!-- {id} -->" for id, (edit, place) in version.items() if place == section]
        lines += [f"## {section}", *bullets, ""] if bullets else []
    return "\n".join([*lines, f"<!-- learnt: {id} -->", ""])


def _check_bullet(id: str, merged: ParsedFile, base: Placed | None, ours: Placed | None, theirs: Placed | None) -> None:
    edits = {side[0] for side in (ours, theirs) if side and (base is None or side[0])}
    if not edits and ours and theirs:
        edits = {""}
    found = [bullet for bullet in merged.bullets if bullet.id == id]
    assert {bullet.text.removeprefix(f"Text of {id}").strip() for bullet in found} == edits
    assert len(found) == len(edits)
    places = {side[1] for side in (ours, theirs) if side}
    assert {bullet.section for bullet in found} <= places, (id, found)


def test_what_people_write_below_the_last_line_stays_there() -> None:
    base, theirs = rendering("r_1", A), rendering("r_2", A, B)
    merged = merge_branches(base, base + "- mine\n", theirs, is_rendered=lambda *_: False)
    assert merged.text == theirs + "\n- mine\n\n"
    assert parse(merged.text).rendering == "r_2"


def test_after_a_merge_of_two_worktrees_the_next_update_hides_nothing(project: Path, tmp_path: Path) -> None:
    branches = Branches(project)
    branches.learnt("init")
    branches.learnt("add", "Close the drawer")
    branches.learnt("update")
    branches.start("")
    tree = tmp_path / "tree"
    branches.repository.git("worktree", "add", "-q", "-b", "theirs", str(tree))
    there = open_doors(tree)
    there("add", "Open the window")
    there("update")
    subprocess.run(["git", "commit", "-qam", "theirs"], cwd=tree, check=True)
    branches.learnt("add", "Sweep the floor")
    branches.learnt("update")
    branches.commit()

    assert "CONFLICT" not in branches.merge("theirs")
    titles = {"Close the drawer", "Open the window", "Sweep the floor"}
    assert {bullet.text for bullet in parse(branches.repository.read(LEARNINGS)).bullets} == titles
    branches.learnt("update")
    listed = json.loads(branches.learnt("list", "--status", "all", "--json").out)
    assert {(learning["title"], learning["status"]) for learning in listed["learnings"]} == {
        (title, "active") for title in titles
    }
    assert {bullet.text for bullet in parse(branches.repository.read(LEARNINGS)).bullets} == titles


# The driver


def test_install_and_uninstall_leave_other_lines_alone(project: Path) -> None:
    repository, learnt = Repository(project), open_doors(project)
    repository.write("*.png binary", ".gitattributes")
    before = repository.read(".git/config")

    shown = learnt("install", "--git", "--dry-run").out
    assert "+/learnings-staging.md merge=learnt" in shown
    assert repository.read(".git/config") == before
    done = learnt("install", "--git")
    assert (done.code, done.out.splitlines()[0]) == (0, "git: changed .gitattributes, changed .git/config")
    assert "everybody else runs `learnt install --git`" in done.out
    lines = repository.read(".gitattributes").splitlines()
    assert lines[0] == "*.png binary"
    assert [line for line in lines if line.endswith(" merge=learnt")] == [
        "/docs/learnings/*.md merge=learnt",
        "/learnings-staging.md merge=learnt",
        "/docs/learnings/memory-index.md merge=learnt",
        "/.learnt/learnings.md merge=learnt",
        "/.learnt/learnings/*.md merge=learnt",
    ]
    assert "learnt merge-file %O %A %B %P" in repository.git("config", "merge.learnt.driver")
    assert learnt("install", "--git").out == "git: nothing to change\n"

    assert learnt("uninstall", "--git").code == 0
    assert repository.read(".gitattributes") == "*.png binary\n"
    assert repository.git("config", "--get-regexp", "^merge", check=False) == ""
    assert learnt("uninstall", "--git").out == "git: nothing to change\n"


def test_install_keeps_what_a_person_merges_with_our_driver_and_follows_the_settings(project: Path) -> None:
    repository, learnt = Repository(project), open_doors(project)
    repository.write("notes/ours.md merge=learnt\n\n", ".gitattributes")
    learnt("install", "--git")
    learnt("init")
    assert "merges the files that learnt writes" in learnt("doctor").out
    (project / "learnt.toml").write_text('[consolidate]\nstaging_file = "new.md"\n')
    assert ".gitattributes does not name all files" in learnt("doctor").out
    learnt("install", "--git")
    lines = repository.read(".gitattributes").splitlines()
    assert lines.count("/new.md merge=learnt") == 1
    assert "/learnings-staging.md merge=learnt" not in lines
    learnt("uninstall", "--git")
    assert repository.read(".gitattributes") == "notes/ours.md merge=learnt\n\n"


def test_a_file_that_install_made_is_removed_again_and_json_says_so(project: Path) -> None:
    learnt = open_doors(project)
    Repository(project)
    record = json.loads(learnt("install", "--git", "--json").out)
    assert (record["id"], [file["change"] for file in record["files"]]) == ("git", ["made", "changed"])
    learnt("uninstall", "--git")
    assert not (project / ".gitattributes").exists()


def test_a_staging_file_with_an_odd_name_is_merged_as_well(project: Path) -> None:
    (project / "learnt.toml").write_text('[consolidate]\nstaging_file = "my notes/new [1].md"\n')
    branches = Branches(project)
    said = branches.fork(ONE, theirs=ONE + TWO, ours=ONE + THREE, name="my notes/new [1].md")
    assert "CONFLICT" not in said
    assert "## Two" in branches.repository.read("my notes/new [1].md")


def test_git_is_set_up_in_a_repository_only(project: Path) -> None:
    learnt = open_doors(project)
    refused = learnt("install", "--git")
    assert (refused.code, "git init" in refused.err) == (2, True)
    Repository(project)
    assert learnt("install", "--git", "--user").code == 2


@pytest.mark.parametrize("broken", ["/nowhere/learnt", "false", "sh -c 'kill -9 $$'"])
def test_where_learnt_is_gone_or_breaks_down_git_merges_as_it_always_did(branches: Branches, broken: str) -> None:
    driver = branches.repository.git("config", "merge.learnt.driver").strip()
    program = driver.partition(" merge-file")[0]
    branches.repository.git("config", "merge.learnt.driver", driver.replace(program, broken))
    base = "".join(f"line {number}\n" for number in range(9))
    said = branches.fork(base, theirs=base.replace("line 8", "line eight"), ours=base.replace("line 0", "line zero"))
    assert "CONFLICT" not in said
    assert branches.repository.read().startswith("line zero\n")
    assert branches.repository.read().endswith("line eight\n")


def test_a_merge_without_a_store_and_outside_git(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path, text in zip(paths, (ONE, ONE + TWO, ONE + THREE), strict=True):
        path.write_text(text)
    done = open_doors(tmp_path)("merge-file", *map(str, paths), STAGING)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert [entry.title for entry in split_entries(paths[1].read_text())[1]] == ["One", "Two", "Three"]
    assert not (tmp_path / ".learnt").exists()

    missing = open_doors(tmp_path)("merge-file", "nothing", *map(str, paths[1:]))
    assert missing.code == 2
    assert "Two" in paths[1].read_text()


def test_the_exit_code_is_one_with_a_conflict(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    for path, word in zip(paths, ("one", "two", "three"), strict=True):
        path.write_text(entry("Same", body=word))
    done = open_doors(tmp_path)("merge-file", *map(str, paths), "notes.md")
    assert (done.code, done.err) == (1, "notes.md: 1 conflict, marked in the file\n")


def test_doctor_says_when_a_clone_lacks_the_driver(branches: Branches, tmp_path: Path) -> None:
    branches.learnt("init")
    branches.start(ONE)
    assert "learnt merge-file" in branches.learnt("doctor").out
    clone = tmp_path / "clone"
    shutil.copytree(branches.repository.folder, clone)
    subprocess.run(["git", "config", "--remove-section", "merge.learnt"], cwd=clone, check=True)
    assert "`learnt install --git`" in open_doors(clone)("doctor").out


# The rules


def test_line_endings_and_a_byte_order_mark_are_merged_like_anything_else() -> None:
    def keep(base: str, ours: str, theirs: str) -> MergedText:
        assert "\r" not in base + ours + theirs
        return MergedText(text=ours)

    assert merge_files("a\n", "a\n", "a\r\n", keep).text == "a\r\n"
    assert merge_files("a\r\n", "a\n", "a\r\n", keep).text == "a\n"
    assert merge_files("a\n", "\ufeffa\n", "a\n", keep).text == "\ufeffa\n"


def test_a_text_is_merged_line_by_line() -> None:
    assert merge_texts("a\nb\nc", "A\nb\nc", "a\nb\nC") == MergedText(text="A\nb\nC")
    assert merge_texts("a\nb", "a\nb\nc", "a\nb\nc") == MergedText(text="a\nb\nc")
    assert merge_texts("a", "b", "c") == MergedText(text="<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs", conflicts=1)


def test_a_list_keeps_what_both_added_and_lacks_what_either_removed() -> None:
    assert merge_items("abc", "axbc", "aybc") == list("axybc")
    assert merge_items("abc", "ac", "abcd") == list("acd")
    assert merge_items("abc", "xbc", "yabc") == list("xybc")
