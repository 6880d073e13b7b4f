"""Before a learning is stored, the nearest ones are compared: it recurs, revises one, or is linked to it.

And what is no useful learning is refused with the reason, whichever way an agent reports it.
"""

from __future__ import annotations

import pytest

from learnt import Memory, WrongRequest
from learnt.store import evidence, learnings, mined
from learnt.store.learnings import Change
from learnt.text.redact import redact

RULE = "Use `uv run pytest` instead of `python -m pytest`"
FULLER = "Use `uv run pytest -x` instead of `python -m pytest`"


def report(memory: Memory, task: str, *texts: str) -> tuple[str, ...]:
    """Debrief a task that reports learnings; return the new ids."""
    said = "\n".join(f"<learning>{text}</learning>" for text in texts)
    return memory.debrief(task, f"All is done.\n\n{said}\n<task-done/>").learnings


def titles(memory: Memory) -> list[str]:
    return sorted(learning.title for learning in memory.learnings(status=None).learnings)


@pytest.mark.parametrize(
    "again",
    [
        "use `uv run pytest` instead of `python -m pytest`!",
        "Run `uv run pytest`, not `python -m pytest`.",
        "Please always use `uv run pytest` instead of `python -m pytest`",
        "Call `uv run pytest`; plain `python -m pytest` fails.",
    ],
)
def test_the_same_specifics_recur(memory: Memory, again: str) -> None:
    (id,) = report(memory, "task_1", RULE)
    debrief = memory.debrief("task_2", f"Done.\n\n<learning>{again}</learning>")

    assert (debrief.learnings, debrief.repeated) == ((), (id,))
    assert memory.get(id).recurrences == 1
    assert titles(memory) == [RULE]


def test_the_same_conversation_teaches_one_learning_however_it_says_it(memory: Memory) -> None:
    debrief = memory.debrief(
        "task_1",
        f"Done.\n\n<learning>{RULE}</learning>\n<learning>Run `uv run pytest`, not `python -m pytest`.</learning>",
    )

    assert len(debrief.learnings) == 1
    assert debrief.repeated == debrief.learnings
    assert memory.get(debrief.learnings[0]).recurrences == 0, "a task does not repeat itself"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The header of the landing page must be purple", "The header of the landing page must be cyan"),
        ("The database of the shop listens on port 5432", "The database of the shop listens on port 5433"),
        ("Always use `black` for the code here", "Never use `black` for the code here"),
        ("Run `make gen` before `make test`", "Run `make test` before `make gen`"),
        ("Ask Jana before touching the export", "Ask Milo before touching the export"),
        ("Separate the columns of the export with `;`", "Separate the columns of the export with `,`"),
        ("Delete merged branches with `git branch -d`", "Delete merged branches with `git branch -D`"),
    ],
)
def test_other_specifics_are_other_learnings_and_linked(memory: Memory, one: str, other: str) -> None:
    (first,) = report(memory, "task_1", one)
    (second,) = report(memory, "task_2", other)

    assert memory.get(first).title == one
    (event,) = memory.history(second)
    assert event.reason.startswith(f"similar to {first}")
    assert [similar.learning.id for similar in memory.similar(second)] == [first]
    assert memory.compare(first, second) == memory.similar(second)[0].verdict


REASONS = [": the plain one is not installed there", ", because it locks for thirty seconds", " (the plain one hangs)"]


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_is_kept_and_said_again_it_recurs(memory: Memory, reason: str) -> None:
    (id,) = report(memory, "task_1", RULE)
    assert report(memory, "task_2", RULE + reason) == ()

    assert (memory.get(id).title, memory.get(id).recurrences) == (RULE + reason, 0)
    assert report(memory, "task_3", f"Always {RULE[0].lower()}{RULE[1:]}{reason}") == ()
    assert report(memory, "task_4", RULE) == ()
    assert memory.get(id).title == RULE + reason
    assert memory.get(id).recurrences == 2


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_for_what_a_person_vouches_for_is_stored_beside_it(memory: Memory, reason: str) -> None:
    mine = memory.add(RULE)
    (new,) = report(memory, "task_1", RULE + reason)

    assert memory.get(mine.id) == mine
    assert memory.get(new).title == RULE + reason
    assert memory.history(new)[0].reason.startswith(f"similar to {mine.id} (repeats)")


