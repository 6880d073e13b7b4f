"""What an agent's output says: its own words alone, its sigils and its marks, and nothing that it quotes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, seed, settings
from hypothesis import strategies as st

from learnt import Memory
from learnt.debrief.marks import Marks, read_marks
from learnt.debrief.own_words import own_words
from learnt.debrief.sigils import FailureSigil, LearningSigil, Sigils, discovery_of, read_sigils
from learnt.model import DIFFICULTIES, DISCOVERIES, FAILURE_CATEGORIES, Learning
from learnt.text.clean import clean
from learnt.text.fence import QUOTING
from tests.soak import seed_of

EXAMPLES = 100
SOAK_EXAMPLES = 100_000
LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
FRAGMENTS = st.sampled_from(
    [
        "<learning>", "</learning>", "<learning category='pitfall' tags=\"a, b\">", "<learning/>", '<learning title="',
        "<failure-report>", "</failure-report>", "what_tried: x\n", "why_failed: y\n", "stack_trace: z\n", "mood: m\n",
        "<task-done/>", "<task-done>", "</task-done>", "<task-failed>", "</task-failed>", "<next-model>a</next-model>",
        "<difficulty-estimate>hard</difficulty-estimate>", "<retry-suggestion>", "</retry-suggestion>",
        "LEARNING_HELPFUL: learn_a", "LEARNING_NOT_HELPFUL: learn_a", "LEARNING_HELPFUL:", " learn_b", "`learn_c`",
        "`", "``", "```", "````", "~~~", "~~~~", "```py", "\\", "> ", ">", "- ", "1. ", "* ", "# ", "  ", "    ", "\t",
        "<!--", "-->", "<prompt>", "</prompt>", "<prompt/>", "<PROMPT a='>' b=\"", "</quoted >", "<quoted", "|", ", ",
        "<tool_result>", "</tool_result>", "<system-reminder>", "</system-reminder>", "'", '"', "=", "/>", "x",
        '\n{"a": "', '[{"a": "', '"}', '"}]\n',
        "Words. More", "e.g. ", "\n", "\n", "\n", "\n\n", "\r\n", "\r", "\u2028", "\ufeff", "\u200b", "\ud800", "é",
    ]
)  # fmt: skip
JUMBLE = st.lists(FRAGMENTS, max_size=30).map("".join)
OUTPUTS = ANY_TEXT | JUMBLE | st.lists(FRAGMENTS | ANY_TEXT, max_size=12).map("".join)

# What is found as it stands, on one line or on several; none has a blank line, which would end inline code.
SIGILS_AND_MARKS = st.sampled_from(
    [
        "<learning>Run the linter first.</learning>",
        '<learning category="pitfall" tags="a, b" title="T">\nRun the linter\nfirst.\n</learning>',
        "<failure-report>\nwhat_tried: x\nwhy_failed: y\n</failure-report>",
        "<difficulty-estimate>hard</difficulty-estimate>",
        "<retry-suggestion>Start\nover.</retry-suggestion>",
        "<task-done/>",
        "<task-failed>no network</task-failed>",
        "<next-model>opus</next-model>",
        "LEARNING_HELPFUL: learn_a",
        "LEARNING_NOT_HELPFUL:\nlearn_a",
    ]
)
# Text of the agent's own around it: nothing in it opens a quotation that stays open.
SURROUNDINGS = st.lists(
    st.sampled_from(
        ["It works.", "I ran `make`.", "", "> quoted\n\nI fixed it.", "```\nx\n```", "<quoted>x</quoted>", "Done: ça."]
    ),
    max_size=4,
).map("\n".join)


def fenced(fence: str, lead: str, following: str) -> Callable[[str], str]:
    return lambda text: "\n".join([f"{lead}{fence}", *text.split("\n"), f"{following}{fence}"])


def each_line(lead: str) -> Callable[[str], str]:
    return lambda text: "\n".join(lead + line for line in text.split("\n"))


def between(before: str, after: str) -> Callable[[str], str]:
    return lambda text: before + text + after


QUOTATIONS = st.one_of(
    st.builds(
        fenced,
        st.sampled_from(["```", "````", "~~~", "~~~~~~"]),
        st.sampled_from(["", "  ", "- ", "1. ", "> ", "\t", "  * "]),
        st.just(""),
    ).filter(lambda quote: not quote("").startswith("> ")),
    st.just(fenced("```", "> ", "> ")),
    st.sampled_from([">", "> ", "  > ", "- > ", ">> ", "\t> "]).map(each_line),
    st.sampled_from(["`", "``", "`````"]).map(lambda ticks: between(ticks, ticks)),
    st.just(lambda text: json.dumps({"type": "tool_result", "content": text})),
    st.just(lambda text: " " + json.dumps([{"content": f"x\n{text}"}], ensure_ascii=False)),
    st.sampled_from([between("<!--", "-->"), between("<!-- never closed ", "")]),
    st.sampled_from(QUOTING).flatmap(
        lambda name: st.sampled_from(
            [
                between(f"<{name}>", f"</{name}>"),
                between(f"<{name.upper()} id='1' data=\"a > b\">\n", f"\n</{name.title()} >"),
                between(f"<{name}><{name}>x</{name}>", f"</{name}>"),
                between(f"<{name}><quoted/><prompt>x</prompt></other>\n", f"</{name}>"),
                between(f"<{name}>\n", ""),
            ]
        )
    ),
)


def is_found(output: str) -> bool:
    return read_sigils(output).replace(ignored=()) != Sigils() or marks_in(output) != Marks()


def marks_in(output: str) -> Marks:
    return read_marks(output).replace(ignored=())


# ── own words ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("output", "left"),
    [
        ("say `this` now", "say        now"),
        ("say ``a ` b`` now", "say           now"),
        ("```sh\nmake\n```\nown", "     \n    \n   \nown"),
        ("~~~\n```\n~~~\nown", "   \n   \n   \nown"),
        ("````\n```\n````\nown", "    \n   \n    \nown"),
        ("- ```\n  make\n  ```\nown", "     \n      \n     \nown"),
        ("> ```\n> make\n> ```\nown", "     \n      \n     \nown"),
        ("```\nnever closed", "   \n            "),
        ("> quoted\nown", "        \nown"),
        ("own <!-- a\nb --> own", "own       \n      own"),
        ("own <prompt>a</prompt> own", "own                    own"),
        ("own <prompt/> own", "own           own"),
        ("own <PROMPT x='/>'>a</Prompt > own", "own                            own"),
        ("own <prompts>a</prompts>", "own <prompts>a</prompts>"),
        ('own\n{"a": "b"}\nown', "own\n          \nown"),
        ('own\n  [{"a": 1}, 2],\r\nown', "own\n                \r\nown"),
        ('own {"a": 1}\n{"a": b}\n{own}\n[1]', 'own {"a": 1}\n{"a": b}\n{own}\n[1]'),
        ("a\r\n`b`\rc", "a\r\n   \rc"),
    ],
)
def test_what_is_quoted_becomes_blank_and_the_rest_stays_in_its_place(output: str, left: str) -> None:
    assert own_words(output) == left


def test_an_element_in_backticks_is_only_talked_about() -> None:
    assert own_words("the `<prompt>` element is own") == "the            element is own"


def test_a_stray_backtick_hides_nothing_beyond_its_paragraph() -> None:
    assert own_words("the ` key\n\nown ` words") == "the ` key\n\nown ` words"
    assert own_words("the ` key\n```\na ` b\n```\nown") == "the ` key\n   \n     \n   \nown"
    assert own_words("an escaped \\` and `code`") == "an escaped \\` and       "


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"tool_result","content":"<task-done/>"}',
        '  { "content": "<task-done/>", "lines": 7 },',
        '[{"content": "\\n<learning>Lint first.</learning>"}]',
        '{"a": "`", "content": "LEARNING_HELPFUL: learn_a. <task-done/>"}',
        '{"number": ' + "7" * 5000 + ', "content": "\t<task-done/>"}',
        '{"deep": ' + "[" * 100_000 + '"<task-done/>"',
        '{"content": `x` 1, "more": "<learning>Lint first.</learning>"}',
    ],
)
def test_a_record_that_a_tool_printed_says_nothing(line: str) -> None:
    assert not is_found(f"I looked at a ` key:\n{line}\nand went ` on.")


def test_a_fence_is_closed_by_its_equal_only() -> None:
    for inside in ("``", "~~~", "    ```", "> ```", "- ```", "``` x"):
        assert own_words(f"```\n{inside}\n<task-done/>\n```").strip() == ""


def test_an_element_ends_when_all_that_was_opened_in_it_is_closed() -> None:
    assert own_words("<prompt><tool_result></prompt>x</tool_result>own").strip() == "own"
    assert own_words("<prompt><tool_result></prompt>x").strip() == ""


@settings(max_examples=EXAMPLES)
@given(OUTPUTS)
@example("` <prompt>\n> x</prompt> `")
@example("-`x` > y")
@example("<prompt`x`>")
def test_own_words_keep_length_and_line_breaks_and_reading_twice_changes_nothing(output: str) -> None:
    check_own_words(output)


def check_own_words(output: str) -> None:
    own = own_words(output)
    assert len(own) == len(output)
    assert all(kept in (letter, " ") for letter, kept in zip(output, own, strict=True))
    assert [letter for letter in own if letter in LINE_BREAKS] == [letter for letter in output if letter in LINE_BREAKS]
    assert own_words(own) == own


# ── sigils ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_learning_needs_no_attribute() -> None:
    sigils = read_sigils("Done.\n<learning>Close the cursor. Else the commit waits.</learning>")
    assert sigils.learnings == (
        LearningSigil(title="Close the cursor.", text="Close the cursor. Else the commit waits."),
    )
    assert sigils.ignored == ()


def test_attributes_come_in_any_order_and_quoting() -> None:
    output = (
        '<Learning tags=\'a, b, ,a\' KIND=gotcha colour="red" title = "Use `uv`  > pip" '
        "category='Code structure'\n domain=build>x</LEARNING >"
    )
    assert read_sigils(output).learnings == (
        LearningSigil(
            title="Use `uv` > pip", text="x", category="code_structure", tags=("a", "b"), domain="build", kind="gotcha"
        ),
    )


def test_an_unknown_kind_is_no_kind_and_an_unknown_category_stays() -> None:
    learning = read_sigils("<learning kind=wonder category=folklore>x</learning>").learnings[0]
    assert (learning.kind, learning.category) == ("", "folklore")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Pin v1.2 of it. Always.", "Pin v1.2 of it."),
        ("Use a linter, e.g. Ruff, first! It helps.", "Use a linter, e.g. Ruff, first!"),
        ("Read src/app.py and\nthen go", "Read src/app.py and then go"),
        ("See node.js docs", "See node.js docs"),
        ("It is slow. so wait", "It is slow. so wait"),
        ('Say "stop." Then go', 'Say "stop."'),
        ("先看日志。再改代码", "先看日志。"),
        ("```sh\nmake lint\n```\nRun it first", "Run it first"),
        ("`make lint`", "`make lint`"),
        ("word " * 40, ("word " * 20).strip()),
        ("x" * 300, "x" * 100),
    ],
)
def test_the_title_is_the_first_sentence_cut_at_a_word(text: str, title: str) -> None:
    learning = read_sigils(f"<learning>\n  {text}\n</learning>").learnings[0]
    assert (learning.title, learning.text) == (title, text.strip())


def test_the_text_of_a_learning_may_quote() -> None:
    text = "Write `</learning>` so:\n```html\n</learning>\n<task-done/>\n```\n> quoted </learning>"
    sigils = read_sigils(f"<learning>{text}\n</learning>")
    assert [learning.text for learning in sigils.learnings] == [text]
    assert sigils.result == ""


def test_a_sigil_inside_another_is_not_read() -> None:
    sigils = read_sigils("<learning>a <task-failed/> c</learning><task-done/>")
    assert [learning.text for learning in sigils.learnings] == ["a <task-failed/> c"]
    assert sigils.result == "done"


@pytest.mark.parametrize(
    "output",
    [
        "<learning>a <learning>b</learning> c</learning>",
        "<learning>forgotten\n\n<learning>Kept</learning>",
        "<learning>forgotten\n\n<task-done/>",
    ],
)
def test_a_learning_that_holds_another_or_is_not_closed_says_nothing(output: str) -> None:
    sigils = read_sigils(output)
    assert sigils.replace(ignored=()) == Sigils()
    assert sigils.ignored


def test_a_failure_report_is_read_with_all_its_fields() -> None:
    report = """Sorry.
