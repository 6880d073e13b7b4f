"""The worker that processes ended turns. Tests wait for it, because no process must outlive a test."""

from __future__ import annotations

from pathlib import Path

from learnt.flow.background import WORKER_LOG, is_at_work, worker_state
from tests.support.accumulation import until


def ended(project: Path) -> str:
    """Wait until a project's worker has ended; return its output."""
    folder = project / ".learnt"
    log = folder / WORKER_LOG

    def is_over() -> bool:
        return worker_state(str(folder))[0] in ("done", "failed") and not is_at_work(str(folder))

    until(is_over, f"the worker does not end: {log.read_text() if log.exists() else ''}")
    return log.read_text() if log.exists() else ""