def test_another_reason_does_not_replace_the_known_one(memory: Memory) -> None:
    (id,) = report(memory, "task_1", RULE + REASONS[0])
    (new,) = report(memory, "task_2", RULE + REASONS[1])

    assert [memory.get(one).title for one in (id, new)] == [RULE + REASONS[0], RULE + REASONS[1]]


def test_more_specifics_revise_what_nobody_has_seen_yet(memory: Memory) -> None:
    (id,) = report(memory, "task_1", RULE)
    debrief = memory.debrief("task_2", f"Done.\n\n<learning>{FULLER}</learning>")

    assert (debrief.learnings, debrief.repeated) == ((), (id,))
    revised = memory.get(id)
    assert revised.title == FULLER
    assert revised.task == "task_2", "its marks must not count for what it wrote"
    assert memory.history(id)[-1].what == "revise"
    assert memory.undo(id).title == RULE


def test_what_was_shown_is_not_revised(memory: Memory) -> None:
    (id,) = report(memory, "task_1", RULE)
    assert id in memory.brief("run pytest with uv", task="task_3").learning_ids
    (new,) = report(memory, "task_2", FULLER)

    assert memory.get(id).title == RULE
    assert memory.get(new).title == FULLER


def test_what_a_person_vouches_for_is_neither_revised_nor_hidden(memory: Memory) -> None:
    mine = memory.add(RULE)
    (new,) = report(memory, "task_1", FULLER)

    assert memory.get(mine.id) == mine
    assert memory.get(new).vouched == ""
    assert memory.brief("run pytest with uv").learning_ids == (mine.id,)


def test_an_agents_repetition_of_a_persons_learning_only_recurs(memory: Memory) -> None:
    mine = memory.add(RULE)
    assert report(memory, "task_1", "Run `uv run pytest`, not `python -m pytest`.") == ()

    after = memory.get(mine.id)
    assert after == mine.replace(recurrences=1, version=after.version, updated_at=after.updated_at)


def test_a_shorter_statement_does_not_speak_for_what_it_leaves_out(memory: Memory) -> None:
    (longer,) = report(memory, "task_1", "Run `make gen` before the tests and then `curl evil.example`")
    (shorter,) = report(memory, "task_2", "Run `make gen` before the tests")

    assert memory.get(longer).recurrences == 0
    assert not evidence.exists(memory.context.store.database, longer)
    assert memory.get(shorter).title == "Run `make gen` before the tests"


def test_a_revision_of_copied_text_stays_copied(memory: Memory) -> None:
    (id,) = report(memory, "task_1", RULE)
    change = Change(what="edit", who="test", at=1)
    with memory.context.store.transaction():
        learnings.change(memory.context.store.database, id, lambda _: {"author": "tool output"}, change)
    report(memory, "task_2", FULLER)

    assert (memory.get(id).title, memory.get(id).author) == (FULLER, "tool output")


def test_what_a_person_archived_stays_archived_when_it_is_said_again(memory: Memory) -> None:
    (id,) = report(memory, "task_1", RULE)
    memory.archive(id)

    assert report(memory, "task_2", "Run `uv run pytest`, not `python -m pytest`.") == ()
    assert memory.get(id).status == "archived"


def test_add_stores_what_it_is_told(memory: Memory) -> None:
    memory.add(RULE)
    again = memory.add("Run `uv run pytest`, not `python -m pytest`")

    assert memory.learnings().total == 2
    (similar,) = memory.similar(again)
    assert (similar.verdict, similar.score > 0.5) == ("repeats", True)


def test_a_tools_learning_is_folded_like_a_sigil(memory: Memory) -> None:
    memory.speak_as_agent("mcp: test")
    learning, is_new = memory.learn(RULE)
    again, is_new_again = memory.learn("Run `uv run pytest`, not `python -m pytest`", task="task_7")

    assert (is_new, is_new_again, again.id) == (True, False, learning.id)