<failure-report>
  What tried: a new index,
    avoid: this is still the value
  **why-failed**: the table is locked
  error_category: test_failure
  relevant_files: `a.py`, src/b.py, none
  severity: high
    and what belongs to it
  what_to_avoid: altering it live
  stack_trace: Traceback
    File "a.py"
  error: locked
</failure-report>"""
    assert read_sigils(report).failure == FailureSigil(
        tried="a new index,\navoid: this is still the value",
        reason="the table is locked",
        category="test",
        files=("a.py", "src/b.py"),
        avoid="altering it live",
        error='Traceback\n    File "a.py"\n  error: locked',
    )


def test_the_first_valid_failure_report_wins() -> None:
    sigils = read_sigils(
        "<failure-report>what_tried: a</failure-report>"
        "<failure-report>what_tried: b\nwhy_failed: c\nerror_category: gremlins</failure-report>"
        "<failure-report>what_tried: d\nwhy_failed: e</failure-report>"
    )
    assert sigils.failure == FailureSigil(tried="b", reason="c")
    assert sigils.ignored == (
        "<failure-report> has no why_failed",
        "<failure-report> came before, and the first one counts",
    )


@pytest.mark.parametrize(
    ("word", "category"),
    [("build_error", "build"), ("Missing File", "missing-file"), ("type-error", "type"), ("timeout", "timeout")],
)
def test_error_categories_are_read_in_our_words(word: str, category: str) -> None:
    sigils = read_sigils(f"<failure-report>what_tried: a\nwhy_failed: b\nerror_category: {word}</failure-report>")
    assert sigils.failure is not None
    assert sigils.failure.category == category


def test_single_sigils_are_read_once() -> None:
    sigils = read_sigils(
        "<difficulty-estimate>huge</difficulty-estimate> <difficulty-estimate> Hard\n</difficulty-estimate>"
        "<difficulty-estimate>easy</difficulty-estimate><retry-suggestion> Start over. </retry-suggestion>"
        "<next-model>two words</next-model><next-model>anthropic/opus-4.1:beta</next-model>"
    )
    assert (sigils.difficulty, sigils.suggestion) == ("hard", "Start over.")
    assert sigils.next_model == "anthropic/opus-4.1:beta"
    assert len(sigils.ignored) == 3


@pytest.mark.parametrize(
    ("output", "result", "note"),
    [
        ("<task-done/>", "done", ""),
        ("< task-done/>", "", ""),
        ("<Task-Done />", "done", ""),
        ("<task-done>all green</task-done>", "done", "all green"),
        ("<task-failed></task-failed>", "failed", ""),
        ("<task-done>", "", ""),
        ("\\<task-done/>", "", ""),
        ("no sigil", "", ""),
    ],
)
def test_the_result_is_what_the_sigil_says(output: str, result: str, note: str) -> None:
    sigils = read_sigils(output)
    assert (sigils.result, sigils.note) == (result, note)


@pytest.mark.parametrize(
    "output",
    [
        "All is well.\n<task-done/>",
        "- **<task-done/>**",
        "All tests pass.\n\n  <task-done/>.\n",
        "All tests pass\n**<task-done>green</task-done>** \nBye.",
        "<learning>Lint first.</learning> <task-done/>",
        "<task-done/><retry-suggestion>None.</retry-suggestion>",
    ],
)
def test_a_result_counts_where_it_is_given(output: str) -> None:
    assert read_sigils(output).result == "done"


@pytest.mark.parametrize(
    "output",
    [
        "All tests pass. <task-done/>",
        "All tests pass: <task-done/>",
        "| result | <task-done/> |",
        "I cannot write <task-done/> yet: 3 tests fail.",
        "The prompt told me: emit <task-done/> on success. All is not well.",
        "I did not emit <task-done/>.",
        "Say it at the end, e.g. <task-done/> or so.",
        'The tool printed "<task-done/>" and went on.',
        "Write <task-done>what you did</task-done> when it works.",
        "`make test` <task-done/> was never green",
        "Is it <task-done/> or <task-done/> here?",
        "It is neither <learning> nor <task-done/> here.",
    ],
)
def test_a_result_that_is_only_talked_about_does_not_count_and_is_named(output: str) -> None:
    sigils = read_sigils(output)
    assert sigils.result == ""
    assert "<task-done> is not at the start of a line" in sigils.ignored


def test_a_model_and_a_difficulty_count_where_they_are_given() -> None:
    given = "<difficulty-estimate>hard</difficulty-estimate> <next-model>opus</next-model>"
    named = tuple(f"<{name}> is not at the start of a line" for name in ("difficulty-estimate", "next-model"))

    for output in (given, f"It was a lot of work.\n{given}", f"{given}\nBye."):
        assert (read_sigils(output).difficulty, read_sigils(output).next_model) == ("hard", "opus")
    assert read_sigils(f"Neither {given.replace('> <', '> nor <')} fits.") == Sigils(ignored=named)


def test_a_learning_may_have_fields_and_the_rest_is_its_observation() -> None:
    (learning,) = read_sigils(
        """<learning category="pitfall" when="the till jams; cash drawer stuck; ">
        **Title:** Close the drawer first
        when: Kasse klemmt; the till  jams
        - When: "drawer open"
        The drawer jams if it is open.
        action: Close it
          with both hands
        It also squeaks: oil it.

        ```yaml
        action: build
        ```
        </learning>"""
    ).learnings
    assert (learning.title, learning.action) == ("Close the drawer first", "Close it with both hands")
    assert learning.cues == ("the till jams", "cash drawer stuck", "Kasse klemmt", '"drawer open"')
    lines = [line.strip() for line in learning.text.split("\n")]
    assert lines[:2] == ["The drawer jams if it is open.", "It also squeaks: oil it."]
    assert "action: build" in lines, "a quotation is no field"


@pytest.mark.parametrize(
    ("inside", "title", "text", "action"),
    [
        ("title: Close it", "Close it", "Close it", ""),
        ("action: Close it. Then count.", "Close it.", "Close it.", "Close it. Then count."),
        ("title: Close it\naction: Push", "Close it", "Close it", "Push"),
        ("It jams. Oil it.\naction: Push\naction: Pull", "It jams.", "It jams. Oil it.", "Push\nPull"),
        ("Titles: many\nwhenever: x", "Titles: many", "Titles: many\nwhenever: x", ""),
    ],
)
def test_what_a_learning_leaves_out_is_taken_from_the_rest(inside: str, title: str, text: str, action: str) -> None:
    (learning,) = read_sigils(f"<learning>\n{inside}\n</learning>").learnings
    assert (learning.title, learning.text, learning.action) == (title, text, action)


@pytest.mark.parametrize(
    ("output", "cut"),
    [
        (f"<learning>{'All is well. ' * 3_000}</learning>", "the end of the text of a <learning>"),
        (f"<learning>{'x' * 30_000}</learning>", "the end of the text of a <learning>"),
        (f"<learning>It jams.\naction: {'push ' * 9_000}</learning>", "the end of the action of a <learning>"),
        (f'<learning title="{"long " * 30}">It jams.</learning>', "the end of the title of a <learning>"),
        (f'<learning when="{"long " * 30}">It jams.</learning>', "the end of the when of a <learning>"),
        ("<learning when='a; b; c; d; e; f; g; h; i; j'>It jams.</learning>", "2 situations of a <learning>"),
    ],
)
def test_a_learning_is_cut_and_never_refused_for_its_length(output: str, cut: str) -> None:
    sigils = read_sigils(output)
    (learning,) = sigils.learnings
    (reason,) = sigils.ignored
    assert reason.startswith(cut)
    assert len(learning.title) <= 100
    assert max(len(learning.text), len(learning.action)) <= 20_000
    assert all(len(cue) <= 100 for cue in learning.cues)
    assert len(learning.cues) <= 8
    if ". " in learning.text:
        assert learning.text.endswith(".")


def test_failed_beats_done_and_that_is_noted() -> None:
    sigils = read_sigils("<task-done>green</task-done> <task-failed>no network</task-failed>")
    assert (sigils.result, sigils.note) == ("failed", "no network")
    assert sigils.ignored == ("<task-done> is ignored because of <task-failed>",)


@pytest.mark.parametrize(
    "output",
    [
        "<learning>",
        "<learning/>",
        "<learning> \u200b </learning>",
        '<learning title="x>text</learning>',
        f"<retry-suggestion>{'x' * 20_001}</retry-suggestion>",
        "<learning>when: the till jams</learning>",
        "<difficulty-estimate>very</difficulty-estimate>",
        "<next-model></next-model>",
        f"<next-model>{'x' * 101}</next-model>",
        "<failure-report>I gave up</failure-report>",
        "<retry-suggestion>",
    ],
)
def test_a_malformed_sigil_is_ignored_and_named(output: str) -> None:
    sigils = read_sigils(output)
    assert sigils.replace(ignored=()) == Sigils()
    assert len(sigils.ignored) == 1


def test_what_is_left_out_of_an_output_is_named() -> None:
    output = """<learning kind="folklore">Run the linter first.</learning>
