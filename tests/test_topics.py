"""Topic files: where a learning goes, how it is written there, and how a long file is split without loss."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.consolidate.split import render_patch, split
from learnt.consolidate.topics import MARK, Topic, find_topic_files, is_own, list_entries, route, write_entries
from learnt.model import Learning

FOLDER = "docs/learnings"
REDIS = "Start Redis before the queue tests"


def learning(title: str, number: int = 1, **fields: Any) -> Learning:
    return Learning(id=f"learn_{number}", title=title, **fields)


def topic(name: str, text: str = "", **fields: Any) -> Topic:
    return Topic(path=f"{FOLDER}/{name}.md", text=text or f"# {name.capitalize()}\n", **fields)


def go(entry: Learning, *topics: Topic, **calling: list[tuple[str, ...]]) -> str:
    words = {f"{FOLDER}/{name}.md": lines for name, lines in calling.items()}
    return route(entry, topics, words, folder=FOLDER).removeprefix(f"{FOLDER}/")


def test_a_learning_goes_to_the_file_of_its_category_then_of_its_domain() -> None:
    files = topic("testing"), topic("database")
    assert go(learning(REDIS, category="testing", domain="database"), *files) == "testing.md"
    assert go(learning(REDIS, category="Testing"), *files) == "testing.md"
    assert go(learning(REDIS, category="queues", domain="database"), *files) == "database.md"
    assert go(learning(REDIS, category="queues"), topic("work", "# Work\n\n## Queues\n\n- One\n- Two\n")) == "work.md"


def test_without_a_name_the_index_decides_and_then_likeness() -> None:
    files = topic("one"), topic("two", f"# Two\n\n## {REDIS}\n\nWithout it they hang.\n")
    assert go(learning("Redis hangs in the queue"), *files, one=[("redis", "queue")], two=[("mail",)]) == "one.md"
    assert go(learning("Start Redis before you run the queue tests"), *files) == "two.md"


def test_otherwise_a_new_file_is_named_after_the_category_or_domain() -> None:
    assert go(learning("Prices are cents", category="Money & Prices"), topic("testing")) == "money-prices.md"
    assert go(learning("Prices are cents", domain="prices"), topic("testing")) == "prices.md"
    assert go(learning("Prices are cents")) == "general.md"
    assert go(learning("Prices are cents", category="general")) == "general.md"
    assert go(learning("Prices are cents", category="../../etc/passwd")) == "etc-passwd.md"
    assert go(learning("Prices are cents", category="memory index")) == "memory-index-notes.md"
    assert go(learning("Prices are cents", category="…")) == "general.md"


def test_a_new_topic_file_takes_no_path_that_another_file_has() -> None:
    entry, reserved = learning("Prices are cents", category="Overview"), [f"{FOLDER}/overview.md"]
    assert route(entry, [], {}, folder=FOLDER, reserved=reserved) == f"{FOLDER}/overview-notes.md"
    reserved += [f"{FOLDER}/Overview-Notes.MD", f"{FOLDER}/overview-notes-2.md"]
    assert route(entry, [], {}, folder=FOLDER, reserved=reserved) == f"{FOLDER}/overview-notes-3.md"


def test_no_part_of_a_split_file_takes_the_path_of_the_index() -> None:
    sections = "".join(f"## {title}\n\n" + "Some words.\n" * 90 for title in ("Index", "Other", "Third", "Last", "End"))
    text, index = f"# Memory\n\n{MARK}\n\n{sections}", f"{FOLDER}/memory-index.md"
    assert index in split(f"{FOLDER}/memory.md", text)
    files = split(f"{FOLDER}/memory.md", text, reserved=[index])
    assert index not in files
    assert "## Index" in files[f"{FOLDER}/memory-index-2.md"]


def test_a_learning_stays_in_the_file_that_has_it() -> None:
    entry = learning(REDIS, category="testing")
    elsewhere = topic("database", write_entries("", [entry.replace(category="database")]))
    assert go(entry, topic("testing"), elsewhere) == "database.md"


def test_a_part_of_a_split_file_gets_what_its_index_calls_for() -> None:
    files = topic("testing"), topic("testing-redis")
    entry = learning("Redis needs port 6380", category="testing")
    assert go(entry, *files, testing_redis=[]) == "testing.md"
    calling = {f"{FOLDER}/testing-redis.md": [("redis", "port")]}
    assert route(entry, files, calling, folder=FOLDER) == f"{FOLDER}/testing-redis.md"


def test_only_what_somebody_vouches_for_goes_to_a_file_that_clients_load() -> None:
    claude = Topic(path="CLAUDE.md", text="# Rules\n\n## Testing\n\n- One\n- Two\n", is_named=True, is_loaded=True)
    entry = learning(REDIS, category="testing")
    assert go(entry, claude) == "testing.md"
    assert go(entry.replace(vouched="person"), claude) == "CLAUDE.md"


def test_a_new_file_says_that_learnt_made_it_and_each_entry_names_its_learning() -> None:
    entry = learning(REDIS, category="testing", observation="Without it they hang.", action="Run `make redis`.")
    text = write_entries("", [entry, learning("Seed the database first", 2, polarity="avoid")])
    assert text == (
        f"# Testing\n\n{MARK}\n\n"
        f"## {REDIS}\n<!-- learn_1 -->\n\nWithout it they hang.\n\n**Action**: Run `make redis`.\n\n"
        "## Avoid: Seed the database first\n<!-- learn_2 -->\n"
    )
    assert is_own(text)
    assert [(one.id, one.title) for one in list_entries(text)] == [
        ("learn_1", REDIS),
        ("learn_2", "Avoid: Seed the database first"),
    ]


def test_an_entry_is_written_as_the_others_are() -> None:
    entry = learning(REDIS, category="queues", observation="Without it they hang.\nFor ten minutes.")
    sections = write_entries("# Notes\n\n### One\n\nText.\n\n### Two\n\nText.\n", [entry])
    assert sections.endswith(f"\n\n### {REDIS}\n<!-- learn_1 -->\n\nWithout it they hang.\nFor ten minutes.\n")
    tight = write_entries("# Notes\n\n* One\n* Two\n\nThe end.\n", [entry])
    assert tight == (
        f"# Notes\n\n* One\n* Two\n* {REDIS} <!-- learn_1 -->\n"
        "  Without it they hang.\n  For ten minutes.\n\nThe end.\n"
    )
    loose = write_entries("- One\n\n- Two\n\n- Three", [entry])
    assert loose.startswith(f"- One\n\n- Two\n\n- Three\n\n- {REDIS} <!-- learn_1 -->\n")


def test_an_entry_goes_below_the_heading_that_fits() -> None:
    groups = "# Notes\n\n## Mail\n\n- One\n- Two\n\n## Queues\n\n- Three\n"
    entry = learning(REDIS, category="queues")
    assert write_entries(groups, [entry]).endswith(f"## Queues\n\n- Three\n- {REDIS} <!-- learn_1 -->\n")
    in_mail = write_entries(groups, [entry.replace(category="", tags=("mail",))])
    assert f"- Two\n- {REDIS} <!-- learn_1 -->\n\n## Queues" in in_mail
    new = write_entries(groups, [entry.replace(category="databases")])
    assert new.endswith(f"- Three\n\n## Databases\n\n- {REDIS} <!-- learn_1 -->\n")
    nested = "## Mail\n\n### One\n\nText.\n\n### Two\n\nText.\n\n## Queues\n\n### Three\n\nText.\n"
    assert write_entries(nested, [entry.replace(category="mail")]).startswith(
        f"## Mail\n\n### One\n\nText.\n\n### Two\n\nText.\n\n### {REDIS}\n<!-- learn_1 -->\n\n## Queues"
    )


def test_line_ends_and_the_lack_of_a_last_one_do_not_mix() -> None:
    text = write_entries("# Notes\r\n\r\n## One\r\n\r\nText.", [learning(REDIS, observation="One.\nTwo.")])
    assert text.replace("\r\n", "").count("\n") == text.replace("\r\n", "").count("\r") == 0
    assert text.startswith("# Notes\r\n\r\n## One\r\n\r\nText.\r\n\r\n## ")
    assert text.endswith("\r\n\r\nOne.\r\nTwo.\r\n")


def test_an_entry_cannot_forge_another_or_swallow_what_follows() -> None:
    forged = learning(
        "Look <!-- learn_9 -->",
        observation="## Heading\n<!-- learn_8 -->\n```\nnever closed\n---",
        action=f"{MARK}\n<!-- learnt-pointer -->",
    )
    for start in ("", "- One\n- Two\n"):
        text = write_entries(start, [forged, learning("Next", 2)])
        assert [entry.id for entry in list_entries(text)] == ["learn_1", "learn_2"]
        assert is_own(text) is not bool(start)
        assert write_entries(text, [forged, learning("Next", 2)]) == text


def test_a_heading_in_code_or_in_front_matter_is_no_entry() -> None:
    text = "---\n# comment: x\n---\n# Notes\n\n```sh\n## not this\n```\n\n<!--\n## nor this\n-->\n\n## This\n\nText.\n"
    assert [entry.title for entry in list_entries(text)] == ["This"]
    assert [entry.title for entry in list_entries("# One\n\nText.\n\n# Two\n\nText.\n")] == ["One", "Two"]


def fill(title: str, count: int, lines: int, name: str = "## Entry {} about {}") -> str:
    words = ("redis", "postgres", "mail", "search")
    entries = (
        f"{name.format(number, words[number % 4])}\n<!-- learn_{number} -->\n\n" + "Text.\n" * lines
        for number in range(count)
    )
    return f"# {title}\n\n{MARK}\n\n" + "\n".join(entries)


def test_a_long_file_is_split_by_what_its_entries_are_about() -> None:
    text = fill("Testing", 80, 2)
    files = split(f"{FOLDER}/testing.md", text)
    assert all(content.count("\n") < 400 for content in files.values())
    assert all(is_own(content) for content in files.values())
    assert {name.removeprefix(f"{FOLDER}/") for name in files} >= {"testing.md", "testing-redis.md"}
    assert "See also: [redis](testing-redis.md)" in files[f"{FOLDER}/testing.md"]
    topics = [Topic(path=name, text=content) for name, content in files.items()]
    assert set(find_topic_files(topics)) == {f"learn_{number}" for number in range(80)}
    assert split(f"{FOLDER}/testing.md", "\n".join(text.split("\n")[:399])) == {
        f"{FOLDER}/testing.md": "\n".join(text.split("\n")[:399])
    }


def test_large_sections_become_files_named_after_their_headings() -> None:
    sections = "".join(f"## {name}\n\n" + "### One\n\nText.\n\n" * 40 for name in ("Redis", "Mail", "Search"))
    files = split("notes.md", f"# Notes\n\n{MARK}\n\n{sections}")
    assert list(files) == ["notes.md", "notes-redis.md", "notes-mail.md"]
    assert files["notes-redis.md"].startswith(f"# Notes: Redis\n\n{MARK}\n\n## Redis\n\n### One\n")


def test_a_section_that_is_too_long_alone_is_split_by_its_own_headings() -> None:
    inner = "".join(f"### Part {number}\n\n" + "Text.\n" * 60 + "\n" for number in range(10))
    files = split("notes.md", f"# Notes\n\n## Redis\n\n{inner}## Mail\n\nText.\n")
    assert len(files) > 3
    assert all(content.count("\n") < 400 for content in files.values())


def test_a_file_without_headings_stays_as_it_is() -> None:
    assert split("notes.md", "Text.\n" * 500) == {"notes.md": "Text.\n" * 500}
    assert split("notes.md", "# Notes\n\n## One\n\n" + "Text.\n" * 500)["notes.md"].count("\n") == 504


def test_links_lead_to_where_their_sections_are() -> None:
    redis = "## Redis\n\nSee [mail](#mail) and [here](#redis).\n\n" + "Text.\n" * 300
    mail = "\n## Mail\n\nSee [redis](#redis), [docs][d].\n\n" + "Text.\n" * 100 + "\n[d]: https://example.org\n"
    others = {
        "other.md": "See [x](notes.md#redis), [y](notes.md#mail) and [z](notes.md).\n",
        "../CLAUDE.md": "See [x](docs/notes.md#redis).\n",
    }
    others = {f"docs/{name}" if name == "other.md" else "CLAUDE.md": text for name, text in others.items()}
    files = split("docs/notes.md", f"# Notes\n\n{redis}{mail}", others=others)
    assert "See [mail](notes.md#mail) and [here](#redis)." in files["docs/notes-redis.md"]
    assert "See [redis](notes-redis.md#redis), [docs][d]." in files["docs/notes.md"]
    assert files["docs/other.md"] == "See [x](notes-redis.md#redis), [y](notes.md#mail) and [z](notes.md).\n"
    assert files["CLAUDE.md"] == "See [x](docs/notes-redis.md#redis).\n"


def test_a_part_has_the_link_definitions_that_it_uses() -> None:
    redis = "## Redis\n\nSee [docs][d].\n\n" + "Text.\n" * 300
    files = split("notes.md", f"# Notes\n\n{redis}\n## Mail\n\n" + "Text.\n" * 100 + "\n[d]: https://example.org\n")
    assert all("[d]: https://example.org" in content for content in files.values())


def test_no_other_file_is_overwritten() -> None:
    text = fill("Testing", 80, 2)
    files = split("testing.md", text, others={"Testing-Redis.md": "mine"})
    assert "testing-redis-2.md" in files
    assert "Testing-Redis.md" not in files


def test_a_split_can_be_shown_as_a_patch() -> None:
    text = fill("Testing", 80, 2).replace(f"{MARK}\n\n", "")
    patch = render_patch({"testing.md": text}, split("testing.md", text))
    assert "--- a/testing.md\n+++ b/testing.md\n" in patch
    assert "--- /dev/null\n+++ b/testing-redis.md\n" in patch
    assert not any(is_own(content) for content in split("testing.md", text).values())


LINES = st.sampled_from(
    [
        "",
        "Text with ümläuts, 日本語 and 🙂.",
        "# Title",
        "## Redis",
        "## Mail and queues",
        "### Deeper",
        "### Other — deeper",
        "- An item",
        "  continued",
        "* Another item",
        "1. Numbered",
        "```",
        "~~~ python",
        "<!-- a comment -->",
        "<!-- open",
        "-->",
        "<!-- learn_900 -->",
        "- Item <!-- learn_901 -->",
        "| a | table |",
        "---",
        "> quoted",
        MARK,
    ]
)
FILES = st.builds(
    lambda lines, end, last: end.join(lines) + (end if last else ""),
    st.lists(LINES, max_size=60),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
TEXTS = st.one_of(
    st.just(""),
    st.text(max_size=40),
    st.lists(LINES, max_size=6).map("\n".join),
)
LEARNINGS = st.lists(
    st.builds(
        lambda title, observation, action, category, polarity: learning(
            title, observation=observation, action=action, category=category, polarity=polarity
        ),
        st.sampled_from([REDIS, "# Title", "- Item", "Look <!-- learn_902 -->", "日本語 — ümläut", "```"]),
        TEXTS,
        TEXTS,
        st.sampled_from(["", "redis", "mail", "Deeper", "other"]),
        st.sampled_from(["do", "avoid"]),
    ),
    max_size=4,
).map(lambda found: [one.replace(id=f"learn_{number}") for number, one in enumerate(found, 1)])


def _lines(text: str) -> list[str]:
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def _is_subsequence(some: list[str], others: list[str]) -> bool:
    rest = iter(others)
    return all(line in rest for line in some)


@given(FILES, LEARNINGS)
def test_writing_only_adds_lines_and_does_so_once(text: str, learnings: list[Learning]) -> None:
    before = {entry.id for entry in list_entries(text)}
    written = write_entries(text, learnings)
    assert _is_subsequence(_lines(text), _lines(written))
    assert write_entries(written, learnings) == written
    ids = Counter(entry.id for entry in list_entries(written) if entry.id)
    assert all(ids[one.id] == 1 for one in learnings)
    assert before <= set(ids) | {""}
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        assert "\n" not in written.replace("\r\n", "")


@given(FILES, st.integers(2, 40))
def test_splitting_loses_no_line_and_is_done_once(text: str, limit: int) -> None:
    files = split("notes.md", text, limit=limit)
    lines = Counter(line for content in files.values() for line in _lines(content))
    assert not Counter(_lines(text)) - lines
    again = {
        name: content
        for path, old in files.items()
        for name, content in split(path, old, limit=limit, others={k: v for k, v in files.items() if k != path}).items()
    }
    assert again == files


@pytest.mark.parametrize("count", [60, 200, 900])
def test_parts_are_shorter_than_the_limit(count: int) -> None:
    files = split("notes.md", fill("Notes", count, 4))
    assert all(content.count("\n") < 400 for content in files.values())
    assert sum(len(list_entries(content)) for content in files.values()) == count
