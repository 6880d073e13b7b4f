"""learnings.md: what is written reads back, what people do to it is understood, and nothing gets lost in between."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from learnt.learnings_file.lines import (
    ON_TRIAL,
    bullet_key,
    category_of,
    edit_fields,
    fields_of,
    fields_of_rendering,
    heading_of,
    line_of,
    split_line,
    statement_of,
)
from learnt.learnings_file.merge import Edits, merge
from learnt.learnings_file.read import Bullet, LooseText, ParsedFile, lines_for_prompt, parse
from learnt.learnings_file.write import Rendering, compare_renderings, diff, render, select
from learnt.model import Learning
from learnt.text.clean import fold
from learnt.text.words import estimate_tokens
from learnt.weigh.confidence import impact, stage

NASTY = [
    "Write `<!-- prettier-ignore -->` above a table",
    "Close what you open: <!--",
    "--> ends it. And more",
    "See <!-- learn_other --> and <!-- learnt: r_other -->",
    "# no heading",
    "## no heading either",
    "```",
    "~~~ not a fence",
    "- - nested",
    "1. numbered",
    "* * *",
    "<b>bold</b> & <script>alert(1)</script>",
    "👩‍👩‍👧 שלום עולם نمی‌خواهم",
    "Use `make lint`. It is fast! Really.",
    "Avoid: committing secrets",
    "<<<<<<< HEAD",
    "[ ] a box to tick",
    "Last updated: never",
    "| a | b |",
    "long " * 1000,
    "x" * 5000,
]
LINES = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=()), max_size=300)


def learning(number: int, text: str, **fields: object) -> Learning:
    who = {"origin": "agent", "vouched": "evidence"}
    made = {"id": f"learn_{number}", **who, "created_at": number, **fields_of(text), **fields}
    return Learning(**made)  # type: ignore[arg-type]


new = learning


def rendering(*learnings: Learning, id: str = "r_1", **options: object) -> Rendering:
    given: dict[str, object] = {"today": "2026-02-19", "task_count": 15, "max_tokens": 2000, **options}
    return render(learnings, id=id, **given)  # type: ignore[arg-type]


def merged(text: str, base: Rendering | None, *learnings: Learning, earlier: Iterable[tuple[str, str]] = ()) -> Edits:
    known = set(earlier)
    return merge(
        parse(text),
        base,
        store={one.id: one for one in learnings},
        known_text=lambda *shown: shown in known,
        find=lambda text: found_in(learnings, text),
    )


def found_in(learnings: Iterable[Learning], text: str) -> Learning | None:
    keys = {bullet_key(text), bullet_key(split_line(text)[0])}
    same = [one for one in learnings if bullet_key(statement_of(one)) in keys]
    return min(same, key=lambda one: one.status != "active", default=None)


def texts(text: str) -> list[str]:
    return [bullet.text for bullet in parse(text).bullets]


# A line and a learning


@given(LINES)
@example("Use X. It is Y.")
def test_a_persons_line_comes_back_as_it_was_written(line: str) -> None:
    assume(fold(line))
    assert line_of(Learning(id="learn_1", **fields_of(line))) == fold(line)  # type: ignore[arg-type]


@given(LINES, LINES, st.sampled_from(["person", "agent"]), st.sampled_from(["do", "avoid"]), LINES.map(fold))
def test_an_edited_learning_has_the_line_that_was_asked_for(
    before: str, after: str, origin: str, polarity: str, observation: str
) -> None:
    assume(fold(before) and fold(after))
    old = learning(1, before, polarity=polarity).replace(origin=origin, observation=observation)
    for start in (old, learning(1, before, origin=origin, polarity=polarity)):
        new = start.replace(**edit_fields(start, after))
        assert line_of(new) == fold(after)
        assert edit_fields(new, after) == {}


@given(LINES, LINES, LINES, st.sampled_from(["person", "agent"]), st.sampled_from(["do", "avoid"]))
@example("Use X", "Run it.", "Use X → Run that.", "agent", "do")
@example("Use X", "Run it.", "Use Y → Run it.", "agent", "avoid")
@example("Use X", "Run it.", "Use X", "agent", "do")
@example("Use X", "Run it.", "→ Run it.", "person", "do")
@example("Use X", "Run it.", "a → b → c", "person", "do")
def test_an_edited_line_with_an_action_is_what_the_learning_shows(
    before: str, action: str, after: str, origin: str, polarity: str
) -> None:
    assume(fold(before) and fold(after))
    old = learning(1, before, polarity=polarity, action=fold(action)[:1000]).replace(origin=origin)
    for seen in (None, line_of(old)):
        new = old.replace(**edit_fields(old, after, seen=seen))
        assert fold(after) in (line_of(new), statement_of(new))
        assert edit_fields(new, after, seen=seen) == edit_fields(new, after) == {}
        assert edit_fields(new, line_of(old), seen=line_of(old)) == {}, "what was not changed is no edit"


def test_a_line_shows_the_action_if_it_is_short_and_says_more() -> None:
    redis = Learning(id="learn_1", title="Start Redis before the tests", action="Run `make redis`.")
    assert line_of(redis) == "Start Redis before the tests → Run `make redis`."
    assert statement_of(redis) == "Start Redis before the tests"
    assert line_of(redis.replace(action="Before the tests, start Redis.")) == "Start Redis before the tests"
    assert line_of(redis.replace(action=f"Run `make redis`. {'It takes long. ' * 20}")) == line_of(redis)
    assert line_of(redis.replace(action="x" * 200)) == "Start Redis before the tests"
    assert line_of(redis.replace(title="Rename a → b")) == "Rename a → b"


def test_only_the_part_of_a_line_that_a_person_changed_is_edited() -> None:
    redis = Learning(id="learn_1", title="Start Redis first", action="Run `make redis`.", implication="Else it hangs.")
    assert edit_fields(redis, "Start Redis first → Run `make up`.") == {"action": "Run `make up`."}
    assert edit_fields(redis, "Start Redis early → Run `make redis`.") == {"title": "Start Redis early"}
    assert edit_fields(redis, "Start Redis first", seen=line_of(redis)) == {"action": ""}
    assert edit_fields(redis, "Start Redis first") == {}, "it is not known whether the person saw the action"
    # The store changed the other part since the person saw the line, or the line had no room for the action.
    seen = "Start Redis first → Run `redis-server`."
    assert edit_fields(redis, "Start Redis early → Run `redis-server`.", seen=seen) == {"title": "Start Redis early"}
    assert edit_fields(redis, "Start Redis early", seen="Start Redis first") == {"title": "Start Redis early"}


@given(LINES, LINES)
def test_a_line_of_another_store_is_taken_apart_as_it_was_put_together(title: str, action: str) -> None:
    assume(fold(title))
    theirs = learning(1, title, action=fold(action)[:1000])
    ours = Learning(id="learn_1", **fields_of_rendering(line_of(theirs)))  # type: ignore[arg-type]
    assert line_of(ours) == line_of(theirs)


def test_actions_take_only_room_that_no_learning_needs() -> None:
    made = [learning(number, f"Use tool {number}", action=f"Run `tool{number} --now`.") for number in range(1, 6)]
    wide, narrow = rendering(*made), rendering(*made, max_tokens=120)
    assert texts(wide.text) == [f"Use tool {number} → Run `tool{number} --now`." for number in range(1, 6)]
    assert len(narrow.bullets) == len(rendering(*[one.replace(action="") for one in made], max_tokens=120).bullets)
    assert estimate_tokens(narrow.text) <= 120


def test_an_agents_learning_is_shown_by_its_title_and_a_persons_whole() -> None:
    agents = Learning(id="learn_1", title="Use X.", observation="Use X. It is Y.", origin="agent")
    assert line_of(agents) == "Use X."
    assert line_of(agents.replace(origin="person")) == "Use X. It is Y."
    assert edit_fields(agents, "Use Z.") == {"title": "Use Z."}
    assert edit_fields(agents.replace(origin="person"), "Use Z.") == {"title": "Use Z.", "observation": ""}


def test_what_is_to_be_avoided_says_so_until_a_person_takes_that_away() -> None:
    avoided = Learning(id="learn_1", title="Run the whole suite", polarity="avoid", origin="agent")
    assert line_of(avoided) == "Avoid: Run the whole suite"
    assert edit_fields(avoided, "Avoid: Run all tests") == {"title": "Run all tests"}
    assert edit_fields(avoided, "Run the whole suite") == {"polarity": "do"}


@pytest.mark.parametrize(
    ("category", "heading"),
    [("code_structure", "Code structure"), ("testing", "Testing"), ("", "General"), ("API & Co", "API & Co")],
)
def test_a_heading_and_its_category_mean_each_other(category: str, heading: str) -> None:
    assert heading_of(category) == heading
    assert category_of(heading) == category


@given(LINES)
def test_every_heading_is_read_as_it_is_written(heading: str) -> None:
    (section,) = parse(f"- x\n## {fold(heading)}\n- x").sections or ("",)
    assert parse(f"- x\n## {section}\n- x").sections == ((section,) if section else ())
    assert len(category_of(section)) <= 100
    assert heading_of(category_of(section)) == (section or "General")


# Reading


@given(st.lists(LINES | st.sampled_from(["", "- a <!-- learn_1 -->", "  b", "<!-- learnt: r_1 -->"])).map("\n".join))
def test_any_text_can_be_read(text: str) -> None:
    parse(text)
    lines = lines_for_prompt(text, lambda _: True)
    assert [id for _, id in lines if id] == [bullet.id for bullet in parse(text).bullets if bullet.id]
    assert all(line.endswith(f" ({id})") for line, id in lines if id)
    assert not any(id for _, id in lines_for_prompt(text, lambda _: False))


def test_bullets_of_every_kind_are_read() -> None:
    text = "\ufeff# Project Learnings\r\n\r\n- a\r\n* b\r\n+ c\r\n1. d\r\n2) e\r\n-\tf"
    assert texts(text) == ["a", "b", "c", "d", "e", "f"]


def test_what_is_indented_below_a_bullet_belongs_to_it() -> None:
    text = "- a\n  goes on\n  - nested\n\n  a second paragraph\nlazy no more\n- b\nlazy\n"
    assert texts(text) == ["a goes on - nested a second paragraph lazy no more", "b lazy"]


def test_an_id_is_found_wherever_it_stands_and_a_damaged_one_is_none() -> None:
    text = (
        "- a <!-- learn_1 --> b\n- c\n  d <!--learn_2-->\n- e <!-- learn_3 ->\n- f <!-- learn_ -->\n- g !-- learn_4 -->"
    )
    assert [(bullet.id, bullet.text) for bullet in parse(text).bullets] == [
        ("learn_1", "a b"),
        ("learn_2", "c d"),
        ("", "e"),
        ("", "f"),
        ("", "g"),
    ]


def test_an_emptied_bullet_is_none() -> None:
    assert texts("- <!-- learn_1 -->\n-\n- \n- - -\n---\n") == []


def test_text_beside_bullets_is_kept_verbatim_with_its_section() -> None:
    text = "## Testing\nAn  intro.\n\n- a\n\n| x | y |\n|---|---|\n\n```sh\n- no bullet\n## no heading\n```\n"
    text += "## Build\n> quoted\n"
    read = parse(text)
    assert read.loose == (
        LooseText(section="Testing", text="An  intro."),
        LooseText(section="Testing", text="| x | y |\n|---|---|\n\n```sh\n- no bullet\n## no heading\n```", below=True),
        LooseText(section="Build", text="> quoted"),
    )
    assert read.sections == ("Testing", "Build")
    assert [bullet.text for bullet in read.bullets] == ["a"]


def test_a_fence_that_nobody_closes_hides_no_bullets() -> None:
    assert texts("```\n- a\n- b") == ["a", "b"]
    assert texts("```\n- a <!-- learn_1 -->\n\n```sh\nmake\n```\n- b") == ["a", "b"]


@pytest.mark.parametrize("open_end", ["<!--", "```", "~~~ text"])
def test_a_comment_or_fence_that_a_person_left_open_swallows_no_learning(open_end: str) -> None:
    loose = parse(f"{open_end}\n- a <!-- learn_1 -->\n## Testing\n- b <!-- learn_2 -->\n\n{open_end}").loose
    learnings = (learning(1, "--> ends it"), learning(2, "```", category="testing"))
    file = rendering(*learnings, loose=loose)
    assert {bullet.id for bullet in file.bullets} == {"learn_1", "learn_2"}
    assert rendering(*learnings, loose=file.loose) == file


def test_a_fence_that_a_person_left_open_does_not_open_the_code_that_comes_next() -> None:
    loose = parse("```\nopen\n- a <!-- learn_1 -->\n\n```\n- no bullet\n```\n").loose
    file = rendering(A, loose=loose)
    assert [bullet.id for bullet in file.bullets] == ["learn_1"]
    assert file.loose == loose


def test_bullets_in_a_comment_are_none() -> None:
    assert texts("<!--\n- a\n-->\n- b") == ["b"]


def test_what_is_appended_below_the_last_line_belongs_to_no_section() -> None:
    text = rendering(learning(1, "a", category="testing"), sections=["Testing"]).text + "- new\n"
    assert parse(text).bullets[-1] == Bullet(text="new")
    glued = parse(text.replace("-->\n- new", "-->- new"))
    assert (glued.rendering, glued.bullets[-1].text) == ("r_1", "new")


def test_the_rendering_is_named_only_if_all_trailers_agree() -> None:
    assert parse("- a\n<!-- learnt: r_1 -->").rendering == "r_1"
    assert parse("<!-- learnt: r_1 -->\n- a\n<!-- learnt: r_1 -->").rendering == "r_1"
    assert parse("<!-- learnt: r_1 -->\n<!-- learnt: r_2 -->").rendering == ""
    assert parse("- a <!-- learnt: r_1 -->").rendering == ""
    assert parse("<!-- learnt: r -->") == ParsedFile()


def test_the_head_is_ours_even_when_it_was_edited() -> None:
    assert parse("# Our rules\n\nLast updated: long ago\n\n- a").loose == ()
    assert (
        parse(
            "# Project Learnings\n- a\n# Project Learnings\nLast updated: 2026-01-01 (from 3 recent tasks)\n- b"
        ).loose
        == ()
    )


def test_conflict_markers_are_seen_but_not_in_code() -> None:
    conflict = "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> branch\n"
    assert parse(conflict).conflict
    assert not parse(f"```\n{conflict}```\n").conflict
    assert not parse("Title\n=======\n- a").conflict
    assert merged(conflict, None) == Edits(
        remarks=("the file contains merge conflict markers, so nothing was read from it",)
    )


def test_a_bullet_too_long_for_a_learning_is_kept_as_text() -> None:
    read = parse("- a\n- " + "x" * 20_001)
    assert [bullet.text for bullet in read.bullets] == ["a"]
    assert read.loose[0].text == "- " + "x" * 20_001


def test_a_prompt_is_given_the_file_without_comments() -> None:
    text = (
        "# T\n\n- a <!-- learn_1 -->\n- b <!-- learn_2 --> c\n- `<!-- kept -->` <!-- gone -->\n"
        "<!-- a\nnote -->\n```\n<!-- kept, too -->\n```\n- open <!--\n\n<!-- learnt: r_1 -->\n"
    )
    rest = "- `<!-- kept -->`\n```\n<!-- kept, too -->\n```\n- open <!--\n\n"

    def said(is_given: Callable[[Bullet], bool | None]) -> str:
        return "\n".join(line for line, _ in lines_for_prompt(text, is_given))

    assert said(lambda _: None) == f"# T\n\n- a\n- b c\n{rest}"
    assert said(lambda bullet: bullet.text == "a") == f"# T\n\n- a (learn_1)\n{rest}"
    assert said(lambda _: True) == f"# T\n\n- a (learn_1)\n- b c (learn_2)\n{rest}"


def test_a_bullet_of_several_lines_is_given_on_one_with_its_id() -> None:
    text = "- one\n  goes\n\n  on <!-- learn_1 --> here <!-- note -->\n- two\n  more\n"
    lines = lines_for_prompt(text, lambda _: True)
    assert lines == [("- one goes on here (learn_1)", "learn_1"), ("", ""), ("- two", ""), ("  more", ""), ("", "")]


def test_only_the_first_date_is_the_files_own() -> None:
    text = "# Project Learnings\n\nLast updated: 1999 (from 3 recent tasks)\n\nLast updated: never\n"
    assert [piece.text for piece in parse(text).loose] == ["Last updated: never"]
    assert parse("# Project Learnings\n\nLast updated: never\n").loose == ()


# Writing


def test_a_short_file_is_a_flat_list() -> None:
    file = rendering(learning(1, "a", category="testing"), learning(2, "b"))
    assert file.text == (
        "# Project Learnings\n\nLast updated: 2026-02-19 (from 15 recent tasks)\n\n"
        "- a <!-- learn_1 -->\n- b <!-- learn_2 -->\n\n<!-- learnt: r_1 -->\n"
    )
    assert rendering(goal="auth").text.startswith("# Learnings: auth\n\nLast updated")


def test_a_longer_file_has_sections_and_keeps_the_order_that_people_gave_them() -> None:
    many = [learning(n, f"text {n}", category=["testing", "", "code_structure"][n % 3]) for n in range(6)]
    assert parse(rendering(*many).text).sections == ("Code structure", "Testing", "General")
    assert parse(rendering(*many, sections=["Testing", "Empty"]).text).sections == (
        "Testing",
        "Code structure",
        "General",
    )
    assert rendering(*[one.replace(category="testing") for one in many]).text.count("##") == 0
    assert "## Testing\n- text 0 <!-- learn_0 -->\n- text 3 <!-- learn_3 -->\n\n## General\n" in rendering(*many).text


@given(
    st.lists(
        st.tuples(
            LINES,
            st.sampled_from(["", "testing", "Ours", "general"]) | LINES.map(fold),
            st.sampled_from(["", "person", "evidence"]),
        ),
        max_size=12,
    ),
    st.integers(0, 2500),
    st.lists(st.sampled_from(["Testing", "Ours", "General"]), max_size=2),
    st.lists(LINES | st.sampled_from(["", "- a", "  b", "```", "## Testing", "<!--", "-->", "    # code"])).map(
        "\n".join
    ),
)
@settings(deadline=None)
def test_what_is_written_reads_back_within_the_bound(
    given: list[tuple[str, str, str]], max_tokens: int, sections: list[str], people: str
) -> None:
    learnings = [
        learning(number, line, category=category[:100].strip(), vouched=vouched)
        for number, (line, category, vouched) in enumerate(given)
        if fold(line)
    ]
    loose = parse(people).loose
    file = rendering(*learnings, max_tokens=max_tokens, sections=sections, loose=loose)
    read = parse(file.text)
    assert (read.rendering, read.bullets, read.loose) == ("r_1", file.bullets, file.loose)
    assert not read.conflict or parse(people).conflict
    assert {bullet.id for bullet in file.bullets} | set(file.left_out) == {one.id for one in learnings}
    assert file.over_limit == (estimate_tokens(file.text) > max_tokens)
    assert not (file.over_limit and file.bullets)
    for bullet in file.bullets:
        (shown,) = [one for one in learnings if one.id == bullet.id]
        assert bullet.text in (line_of(shown), "See and <!-- learnt: r_other -->")
        section = heading_of(category_of(heading_of(shown.category))) if shown.vouched else ON_TRIAL
        assert bullet.section in ("", section)
        assert (bullet.section == ON_TRIAL) == (not shown.vouched)
    for piece in loose:
        assert piece.text in file.text
    again = rendering(*learnings, max_tokens=max_tokens, sections=read.sections, loose=read.loose)
    if bool(read.sections) == bool(sections or any(piece.section for piece in loose)):
        assert again.text == file.text


def test_what_comes_last_is_left_out_when_not_all_fits() -> None:
    many = [learning(n, f"Statement number {n} about something") for n in range(100)]
    file = rendering(*many, max_tokens=300)
    shown = [bullet.id for bullet in file.bullets]
    assert shown == [one.id for one in many][: len(shown)]
    assert shown
    assert file.left_out == tuple(one.id for one in many[len(shown) :])
    assert 250 < estimate_tokens(file.text) <= 300


def test_people_s_own_text_is_never_cut_and_the_lack_of_room_is_said() -> None:
    file = rendering(learning(1, "a"), max_tokens=200, loose=[LooseText(text="word " * 500)])
    assert "word " * 500 in file.text
    assert (file.over_limit, file.bullets, file.left_out) == (True, (), ("learn_1",))


def chosen(*learnings: Learning, tasks: Sequence[str] = (), since_ms: int = 1000) -> list[str]:
    found = select(learnings, window_tasks=frozenset(tasks), since_ms=since_ms, stage=stage, impact=impact)
    return [one.id for one in found]


def test_pinned_proven_and_people_s_learnings_stay_and_others_pass_with_the_window() -> None:
    def learning(number: int, text: str, **fields: object) -> Learning:
        return new(number, text, **{"vouched": "person" if fields.get("origin") == "person" else "", **fields})

    pinned = learning(1, "a", pinned=True)
    person = learning(2, "b", origin="person")
    proven = learning(3, "c", times_helpful=4)
    recent = learning(4, "d", task="task_1")
    newer = learning(5, "e", task="task_1")
    past = learning(6, "f", task="task_0", created_at=2000)
    again = learning(7, "g", task="task_0", recurrences=1, updated_at=1500, created_at=3)
    imported = learning(8, "h", created_at=1000, origin="import")
    hidden = learning(9, "i", pinned=True, status="hidden")
    everything = (hidden, imported, again, past, newer, recent, proven, person, pinned)
    assert chosen(*everything, tasks=["task_1"]) == [
        "learn_2", "learn_1", "learn_3", "learn_8", "learn_5", "learn_4", "learn_7",
    ]  # fmt: skip


def test_what_nobody_vouches_for_stands_last_in_a_section_of_its_own() -> None:
    vouched = [learning(n, f"text {n}", category="testing") for n in range(2)]
    others = [learning(10 + n, f"other {n}", category="testing", vouched="", task="task_1") for n in range(20)]
    shown = select([*others, *vouched], window_tasks=frozenset(["task_1"]), since_ms=0, stage=stage, impact=impact)
    assert len(shown) == 12
    file = rendering(*shown)
    assert parse(file.text).sections == ("Testing", "On trial")
    assert {bullet.section for bullet in file.bullets if int(bullet.id[6:]) >= 10} == {"On trial"}
    moved = "\n".join(line for line in file.text.split("\n") if line != "## On trial")
    assert set(merged(moved, file, *shown).accepted) == {one.id for one in shown if not one.vouched}
    assert merged(moved, file, *shown).moved == ()
    assert merged(file.text, file, *shown) == Edits()


def test_equal_texts_are_shown_once() -> None:
    assert chosen(learning(1, "Use  X", pinned=True), learning(2, "use x", origin="person")) == ["learn_1"]


def test_churn_and_diff_tell_what_a_regeneration_changes() -> None:
    before, after = (
        rendering(learning(1, "a"), learning(2, "b")),
        rendering(learning(2, "b"), learning(3, "c"), id="r_2"),
    )
    delta = compare_renderings(before, after)
    assert (delta.added, delta.removed, delta.kept) == (("learn_3",), ("learn_1",), ("learn_2",))
    assert delta.churn == pytest.approx(2 / 3)
    assert compare_renderings(None, rendering()).churn == 0
    told = diff(before.text, after.text)
    assert "--- learnings.md (as it is)" in told
    assert "+- c <!-- learn_3 -->" in told
    assert diff(after.text, after.text) == ""


@pytest.mark.parametrize("max_tokens", range(40, 90))
def test_a_heading_that_is_not_written_leaves_no_trace(max_tokens: int) -> None:
    one = learning(1, "Use pytest fixtures for database setup, not globals", category="code_structure")
    first = rendering(one, max_tokens=max_tokens, sections=("Testing",))
    read = parse(first.text)
    assert rendering(one, max_tokens=max_tokens, sections=read.sections, loose=read.loose).text == first.text


# Merging

A, B = learning(1, "a"), learning(2, "b")
BASE = rendering(A, B)


def test_an_untouched_file_asks_for_nothing() -> None:
    assert merged(BASE.text, BASE, A, B) == Edits()


def test_a_new_bullet_is_added_once() -> None:
    text = BASE.text + "- New\n* new\n"
    assert merged(text, BASE, A, B) == Edits(added=(("", "New", ""),))
    assert merged(text, BASE, A, B, learning(3, "New")) == Edits()


def test_a_changed_bullet_is_an_edit_and_a_removed_one_is_hidden() -> None:
    text = BASE.text.replace("- a ", "- A! ").replace("- b <!-- learn_2 -->\n", "")
    assert merged(text, BASE, A, B) == Edits(changed=(("learn_1", "A!"),), removed=("learn_2",))
    assert merged(text, BASE, learning(1, "A!"), B.replace(status="hidden")) == Edits()


def test_without_a_base_nothing_is_hidden_and_ids_are_still_known() -> None:
    text = "- a <!-- learn_1 -->\n- Changed <!-- learn_2 -->\n- new\n"
    edits = merged(text, None, A, B, learning(3, "c"))
    assert edits == Edits(added=(("", "new", ""),), changed=(("learn_2", "Changed"),))
    assert merged(text, None, A, B, earlier=[("learn_2", "Changed")]) == Edits(added=(("", "new", ""),))
    assert merged("", None, A) == Edits()


def test_where_both_sides_changed_the_person_wins_and_is_told() -> None:
    text = BASE.text.replace("- a ", "- mine ")
    edits = merged(text, BASE, learning(1, "theirs"), B)
    assert edits.changed == (("learn_1", "mine"),)
    assert "the file's `mine` replaces `theirs`; `learnt undo learn_1`" in edits.remarks[0]
    assert merged(text, BASE, learning(1, "mine"), B) == Edits()


def test_what_the_store_changed_alone_is_no_edit() -> None:
    assert merged(BASE.text, BASE, learning(1, "theirs"), B.replace(status="archived")) == Edits()


def test_a_removed_bullet_is_hidden_whatever_the_store_made_of_its_text() -> None:
    text = BASE.text.replace("- a <!-- learn_1 -->\n", "")
    assert merged(text, BASE, learning(1, "theirs"), B).removed == ("learn_1",)


@pytest.mark.parametrize("status", ["hidden", "archived", "proposed", "superseded"])
def test_what_was_put_away_does_not_come_back_by_a_branch(status: str) -> None:
    away = learning(3, "c", status=status, superseded_by="learn_1" if status == "superseded" else "")
    remark = f"`c` stays {status}: `learnt restore learn_3` brings it back"
    for line in ("- c <!-- learn_3 -->\n", "- C\n"):
        edits = merged(line + BASE.text, BASE, A, B, away)
        assert not edits
        assert edits.remarks[0].lower() == remark


def test_an_edit_to_what_was_put_away_meanwhile_is_kept_but_does_not_bring_it_back() -> None:
    edits = merged(BASE.text.replace("- a ", "- mine "), BASE, A.replace(status="hidden"), B)
    assert edits.changed == (("learn_1", "mine"),)
    assert edits.remarks == ("`mine` stays hidden: `learnt restore learn_1` brings it back",)


def test_a_bullet_from_another_branch_is_an_edit_only_if_its_text_is_new() -> None:
    c = learning(3, "c")
    text = BASE.text + "- other <!-- learn_3 -->\n"
    assert merged(text, BASE, A, B, c).changed == (("learn_3", "other"),)
    assert merged(text, BASE, A, B, c, earlier=[("learn_3", "other")]) == Edits()


def test_an_unknown_id_is_a_new_bullet_unless_we_wrote_it_ourselves() -> None:
    assert merged(BASE.text + "- x <!-- learn_9 -->\n", BASE, A, B).added == (("", "x", "learn_9"),)
    assert merged(BASE.text, BASE, A) == Edits()


def test_an_edit_to_what_was_put_away_is_kept_though_nobody_knows_the_base() -> None:
    hidden = learning(1, "Use X").replace(status="hidden")
    edits = merged("- Use Y, not X <!-- learn_1 -->", None, hidden)
    assert edits.changed == (("learn_1", "Use Y, not X"),)
    assert "learnt restore learn_1" in " ".join(edits.remarks)


def test_of_one_id_twice_the_new_text_counts_and_further_ones_are_added() -> None:
    text = BASE.text + "- A1 <!-- learn_1 -->\n- A2 <!-- learn_1 -->\n- old <!-- learn_1 -->\n"
    earlier = [("learn_1", "old")]
    assert merged(text, BASE, A, B, earlier=earlier) == Edits(added=(("", "A2", ""),), changed=(("learn_1", "A1"),))
    assert merged(text, BASE, learning(1, "A1"), B, learning(3, "A2"), earlier=earlier) == Edits()
    shown_elsewhere = [*earlier, ("learn_1", "A1")]
    assert merged(text, BASE, learning(1, "A1"), B, learning(3, "A2"), earlier=shown_elsewhere) == Edits()
    assert merged(BASE.text + "- a <!-- learn_1 -->\n", BASE, A, B) == Edits()


def test_of_one_id_twice_the_text_that_the_store_took_from_this_file_stays() -> None:
    text = "- a <!-- learn_1 -->\n- A1 <!-- learn_1 -->\n"
    assert merged(text, None, A) == Edits(added=(("", "A1", ""),))
    assert merged(text, None, A, learning(2, "A1")) == Edits()


def test_a_bullet_that_lost_its_comment_is_still_the_same() -> None:
    assert merged(BASE.text.replace(" <!-- learn_1 -->", ""), BASE, A, B) == Edits()
    assert merged(BASE.text.replace("a <!-- learn_1 -->", "A <!-- learn_"), BASE, A, B).changed == (("learn_1", "A"),)


def test_a_text_that_stands_again_beside_its_changed_self_is_new() -> None:
    text = BASE.text.replace("- a ", "- a\n- changed ")
    assert merged(text, BASE, A, B) == Edits(added=(("", "a", ""),), changed=(("learn_1", "changed"),))


def test_another_section_is_another_category() -> None:
    divided = BASE.text.replace("- b", "## Code structure\n- b")
    assert merged(divided, BASE, A, B).moved == (("learn_2", "code_structure"),)
    assert merged(divided, BASE, A, B.replace(category="code_structure")) == Edits()
    base = rendering(A.replace(category="testing"), B, sections=["Testing"])
    a = A.replace(category="testing")
    assert merged(base.text.replace("Testing", "Tests, all"), base, a, B).moved == (("learn_1", "Tests, all"),)
    assert merged(base.text.replace("## Testing\n", "").replace("## General\n", ""), base, a, B).moved == (
        ("learn_1", ""),
    )
    copied = base.text.replace("## General\n", "## General\n- a <!-- learn_1 -->\n")
    assert merged(copied, base, a, B) == Edits()


def test_a_known_text_in_a_chosen_section_moves_there() -> None:
    c = learning(3, "c", category="testing")
    assert merged(BASE.text + "- c\n", BASE, A, B, c) == Edits()
    assert merged(BASE.text + "## Build\n- c\n## Other\n- c\n", BASE, A, B, c).moved == (("learn_3", "build"),)


# A file in the hands of many

WORDS = st.sampled_from(
    ["use pytest", "Use  pytest", "lint first. Then commit", "small steps", "no secrets", *NASTY[:4]]
)
HEADINGS = st.sampled_from(["Testing", "General", "Our own way", "Code structure"])
BETWEEN = st.sampled_from(["A paragraph", "```\n- code\n```", "```", "| a | b |", "<!-- a note -->", "<!--", "-->", ""])
FILES = st.sampled_from(["here", "branch", "worktree"])
PLACE = st.integers(0, 40)


class Team(RuleBasedStateMachine):
    """People, agents and branches around one store; every file may be stale, edited, merged, or left by a kill."""

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Learning] = {}
        self.renderings: dict[str, Rendering] = {}
        self.known: set[tuple[str, str]] = set()
        self.files = {"here": "", "branch": "", "worktree": ""}
        self.count = 0

    def number(self) -> int:
        self.count += 1
        return self.count

    @initialize(texts=st.lists(WORDS, min_size=3, max_size=7), files=st.lists(FILES, min_size=1, max_size=3))
    def work_has_begun(self, texts: list[str], files: list[str]) -> None:
        for place, text in enumerate(texts):
            self.an_agent_learns(text, ["", "testing", "code_structure"][place % 3], pinned=place % 2 == 0)
        for file in files:
            self.the_file_is_updated(file, killed=False, window=True, max_tokens=2000)

    @rule(text=WORDS, category=st.sampled_from(["", "testing", "code_structure"]), pinned=st.booleans())
    def an_agent_learns(self, text: str, category: str, pinned: bool) -> None:
        if found_in(self.store.values(), text) is None:
            vouched = "" if len(text) % 2 else "evidence"
            made = learning(self.number(), text, category=category, pinned=pinned, task="task_1", vouched=vouched)
            action = f"Run step {self.count}." if self.count % 3 else ""
            self.store[made.id] = made.replace(origin="agent", action=action)

    @rule(place=PLACE, status=st.sampled_from(["hidden", "archived", "superseded", "proposed"]))
    def a_learning_is_put_away(self, place: int, status: str) -> None:
        if len(self.store) > 1:
            old, other = self.pick(place), self.pick(place + 1)
            by = other.id if status == "superseded" else ""
            self.store[old.id] = old.replace(status=status, superseded_by=by)

    @rule(place=PLACE, text=WORDS)
    def the_store_changes_a_text(self, place: int, text: str) -> None:
        if self.store:
            old = self.pick(place)
            self.store[old.id] = old.replace(**edit_fields(old, text))

    @rule(place=PLACE, action=st.sampled_from(["", "Run it.", "Run that instead. It is safer."]))
    def the_store_changes_an_action(self, place: int, action: str) -> None:
        if self.store:
            old = self.pick(place)
            self.store[old.id] = old.replace(action=action)

    @rule(file=FILES, place=PLACE, action=st.sampled_from(["", " → Run it twice.", " → Run → it."]))
    def a_person_changes_an_action(self, file: str, place: int, action: str) -> None:
        lines, at = self.bullet(file, place)
        if lines:
            text, comment, rest = lines[at].rpartition(" <!-- learn_")
            self.write(file, [*lines[:at], f"{split_line(text)[0]}{action}{comment}{rest}", *lines[at + 1 :]])

    @rule(place=PLACE)
    def a_learning_is_restored(self, place: int) -> None:
        if self.store:
            old = self.pick(place)
            self.store[old.id] = old.replace(status="active", superseded_by="")

    @rule(file=FILES, place=PLACE, text=WORDS)
    def a_person_adds_a_bullet(self, file: str, place: int, text: str) -> None:
        self.insert(file, place, f"- {text}")

    @rule(file=FILES, place=PLACE, heading=HEADINGS)
    def a_person_adds_a_heading(self, file: str, place: int, heading: str) -> None:
        self.insert(file, place, f"## {heading}")

    @rule(file=FILES, place=PLACE, text=BETWEEN)
    def a_person_writes_between(self, file: str, place: int, text: str) -> None:
        self.insert(file, place, text)

    @rule(file=FILES, place=PLACE, text=WORDS)
    def a_person_changes_a_bullet(self, file: str, place: int, text: str) -> None:
        lines, at = self.bullet(file, place)
        if lines:
            comment = lines[at].rpartition(" <!-- learn_")
            self.write(file, [*lines[:at], f"- {text}{comment[1]}{comment[2]}", *lines[at + 1 :]])

    @rule(file=FILES, place=PLACE)
    def a_comment_gets_lost(self, file: str, place: int) -> None:
        lines, at = self.bullet(file, place)
        if lines:
            self.write(file, [*lines[:at], lines[at].rpartition(" <!-- ")[0] or lines[at], *lines[at + 1 :]])

    @rule(file=FILES, place=PLACE)
    def a_line_is_deleted(self, file: str, place: int) -> None:
        lines = self.files[file].split("\n")
        del lines[place % len(lines)]
        self.write(file, lines)

    @rule(file=FILES, place=PLACE)
    def a_bullet_is_deleted(self, file: str, place: int) -> None:
        lines, at = self.bullet(file, place)
        self.write(file, [*lines[:at], *lines[at + 1 :]] if lines else self.files[file].split("\n"))

    @rule(file=FILES, other=FILES, place=PLACE, to=PLACE)
    def a_bullet_is_copied(self, file: str, other: str, place: int, to: int) -> None:
        lines, at = self.bullet(other, place)
        if lines:
            self.insert(file, to, lines[at])

    @rule(file=FILES, place=PLACE, to=PLACE)
    def a_bullet_is_moved(self, file: str, place: int, to: int) -> None:
        lines, at = self.bullet(file, place)
        if lines:
            self.write(file, [*lines[:at], *lines[at + 1 :]])
            self.insert(file, to, lines[at])

    @rule(file=FILES, other=FILES, place=PLACE, to=PLACE)
    def a_line_is_copied(self, file: str, other: str, place: int, to: int) -> None:
        lines = self.files[other].split("\n")
        self.insert(file, to, lines[place % len(lines)])

    @rule(file=FILES, other=FILES)
    def a_branch_is_made(self, file: str, other: str) -> None:
        self.files[file] = self.files[other]

    @rule(file=FILES, other=FILES)
    def a_branch_is_merged_as_text(self, file: str, other: str) -> None:
        ours, theirs = self.files[file].split("\n"), self.files[other].split("\n")
        both = [line for line in difflib.ndiff(ours, theirs) if not line.startswith("?")]
        self.write(file, [line[2:] for line in both])

    @rule(file=FILES)
    def the_file_goes_through_another_system(self, file: str) -> None:
        self.files[file] = "\ufeff" + self.files[file].removeprefix("\ufeff").replace("\n", "\r\n").rstrip()

    @rule(file=FILES, killed=st.booleans(), window=st.booleans(), max_tokens=st.sampled_from([100, 250, 2000]))
    def the_file_is_updated(self, file: str, killed: bool, window: bool, max_tokens: int) -> None:
        parsed = parse(self.files[file])
        base = self.renderings.get(parsed.rendering)
        edits = self.merge(parsed, base)
        self.check_edits(parsed, base, edits)
        self.apply(edits, base)
        assert not self.merge(parsed, base), "merging again asks for nothing"
        self.check_nothing_was_lost(parsed, base, edits)
        if not killed:
            self.regenerate(file, parsed, frozenset(["task_1"] if window else []), max_tokens)
            assert self.merge(parse(self.files[file]), self.renderings[parse(self.files[file]).rendering]) == Edits()

    def regenerate(self, file: str, parsed: ParsedFile, window: frozenset[str], max_tokens: int) -> None:
        shown = select(self.store.values(), window_tasks=window, since_ms=10**9, stage=stage, impact=impact)
        made = rendering(
            *shown, id=f"r_{self.number()}", max_tokens=max_tokens, sections=parsed.sections, loose=parsed.loose
        )
        self.renderings[made.id] = made
        self.known |= {(bullet.id, bullet.text) for bullet in made.bullets}
        self.files[file] = made.text
        assert made.over_limit or estimate_tokens(made.text) <= max_tokens
        assert parse(made.text).rendering == made.id
        assert {bullet.id for bullet in made.bullets} | set(made.left_out) == {one.id for one in shown}
        assert all(self.store[bullet.id].status == "active" for bullet in made.bullets)
        for piece in parsed.loose:
            assert piece.text in made.text

    def merge(self, parsed: ParsedFile, base: Rendering | None) -> Edits:
        return merge(
            parsed,
            base,
            store=self.store,
            known_text=lambda *shown: shown in self.known,
            find=lambda text: found_in(self.store.values(), text),
        )

    def check_edits(self, parsed: ParsedFile, base: Rendering | None, edits: Edits) -> None:
        before = {bullet.id for bullet in base.bullets} if base else set()
        named = {bullet.id for bullet in parsed.bullets}
        written = {bullet_key(bullet.text) for bullet in parsed.bullets if not bullet.id}
        for id in edits.removed:
            assert id in before - named, "only what stood in the base and is gone is hidden"
            text = bullet_key(line_of(self.store[id]))
            others = [one for one in self.store.values() if one.id != id and bullet_key(line_of(one)) == text]
            assert text not in written or any(one.status == "active" for one in others)
        for _, text, _ in edits.added:
            found = found_in(self.store.values(), text)
            assert found is None or found.id in dict(edits.changed), "what there is, put away or not, is not added"

    def check_nothing_was_lost(self, parsed: ParsedFile, base: Rendering | None, edits: Edits) -> None:
        shown = self.known | {(bullet.id, bullet.text) for bullet in (base.bullets if base else ())}
        # Whoever only deletes the action has not written the statement.
        ours = {bullet_key(part) for _, text in shown for part in (text, split_line(text)[0])}
        for bullet in parsed.bullets:
            kept = found_in(self.store.values(), bullet.text) or bullet_key(bullet.text) in ours
            assert kept or any(bullet.id in remark for remark in edits.remarks), bullet

    def apply(self, edits: Edits, base: Rendering | None) -> None:
        for section, text, id in edits.added:
            made = learning(self.number(), text, origin="person", category=category_of(section))
            made = made.replace(id=id, **fields_of_rendering(text)) if id else made
            self.store[made.id] = made
        seen = {bullet.id: bullet.text for bullet in base.bullets} if base else {}
        for id, text in edits.changed:
            self.store[id] = self.store[id].replace(**edit_fields(self.store[id], text, seen=seen.get(id)))
        for id in edits.removed:
            self.store[id] = self.store[id].replace(status="hidden")
        for id, category in edits.moved:
            self.store[id] = self.store[id].replace(category=category)
        for id in (*edits.accepted, *dict(edits.changed)):
            self.store[id] = self.store[id].replace(vouched="person")

    def pick(self, place: int) -> Learning:
        return list(self.store.values())[place % len(self.store)]

    def bullet(self, file: str, place: int) -> tuple[list[str], int]:
        lines = self.files[file].split("\n")
        places = [at for at, line in enumerate(lines) if line.startswith("- ")]
        return (lines, places[place % len(places)]) if places else ([], 0)

    def insert(self, file: str, place: int, line: str) -> None:
        lines = self.files[file].split("\n")
        at = place % (len(lines) + 1)
        self.write(file, [*lines[:at], line, *lines[at:]])

    def write(self, file: str, lines: Sequence[str]) -> None:
        self.files[file] = "\n".join(lines)


Team.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestTeam = Team.TestCase