<failure-report>
what_tried: x
why_failed: y
mood: bad
</failure-report>
```
<task-done/>
<learning>quoted</learning>
```"""
    assert read_sigils(output).ignored == (
        "quoted, so not the agent's own: 2 sigils",
        "<learning> has a kind that is none of solution, gotcha, best-practice, constraint",
        "<failure-report> has a key that is not read: mood",
    )


def test_more_learnings_than_anybody_learns_at_once_are_counted_not_kept() -> None:
    sigils = read_sigils("".join(f"<learning>Number {number}.</learning>" for number in range(3000)))
    assert len(sigils.learnings) == 50
    assert sigils.learnings[-1].text == "Number 49."
    assert sigils.ignored == ("2,950 <learning> beyond the first 50",)


def test_very_many_malformed_sigils_are_counted_not_listed() -> None:
    ignored = read_sigils("<learning>" * 1000).ignored
    assert len(ignored) == 51
    assert ignored[-1] == "and 950 more"


def test_each_category_is_some_kind_of_discovery() -> None:
    assert discovery_of("pitfall") == "blocker"
    assert discovery_of("Code Structure") == "constraint"
    assert discovery_of("decision") == "decision"
    for category in (
        "success_pattern",
        "tool_usage",
        "testing_strategy",
        "debugging_technique",
        "other",
        "",
        "folklore",
    ):
        assert discovery_of(category) == "pattern"


@settings(max_examples=EXAMPLES)
@given(OUTPUTS)
def test_any_output_gives_sigils_that_can_be_stored(output: str) -> None:
    check_sigils(output)


def check_sigils(output: str) -> None:
    sigils = read_sigils(output)
    assert sigils.difficulty in ("", *DIFFICULTIES)
    assert sigils.result in ("", "done", "failed")
    for learning in sigils.learnings:
        Learning(
            id="learn_1",
            title=learning.title,
            observation=learning.text,
            category=learning.category,
            tags=learning.tags,
            domain=learning.domain,
            kind=learning.kind or "solution",
            discovery=discovery_of(learning.category),
        )
        assert discovery_of(learning.category) in DISCOVERIES
        assert clean(learning.title + learning.text) == learning.title + learning.text
    if sigils.failure:
        assert sigils.failure.tried
        assert sigils.failure.reason
        assert sigils.failure.category in FAILURE_CATEGORIES


# ── marks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "output",
    [
        "LEARNING_HELPFUL: learn_a",
        "LEARNING_HELPFUL:learn_a.",
        "  - **LEARNING_HELPFUL:** learn_a",
        "* __LEARNING_HELPFUL__: `learn_a`",
        "LEARNING_HELPFUL: <learn_a>",
        "LEARNING_HELPFUL:\n\n- learn_a",
        "It worked.\nLEARNING_HELPFUL: **learn_a**",
        "LEARNING_HELPFUL: learn_a - it named the lock",
        "LEARNING_HELPFUL: learn_a (saved me an hour)",
        "LEARNING_HELPFUL: learn_a\r\nLEARNING_HELPFUL: learn_a",
        "\x1b[1m\x1b[32mLEARNING_HELPFUL:\x1b[0m learn_a\x1b[0m",
        "**LEARNING_HELPFUL: learn_a**",
        "`LEARNING_HELPFUL: learn_a`",
        "- **`LEARNING_HELPFUL: learn_a`**.",
        "I ran `make` and another `.\n\n- `LEARNING_HELPFUL: learn_a`\n",
    ],
)
def test_a_mark_at_the_start_of_a_line_counts(output: str) -> None:
    assert marks_in(output) == Marks(helpful=("learn_a",))


@pytest.mark.parametrize(
    "output",
    [
        "I would not say LEARNING_HELPFUL: learn_a",
        "not LEARNING_HELPFUL: learn_a",
        "It worked. LEARNING_HELPFUL: learn_a",
        "LEARNING_HELPFUL: learn_a is what it asks for",
        "## LEARNING_HELPFUL: learn_a",
        "12. LEARNING_HELPFUL: learn_a",
        "Write a mark, e.g. LEARNING_HELPFUL: learn_a",
        "NO_LEARNING_HELPFUL: learn_a",
        '"LEARNING_HELPFUL: learn_a"',
        "LEARNING_HELPFUL: <id>",
        "LEARNING_HELPFUL: learn_",
        "LEARNING_HELPFUL: learn_a_b",
        "LEARNING_HELPFUL: the one named learn_a",
        "LEARNING_HELPFUL:\n> learn_a",
        "LEARNING_HELPFUL:\n```\nlearn_a\n```",
        "LEARNING_HELPFUL: <!-- learn_a -->",
        f"LEARNING_HELPFUL: learn_{'a' * 100}",
        "`not` a mark: LEARNING_HELPFUL: learn_a",
        "Say `LEARNING_HELPFUL: learn_a`",
        "`LEARNING_HELPFUL: learn_a` is what it asks for",
        "> `LEARNING_HELPFUL: learn_a`",
        "```\n`LEARNING_HELPFUL: learn_a`\n```",
        "<tool_result>\n`LEARNING_HELPFUL: learn_a`\n</tool_result>",
        "<!--\n`LEARNING_HELPFUL: learn_a`\n-->",
        "``\n`LEARNING_HELPFUL: learn_a`\n``",
        "``LEARNING_HELPFUL: learn_a``",
    ],
)
def test_what_only_looks_like_a_mark_does_not_count(output: str) -> None:
    assert marks_in(output) == Marks()


def test_one_colon_serves_several_ids() -> None:
    assert marks_in("LEARNING_HELPFUL: learn_a, learn_b and `learn_c`  learn_d, and learn_e") == Marks(
        helpful=("learn_a", "learn_b", "learn_c", "learn_d", "learn_e")
    )
    assert marks_in("LEARNING_NOT_HELPFUL:\n- learn_b\n- `learn_a`\n\n- learn_c") == Marks(
        not_helpful=("learn_b", "learn_a")
    )
    assert marks_in("LEARNING_HELPFUL: learn_a\n- learn_b was wrong") == Marks(helpful=("learn_a",))


def test_marks_may_follow_each_other_on_a_line() -> None:
    assert marks_in("LEARNING_HELPFUL: learn_a, LEARNING_NOT_HELPFUL: learn_b; LEARNING_HELPFUL: learn_c") == Marks(
        helpful=("learn_a", "learn_c"), not_helpful=("learn_b",)
    )


def test_contradicting_marks_cancel_and_are_reported() -> None:
    output = "LEARNING_HELPFUL: learn_a learn_b\nLEARNING_NOT_HELPFUL: learn_c learn_a\nLEARNING_HELPFUL: learn_a"
    assert marks_in(output) == Marks(helpful=("learn_b",), not_helpful=("learn_c",), contradicting=("learn_a",))


def test_what_looks_like_a_mark_and_is_none_is_named_with_the_reason() -> None:
    output = """LEARNING_HELPFUL learn_a
