"""What commit messages teach: reasons that outlast the commit, in whole sentences, for a person to decide on."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from learnt import Memory
from learnt.mine.commits import observe_commit
from learnt.model import Discovery
from learnt.system.git import Commit, commit_at, commits, still_stands
from learnt.text.sentences import is_whole
from tests.support.said import has_lesson, read_said
from tests.support.transcripts import NOON_MS, claude, written

MESSAGES = read_said("commit_messages.txt")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def observe(message: str) -> Discovery | None:
    subject, _, body = message.partition("\n\n")
    return observe_commit(subject, body)


def test_reasons_of_reverts_and_decisions_are_found() -> None:
    reasoned = [(observe(message), lessons[0]) for message, lessons in MESSAGES if lessons]
    found = [has_lesson([f"{one.text} {one.worked} {one.excerpt}"], lesson) for one, lesson in reasoned if one]
    assert len(found) >= 0.75 * len(reasoned)
    assert sum(found) >= 0.9 * len(found)


@pytest.mark.parametrize("message", [message for message, lessons in MESSAGES if not lessons])
def test_releases_chores_lists_and_accounts_teach_nothing(message: str) -> None:
    assert observe(message) is None


def test_nothing_that_a_wrapped_message_teaches_is_a_fragment() -> None:
    for found in filter(None, (observe(message) for message, _ in MESSAGES)):
        assert is_whole(found.text)
        assert "\n" not in found.excerpt


def test_a_revert_says_what_is_not_to_be_done_again_and_why() -> None:
    body = (
        "This reverts commit 0123456.\n\nTwo workers share the file, and the second\none truncates it while it is read."
    )
    found = observe_commit('Revert "feat: Cache the index in a file (#12)"', body)

    assert found is not None
    assert found.text == "Do not redo “Cache the index in a file”: Two workers share the file"
    assert found.excerpt == "Two workers share the file, and the second one truncates it while it is read."


@pytest.mark.parametrize(
    "subject",
    ['Revert "Revert "Add a cache""', "Revert last commit", "Revert #12", "Revert 0123456789", "Revert to v2"],
)
def test_a_revert_of_an_unnamed_change_teaches_nothing(subject: str) -> None:
    assert observe_commit(subject, "The cache must never be shared, because rows leak.") is None


def test_what_a_fix_says_of_its_bug_is_not_learnt() -> None:
    body = "If the file is empty, `load()` silently fails and the list is never shown."
    assert observe_commit("Fix loading of empty files", body) is None


def test_a_commit_proposes_and_names_itself(sqlite_memory: Memory) -> None:
    body = "A 403 tells strangers that a project exists, so every route below /projects must answer with 404."
    commit = Commit(id="a" * 40, at=1, subject="Answer with 404", body=body)
    report = sqlite_memory.transcripts.learn_from_commit(commit)

    (id,) = report.proposed
    learning = sqlite_memory.get(id)
    assert (report.learnings, learning.status, learning.commit) == ((), "proposed", "a" * 40)
    assert "must answer with 404" in f"{learning.title} {learning.action}"


def run(folder: Path, *words: str, at: str = "") -> str:
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **who, **dates}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@needs_git
def test_what_a_past_conversation_taught_names_the_commit_of_its_time(sqlite_memory: Memory, tmp_path: Path) -> None:
    root = Path(sqlite_memory.context.root)
    shutil.rmtree(root / ".git", ignore_errors=True)
    run(root, "init", "-q")
    seconds = NOON_MS // 1000
    for number, at in enumerate((seconds - 60, seconds + 60)):
        run(root, "commit", "-q", "--allow-empty", "-m", f"change {number}", at=f"@{at} +0000")
    then, now = run(root, "rev-parse", "HEAD~1"), run(root, "rev-parse", "HEAD")
    words = "Fixed.\n\n`make test` must run after `make gen`, otherwise the stubs are missing."
    records = [claude("user", "Fix it"), claude("assistant", [{"type": "text", "text": words}])]

    _, report = sqlite_memory.transcripts.debrief(written(tmp_path / "s-1.jsonl", records))

    (id,) = report.learnings
    assert then != now
    assert sqlite_memory.get(id).commit == then


@needs_git
def test_all_commits_are_read_from_the_beginning_of_time(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q")
    run(tmp_path, "commit", "-q", "--allow-empty", "-m", "first", at="@1000000000 +0000")

    assert [commit.subject for commit in commits(str(tmp_path), since_ms=0, environ=os.environ)] == ["first"]
    assert commit_at(str(tmp_path), 999_999_999_000, environ=os.environ) == ""


@needs_git
def test_a_commit_whose_lines_are_gone_no_longer_stands(tmp_path: Path) -> None:
    def commit(text: str) -> str:
        (tmp_path / "shop.py").write_text(text)
        run(tmp_path, "add", "shop.py")
        run(tmp_path, "commit", "-q", "-m", "change")
        return run(tmp_path, "rev-parse", "HEAD").strip()

    run(tmp_path, "init", "-q")
    first = commit("total = sum(prices) * Decimal('1.19')\n")
    removal = commit("nothing = None\n")
    assert not still_stands(str(tmp_path), first, environ=os.environ)
    assert still_stands(str(tmp_path), removal, environ=os.environ)

    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "till.py").write_text("def f():\n    total = sum(prices) * Decimal('1.19')\n")
    run(tmp_path, "add", "moved")
    run(tmp_path, "commit", "-q", "-m", "restored elsewhere")
    assert still_stands(str(tmp_path), first, environ=os.environ)
