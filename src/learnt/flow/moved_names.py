"""Names that `Memory` had before its rooms: each still works for one release, with a warning that names the new one."""

from __future__ import annotations

import warnings
from functools import reduce
from typing import Any

_MOVED = {
    "new_task_id": "tasks.new_id",
    "add_task": "tasks.add",
    "get_task": "tasks.get",
    "task_counts": "tasks.counts",
    "waiting_in_vain": "tasks.blocked",
    "edit_task": "tasks.edit",
    "cancel_task": "tasks.cancel",
    "retry_task": "tasks.retry",
    "split_task": "tasks.split",
    "needed_by": "tasks.needed_by",
    "needs": "tasks.needs",
    "attempts": "tasks.attempts",
    "failures": "tasks.failures",
    "escalations": "tasks.escalations",
    "resolve": "tasks.resolve",
    "stuck": "tasks.stuck",
    "claim_task": "work.claim",
    "keep_claim": "work.keep",
    "renew_claim": "work.renew",
    "hand_over": "work.hand_over",
    "note_branch": "work.note_branch",
    "lapsed_claims": "work.lapsed",
    "end_claim": "work.end",
    "claims": "work.claims",
    "choose_model": "work.choose_model",
    "picture": "work.picture",
    "stuck_run": "work.stuck_run",
    "propose_quarantine": "work.propose_quarantine",
    "were_given_learnings": "work.were_given_learnings",
    "review_items": "review.items",
    "review_item": "review.item",
    "review_counts": "review.counts",
    "decide": "review.decide",
    "take_back": "review.take_back",
    "tell_opinion": "review.tell_opinion",
    "evidence": "review.evidence",
    "update": "file.update",
    "take_over": "file.take_over",
    "clear": "file.clear",
    "learnings_for_prompt": "file.for_prompt",
    "learnings_path": "file.path",
    "learnings_file": "file.read",
    "files_state": "file.state",
    "regenerations": "file.regenerations",
    "is_updating": "file.is_updating",
    "update_when_due": "file.update_when_due",
    "usage": "reports.usage",
    "model_calls": "reports.model_calls",
    "stats": "reports.stats",
    "activity": "reports.activity",
    "attempted": "reports.attempt",
    "latest_brief": "reports.latest_brief",
    "today": "reports.today",
    "prevented": "reports.prevented",
    "export": "transfer.export",
    "import_all": "transfer.import_all",
    "start_with": "transfer.start_with",
    "backup": "transfer.backup",
    "restore_backup": "transfer.restore_backup",
    "past": "transcripts.find",
    "debrief_transcript": "transcripts.debrief",
    "learn_from_commit": "transcripts.learn_from_commit",
    "cache_state": "agents.cache_state",
    "end_turn": "hooks.end_turn",
    "ready_for_hook": "hooks.check_mirror",
    "catch_up": "worker.catch_up",
    "start_worker": "worker.start",
    "forget": "warnings.dismiss",
    "purge_warned": "warnings.purge",
    "warned_of": "warnings.command_of",
    "is_as_said": "is_as_sent",
    "sound_stores": "context.sound_stores",
    "store": "context.store",
}


def find_moved(memory: object, name: str) -> Any:
    """Return what a former name stands for now; raise AttributeError for a name that there never was."""
    if name not in _MOVED:
        raise AttributeError(f"Memory has no attribute `{name}`")
    warnings.warn(f"Memory.{name} is now Memory.{_MOVED[name]}", DeprecationWarning, stacklevel=3)
    return reduce(getattr, _MOVED[name].split("."), memory)
