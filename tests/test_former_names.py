"""What `Memory` offered before it had rooms: every name still works for one release."""

from __future__ import annotations

import warnings

import pytest

from learnt import Memory

FORMER = """
    activity add add_all add_task archive attempted attempts backup brief cache_state cancel_task
    catch_up choose_model claim_task claims clear close configuration debrief debrief_transcript
    decide edit edit_task end_claim end_turn escalations evidence explain export failures
    files_state forget get get_task hand_over hide history import_all is_as_said
    is_of_another_version is_updating keep_claim lapsed_claims latest_brief learn learn_from_commit
    learnings learnings_file learnings_for_prompt learnings_path like mark mistake model_calls
    needed_by needs new_task_id note_branch open open_for_hook open_user past person picture pin
    prevented propose_quarantine purge purge_warned ready_for_hook redactions regenerations remarks
    render_agent renew_claim resolve restore restore_backup retry_task review_counts review_item
    review_items root search settings sound_stores split_task start_with start_worker stats store
    stuck stuck_run supersede supersedes take_back take_over task_counts tasks tell tell_opinion
    tidies_when_done tidy tidy_when_due titles today undo update update_when_due usage
    waiting_in_vain warned_of were_given_learnings
""".split()


def test_every_former_name_still_resolves(sqlite_memory: Memory) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert [name for name in FORMER if not hasattr(sqlite_memory, name)] == []


def test_a_former_name_warns_and_names_the_new_one(memory: Memory) -> None:
    with pytest.warns(DeprecationWarning, match="tasks.add"):
        task = memory.add_task("Paint the shop")  # type: ignore[attr-defined]
    assert memory.tasks() == memory.tasks.select() == [task]


def test_a_name_that_never_existed_is_an_error(memory: Memory) -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        memory.nonsense  # type: ignore[attr-defined] # noqa: B018


def test_former_keywords_still_work(memory: Memory) -> None:
    memory.debrief("task_1", "<task-done/>")
    (attempt,) = memory.tasks.attempts("task_1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert memory.attempted(attempt=attempt.id).attempt == attempt  # type: ignore[attr-defined]
        assert memory.were_given_learnings(tasks=["task_1"], since=0) is False  # type: ignore[attr-defined]


def test_what_hears_of_tidying_can_be_set_by_its_former_name(memory: Memory) -> None:
    heard: list[str] = []
    memory.tell = heard.append
    assert memory.report == heard.append


def test_the_class_itself_shows_its_rooms() -> None:
    assert hasattr(Memory, "tasks")
