"""Paragraphs and sentences: what belongs together, where a sentence ends, and what is a whole one."""

from __future__ import annotations

import time

import pytest

from learnt.text.sentences import is_whole, read_blocks, read_sentences, split_sentences

MESSAGE = """\
Wrapped text is joined, so that a sentence that runs over
the end of a line stays whole. The next one starts in the
middle of a line, e.g. here.

## What changed

- The first item also runs over
  two lines. It has two sentences.
- [x] A second one
  1. A nested one

  Another paragraph of the item.

| a | b |
|---|---|
| 1 | 2 |

> Somebody else said this.
> It goes on.

```sh
make test. Not a sentence.
```

    $ make gen

A Title
=======
Last words without a full stop

Signed-off-by: A <a@b.c>
Fixes #12
"""


def test_each_part_of_a_message_is_told_apart() -> None:
    assert [(block.kind, block.text) for block in read_blocks(MESSAGE)] == [
        (
            "paragraph",
            "Wrapped text is joined, so that a sentence that runs over the end of a line stays whole. "
            "The next one starts in the middle of a line, e.g. here.",
        ),
        ("heading", "What changed"),
        ("item", "The first item also runs over two lines. It has two sentences."),
        ("item", "A second one"),
        ("item", "A nested one"),
        ("item", "Another paragraph of the item."),
        ("table", "| a | b | |---|---| | 1 | 2 |"),
        ("quote", "Somebody else said this. It goes on."),
        ("code", "```sh\nmake test. Not a sentence.\n```"),
        ("code", "    $ make gen"),
        ("heading", "A Title"),
        ("paragraph", "Last words without a full stop"),
        ("trailer", "Signed-off-by: A <a@b.c>"),
        ("trailer", "Fixes #12"),
    ]


def test_sentences_know_where_they_stand() -> None:
    sentences = list(read_sentences(MESSAGE))
    assert [sentence.text for sentence in sentences[:4]] == [
        "Wrapped text is joined, so that a sentence that runs over the end of a line stays whole.",
        "The next one starts in the middle of a line, e.g. here.",
        "The first item also runs over two lines.",
        "It has two sentences.",
    ]
    for sentence in sentences:
        assert " ".join(MESSAGE[sentence.start : sentence.end].split()) == sentence.text
    assert sentences[0].block == sentences[1].block != sentences[2].block == sentences[3].block
    assert [sentence.kind for sentence in sentences[:3]] == ["paragraph", "paragraph", "item"]


def test_lines_that_are_statements_of_their_own_are_not_joined() -> None:
    assert [s.text for s in read_sentences("Fixed the parser\nThe cache must be cleared first\nTests pass")] == [
        "Fixed the parser",
        "The cache must be cleared first",
        "Tests pass",
    ]
    wrapped = "The suite needs Docker and the running\nRedis that the broker tests talk to"
    assert [s.text for s in read_sentences(wrapped)] == [wrapped.replace("\n", " ")]


def test_a_number_at_the_start_of_a_wrapped_line_starts_no_list() -> None:
    text = "The client speaks only version\n2. Older servers refuse it, and it does not\nfall back to version 1."
    assert [s.text for s in read_sentences(text)] == [
        "The client speaks only version 2.",
        "Older servers refuse it, and it does not fall back to version 1.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use `a. B` here. Then stop.", ["Use `a. B` here.", "Then stop."]),
        ("It needs Python 3.12. Older ones fail.", ["It needs Python 3.12.", "Older ones fail."]),
        ("Edit conf.d/a.toml, e.g. Add a line.", ["Edit conf.d/a.toml, e.g. Add a line."]),
        ("It fails... and then works. ok.", ["It fails... and then works.", "ok."]),
        ("it fails. we should pin it.", ["it fails.", "we should pin it."]),
        ("See https://a.b/c.d?e=f. It helps!", ["See https://a.b/c.d?e=f.", "It helps!"]),
        ("No. Use pnpm here.", ["No.", "Use pnpm here."]),
        ("See no. 5 and fig. 3 for it.", ["See no. 5 and fig. 3 for it."]),
        ("Node.js reads .npmrc etc. before it starts.", ["Node.js reads .npmrc etc. before it starts."]),
        ("He said “stop.” `make` went on.", ["He said “stop.”", "`make` went on."]),
        ("**Never** call *this*. See [the docs](http://a.b/c).", ["Never call this.", "See the docs."]),
        ("Das gilt z. B. hier, d.h. Immer. Sonst nicht.", ["Das gilt z. B. hier, d.h. Immer.", "Sonst nicht."]),
        ("Il faut `npm ci`. Sinon ça échoue !", ["Il faut `npm ci`.", "Sinon ça échoue !"]),
        ("¿Por qué? Porque no hay red.", ["¿Por qué?", "Porque no hay red."]),
        ("Donald E. Knuth wrote it. Use option B. Then C.", ["Donald E. Knuth wrote it.", "Use option B.", "Then C."]),
        ("Keep __init__.py and snake_case_names in it.", ["Keep __init__.py and snake_case_names in it."]),
        ("stop! never do that", ["stop!", "never do that"]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Use pnpm instead of npm",
        "`make test` needs a database.",
        "never edit generated files",
        "The scheduler coalesces timers that expire in one tick.",
        "If the lock is held, the worker waits (for at most 5 s).",
        "Because the cache is cold, the first run takes a minute.",
        "Vor dem Start muss `redis` laufen.",
        "Il faut lancer la migration avant les tests.",
        "Los tests deben ejecutarse con la base vacía.",
        "When the token expires the client hangs.",
        "Compare x and y.",
    ],
)
def test_whole_sentences(text: str) -> None:
    assert is_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Fast test build",
        "the lock, and then",
        "because the cache is cold.",
        "and the worker waits for it.",
        "which breaks the build.",
        "The worker waits for the",
        "The following files must change:",
        "It holds the lock (and never",
        "Use `make test instead.",
        ", so that it works.",
        "The client refuses the connection because",
        "It stops there and then…",
        "that it was called with the wrong options.",
    ],
)
def test_fragments_are_not_whole(text: str) -> None:
    assert not is_whole(text)


@pytest.mark.parametrize(
    "unit",
    ["`", "a. ", "- a\n", "[", "](", "*a", "_", ".", "http://", "> a\n", "A b\n", "| ", "(", "a-", "```\n", "e.g. "],
)
def test_long_text_is_read_in_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    start = time.process_time()
    sentences = [sentence.text for sentence in read_sentences(text)]
    assert all(isinstance(is_whole(sentence), bool) for sentence in sentences[:50])
    assert time.process_time() - start < 3
