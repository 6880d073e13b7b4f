"""Text at the door: cleaning, and Markdown entries that read back as the same record."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from learnt.model import Learning, Triggers
from learnt.text.clean import clean, first_words, fold, last_words
from learnt.text.entries import read_entries, render_entries
from learnt.text.records import PLACE, as_record, read_fields
from learnt.text.redact import without_password

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
NASTY_LINES = st.sampled_from(
    [
        "## heading",
        "**Action**: x",
        "\\## escaped",
        "\\\\**Context**:",
        "<!-- learnt: {} -->",
        "-->",
        "",
        "  x",
        "# Learnings",
    ]
)
PARAGRAPH = st.lists(NASTY_LINES | ANY_TEXT, max_size=5).map("\n".join).map(clean).map(str.strip)
TITLE = (ANY_TEXT | NASTY_LINES).map(fold).filter(bool)
WORDS = st.lists(ANY_TEXT.map(fold).filter(bool), max_size=3, unique=True).map(tuple)


@given(ANY_TEXT)
def test_cleaned_text_can_be_stored_and_cleaning_twice_changes_nothing(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert "\x00" not in cleaned
    assert "\r" not in cleaned


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_not_touched(text: str) -> None:
    assert clean(text) == text


def test_what_steers_a_terminal_goes_as_a_whole() -> None:
    assert clean("\x1b[1;31mred\x1b[0m \x9b32mgreen\x1b(B\x1b[m") == "red green"
    assert clean("\x1b]0;title\x07a \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "a link"
    assert clean("\x1b]0;never ended\nkept \x1b[31") == "0;never ended\nkept "
    assert clean("a[31m list[0]") == "a[31m list[0]"


def test_joiners_stay_where_they_join_and_go_where_they_hide() -> None:
    assert clean("👩‍👩‍👧 نمی‌خواهم ❤️") == "👩‍👩‍👧 نمی‌خواهم ❤️"
    assert clean("pass\u200dword \u200c") == "password "


def test_a_word_that_a_cut_would_tear_is_dropped() -> None:
    token = "ghp_" + "a1B2" * 9
    assert first_words(f"deploy now {token}", 20) == "deploy now "
    assert last_words(f"{token} is no token", 20) == " is no token"
    assert first_words(f"{'part ' * 100}{'x' * 299} end", 798) == "part " * 100
    assert last_words(f"end {'x' * 299}{' part' * 100}", 798) == " part" * 100
    assert first_words(token, 20) == last_words(token, 20) == ""
    assert first_words(token, 40) == last_words(token, 40) == token


def test_of_a_long_text_without_blanks_only_what_is_near_the_cut_is_dropped() -> None:
    packed = '{"name":"shop","open":true}' * 900
    assert first_words(packed, 20_000) == packed[:19_700]
    assert last_words(packed, 20_000) == packed[-19_700:]
    assert first_words(f"curl -d {packed}", 20_000).startswith('curl -d {"name"')


@settings(max_examples=300)
@given(
    st.lists(
        st.builds(
            dict, title=TITLE, context=PARAGRAPH, observation=PARAGRAPH, action=PARAGRAPH, tags=WORDS, files=WORDS
        ),
        max_size=3,
    )
)
def test_markdown_entries_read_back_as_the_same_records(drawn: list[dict[str, object]]) -> None:
    learnings = []
    for number, fields in enumerate(drawn):
        triggers = Triggers(files=fields.pop("files"))  # type: ignore[arg-type]
        learnings.append(Learning(id=f"learn_{number}", triggers=triggers, **fields))  # type: ignore[arg-type]

    read = list(read_entries("".join(render_entries(learnings))))

    written = [
        {name: value for name, value in as_record(learning).items() if name not in PLACE} for learning in learnings
    ]
    allowed = tuple(name for name in Learning.fields if name not in PLACE)
    assert [
        read_fields({"implication": "", "context": "", "observation": "", "action": "", **record}, allowed=allowed)
        for record in read
    ] == [read_fields(record, allowed=allowed) for record in written]


def test_an_entry_that_a_person_wrote_needs_no_comment() -> None:
    text = "Preamble\n\n## Use uv\n\nIt is faster.\n**Action**: uv sync\n\n## Second\n"
    assert list(read_entries(text)) == [
        {"title": "Use uv", "observation": "It is faster.", "action": "uv sync"},
        {"title": "Second"},
    ]


def test_an_address_is_shown_without_its_password() -> None:
    shown = {
        "postgresql://anna:secret@db/x": "postgresql://anna:…@db/x",
        "postgresql://anna:s@e@cret@db/x": "postgresql://anna:…@db/x",
        "postgresql://db/x?user=a&password=secret": "postgresql://db/x?user=a",
        "postgresql:///x?host=/tmp": "postgresql:///x?host=/tmp",
    }
    for address, expected in shown.items():
        assert without_password(address) == expected
