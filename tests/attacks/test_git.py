"""A repository that came from somebody else cannot start a program by its own configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from learnt.errors import LearntError
from learnt.loop import folders
from learnt.system.git import commits, git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

# Every key that makes git start a program, with a driver whose name is hard to write as an option.
KEYS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy",
    "core.alternateRefsCommand", "pager.log", "pager.diff", "diff.external", "diff.evil.textconv", "diff.evil.command",
    "diff.a=b.c.textconv", "diff.a=b.c.command", "filter.evil.clean", "filter.evil.smudge", "filter.a=b.c.clean",
    "filter.a=b.c.smudge", "filter.long.process", "merge.evil.driver", "merge.a=b.c.driver", "gpg.program",
    "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "gpg.x509.program", "credential.helper",
    "credential.https://example.org.helper", "sequence.editor", "gc.recentObjectsHook", "uploadpack.packObjectsHook",
    "trailer.sign.command", "trailer.sign.cmd", "hook.evil.command", "difftool.evil.cmd", "mergetool.evil.cmd",
    "remote.origin.uploadpack", "remote.origin.receivepack", "sendemail.tocmd", "man.evil.cmd", "browser.evil.cmd",
    "guitool.evil.cmd", "interactive.diffFilter", "imap.tunnel", "instaweb.httpd", "web.browser", "help.browser",
)  # fmt: skip
SWITCHES = {
    "log.showSignature": "true", "commit.gpgSign": "true", "merge.verifySignatures": "true", "gc.auto": "1",
    "trailer.ifexists": "addIfDifferent", "protocol.ext.allow": "always", "submodule.recurse": "true",
    "filter.evil.required": "true", "filter.long.required": "true", "core.commitGraph": "false",
    "extensions.partialClone": "origin", "core.repositoryFormatVersion": "1", "merge.default": "evil",
}  # fmt: skip
HOOKS = (
    "post-checkout post-commit post-merge pre-commit commit-msg prepare-commit-msg pre-merge-commit post-index-change "
    "reference-transaction post-rewrite pre-auto-gc"
).split()
ATTRIBUTES = "*.txt filter=evil diff=evil merge=evil\n*.md filter=a=b.c diff=a=b.c merge=a=b.c\n*.log filter=long\n"


def plain_git(folder: Path, *words: str) -> None:
    alone = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    who = ("-c", "user.name=eve", "-c", "user.email=eve@localhost", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, env=alone, check=True, capture_output=True)


@pytest.fixture
def hostile(project: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A repository in which everything that can start a program does; and the file that such a program writes."""
    marker, program = tmp_path / "ran", tmp_path / "evil.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {marker}\ncat\nexit 0\n')
    program.chmod(0o755)
    plain_git(project, "init", "-q")
    (project / ".gitattributes").write_text(ATTRIBUTES)
    for name in ("a.txt", "b.md", "c.log"):
        (project / name).write_text("one\n")
    plain_git(project, "add", "--all")
    plain_git(project, "commit", "-q", "-m", "Fix the replica: its lag is 5 s\n\nAlways read from the primary.")
    for key in KEYS:
        plain_git(project, "config", key, str(program))
    for key, value in {**SWITCHES, "remote.origin.url": f"ext::{program} %S"}.items():
        plain_git(project, "config", key, value)
    plain_git(project, "config", "remote.origin.promisor", "true")
    (project / ".git" / "hooks").mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy(program, project / ".git" / "hooks" / name)
    plain_git_free = project / "a.txt"
    plain_git_free.write_text("two\n")
    marker.unlink(missing_ok=True)
    return project, marker


def test_reading_the_history_starts_no_program_of_the_repository(hostile: tuple[Path, Path]) -> None:
    project, marker = hostile

    found = list(commits(str(project), since_ms=1_600_000_000_000, environ=os.environ))

    assert [commit.subject for commit in found] == ["Fix the replica: its lag is 5 s"]
    assert not marker.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--porcelain"),
        ("diff", "--no-ext-diff", "--no-textconv"),
        ("log", "-p", "--no-ext-diff", "--no-textconv"),
        ("add", "--all"),
        ("blame", "--no-textconv", "a.txt"),
        ("rev-parse", "HEAD"),
        ("fetch", "origin"),
        ("cat-file", "-p", "1234567890123456789012345678901234567890"),
    ],
)
def test_no_command_starts_a_program_of_the_repository(hostile: tuple[Path, Path], words: tuple[str, ...]) -> None:
    project, marker = hostile

    git(str(project), *words, environ=os.environ, check=False)

    assert not marker.exists(), marker.read_text()


def test_a_worktree_of_the_loop_starts_no_program_of_the_repository(hostile: tuple[Path, Path], tmp_path: Path) -> None:
    project, marker = hostile
    worktree = str(tmp_path / "tree")

    git(str(project), "worktree", "add", "-b", "learnt/one", worktree, "HEAD", environ=os.environ)
    for name in ("a.txt", "b.md", "c.log"):
        Path(worktree, name).write_text("three\n")
    folders._git(worktree, "add", "--all")
    folders._git(worktree, *folders._identity(worktree), "commit", "--quiet", "--no-verify", "-m", "Three")
    for name in ("a.txt", "b.md"):
        (project / name).write_text("four\n")
    folders._git(str(project), "add", "--all")
    folders._git(str(project), *folders._identity(str(project)), "commit", "--quiet", "--no-verify", "-m", "Four")
    merged = folders._git(worktree, *folders._identity(worktree), "merge", "--no-edit", "main", check=False)

    assert merged is None, "both sides changed the same lines, so they conflict"
    assert not marker.exists(), marker.read_text()


def test_an_error_of_git_carries_no_terminal_sequence(project: Path) -> None:
    with pytest.raises(LearntError) as caught:
        git(str(project), "rev-parse", "--verify", "\x1b]0;title\x07no", environ=os.environ)

    assert caught.value.message.isprintable()
