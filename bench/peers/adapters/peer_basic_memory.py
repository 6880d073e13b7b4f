"""basic-memory through its own tools: a project per store, `write_note` and `search_notes`.

Its search by meaning needs a model that is a download, and a Python whose SQLite loads extensions; without them that is
switched off, and it searches by text alone. A note's title is the beginning of the document; each note is in a
directory of its own, because titles may repeat.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

os.environ["BASIC_MEMORY_CONFIG_DIR"] = str(Path(sys.argv[4]) / "basic-memory")

from basic_memory import db
from basic_memory.config import ConfigManager
from basic_memory.mcp.tools import create_memory_project, search_notes, write_note
from basic_memory.services.initialization import initialize_app
from loguru import logger

logger.remove()
# A note is found as a whole and by its parts, so more hits than notes are asked for.
HITS_PER_NOTE = 3
_loop = asyncio.new_event_loop()


class Store:
    """One project."""

    def __init__(self, folder: Path) -> None:
        self._project = folder.name
        self._documents: dict[str, str] = {}
        _run(initialize_app(ConfigManager().config))
        _run(create_memory_project(self._project, str(folder / "notes")))

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Write a note per document; there is no call for many."""
        for number, document in enumerate(documents):
            directory = f"n{number:06}"
            title = " ".join(document["text"].replace("/", " ").split())[:100]
            written = _run(write_note(title, document["text"], directory, project=self._project, output_format="json"))
            if written.get("error"):
                raise RuntimeError(f"write_note: {written}")
            self._documents[directory] = document["id"]

    def search(self, text: str, limit: int) -> list[str]:
        """Return the notes that match best."""
        found = _run(search_notes(text, project=self._project, page_size=limit * HITS_PER_NOTE, output_format="json"))
        if isinstance(found, str):
            raise RuntimeError(f"search_notes: {found}")
        directories = dict.fromkeys(_directory(hit["file_path"]) for hit in found["results"])
        return [self._documents[directory] for directory in directories][:limit]

    def close(self) -> None:
        """Close the connections."""
        _run(db.shutdown_db())


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)


def _run(work: Any) -> Any:
    return _loop.run_until_complete(work)


def _directory(path: str) -> str:
    return next(part for part in Path(path).parts if part.startswith("n") and part[1:].isdigit())
