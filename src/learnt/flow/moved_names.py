"""Former names of `Memory` attributes. Each still works for one release, with a warning that shows the new name."""

from __future__ import annotations

import warnings
from functools import reduce
from typing import Any

# Names that only moved to a room.
_MOVED_TO = {
    "tasks": "needs attempts failures escalations resolve stuck",
    "work": "note_branch claims choose_model stuck_run propose_quarantine were_given_learnings",
    "review": "decide evidence",
    "file": "update clear regenerations is_updating update_when_due",
    "reports": "usage model_calls stats activity latest_brief today prevented",
    "transfer": "export import_all start_with backup restore_backup",
    "transcripts": "learn_from_commit",
    "agents": "cache_state",
    "hooks": "end_turn",
    "worker": "catch_up",
    "context": "sound_stores store",
}
_RENAMED = {
    "needed_by": "tasks.prerequisites_of",
    "hand_over": "work.escalate",
    "picture": "work.model_overview",
    "take_back": "review.undo",
    "tell_opinion": "review.record_opinion",
    "take_over": "file.apply_edits",
    "new_task_id": "tasks.new_id",
    "add_task": "tasks.add",
    "get_task": "tasks.get",
    "task_counts": "tasks.counts",
    "waiting_in_vain": "tasks.blocked",
    "edit_task": "tasks.edit",
    "cancel_task": "tasks.cancel",
    "retry_task": "tasks.retry",
    "split_task": "tasks.split",
    "claim_task": "work.claim",
    "keep_claim": "work.update",
    "renew_claim": "work.renew",
    "lapsed_claims": "work.lapsed",
    "end_claim": "work.release_interrupted",
    "review_items": "review.items",
    "review_item": "review.item",
    "review_counts": "review.counts",
    "learnings_for_prompt": "file.for_prompt",
    "learnings_path": "file.path",
    "learnings_file": "file.read",
    "files_state": "file.state",
    "attempted": "reports.attempt",
    "past": "transcripts.find",
    "debrief_transcript": "transcripts.debrief",
    "ready_for_hook": "hooks.check_mirror",
    "start_worker": "worker.start",
    "forget": "warnings.dismiss",
    "purge_warned": "warnings.purge",
    "warned_of": "warnings.command_of",
    "is_as_said": "why.is_as_sent",
    "is_as_sent": "why.is_as_sent",
    "is_of_another_version": "why.is_of_another_version",
    "tidy_when_due": "_tidy_when_due",
}
_PATHS = {name: f"{room}.{name}" for room, names in _MOVED_TO.items() for name in names.split()} | _RENAMED


def find_moved(memory: object, name: str) -> Any:
    """Return the attribute that replaces a former name; raise AttributeError for a name that never existed."""
    if name not in _PATHS:
        raise AttributeError(f"Memory has no attribute `{name}`")
    warnings.warn(f"Memory.{name} is now Memory.{_PATHS[name]}", DeprecationWarning, stacklevel=3)
    return reduce(getattr, _PATHS[name].split("."), memory)
