"""A program that takes the part of learnt on PATH, and is quick to start."""

from __future__ import annotations

from pathlib import Path

from learnt import __version__

# Stands for learnt on PATH: it answers as a hook and as a server do that are only tried, with the shell's own means.
ANSWERS = """#!/bin/sh
case "$1" in
hook) echo '{"learnt": "VERSION", "error": ""}' ;;
mcp) echo '{"id": 1, "result": {"serverInfo": {"version": "VERSION"}}}'
     echo '{"id": 2, "result": {"tools": [{"name": "recall"}]}}' ;;
esac
while read -r line; do :; done
"""


def put_learnt(folder: Path, *, version: str = __version__, text: str = ANSWERS) -> dict[str, str]:
    """Put a learnt that answers into a folder, and return the PATH on which there is nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "learnt").write_text(text.replace("VERSION", version))
    (folder / "learnt").chmod(0o755)
    if not (folder / "sh").exists():
        (folder / "sh").symlink_to("/bin/sh")
    return {"PATH": str(folder)}