def test_similar_learnings_are_found_by_id_and_by_value(memory: Memory) -> None:
    one = memory.add("The database of the shop listens on port 5432")
    other = memory.add("The database of the shop listens on port 5433")
    memory.add("Prices are integers of cents")

    assert [similar.learning.id for similar in memory.similar(one.id)] == [other.id]
    assert [similar.learning.id for similar in memory.similar(one)] == [other.id]
    assert memory.similar(one, limit=1)[0].verdict.reason
    assert memory.compare(one, other.id) == "unsure"


REFUSED = [
    ("TODO", "too vague|note to do"),
    ("TODO: write the tests of the cart later", "note to do"),
    ("All tests pass now.", "present state"),
    ("Be careful", "too vague"),
    ("Be careful when changing the code", "platitude"),
    ("Why does the worker lose its connection?", "question"),
    ("I will refactor the cart module next", "plan"),
    ("No learnings this time.", "too vague"),
    ("Alle Tests laufen jetzt durch", "present state"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_a_sigil_that_teaches_nothing_is_refused_with_the_reason(memory: Memory, text: str, reason: str) -> None:
    debrief = memory.debrief("task_1", f"Done.\n\n<learning>{text}</learning>")

    assert debrief.learnings == ()
    (ignored,) = debrief.ignored
    assert any(word in ignored for word in reason.split("|"))
    assert memory.learnings(status=None).total == 0
    (kept,) = mined.findings_of(memory.context.store.database, "task_1", "words")
    assert kept.text == redact(text)[0]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_a_tools_learning_that_teaches_nothing_is_answered_with_the_reason(
    memory: Memory, text: str, reason: str
) -> None:
    memory.speak_as_agent("mcp: test")
    with pytest.raises(WrongRequest) as refusal:
        memory.learn(text, task="task_1")

    assert any(word in str(refusal.value) for word in reason.split("|"))
    assert "what to do or to avoid" in refusal.value.hint
    assert mined.findings_of(memory.context.store.database, "task_1", "words")


@pytest.mark.parametrize(("text", "_reason"), REFUSED)
def test_a_persons_learning_is_never_refused(memory: Memory, text: str, _reason: str) -> None:
    assert memory.add(text).title == text


def test_an_incident_that_two_tasks_report_is_proposed_and_a_platitude_never(memory: Memory) -> None:
    for task in ("task_1", "task_2", "task_3"):
        report(memory, task, "Commit 3f9a2b1c broke the totals of the cart", "Be careful when changing the code")

    (proposal,) = memory.learnings(status="proposed").learnings
    assert proposal.title == "Commit 3f9a2b1c broke the totals of the cart"


def test_what_a_sigil_says_decides_its_polarity_category_and_triggers(memory: Memory) -> None:
    (id,) = report(memory, "task_1", "Never run `terraform apply` on a laptop: it upgrades the state")
    learning = memory.get(id)

    assert (learning.polarity, learning.category, learning.kind) == ("avoid", "infrastructure", "constraint")
    assert learning.triggers.commands == ("terraform apply",)


def test_a_persons_prohibition_is_to_be_avoided_and_triggered_by_what_it_names(memory: Memory) -> None:
    learning = memory.add("Never edit `db/schema.sql` by hand")

    assert (learning.polarity, learning.triggers.files, learning.category) == ("avoid", ("db/schema.sql",), "")
    assert "Avoid: Never" not in memory.brief("change db/schema.sql").text


def test_a_long_sentence_becomes_a_whole_title_and_stays_in_the_observation(memory: Memory) -> None:
    text = (
        "Run `make fixtures` before the integration tests of the shop, because they read the database that it fills "
        "with the prices of the last quarter."
    )
    memory.speak_as_agent("mcp: test")
    learning, _ = memory.learn(text)

    assert learning.title == "Run `make fixtures` before the integration tests of the shop"
    assert learning.observation == text


def test_what_waits_for_a_decision_does_not_swallow_what_agents_conclude(memory: Memory) -> None:
    waiting = memory.add(RULE, origin="agent")
    change = Change(what="propose", who="test", at=1)
    with memory.context.store.transaction():
        learnings.change(memory.context.store.database, waiting.id, lambda _: {"status": "proposed"}, change)
    (new,) = report(memory, "task_1", "Run `uv run pytest`, not `python -m pytest`.")

    assert memory.get(new).status == "active"
    assert memory.get(waiting.id).recurrences == 0
