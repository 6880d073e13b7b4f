"""The memory index: what is wrong with it is found, and repairing it keeps what people wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from learnt.consolidate.memory_index import (
    add_pointer,
    check_index,
    choose_words,
    list_words,
    read_index,
    remove_pointer,
    repair_index,
)
from learnt.consolidate.redundant import find_redundant
from learnt.consolidate.topics import Topic, list_entries
from learnt.model import Learning, Triggers

PATH = "docs/learnings/memory-index.md"
TESTING = Topic(
    path="docs/learnings/testing.md",
    text="# Testing\n\n## Start Redis first\n<!-- learn_1 -->\n\nOr it hangs.\n\n## Seed the database\n\nText.\n",
)
MAIL = Topic(path="docs/learnings/mail.md", text="# Mail\n\n- Use the sandbox <!-- learn_2 -->\n- Another item\n")
NAMED = Topic(path="CLAUDE.md", text="# Rules\n\n## Style\n\nTabs.\n", is_named=True)
TOPICS = [TESTING, MAIL, NAMED]
GOOD = """# Memory index

## [mail.md](mail.md)

- Use the sandbox — sandbox, mail <!-- learn_2 -->

## [testing.md](testing.md)

- Start Redis first — `make redis`, queue <!-- learn_1 -->
- Seed the database — seeds
"""


def kinds(text: str, others: tuple[str, ...] = ()) -> list[str]:
    return [fault.kind for fault in check_index(text, PATH, TOPICS, others=others)]


def repair(text: str, others: tuple[str, ...] = ()) -> str:
    return repair_index(text, PATH, TOPICS, others=others, choose_words=choose_words)


def test_an_index_that_fits_its_files_has_no_faults() -> None:
    assert kinds(GOOD) == []
    assert repair(GOOD) == GOOD
    assert kinds(GOOD.replace("\n", "\r\n")) == []
    assert list_words(read_index(GOOD, PATH))["docs/learnings/testing.md"] == [("make redis", "queue"), ("seeds",)]


def test_each_fault_is_named_and_repaired() -> None:
    seeds = "- Seed the database — seeds\n"
    broken = {
        "orphan": GOOD.replace(seeds, ""),
        "dangling": GOOD + "- Nothing has this — words <!-- learnt -->\n",
        "duplicate": GOOD + "- Seed the database — other words\n",
        "misplaced": GOOD.replace(seeds, "").replace("<!-- learn_2 -->\n", f"<!-- learn_2 -->\n{seeds}"),
        "order": GOOD.replace(seeds, "").replace("- Start", f"{seeds}- Start"),
    }
    for kind, text in broken.items():
        assert kind in kinds(text), kind
        assert check_index(repair(text), PATH, TOPICS) == []
        assert "`make redis`, queue <!-- learn_1 -->" in repair(text)
    assert repair(broken["misplaced"]) == repair(broken["order"]) == repair(broken["duplicate"]) == GOOD
    assert kinds("") == ["missing"]
    assert check_index(repair(""), PATH, TOPICS) == []


def test_a_heading_without_a_file_goes_and_its_text_stays() -> None:
    text = GOOD + "\n## [gone.md](gone.md)\n\nRead this, too.\n\n- Mine\n- Something — words <!-- learn_9 -->\n"
    assert kinds(text) == ["dangling", "dangling"]
    assert "Read this, too.\n\n- Mine\n" in repair(text)
    assert "Something" not in repair(text)
    assert "gone.md" not in repair(text)


def test_a_list_item_of_a_person_is_no_fault_and_survives_repairs() -> None:
    own = "- Ask Jana — she set it up\n  or Ben\n"
    text = GOOD.replace("- Start Redis", f"{own}- Start Redis")
    assert kinds(text) == []
    assert repair(text) == text
    repaired = repair(text.replace("- Seed the database — seeds\n", ""))
    assert f"## [testing.md](testing.md)\n\n{own}\n- Start Redis first" in repaired
    assert "- Seed the database — Seed, database <!-- learnt -->\n" in repaired
    assert check_index(repaired, PATH, [MAIL, TESTING.replace(text="# Testing\n")])[-1].title.startswith(
        "Seed the database"
    )


def test_what_people_wrote_beside_the_lines_stays() -> None:
    text = GOOD.replace("## [testing.md](testing.md)\n", "## `testing.md`\n\nAsk Jana first.\n")
    own = "\n## Notes\n\n- A note of mine\n\n## [../api.md](../api.md)\n\n- Endpoints — http\n"
    assert kinds(text + own, others=("docs/api.md",)) == []
    repaired = repair(text + own + "\n## mail.md\n\n- Nothing\n", others=("docs/api.md",))
    for line in ("Ask Jana first.", "- A note of mine", "- Endpoints — http", "## `testing.md`"):
        assert line in repaired


def test_a_line_without_an_id_is_known_by_its_title() -> None:
    assert kinds(GOOD.replace(" <!-- learn_1 -->", "")) == []
    assert kinds(GOOD.replace("- Seed the database — seeds", "- seed the  database")) == []


def test_a_file_that_a_person_named_is_listed_only_with_its_learnings() -> None:
    named = NAMED.replace(text="# Rules\n\n## Style\n\n- Tabs <!-- learn_3 -->\n- More\n")
    faults = check_index(GOOD, PATH, [TESTING, MAIL, named])
    assert [(fault.kind, fault.file, fault.id) for fault in faults] == [("orphan", "CLAUDE.md", "learn_3")]
    repaired = repair_index(GOOD, PATH, [TESTING, MAIL, named], choose_words=choose_words)
    assert "## [../../CLAUDE.md](../../CLAUDE.md)\n\n- Tabs" in repaired


def test_the_words_of_a_new_line_come_from_its_learning() -> None:
    learning = Learning(
        id="learn_1", title="Start Redis first", tags=("queues",), triggers=Triggers(commands=("make redis",))
    )
    made = repair_index("", PATH, TOPICS, choose_words=lambda entry: choose_words(entry, learning))
    line = next(line for line in made.split("\n") if "learn_1" in line)
    assert line == "- Start Redis first — make redis, queues, Redis <!-- learn_1 -->"


def test_a_new_line_says_where_its_learning_holds() -> None:
    learning = Learning(id="learn_1", title="Start Redis first", context="on CI")
    made = repair_index("", PATH, TOPICS, choose_words=lambda entry: choose_words(entry, learning))
    assert "- Start Redis first — on CI, Redis <!-- learn_1 -->\n" in made
    long = choose_words(list_entries(TESTING.text)[0], learning.replace(context="on the build server " * 5))
    assert long == ["Redis"]


LINES = st.sampled_from(
    [
        "",
        "Prose.",
        "# Memory index",
        "## [testing.md](testing.md)",
        "## mail.md",
        "## [gone.md](gone.md)",
        "## [../api.md](../api.md)",
        "## ../../../outside.md",
        "## Notes",
        "### Deeper",
        "- Start Redis first — redis <!-- learn_1 -->",
        "- Use the sandbox <!-- learn_2 -->",
        "- Seed the database",
        "- Seed the database — seeds, data",
        "- Twice — said — words",
        "- Twice",
        "- Nothing has this",
        "- Unknown <!-- learn_99 -->",
        "  more about it",
        "```",
        "<!-- open",
        "-->",
    ]
)
ENTRIES = st.sampled_from(
    [
        "## Start Redis first\n<!-- learn_1 -->\n\nText.",
        "- Use the sandbox <!-- learn_2 -->",
        "## Seed the database\n\nText.",
        "## Twice — said\n\nText.",
        "## Twice\n\nText.",
        "## Start Redis first\n\nText.",
        "## Forged <!-- learn_1 -->\n\nText.",
        "## Ümläut — `日本語` -->\n\nText.",
        "## ---\n\nText.",
        "```",
        "Text.",
    ]
)
FILES = st.dictionaries(
    st.sampled_from(["testing.md", "mail.md", "a [b] (c) d.md", "ä%20.md"]), st.lists(ENTRIES, max_size=6), max_size=3
)


@given(st.lists(LINES, max_size=25), FILES, st.sampled_from(["\n", "\r\n"]))
def test_a_repaired_index_has_no_faults_and_stays_as_it_is(
    lines: list[str], files: dict[str, list[str]], end: str
) -> None:
    topics = [Topic(path=f"docs/learnings/{name}", text="\n\n".join(texts)) for name, texts in files.items()]
    text = end.join(lines)
    repaired = repair_index(text, PATH, topics, others=["docs/api.md"], choose_words=choose_words)
    assert check_index(repaired, PATH, topics, others=["docs/api.md"]) == []
    assert repair_index(repaired, PATH, topics, others=["docs/api.md"], choose_words=choose_words) == repaired
    assert ("Prose." in text) == ("Prose." in repaired)
    assert lines.count("- Nothing has this") == repaired.replace("\r", "").split("\n").count("- Nothing has this")


def test_a_pointer_is_added_once_and_taken_back_without_a_trace() -> None:
    for text in ("# Rules\n\n- Use tabs.\n", "# Rules\r\n\r\n- Use tabs.\r\n", ""):
        pointed = add_pointer(text, PATH)
        assert f"]({PATH})" in pointed
        assert add_pointer(pointed, PATH) == pointed
        assert remove_pointer(pointed) == text
        moved = add_pointer(pointed, "docs/other.md")
        assert PATH not in moved
        assert moved.count("<!-- learnt-pointer -->") == 1
    assert remove_pointer(add_pointer("No line end", PATH)) == "No line end\n"


def test_a_file_that_names_the_index_needs_no_pointer() -> None:
    assert add_pointer(f"Read {PATH} first.\n", PATH) == f"Read {PATH} first.\n"


def test_removing_a_pointer_never_takes_what_a_person_wrote() -> None:
    open_ended = "<!-- learnt-pointer -->\nMine.\n<!-- other -->\nMine, too.\n"
    assert remove_pointer(open_ended) == open_ended
    pointed = add_pointer("Above.\n", PATH) + "Below.\n"
    assert remove_pointer(pointed) == "Above.\nBelow.\n"


def test_what_a_loaded_file_says_already_is_redundant() -> None:
    rules = [
        Learning(id="learn_9", title="Run `make lint` before each commit"),
        Learning(id="learn_8", title="Use tabs"),
    ]
    known = [
        Learning(id="learn_1", title="Run `make lint` before every commit"),
        Learning(id="learn_2", title="Run `make lint` after each commit"),
        Learning(id="learn_3", title="Run `make test` before each commit"),
        Learning(id="learn_4", title="Use tabs", loaded_from="CLAUDE.md"),
    ]
    found = find_redundant(known, {"CLAUDE.md": rules})
    assert [(one.learning.id, one.file, one.rule.id) for one in found] == [("learn_1", "CLAUDE.md", "learn_9")]
