"""A git repository whose commits are made on chosen days, by people in their own time zones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

STAGING = "learnings-staging.md"


class Repository:
    """A repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "anna@example.org")
        self.git("config", "user.name", "Anna")

    def git(self, *words: str, check: bool = True, environ: Mapping[str, str] | None = None) -> str:
        """Run git and return what it printed."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or not done.returncode, done.stdout + done.stderr
        return done.stdout + ("" if check else done.stderr)

    def read(self, name: str = STAGING) -> str:
        return (self.folder / name).read_bytes().decode()

    def write(self, text: str, name: str = STAGING) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def append(self, text: str, name: str = STAGING) -> None:
        self.write((self.read(name) if (self.folder / name).exists() else "") + text, name)

    def commit(self, at: str, who: str = "Anna", message: str = "work") -> None:
        """Commit everything at a time such as `2026-01-07T23:30:00-0800`."""
        self.git("add", "-A")
        environ = {"GIT_AUTHOR_NAME": who, "GIT_AUTHOR_EMAIL": f"{who.lower()}@example.org", **dates(at)}
        self.git("commit", "-q", "--allow-empty", "-m", message, environ=environ)

    def merge(self, branch: str, at: str) -> None:
        self.git("merge", "-q", "--no-ff", "-m", f"merge {branch}", branch, environ=dates(at))


def dates(at: str) -> dict[str, str]:
    return {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}


def entry(title: str, *, body: str = "", id: str = "") -> str:
    """Return an entry whose lines are distinct, so that git can tell where they come from."""
    comment = f'<!-- learnt: {{"id": "{id}"}} -->\n' if id else ""
    text = body or f"What was noticed about {title.lower()} in the second run of the nightly build."
    return f"## {title}\n{comment}\n{text}\n\n"
