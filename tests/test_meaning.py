"""The table of word vectors that comes with the package, and what is made of it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from learnt.text import meaning
from learnt.text.meaning import DIMENSIONS, MODEL, embed, embed_in_order, likeness, likenesses, rarity
from learnt.text.words import words

TABLE = Path(meaning.__file__).with_name("meaning.bin")
MAX_BYTES = 8_000_000


def embed_text(text: str) -> bytes:
    vector = embed(words(text))
    assert vector is not None
    return vector


def compare(one: str, other: str) -> float:
    return likeness(embed_text(one), embed_text(other))


def test_the_model_is_named_after_the_table() -> None:
    content = TABLE.read_bytes()

    assert f"learnt-{DIMENSIONS}-{hashlib.sha256(content).hexdigest()[:8]}" == MODEL
    assert len(content) <= MAX_BYTES


@pytest.mark.parametrize(
    ("text", "alike", "different"),
    [
        ("the database is locked", "SQLite refuses to write while another connection writes", "centre the headline"),
        ("speed up the slow query", "performance of SQL statements, indexes", "change the colour of the button"),
        ("users cannot log in", "authentication fails with an invalid password", "compress images before upload"),
        ("delete temporary files", "remove the cache directory", "send an email to the customer"),
        ("roll back the release", "deploy the previous version again", "translate the labels to French"),
    ],
)
def test_texts_that_mean_the_same_are_alike_without_a_common_word(text: str, alike: str, different: str) -> None:
    assert not set(words(text)) & set(words(alike))
    assert compare(text, alike) > compare(text, different) + 0.1


def test_a_text_is_exactly_like_itself() -> None:
    for text in ("retry the upload", "timeout", "a proxy between the worker and the queue drops idle connections"):
        assert compare(text, text) == pytest.approx(1, abs=0.01)


def test_a_vector_has_a_byte_per_dimension() -> None:
    assert len(embed_text("retry the upload")) == DIMENSIONS


def test_each_word_counts_once_whatever_the_order() -> None:
    assert embed_text("retry the upload") == embed_text("upload, retry; upload again: retry")


def test_a_long_text_has_a_vector_like_its_parts() -> None:
    text = " ".join(line for file in TABLE.parent.glob("*.py") for line in file.read_text().splitlines())
    halves = text[: len(text) // 2], text[len(text) // 2 :]
    assert len(set(words(text))) > 1_000
    assert all(compare(text, half) > 0.8 for half in halves)


def test_unknown_words_change_nothing() -> None:
    assert embed(words("qwxzzyv_vvkq")) is None
    assert embed([]) is None
    assert embed(["\udc80"]) is None
    assert embed_text("retry qwxzzyvk") == embed_text("retry")


def test_parts_of_identifiers_count() -> None:
    assert embed_text("retry_upload()") == embed_text("retryUpload") == embed_text("retry upload")


def test_a_word_counts_by_its_weight() -> None:
    whole, upload = embed_text("retry the upload"), embed_text("upload")
    less = embed(words("retry the upload"), {"upload": 0.3})
    assert less

    assert likeness(less, upload) < likeness(whole, upload)
    assert embed(words("retry the upload"), {}) == embed(words("retry the upload"), {"upload": 1.0}) == whole
    assert embed(["upload"], {"upload": 0.0}) is None


def test_in_a_text_in_order_the_first_words_count_most() -> None:
    title = words("retry the upload")
    text = words("A proxy between the worker and the queue drops idle connections, so that the customer pays twice.")
    first, last = embed_in_order(title + text), embed_in_order(text + title)
    assert first
    assert last

    wanted = embed_text("retry the upload")
    assert likeness(first, wanted) > likeness(last, wanted)
    assert embed_in_order(["upload", "upload"]) == embed(["upload"])
    assert embed_in_order(["qwxzzyvk"]) is None


def test_many_vectors_are_compared_at_once() -> None:
    one, *others = map(embed_text, ("retry the upload", "try to send the file again", "paint the wall"))

    assert likenesses(one, others) == [likeness(one, other) for other in others]


def test_everyday_words_are_less_rare_than_special_ones() -> None:
    for everyday, special in (("file", "mutex"), ("add", "kubernet"), ("test", "idempot"), ("run", "webhook")):
        assert 0 < rarity(everyday) < rarity(special)
    assert rarity("qwxzzyvk") > 10


def test_a_process_needs_nothing_but_small_modules() -> None:
    script = (
        "import sys; from learnt.text import meaning; meaning.embed(['retri', 'upload']);"
        "print(*{'numpy', 'torch', 'dataclasses', 'typing', 'inspect', 're', 'json'} & sys.modules.keys())"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(TABLE.parents[2])},
    )

    assert ran.stdout.strip() == ""
