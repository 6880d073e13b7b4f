"""The model that rates sentences: what it looks at, its weights, and how it is fitted to texts with marks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tools import fit_sentences

from learnt.mine import sentence_model
from learnt.mine.sentence_model import COMMITS, FINALS, KINDS, PROMPTS, list_features, rate

WEIGHTS = Path(sentence_model.__file__).with_name("weights.json")
TRAINING = sorted(fit_sentences.TRAINING.glob("*.txt"))


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """A model of a few words, in place of the fitted one."""
    model = {"": -1.0, "always": 4.0, "<^note": 2.0, ">last": -0.5}
    monkeypatch.setattr(sentence_model, "_load_weights", lambda: {PROMPTS: model})
    return model


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts of two writers for each kind of text: what must always be done is marked, the rest is not."""
    folder = tmp_path / "training"
    folder.mkdir()
    for writer, thing in (("ada", "till"), ("bob", "ship")):
        lessons = [f"I cleaned room {word}. ⟦You must always lock the {thing} {word}.⟧" for word in "abcdef"]
        others = [f"I painted the {thing} {word}. It looks nice." for word in "abcdef"]
        for kind in KINDS:
            (folder / f"{writer}.{kind}.txt").write_text("\n".join([*lessons, "", *others]) + "\n")
    monkeypatch.setattr(fit_sentences, "TRAINING", folder)
    monkeypatch.setattr(fit_sentences, "WEIGHTS", tmp_path / "weights.json")
    return folder


def read_marks(folder: Path, line: str) -> list[bool]:
    """Return which sentences of a text are worth keeping, as its marks say."""
    path = folder / "text.txt"
    path.write_text(line)
    (text,) = fit_sentences.read_texts(path)
    return [example.is_lesson for example in text]


# What the model looks at


def test_a_sentence_is_rated_by_its_words_and_by_how_its_neighbours_start(weights: dict[str, float]) -> None:
    # Where several are known, their sum is divided by the root of their number.
    assert rate(PROMPTS, "Lock it", after="Done.") == -1.0
    assert rate(PROMPTS, "Always lock it", after="Done.") == 3.0
    assert rate(PROMPTS, "Always lock it") == pytest.approx(-1 + 3.5 / 2**0.5)
    assert rate(PROMPTS, "Lock it", before="Note this.", after="Done.") == 1.0


@pytest.mark.parametrize("text", ["", " \n", "Ωμέγα 日本語", "\x00\ud800", "`", "x" * 100_000, "a.b/" * 50_000])
def test_of_unknown_text_only_the_length_and_the_place_are_known(text: str) -> None:
    for kind in KINDS:
        assert isinstance(rate(kind, text, before=text, after=text), float)


def test_names_numbers_addresses_and_code_count_as_such_whatever_they_are() -> None:
    ours = "Set `POOL=3` in src/pool.py to 17, see https://shop.example/a and read_all()"
    theirs = "Set `x` in lib/Deep.java to 4.5, see http://other.example/b/c and openFile"
    assert list_features(ours, "", "") == list_features(theirs, "", "")


def test_a_sentence_without_neighbours_is_the_first_and_the_last() -> None:
    assert {"<first", ">last"} <= list_features("Lock it.", "", "")
    assert {"<^see", ">^then"} <= list_features("Lock it.", "See this.", "Then go.")


@pytest.mark.parametrize(
    ("kind", "lesson", "other"),
    [
        (PROMPTS, "From now on always run the linter before you commit.", "Please rename the second button."),
        (FINALS, "The importer must run before the index job, because the job locks the table.", "All tests pass."),
        (COMMITS, "The driver must be closed before the pool, otherwise sockets leak.", "Bump version."),
    ],
)
def test_what_holds_beyond_the_work_is_rated_above_what_was_done(kind: str, lesson: str, other: str) -> None:
    assert rate(kind, lesson) > rate(kind, other)