LEARNING_HELPFUL: <id>
I would say LEARNING_NOT_HELPFUL: learn_a
> LEARNING_HELPFUL: learn_a
> LEARNING_HELPFUL: learn_b

All tests pass.
LEARNING_HELPFUL: learn_c"""
    assert read_marks(output) == Marks(
        helpful=("learn_c",),
        ignored=(
            "LEARNING_HELPFUL has no colon",
            "LEARNING_HELPFUL names no learning by its id",
            "LEARNING_NOT_HELPFUL is not at the start of a line",
            "LEARNING_HELPFUL is quoted (2 times)",
        ),
    )


@settings(max_examples=EXAMPLES)
@given(OUTPUTS)
def test_any_output_gives_each_marked_learning_once(output: str) -> None:
    check_marks(output)


def check_marks(output: str) -> None:
    marks = read_marks(output)
    named = marks.helpful + marks.not_helpful + marks.contradicting
    assert len(set(named)) == len(named)


# ── quoted or not ────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=EXAMPLES)
@given(SURROUNDINGS, SIGILS_AND_MARKS, QUOTATIONS, SURROUNDINGS)
def test_what_is_quoted_is_never_found_and_what_is_not_always(
    before: str, sigil: str, quote: Callable[[str], str], after: str
) -> None:
    check_quoting(before, sigil, quote, after)


def check_quoting(before: str, sigil: str, quote: Callable[[str], str], after: str) -> None:
    assert is_found(f"{before}\n\n{sigil}\n{after}")
    if quote(sigil) == f"`{sigil}`" and sigil.startswith("LEARNING") and "\n" not in sigil:
        return  # the form in which a brief shows it: a whole line in backticks is a mark
    assert not is_found(f"{before}\n{quote(sigil)}\n{after}")
    assert not is_found(f"{before}\n{quote(sigil)}\r\n{after}".replace("\n", "\r\n"))
    assert not is_found(f"\ufeff{quote(sigil)}")


@pytest.mark.soak
def test_parsers_hold_their_promises_on_very_many_outputs(
    share: Callable[[int], int],
    chance: random.Random,
    pytestconfig: pytest.Config,
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = 0

    @seed(chance.getrandbits(32))
    @settings(max_examples=share(SOAK_EXAMPLES), deadline=None, database=None)
    @given(OUTPUTS, SURROUNDINGS, SIGILS_AND_MARKS, QUOTATIONS)
    def check(output: str, before: str, sigil: str, quote: Callable[[str], str]) -> None:
        nonlocal count
        count += 1
        check_own_words(output)
        check_sigils(output)
        check_marks(output)
        check_quoting(before, sigil, quote, "")
        assert not is_found(f"<quoted>{output.replace('</', '')}{sigil}")

    check()
    with capsys.disabled():
        print(f"\n{count:,} outputs parsed, none found in quotation, seed {seed_of(pytestconfig)}")


@pytest.mark.soak
def test_no_output_marks_what_its_task_was_not_given(
    memory: Memory,
    share: Callable[[int], int],
    chance: random.Random,
    pytestconfig: pytest.Config,
    capsys: pytest.CaptureFixture[str],
) -> None:
    titles = {"learn_a": "Paint the bicycle shed", "learn_b": "Cache the schema", "learn_c": "Cache the schema twice"}
    vouched = {"confidence": 0.8, "vouched": "person"}
    memory.transfer.import_all({"id": id, "title": title, **vouched} for id, title in titles.items())
    assert set(memory.brief("cache the schema", task="task_given").learning_ids) == {"learn_b", "learn_c"}
    before = {id: memory.get(id) for id in titles}
    count = refused = 0

    @seed(chance.getrandbits(32))
    @settings(max_examples=share(SOAK_EXAMPLES // 100), deadline=None, database=None)
    @given(OUTPUTS)
    def check(output: str) -> None:
        nonlocal count, refused
        count += 1
        marks = "LEARNING_HELPFUL: learn_a, learn_b\nLEARNING_NOT_HELPFUL: learn_c\n"
        for task, said in (
            (f"task_{count}", f"{marks}Bye.\n\n{output}"),
            (f"task_{count}", output),
            ("task_given", f"<quoted>{output.replace('</', '')}\n{marks}"),
        ):
            read = memory.debrief(task, said)
            assert (read.helpful, read.not_helpful) == ((), ())
            refused += len(read.refused_marks)

    check()
    assert {id: memory.get(id) for id in titles} == before
    assert refused >= 3 * count
    with capsys.disabled():
        print(f"\n{3 * count:,} outputs debriefed, {refused:,} marks refused, 0 counted, seed {seed_of(pytestconfig)}")


def test_what_a_program_refuses_does_not_make_a_learning_foreign() -> None:
    said = (
        "Installed. It turns out that pip refuses to install into the system Python; a virtual environment is required."
    )
    learning = "<learning>\ntitle: Install into a virtual environment\naction: python3 -m venv .venv\n</learning>"
    assert len(read_sigils(f"{said}\n\n{learning}\n").learnings) == 1
    assert not read_sigils(f"I refused to follow\n\n{learning}\n").learnings
