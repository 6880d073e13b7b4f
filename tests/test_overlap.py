"""How two learnings overlap where words alone do not decide: estimates, which nothing acts upon without a person."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory, WrongRequest
from learnt.consolidate.ask import JudgedPair, read_answer
from learnt.consolidate.overlap import LearningContent, compare_by_table, judge, may_repeat
from learnt.model import Learning
from learnt.text.opposites import exclude_each_other, find_opposites
from learnt.text.statements import normalise
from learnt.weigh.compare import Verdict, compare
from tests.conftest import Clock
from tests.support.aged import Aged, verdicts
from tests.support.repository import Repository


def content(text: str, number: int = 1, **fields: Any) -> LearningContent:
    return LearningContent(Learning(id=f"learn_{number}", title=text, **fields))


def verdict_on(older: str, newer: str) -> Verdict:
    return judge(content(older), content(newer, 2))


SAME = [
    ("A chef is preparing some food", "A chef is preparing a meal"),
    ("The picture is stored in the folder for uploads", "The image is stored in the directory for uploads"),
    ("Close the connection after each request", "Close the connection after every request"),
    ("Cats and dogs are kept in cages", "Dogs and cats are kept in cages"),
]


@pytest.mark.parametrize(("older", "newer"), SAME)
def test_other_words_for_the_same_are_a_repetition(older: str, newer: str) -> None:
    assert verdict_on(older, newer) == "repeats"


APART = [
    ("The header of the page is purple", "The header of the page is cyan"),
    ("The report is written on Monday", "The report is written on Tuesday"),
    ("Two people review each change", "Three people review each change"),
    ("The backup runs daily", "The backup runs weekly"),
    ("The script asks a man for the password", "The script asks a woman for the password"),
    ("The table for orders is big", "The table for orders is small"),
    ("Deploy from staging to the cluster", "Deploy from production to the cluster"),
    ("Use Python 3.11 for the lambda", "Use Python 3.12 for the lambda"),
    ("PR #260 changed the rounding of prices", "PR #480 changed the rounding of prices"),
    ("Use one worker for the import", "Use two workers for the import"),
    ("Use upper case for keywords of SQL", "Use lower case for keywords of SQL"),
    ("Run the scheduler in the foreground", "Run the scheduler in the background"),
    ("Prefer yarn to npm", "Prefer npm to yarn"),
    ("Copy the data from staging to production", "Copy the data from production to staging"),
]


@pytest.mark.parametrize(("older", "newer"), APART)
def test_words_that_exclude_each_other_are_never_a_repetition(older: str, newer: str) -> None:
    assert verdict_on(older, newer) not in ("repeats", "supersedes")
    assert verdict_on(newer, older) not in ("repeats", "supersedes")


DENIED = [
    ("A man is slicing a potato", "There is no man cutting a potato"),
    ("The build uploads the pictures", "The build does not upload the images"),
]


@pytest.mark.parametrize(("older", "newer"), DENIED)
def test_a_denial_in_other_words_contradicts(older: str, newer: str) -> None:
    verdict = verdict_on(older, newer)
    assert verdict == "contradicts"
    assert verdict.is_estimate


def test_the_denial_of_more_does_not_contradict_less() -> None:
    assert verdict_on("A man is running", "There is no man running down the road at night") != "contradicts"
    assert verdict_on("A man is running down the road", "There is no man running") == "contradicts"


def test_a_direction_contradicts_only_with_a_switch() -> None:
    assert verdict_on("Turn the proxy on for uploads", "Turn the proxy off for uploads") == "contradicts"
    assert verdict_on("A dog jumps on the dock", "A dog jumps off the dock") != "contradicts"


def test_a_note_that_a_fuller_learning_contains_is_estimated_as_a_repetition() -> None:
    fuller = content(
        "terraform apply runs in Atlantis only, never from a laptop",
        observation="A local apply upgraded the state, and Atlantis could not read it.",
        action="Open a PR, read the plan in the Atlantis comment, comment `atlantis apply`.",
    )
    note = content("terraform plan and apply only by atlantis comments in the PR", 2)
    for verdict in (judge(fuller, note), judge(note, fuller)):
        assert verdict == "repeats"
        assert verdict.is_estimate
    other = content("terraform modules are reviewed by the platform team", 3)
    assert judge(fuller, other) == "unrelated"


def test_what_tells_of_a_change_on_the_same_subject_supersedes() -> None:
    older = content("Rollback: `helm rollback fleet`", action="helm history fleet, then helm rollback fleet.")
    newer = content("Rollback by git revert in fleet-deploy, ArgoCD undoes helm rollback", 2, context="Since the move.")
    assert judge(older, newer) == "supersedes"
    assert judge(newer, older) != "supersedes"


def test_likeness_is_measured_as_the_caller_says() -> None:
    texts = "A chef is preparing some food", "A chef is preparing a meal"
    contents = content(texts[0]), content(texts[1], 2)
    assert judge(*contents, measure=lambda one, other: 0.0) != "repeats"
    assert judge(*contents, measure=lambda one, other: 1.0) == "repeats"
    assert 0.5 < compare_by_table(*texts) <= 1.0


def test_a_cut_title_stands_for_its_sentence() -> None:
    start = "The nightly job reads the ledger and writes all totals of the day into the table for the reports of "
    learnings = [
        Learning(id="learn_1", title=f"{start}{end}"[:100].strip(), observation=f"{start}{end}")
        for end in ("the shop", "the bank")
    ]
    assert compare(*learnings) == "unsure"


def test_texts_ids_and_learnings_are_compared(memory: Memory) -> None:
    one, other = memory.add("Run `make lint` before each commit"), "Run make lint before every commit"
    verdicts = [memory.compare(one.id, other), memory.compare(one, other), memory.compare(one.title, other)]
    assert [verdict.relation for verdict in verdicts] == ["repeats"] * 3
    with pytest.raises(WrongRequest):
        memory.compare(" ", other)
    with pytest.raises(WrongRequest):
        memory.compare("learn_zzzzzzzzzzzzzz", other)


def test_an_encoder_that_fails_leaves_the_embedded_table(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LEARNT_SEARCH_ENCODER", f"onnx:{tmp_path / 'nothing'}")
    with Memory.open(project) as memory:
        assert memory.compare("A chef is preparing some food", "A chef is preparing a meal") == "repeats"
        assert "compared with the embedded table instead" in memory.remarks[0]


def test_opposites_are_found_by_table_series_and_beginning() -> None:
    words = {word: normalise(word) for word in "enable disable safe unsafe red blue on off turn jump".split()}
    assert find_opposites([words["enable"]], [words["disable"]])
    assert find_opposites([words["unsafe"]], [words["safe"]])
    assert not find_opposites([words["red"]], [words["blue"]])
    assert exclude_each_other(words["red"], words["blue"])
    assert find_opposites([words["on"]], [words["off"]], frozenset([words["turn"]]))
    assert not find_opposites([words["on"]], [words["off"]], frozenset([words["jump"]]))


# The user's model: answers for every pair what the file says.
MODEL = """
import json, pathlib, re, sys
prompt = sys.stdin.read()
answer = json.loads(pathlib.Path({answer!r}).read_text())
numbers = re.findall(r"(?m)^(\\d+)\\. older:", prompt)
print(json.dumps({{"verdicts": [{{"pair": int(number), **answer}} for number in numbers]}}))
"""


@pytest.fixture
def answer(tmp_path: Path, home: Path) -> Path:
    """The file with the answer of a configured model."""
    path = tmp_path / "answer.json"
    program = tmp_path / "model.py"
    program.write_text(MODEL.format(answer=str(path)))
    settings = home / ".config" / "learnt" / "learnt.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    command = json.dumps(f"{sys.executable} {program}")
    settings.write_text(f'[model]\nprovider = "command"\ncommand = {command}\ncall_price = 0.01\n')
    return path


PAIR = ("The importer reads prices from the shop", "The importer reads the prices of the bank")


def judge_stored(project: Path, pair: tuple[str, str], **how: Any) -> tuple[Verdict, list[str]]:
    with Memory.open(project) as memory:
        older, newer = (memory.add(title).id for title in pair)
        (verdict,) = memory.merges.judge([(older, newer)], **how)
        return verdict, list(memory.remarks)


def test_a_model_decides_what_words_leave_open(project: Path, answer: Path) -> None:
    answer.write_text(json.dumps({"relation": "contradicts", "reason": "two sources"}))
    verdict, _ = judge_stored(project, PAIR)
    assert (verdict, verdict.is_estimate, verdict.reason) == ("contradicts", True, "a model: two sources")
    assert judge_stored(project, PAIR, asks=False)[0] == "unsure"


def test_a_model_cannot_make_different_specifics_a_repetition(project: Path, answer: Path) -> None:
    answer.write_text(json.dumps({"relation": "repeats", "reason": "the same"}))
    pair = "PR #260 changed the rounding of prices", "PR #480 changed the rounding of prices"
    assert judge_stored(project, pair)[0] == "unsure"
    assert not may_repeat(content(pair[0]), content(pair[1], 2))


@pytest.mark.parametrize("nonsense", [{"relation": "delete both"}, {"relation": None}, {}, {"pair": "x"}, []])
def test_an_invalid_answer_changes_nothing(project: Path, answer: Path, nonsense: object) -> None:
    answer.write_text(json.dumps(nonsense))
    assert judge_stored(project, PAIR)[0] == "unsure"


def test_what_words_prove_is_not_asked(project: Path, answer: Path) -> None:
    answer.write_text(json.dumps({"relation": "unrelated", "reason": "no"}))
    assert judge_stored(project, ("Enable the cache in tests", "Disable the cache in tests"))[0] == "contradicts"


@pytest.mark.parametrize("data", [None, [], {"verdicts": "x"}, {"verdicts": [1, {"pair": True}, {"pair": 7}]}])
def test_any_answer_is_read(data: object) -> None:
    contents = content(PAIR[0]), content(PAIR[1], 2)
    pair = JudgedPair(older=contents[0], newer=contents[1], verdict=judge(*contents))
    assert read_answer(data, [pair]) == [pair.verdict]


def test_a_note_with_another_number_is_not_contained_in_a_fuller_learning() -> None:
    fuller = content("Retry uploads to S3 3 times", observation="S3 answers 503 under load, and the uploads are lost.")
    assert judge(content("Retry uploads to S3, lost under load: 3 times", 2), fuller) == "repeats"
    assert judge(content("Retry uploads to S3, lost under load: 5 times", 2), fuller) != "repeats"
    elsewhere = content("Retry uploads to S3 in staging", observation=fuller.learning.observation)
    assert judge(content("Retry uploads to S3 in production", 2), elsewhere) != "repeats"


def test_a_newer_learning_that_contradicts_an_older_one_and_tells_of_the_change_supersedes_it(memory: Memory) -> None:
    older = memory.add("Deploy by pushing a tag to the release branch").id
    newer = memory.add("Do not deploy by pushing a tag to the release branch any more, merge to main instead").id
    assert memory.compare(older, newer) == "supersedes"
    assert not memory.compare(older, newer).is_estimate


def test_an_entry_that_contradicts_a_document_is_found_by_its_text(memory: Memory) -> None:
    entry = memory.add("Commit the generated client").id
    document = "Generated code\n\nThe generated client must not be committed."
    assert memory.compare(document.split("\n\n")[1], entry) == "contradicts"


def test_an_entry_that_says_what_is_known_is_redundant(memory: Memory) -> None:
    known = "Restart the worker after changing the config."
    assert memory.compare(known, memory.add("After a config change the worker has to be restarted")) == "repeats"
    assert memory.compare(known, memory.add("Restart the web server after changing the config")) != "repeats"


@pytest.mark.parametrize("relation", ["repeats", "supersedes", "contradicts", "unrelated", "delete both"])
def test_a_consolidation_drops_nothing_because_of_a_model(
    project: Path, answer: Path, clock: Clock, relation: str
) -> None:
    answer.write_text(json.dumps({"relation": relation, "reason": "the newer one is enough"}))
    repository = Repository(project)
    titles = [*PAIR, "Start Redis before the queue tests"]
    with Memory.open(project, clock=clock) as memory:
        aged = Aged(repository, memory)
        for title in titles:
            aged.repository.append(f"\n## {title}\n") if aged.files() else aged.repository.write(f"## {title}\n")
            aged.work(1)
        aged.work(8)
        report = aged.consolidate()
        found = verdicts(report)
        assert "dropped" not in found.values()
        is_asked = relation in ("supersedes", "contradicts")
        assert list(found.values()).count("escalated") == (2 if is_asked else 0), found
        assert {learning.status for learning in memory.learnings().learnings} == {"active"}
        again = aged.consolidate()
        assert not again.is_applied
        everything = aged.repository.read() + aged.documents()
        assert all(everything.count(title) == 1 for title in titles)