def test_the_weights_are_a_short_sorted_list_that_people_can_read() -> None:
    text = WEIGHTS.read_text(encoding="utf-8")
    models = json.loads(text)
    assert set(models) == set(KINDS)
    assert len(text.encode()) < 600_000
    assert text == json.dumps(models, ensure_ascii=False, indent=0, sort_keys=True) + "\n"
    for model in models.values():
        assert "" in model
        assert [weight for weight in model.values() if abs(weight) > 100 or weight != round(weight, 2)] == []


# How it is fitted


def test_a_sentence_counts_if_most_of_it_is_marked(tmp_path: Path) -> None:
    assert read_marks(tmp_path, "I did it. ⟦Never lock the till.⟧ Done now.") == [False, True, False]
    assert read_marks(tmp_path, "As seen, ⟦the till must never be locked.⟧ ⟦It⟧ is done now.") == [True, False]
    assert read_marks(tmp_path, "⟦Never lock the till. It jams.⟧ I did it.") == [True, True, False]
    assert read_marks(tmp_path, "I did it.\\n\\n⟦Never lock the till.⟧") == [False, True]
    assert read_marks(tmp_path, "Nothing is marked here.") == [False]


def test_a_text_that_would_be_cleaned_before_it_is_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="this text is not clean: I did\x1b it"):
        read_marks(tmp_path, "I did\x1b it.")


def test_fitting_finds_the_word_that_tells_lessons_and_does_so_again(training: Path) -> None:
    texts = fit_sentences.read_texts(training / "ada.finals.txt")
    examples = [example for text in texts for example in text]
    weights = fit_sentences.fit(list(examples))

    assert len(texts) == 12, "an empty line is no text"
    assert weights["always"] > 0 > weights["painted"]
    assert "b" not in weights or abs(weights["b"]) < weights["always"]
    assert weights == fit_sentences.fit(list(examples))
    rated = [(fit_sentences.rate(weights, example) > 0, example.is_lesson) for example in examples]
    assert all(says == is_lesson for says, is_lesson in rated)


def test_without_write_the_figures_are_printed_and_nothing_is_written(
    training: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fit_sentences"])
    fit_sentences.main()

    out = capsys.readouterr().out
    for kind in KINDS:
        assert f"{kind}; ada: 12 texts; bob: 12 texts\n" in out
    assert out.count("found 1.00, right 1.00") == len(KINDS) * len(fit_sentences.QUIET)
    assert not fit_sentences.WEIGHTS.exists()


def test_with_write_the_model_gets_the_weights(
    training: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fit_sentences", "--write"])
    fit_sentences.main()

    written = json.loads(fit_sentences.WEIGHTS.read_text(encoding="utf-8"))
    assert f"{fit_sentences.WEIGHTS}: " in capsys.readouterr().out
    monkeypatch.setattr(sentence_model, "_load_weights", lambda: written)
    sentence, neighbours = "You must always lock the till a.", {"before": "I cleaned room a."}
    assert rate(FINALS, sentence, **neighbours) > 0 > rate(FINALS, "It looks nice.", before="I painted the till a.")


def test_every_training_text_has_balanced_marks_and_a_known_kind() -> None:
    wrong = []
    for path in TRAINING:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            marks = "".join(fit_sentences.MARK.findall(line))
            if marks.replace("⟦⟧", ""):
                wrong.append(f"{path.name}:{number}: {marks}")
    assert wrong == []
    assert {path.suffixes[-2] for path in TRAINING} == {f".{kind}" for kind in KINDS}


def test_every_training_file_can_be_read_and_each_kind_has_lessons_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_sentences, "list_features", lambda *_: set())
    marks: dict[str, set[bool]] = {kind: set() for kind in KINDS}
    for path in TRAINING:
        texts = fit_sentences.read_texts(path)
        assert texts, path.name
        marks[path.suffixes[-2][1:]].update(example.is_lesson for text in texts for example in text)
    assert marks == {kind: {True, False} for kind in KINDS}
