"""Ages: active days from git's history, worked out by hand, wherever and whenever they are asked for."""

from __future__ import annotations

import json
import shutil
import time
from calendar import timegm
from collections.abc import Iterator
from pathlib import Path

import pytest

from learnt import Memory
from learnt.consolidate.ages import ActiveDays, find_ages, read_blame, read_log
from learnt.errors import LearntError
from learnt.store import consolidations, learnings
from learnt.store.consolidations import ConsolidationRun
from tests.conftest import Clock
from tests.support.doors import open_doors
from tests.support.repository import STAGING, Repository, dates, entry

FIRST_NAME = "docs/learnings.md"
ANNA, BEN = "+0200", "-0800"
GAMMA = "Start Redis before the integration tests of the payment service"
DAYS_OF_REST = set(range(5, 41, 5))
BENS_DAYS = (2, 4, 6, 8, 12, 14, 18, 22, 24, 34)
# Commits on days 1–4, 6–14, 16–24, 26–29, 31–34 and 36–39: 34 active days. Of these, so many are after the entry's day.
AGES = {
    "Alpha": 33,  # day 1, five minutes after midnight in Anna's zone
    "Beta": 28,  # day 7, on a branch that was merged on day 12
    "Delta": 25,  # day 10, half an hour before midnight in Ben's zone
    "Epsilon": 19,  # day 17, on a branch that was rebased on day 22
    "Zeta": 16,  # day 20, five minutes after midnight in Anna's zone
    GAMMA: 31,  # day 3, in another file; moved here on day 26
    "Eta": 9,  # day 28, a minute before midnight in Ben's zone
    "Theta": 3,  # its heading was changed on day 36
    "Kappa": 1,  # day 38
    "Iota": 2,  # day 37, on a branch; the merge on day 39 had a conflict
    "Lambda": 0,  # not committed
}


def at(day: int, hour: str = "12:00", zone: str = ANNA) -> str:
    month, day = (1, day) if day <= 31 else (2, day - 31)
    return f"2026-{month:02}-{day:02}T{hour}:00{zone}"


