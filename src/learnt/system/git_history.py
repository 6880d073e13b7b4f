"""Ask git who wrote the lines of a file, and on which days the project was worked on.

Git runs in the file's own folder, so that a submodule, a worktree and a file of another repository are asked about
their own history. What git cannot tell is said in words and is not an error.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence

from learnt.errors import LearntError
from learnt.model import Value
from learnt.system.git import git

# White space is ignored, so that a line keeps its commit when its file gets other line endings. Lists of commits to
# ignore are not read: git fails if one of them is missing. A converted text would have other line numbers.
_BLAME = ("-c", "blame.ignoreRevsFile=", "blame", "--porcelain", "--no-textconv", "-w", "-C", "-C", "--")
_LOG = ("log", "--format=%H %ad", "--date=short", "--no-show-signature", "HEAD", "--")
_IS_SHALLOW = ("rev-parse", "--is-shallow-repository")


class FileHistory(Value):
    """What git prints about a file and about the whole history that leads to the current commit."""

    blame: str = ""
    """The commit of each line, in git's porcelain format; empty if git does not know the file."""
    log: str = ""
    """A line for each commit: its id, and its author's date in the author's own time zone."""
    is_shallow: bool = False
    """Whether older commits are missing in this clone."""
    gap: str = ""
    """Why git cannot tell everything; empty if it can."""


def read_history(path: str, *, environ: Mapping[str, str]) -> FileHistory:
    """Return the history of a file; for a path that ends with a slash, only that of the folder's repository."""
    folder, name = os.path.split(os.path.realpath(path) if os.path.basename(path) else path)
    questions = [_IS_SHALLOW, _LOG, *([(*_BLAME, name)] if name else [])]
    shallow, log, *blames = _ask_together(folder, questions, environ)
    if isinstance(shallow, LearntError):
        return FileHistory(gap=_explain(shallow))
    if isinstance(log, LearntError):
        return FileHistory(gap="nothing has been committed yet" if "bad revision" in log.message else log.message)
    blame = blames[0] if blames else ""
    gap = ""
    if isinstance(blame, LearntError):
        is_tracked = git(folder, "ls-tree", "--name-only", "HEAD", "--", name, environ=environ, check=False)
        gap, blame = _explain(blame, name) if is_tracked else "the file is not committed yet", ""
    return FileHistory(blame=blame, log=log, is_shallow=shallow == "true", gap=gap)


def _ask_together(
    folder: str, questions: Sequence[Sequence[str]], environ: Mapping[str, str]
) -> list[str | LearntError]:
    """Return git's answers, or why it has none, in order; all questions are asked at the same time."""
    answers: list[str | LearntError] = [""] * len(questions)

    def ask(place: int) -> None:
        try:
            answers[place] = git(folder, *questions[place], environ=environ) or ""
        except LearntError as error:
            answers[place] = error

    # Not a pool: importing it takes longer than the shortest of these questions.
    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(questions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _explain(error: LearntError, name: str = "") -> str:
    if "not a git repository" in error.message:
        return "the file is not in a git repository"
    if name and "promisor remote" in error.message:
        return f"this partial clone lacks older contents of the file, which `git blame -w -C -C {name}` fetches"
    return error.message
