"""Tell which lines of a file are the user's own: not committed yet, or committed in this clone by its user.

An author's name proves nothing, because anybody can commit in it. That a commit was made here is in git's own log of
this clone, which is not cloned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from learnt.errors import LearntError, TryAgain
from learnt.system.git import git

_MAX_ENTRIES = 20_000
# The entries of git's log under which a commit was made; under the others, such as a checkout, the start of a rebase, a
# reset or a fast-forward, the clone only moved to a commit that somebody else may have made.
_MADE_HERE = re.compile(
    r"(?:commit(?: \([\w-]+\))?|cherry-pick|revert|am"
    r"|(?:rebase|pull)\b.* \((?:pick|continue|reword|squash|fixup|edit|merge)\)): (?!fast-forward$)"
    r"|(?:merge|pull)\b.*: Merge made by "
)
_HEADER = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)")


class LineOwners:
    """Whose the lines of a file are."""

    def __init__(self, own: frozenset[int] | None, *, last_change_is_own: bool = True) -> None:
        self._own = own
        self.last_change_is_own = last_change_is_own
        """Whether the user made the last change to the file, which may be the removal of a line."""

    def are_own(self, numbers: tuple[int, ...]) -> bool:
        """Return whether all lines with these numbers, from 0, are the user's own."""
        return self._own is None or all(number in self._own for number in numbers)


def find_owners(folder: str, path: str, environ: Mapping[str, str]) -> LineOwners:
    """Return whose the lines of a file are; without git, or if git does not track the file, all are the user's own."""
    try:
        if git(folder, "ls-files", "--error-unmatch", "--", path, environ=environ, check=False) is None:
            return LineOwners(None)
    except TryAgain:
        raise  # time is up, so nothing is known
    except LearntError:
        return LineOwners(None)  # git is not installed
    email = git(folder, "config", "user.email", environ=environ, check=False) or ""
    made_here = _list_commits_made_here(folder, environ)
    is_clean = git(folder, "diff", "--quiet", "HEAD", "--", path, environ=environ, check=False) is not None
    last = (git(folder, "log", "-1", "--format=%H %ae", "--", path, environ=environ, check=False) or "").split(" ")
    blame = git(folder, "blame", "--line-porcelain", "--", path, environ=environ, check=False) or ""
    return LineOwners(
        _find_own(blame, email, made_here),
        last_change_is_own=not is_clean or (last[0] in made_here and last[-1] == email),
    )


def _list_commits_made_here(folder: str, environ: Mapping[str, str]) -> frozenset[str]:
    words = ("log", "-g", f"--max-count={_MAX_ENTRIES}", "--format=%H %gs", "HEAD")
    entries = (git(folder, *words, environ=environ, check=False) or "").splitlines()
    return frozenset(id for id, _, action in (entry.partition(" ") for entry in entries) if _MADE_HERE.match(action))


def _find_own(blame: str, email: str, made_here: frozenset[str]) -> frozenset[int]:
    own = set()
    commit, number, author = "", 0, ""
    for line in blame.split("\n"):
        header = _HEADER.match(line)
        if header:
            commit, number, author = header[1], int(header[2]), ""
        elif line.startswith("author-mail "):
            author = line.removeprefix("author-mail ").strip("<>")
        elif line.startswith("\t") and (not commit.strip("0") or (commit in made_here and author == email)):
            own.add(number - 1)
    return frozenset(own)