class Story:
    """Sixty commits over forty days."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder)

    def tell(self) -> None:
        for day in range(1, 41):
            getattr(self, f"_day_{day}", lambda: None)()
            if day in BENS_DAYS:
                self._work(at(day, "12:30", BEN), "Ben")
            if day not in DAYS_OF_REST:
                self._work(at(day, "13:00"), "Anna")
            getattr(self, f"_evening_{day}", lambda: None)()
        self.repository.append(entry("Lambda").replace("\n", "\r\n"))

    def _work(self, when: str, who: str) -> None:
        self.repository.append(f"{when} {who}\n", "work.txt")
        self.repository.commit(when, who)

    def _add(self, title: str, when: str, who: str = "Anna", *, name: str = STAGING, crlf: bool = False) -> None:
        self.repository.append(entry(title).replace("\n", "\r\n" if crlf else "\n"), name)
        self.repository.commit(when, who)

    def _day_1(self) -> None:
        self.repository.write("# Learnings\n\n", FIRST_NAME)
        self._add("Alpha", at(1, "00:05"), name=FIRST_NAME)

    def _day_3(self) -> None:
        self._add(GAMMA, at(3, "09:00"), name="notes.md")

    def _day_7(self) -> None:
        git = self.repository.git
        git("switch", "-q", "-c", "feature")
        self._add("Beta", at(7, "10:00", BEN), "Ben", name=FIRST_NAME)
        self.repository.write("a branch\n", "feature.txt")
        self.repository.commit(at(8, "10:00", BEN), "Ben")
        git("switch", "-q", "main")

    def _evening_10(self) -> None:
        # Both branches append to the file: the merge below keeps both.
        text = self.repository.read(FIRST_NAME)
        self.repository.write(text + entry("Delta"), FIRST_NAME)
        self.repository.commit(at(10, "23:30", BEN), "Ben")

    def _evening_12(self) -> None:
        self._merge("feature", at(12, "18:00"), FIRST_NAME)

    def _day_16(self) -> None:
        self.repository.git("mv", FIRST_NAME, STAGING)
        self.repository.write(self.repository.read().replace("# Learnings", "# What we learnt"))
        self.repository.commit(at(16, "09:00"))

    def _day_17(self) -> None:
        git = self.repository.git
        git("switch", "-q", "-c", "topic")
        text = self.repository.read()
        self.repository.write(text.replace("## Delta", entry("Epsilon") + "## Delta"))
        self.repository.commit(at(17, "09:00", BEN), "Ben")
        git("switch", "-q", "main")

    def _day_20(self) -> None:
        self._add("Zeta", at(20, "00:05"))

    def _evening_22(self) -> None:
        git = self.repository.git
        git("switch", "-q", "topic")
        git("rebase", "-q", "main", environ={"GIT_COMMITTER_DATE": at(22, "20:00", BEN)})
        git("switch", "-q", "main")
        git("merge", "-q", "--ff-only", "topic")

    def _day_26(self) -> None:
        self.repository.append(self.repository.read("notes.md"))
        self.repository.write("", "notes.md")
        self.repository.commit(at(26, "10:00"))

    def _day_28(self) -> None:
        self._add("Eta", at(28, "23:59", BEN), "Ben")

    def _day_29(self) -> None:
        self._add("Theta draft", at(29, "10:00"))

    def _day_31(self) -> None:
        self.repository.write(self.repository.read().replace("in the second run of", "during the 2nd run of"))
        self.repository.commit(at(31, "10:00"), message="reword all texts")

    def _day_33(self) -> None:
        self.repository.write(self.repository.read().replace("\n", "\r\n"))
        self.repository.commit(at(33, "10:00", BEN), "Ben", message="line endings")

    def _day_36(self) -> None:
        self.repository.write(self.repository.read().replace("## Theta draft", "## Theta"))
        self.repository.commit(at(36, "10:00"))

    def _day_37(self) -> None:
        self.repository.git("switch", "-q", "-c", "late")
        self._add("Iota", at(37, "10:00"), crlf=True)
        self.repository.git("switch", "-q", "main")

    def _day_38(self) -> None:
        self._add("Kappa", at(38, "10:00"), crlf=True)

    def _evening_39(self) -> None:
        self._merge("late", at(39, "20:00"), STAGING)

    def _merge(self, branch: str, when: str, name: str) -> None:
        """Merge a branch in which the file also grew; where git cannot, keep both texts, as a person would."""
        self.repository.git("merge", "--no-ff", "-m", "merge", branch, check=False, environ=dates(when))
        lines = self.repository.read(name).split("\n")
        assert any(line.startswith("<<<<<<<") for line in lines), "the merge is to have a conflict"
        kept = [line for line in lines if not line.startswith(("<<<<<<<", "=======", ">>>>>>>"))]
        self.repository.write("\n".join(kept), name)
        self.repository.commit(when)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    telling = Story(tmp_path_factory.mktemp("story") / "shop")
    telling.tell()
    return telling.repository.folder


@pytest.fixture
def story(told: Path, project: Path) -> Repository:
    shutil.copytree(told, project, dirs_exist_ok=True)
    return Repository(project)


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def ages(folder: Path, path: Path | str | None = None) -> dict[str, int]:
    with Memory.open(folder) as memory:
        return {entry.title: entry.active_days for entry in memory.consolidation.ages(path).entries}


def test_the_story_has_sixty_commits_on_thirty_four_days_over_forty(story: Repository) -> None:
    days = story.git("log", "--format=%ad", "--date=short").split()
    assert (len(days), len(set(days))) == (60, 34)
    assert (min(days), max(days)) == ("2026-01-01", "2026-02-08")
    assert {"Merge" if len(line.split()) > 1 else "" for line in story.git("log", "--format=%p").splitlines()} >= {
        "Merge"
    }


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "UTC", "America/Los_Angeles"], indirect=True)
@pytest.mark.parametrize("hour", ["00:05", "23:55"])
def test_ages_are_those_worked_out_by_hand_at_any_hour_in_any_zone(story: Repository, zone: str, hour: str) -> None:
    now = time.mktime(time.strptime(f"2026-02-10 {hour}", "%Y-%m-%d %H:%M"))
    with Memory.open(story.folder, clock=lambda: int(now * 1000)) as memory:
        report = memory.consolidation.ages()

    assert {entry.title: entry.active_days for entry in report.entries} == AGES
    assert report.since_consolidation == 33
    assert report.remarks == ()


def test_ages_as_json_for_programs_and_as_markdown_for_agents(story: Repository) -> None:
    learnt = open_doors(story.folder)

    record = json.loads(learnt("ages", "--json").out)
    assert {entry["title"]: entry["active_days"] for entry in record["entries"]} == AGES
    assert record["lines"] == story.read().count("\n")
    assert (record["entry_count"], record["old_enough"]) == (11, 7)
    page = learnt("ages").out
    assert page.startswith(f"# Ages: {STAGING}\n\n- Lines: ")
    assert "- Entries: 11, old enough: 7\n" in page
    assert "- Active days since the last consolidation: 33 (none so far" in page
    assert f"- {GAMMA}: 31 active days (2026-01-03)\n" in page
    assert "- Kappa: 1 active day (2026-02-07)\n" in page
    assert "- Lambda: 0 active days (not committed yet)\n" in page
    assert "## Entries" not in learnt("ages", "--summary").out
    assert "entries" not in json.loads(learnt("ages", "--summary", "--json").out)


def test_a_worktree_and_a_submodule_are_asked_about_their_own_history(story: Repository, tmp_path: Path) -> None:
    committed = {title: age for title, age in AGES.items() if title != "Lambda"}
    story.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "main")
    try:
        assert ages(tmp_path / "tree") == committed
    finally:
        story.git("worktree", "remove", "--force", str(tmp_path / "tree"))

    outer = Repository(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(story.folder), "inner")
    outer.commit(at(40))
    assert ages(outer.folder / "inner") == committed
    assert ages(outer.folder, outer.folder / "inner" / STAGING) == committed


def test_a_shallow_clone_says_that_ages_may_be_too_low(story: Repository, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    story.git("clone", "-q", "--depth", "5", f"file://{story.folder}", str(clone))
    with Memory.open(clone) as memory:
        report = memory.consolidation.ages()
    assert len(report.entries) == 10
    assert all(entry.active_days <= AGES[entry.title] for entry in report.entries)
    assert "git fetch --unshallow" in report.remarks[0]


def test_without_git_and_without_commits_all_entries_are_new(project: Path) -> None:
    (project / STAGING).write_text(entry("One"))
    with Memory.open(project) as memory:
        outside = memory.consolidation.ages()
        Repository(project)
        before_the_first = memory.consolidation.ages()
    assert [entry.active_days for entry in (*outside.entries, *before_the_first.entries)] == [0, 0]
    assert outside.remarks == ("the file is not in a git repository: all entries count as new",)
    assert before_the_first.remarks == ("nothing has been committed yet: all entries count as new",)


def test_without_the_program_git_all_entries_are_new(
    story: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Memory.open(story.folder) as memory:
        report = memory.consolidation.ages()
    assert {entry.active_days for entry in report.entries} == {0}
    assert "`git` was not found" in report.remarks[0]


@pytest.mark.parametrize("scope", ["--local", "--global"])
def test_a_program_that_converts_the_file_for_git_changes_no_age(story: Repository, scope: str) -> None:
    story.write("*.md diff=notes\n", ".gitattributes")
    story.git("config", scope, "diff.notes.textconv", "sed 1,5d")
    try:
        assert ages(story.folder) == AGES
    finally:
        story.git("config", scope, "--remove-section", "diff.notes")


def test_a_renamed_file_and_a_copy_keep_the_days_of_their_entries_before_and_after_the_commit(
    story: Repository,
) -> None:
    committed = {title: age for title, age in AGES.items() if title != "Lambda"}
    story.git("checkout", "-q", "--", STAGING)
    story.git("mv", STAGING, "renamed.md")
    assert ages(story.folder, story.folder / "renamed.md") == committed
    story.write(story.read("renamed.md"), "copy.md")
    story.commit(at(39, "23:50"))
    assert ages(story.folder, story.folder / "renamed.md") == committed
    assert ages(story.folder, story.folder / "copy.md") == committed


def test_in_an_unfinished_merge_what_both_branches_committed_keeps_its_age(project: Path) -> None:
    repository = Repository(project)
    repository.write(entry("One"))
    repository.commit(at(1))
    repository.git("switch", "-q", "-c", "side")
    repository.append(entry("Two"))
    repository.commit(at(2))
    repository.git("switch", "-q", "main")
    repository.append(entry("Three"))
    repository.commit(at(3))
    repository.git("merge", "side", check=False)
    assert "<<<<<<<" in repository.read()
    assert ages(project) == {"One": 1, "Three": 0, "Two": 0}  # the other branch counts once it is merged
    repository.write("\n".join(line for line in repository.read().split("\n") if line[:7] not in MARKERS))
    repository.commit(at(4))
    assert ages(project) == {"One": 3, "Three": 1, "Two": 2}


MARKERS = ("<<<<<<<", "=======", ">>>>>>>")


def test_a_partial_clone_says_why_it_cannot_tell_ages(story: Repository, tmp_path: Path) -> None:
    story.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    story.git("clone", "-q", "--filter=blob:none", f"file://{story.folder}", str(clone))
    with Memory.open(clone) as memory:
        report = memory.consolidation.ages()
    assert {entry.active_days for entry in report.entries} == {0}
    assert f"`git blame -w -C -C {STAGING}` fetches: all entries count as new" in report.remarks[0]
    Repository(clone).git("blame", "-w", "-C", "-C", STAGING)
    assert ages(clone) == {title: age for title, age in AGES.items() if title != "Lambda"}


def test_a_file_that_git_does_not_track_is_new_and_one_of_another_repository_has_its_own_age(
    story: Repository, tmp_path: Path
) -> None:
    other = Repository(tmp_path / "other")
    other.append(entry("Elsewhere"), "notes.md")
    other.commit(at(1))
    other.commit(at(2))
    other.write(entry("Untracked"), "new.md")
    with Memory.open(story.folder) as memory:
        assert [entry.active_days for entry in memory.consolidation.ages(other.folder / "notes.md").entries] == [1]
        untracked = memory.consolidation.ages(other.folder / "new.md")
    assert [entry.active_days for entry in untracked.entries] == [0]
    assert untracked.remarks == ("the file is not committed yet: all entries count as new",)


def test_ages_need_no_store_and_make_none(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "plain")
    repository.append(entry("One"))
    repository.commit(at(1))
    repository.commit(at(2))
    learnt = open_doors(repository.folder)
    assert json.loads(learnt("ages", STAGING, "--json").out)["entries"][0]["active_days"] == 1
    assert json.loads(learnt("ages", "--json").out)["entries"][0]["active_days"] == 1
    assert not (repository.folder / ".learnt").exists()


def test_a_missing_staging_file_has_no_entries_and_any_other_missing_file_is_an_error(project: Path) -> None:
    learnt = open_doors(project)
    learnt("init")
    assert json.loads(learnt("ages", "--json").out)["entries"] == []
    missing = learnt("ages", "other.md")
    assert (missing.code, "there is no file" in missing.err) == (2, True)


def test_the_staging_file_can_be_set_but_not_outside_the_project(project: Path) -> None:
    (project / "notes").mkdir()
    (project / "notes/new.md").write_text(entry("One"))
    (project / "learnt.toml").write_text('[consolidate]\nstaging_file = "notes/new.md"\n')
    assert ages(project) == {"One": 0}

    (project / "learnt.toml").write_text('[consolidate]\nstaging_file = "../new.md"\n')
    with pytest.raises(LearntError, match="staging_file"):
        ages(project)
    (project / "learnt.toml").write_text('[consolidate]\nstaging_file = "notes/link.md"\n')
    (project / "notes/link.md").symlink_to(project.parent / "home")
    with pytest.raises(LearntError, match="outside the project"):
        ages(project)


def test_headings_in_code_are_no_entries_but_a_stray_fence_hides_none(project: Path) -> None:
    code = "```sh\n## not an entry\n```\n"
    stray = "```\nno end\n\n"
    (project / STAGING).write_text(entry("One", body=code) + entry("Two", body=stray) + entry("Three", id="learn_3"))
    with Memory.open(project) as memory:
        entries = memory.consolidation.ages().entries
    assert [(entry.title, entry.id) for entry in entries] == [("One", ""), ("Two", ""), ("Three", "learn_3")]


def test_learnings_that_are_only_in_the_store_age_from_the_day_on_which_they_were_added(story: Repository) -> None:
    def on(day: int) -> int:
        return timegm((2026, 1, day, 12, 0, 0)) * 1000

    with Memory.open(story.folder) as memory:
        early = memory.add("Bake bread early", created_at=on(7))
        late = memory.add("Bake bread late", created_at=on(28))
        moved = memory.add("Bake bread at noon", created_at=on(28))
        _consolidate(memory, moved.id, on(29))
        stored = {entry.id: entry.active_days for entry in memory.consolidation.ages_in_store().entries}
    assert stored == {early.id: 28, late.id: 9}
    record = json.loads(open_doors(story.folder)("ages", "--store", "--json").out)
    assert [entry["active_days"] for entry in record["entries"]] == [28, 9]


def test_the_last_consolidation_is_read_from_the_store(memory: Memory, project: Path, clock: Clock) -> None:
    repository = Repository(project)
    repository.append(entry("One"))
    for day in (1, 2, 3, 4):
        repository.commit(at(day))
    noon_of_day_2 = 1_767_355_200_000
    run = ConsolidationRun(
        id="run_1",
        cause="size",
        started_at=noon_of_day_2,
        finished_at=noon_of_day_2,
        result="done",
        entries=({"entry": "learn_1", "verdict": "moved", "target": "docs/learnings/git.md"},),
        report=".learnt/reports/run_1.md",
    )
    database = memory.context.store.database
    with memory.context.store.transaction():
        consolidations.put(database, run.replace(id="run_0", result="failed", finished_at=noon_of_day_2 * 2))
        consolidations.put(database, run.replace(result="running", finished_at=None))
    assert memory.consolidation.ages().last_consolidation == ""
    assert memory.consolidation.ages().since_consolidation == 3

    with memory.context.store.transaction():
        consolidations.put(database, run)
    report = memory.consolidation.ages()
    assert (report.last_consolidation, report.since_consolidation) == ("2026-01-02", 2)
    assert consolidations.get(database, "run_1") == run
    assert consolidations.get(database, "run_1").count("moved") == 1
    assert [run.id for run in consolidations.latest(database, limit=5)] == ["run_1", "run_0"]

    with memory.context.store.transaction():
        consolidations.put(database, run.replace(undone_at=noon_of_day_2 + 1))
    assert memory.consolidation.ages().last_consolidation == ""


def test_a_consolidated_learning_stays_active_and_leaves_learnings_md(memory: Memory, clock: Clock) -> None:
    kept, moved = memory.add("Bake bread early"), memory.add("Bake bread late")
    _consolidate(memory, moved.id, clock())
    memory.file.update()
    assert (memory.get(moved.id).status, memory.get(moved.id).topic_file) == ("active", "docs/learnings/bread.md")
    assert [moved.id in (memory.file.read() or ""), kept.id in (memory.file.read() or "")] == [False, True]
    assert [event.what for event in memory.history(moved.id)] == ["add", "consolidate"]

    assert memory.undo(moved.id).topic_file == ""
    memory.file.update()
    assert moved.id in (memory.file.read() or "")


def _consolidate(memory: Memory, id: str, at: int) -> None:
    store, change = memory.context.store, memory.context.change("consolidate", at=at)
    with store.transaction():
        learnings.change(store.database, id, lambda _: {"topic_file": "docs/learnings/bread.md"}, change)


def test_a_purged_learning_leaves_the_record_of_its_consolidation(memory: Memory, clock: Clock) -> None:
    learning = memory.add("Bake the secret bread at night")
    entries = ({"entry": learning.title, "verdict": "moved", "target": "docs/learnings/bread.md"},)
    database = memory.context.store.database
    with memory.context.store.transaction():
        consolidations.put(
            database, ConsolidationRun(id="run_1", cause="person", started_at=clock(), entries=entries, result="done")
        )
    memory.purge(learning.id)
    assert "secret" not in str(consolidations.get(memory.context.store.database, "run_1").entries)


def test_only_commits_after_the_entrys_day_count() -> None:
    history = read_log("c1 2026-01-01\nc2 2026-01-01\nc3 2026-01-03\nc4 2026-01-02\n")
    assert history.days == ("2026-01-01", "2026-01-02", "2026-01-03")
    assert [history.since(day) for day in ("2025-12-31", "2026-01-01", "2026-01-03", "")] == [3, 2, 0, 0]


def test_lines_that_only_look_like_git_s_own_are_read_as_text() -> None:
    commit, fake = "a" * 40, "b" * 40
    blame = f"{commit} 1 1 2\nauthor A\nsummary {fake} 9 9\n\t## One\n{commit} 2 2\n\t{fake} 1 1\n"
    assert read_blame(blame) == {1: commit, 2: commit}
    history = ActiveDays(days=("2026-01-01", "2026-01-02"), day_of={commit: "2026-01-01"})
    assert find_ages(f"## One\n{fake} 1 1\n", read_blame(blame), history)[0].active_days == 1
