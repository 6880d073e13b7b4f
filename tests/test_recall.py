"""Finding learnings by words and triggers, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from learnt import Memory, WrongRequest
from learnt.recall.query import MAX_POSTINGS, Query, words_to_look_up
from learnt.store import bulk, index, word_index
from learnt.text.triggers import Situation, SituationMatcher, anchor_of
from learnt.text.words import indexed_words, mark, stem, words
from tests.support.postgres import PostgresServer
from tests.support.transcripts import NOON_MS

IDENTIFIERS = ("build_prompt", "buildPrompt", "--no-learnings", "E0308", "C++", "re-use", "memory.py")
ODD_TEXTS = (
    '"',
    "'; drop table learning; --",
    "NOT",
    "AND OR NEAR(",
    "a:b",
    "title:x",
    "*",
    "C++ -- ^x",
    "{a b}",
    "🎉",
)


@pytest.mark.parametrize("text", IDENTIFIERS)
def test_an_identifier_is_found_as_a_whole_and_by_its_parts(memory: Memory, text: str) -> None:
    learning = memory.add("Something else")
    wanted = memory.add(f"Beware of {text} here")
    for query in (text, text.lower(), f"why does {text} fail?", *(part for part in words(text) if len(part) > 2)):
        assert [hit.learning.id for hit in memory.search(query)] == [wanted.id], query
    assert memory.search("something")[0].learning.id == learning.id


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("httpserver", "HTTPServer2Go"),
        ("buildprompt", "build_prompt"),
        ("buildPrompt", "build_prompt"),
        ("reuse", "re-use"),
        ("runtests", "run-tests"),
    ],
)
def test_an_identifier_is_found_when_its_parts_are_written_in_one(memory: Memory, query: str, text: str) -> None:
    memory.add("Something else")
    wanted = memory.add(f"Beware of {text} here")
    [hit] = memory.search(query)
    assert (hit.learning.id, hit.highlights["title"]) == (wanted.id, f"Beware of <mark>{text}</mark> here")


@pytest.mark.parametrize("text", [*ODD_TEXTS, "", " ", "\x00\ud800"])
def test_no_text_raises_or_means_anything_but_its_words(memory: Memory, text: str) -> None:
    memory.add("Plain words only")
    assert memory.search(text) == []


def test_a_megabyte_of_text_is_searched_like_any_other(memory: Memory) -> None:
    wanted = memory.add("Deadlocks come from lock order")
    memory.add("Unrelated matter")
    text = "deadlock " + " ".join(f"word{number}" for number in range(120_000)) + " lock order"
    assert [hit.learning.id for hit in memory.search(text)] == [wanted.id]


def test_an_error_at_the_end_of_a_long_log_is_found(memory: Memory) -> None:
    memory.add_all([{"title": f"About line{number} of the log"} for number in range(0, 3_000, 10)])
    wanted = memory.add("Disk quota exceeded on the runner", triggers={"errors": ["quota exceeded: runner"]})
    log = "\n".join(f"line{number} compiled target{number} of the build step{number}" for number in range(3_000))
    by_words = memory.search(f"{log}\nfatal disk failure: exceeded the quota on this runner")
    by_trigger = memory.search(f"{log}\nfatal: Quota exceeded: runner 7")
    assert wanted.id in {hit.learning.id for hit in by_words}
    assert (by_trigger[0].learning.id, by_trigger[0].trigger) == (wanted.id, "errors: quota exceeded: runner")


def test_a_hit_tells_its_score_its_fields_and_its_words(memory: Memory) -> None:
    memory.add("Nothing to see")
    learning = memory.add("Failing builds", observation="The linker failed", tags=["build"], action="Look")

    [hit] = memory.search("build failure: it fails")

    assert hit.learning == learning
    assert 0.9 < hit.score <= 1, "the best by words, and nearly the same by meaning"
    assert min(hit.words.values()) > 0
    assert 0 < hit.relevance < 1
    assert {"words", "rarest", "meaning", "self_meaning", "cued", "trigger", "margin"} <= hit.features.keys()
    assert hit.matched_fields == ("title", "observation", "tags")
    assert hit.highlights["title"] == "<mark>Failing</mark> <mark>builds</mark>"


# What the people of a shop have written down.
LEARNINGS: dict[str, dict[str, Any]] = {
    "Round VAT per line item in `add_vat`, not on the total": {"tags": ["billing"]},
    "Authentication tokens are renewed by the gateway, never by a client": {"action": "Let a 401 pass through"},
    "The payments service needs an idempotency key for each request": {"action": "Send the number of the order"},
    "PostgreSQL locks the table while a column with a default is added": {"action": "First the column, then the rest"},
    "Celery tasks must not be given model objects": {"action": "Pass ids: an object is stale when the task runs"},
    "Close the Redis connection pool before the worker forks": {"observation": "ConnectionResetError in each child"},
}
PROMPTS = {
    "the auth token expires too early on phones": "Authentication",
    "customers are charged twice by the payments service": "payments",
    "our migration locks the table when I add a column": "PostgreSQL",
    "why does a celery task see an old order?": "Celery",
}
# More than 200 words.
UNRELATED = """
Yesterday we walked along the river until the sun went down behind the hills. My aunt told us how she had learnt to sail
when she was twelve. The weather stayed dry, although the forecast had promised rain for the whole afternoon! We found a
bench under an old chestnut and ate the bread that my brother had baked. He says that the flour from the village is far
better than what the supermarkets sell. On the other bank, children threw stones into the water and counted how often
they jumped. A heron stood there without moving for a quarter of an hour; then it flew away. In the evening we cooked
soup with leeks and potatoes from the garden. My cousin played the cello, and the neighbours listened at the fence. Do
you remember the summer when the orchard flooded? Nobody had seen so much water since our grandmother was a girl. The
apples floated between the trees, and the geese were delighted. Later the insurance paid for a new fence and a pump. On
Sunday the choir rehearses in the chapel, because the roof of the town hall leaks. They sing a mass by Haydn and two
folk songs from Finland. I promised to bring cake, so I should buy plums, butter and cinnamon. The train was late again,
which surprised no passenger on the platform. Please greet your parents from all of us.
"""


def _remember(memory: Memory) -> None:
    memory.add_all([{"title": title, **more} for title, more in LEARNINGS.items()])


def _said(memory: Memory, prompt: str) -> list[str]:
    return [memory.get(id).title for id in memory.brief(prompt, keep=False).learning_ids]


@pytest.mark.parametrize(("prompt", "wanted"), PROMPTS.items())
def test_a_brief_contains_what_is_wanted_however_much_stands_around_it(
    memory: Memory, prompt: str, wanted: str
) -> None:
    _remember(memory)
    [said] = _said(memory, prompt)
    assert wanted in said
    assert _said(memory, f"{UNRELATED}\n{prompt}") == [said]
    assert _said(memory, f"{prompt}\n\n{UNRELATED}") == [said]


@pytest.mark.parametrize("prompt", ["add logging", "run the tests and fix what fails", "make the button blue"])
def test_everyday_verbs_carry_nothing(memory: Memory, prompt: str) -> None:
    _remember(memory)
    assert _said(memory, prompt) == []
    assert all(hit.features["words"] < 0.1 for hit in memory.search(prompt))


def test_the_beginning_of_a_word_finds_it_but_not_the_inside(memory: Memory) -> None:
    wanted = memory.add("Authentication tokens are renewed by the gateway")
    memory.add("Unrelated: the printer is on the second floor")
    assert [hit.learning.id for hit in memory.search("auth")] == [wanted.id]
    assert [hit.learning.id for hit in memory.search("authent")] == [wanted.id]
    assert wanted.id not in {hit.learning.id for hit in memory.search("henticat") if hit.words}


def test_a_stack_trace_is_read_by_its_error_and_its_own_lines(memory: Memory) -> None:
    _remember(memory)
    memory.add("The template engine of the kernel page caches compiled templates", action="Restart after an edit")
    foreign = "".join(
        f'  File "/srv/.venv/lib/python3.12/site-packages/kernel/template/engine_{number}.py", line {number}, in page\n'
        for number in range(150)
    )
    trace = (
        f"Traceback (most recent call last):\n{foreign}"
        '  File "shop/worker.py", line 31, in start\n    redis.ping()\n'
        "redis.exceptions.ConnectionResetError: the connection pool was closed by the server\n"
    )
    assert _said(memory, f"what is this?\n\n{trace}") == ["Close the Redis connection pool before the worker forks"]


def test_a_short_word_finds_the_longer_one_that_it_is_short_for_even_if_another_learning_has_it(memory: Memory) -> None:
    wanted = memory.add("Authentication tokens are renewed by the gateway")
    short = memory.add("The auth header is named `X-Acme`")
    memory.add("Authors are listed in the footer")
    configured = memory.add("Configuration is read once, at the start of the worker")
    staging = memory.add("The config of staging is encrypted")
    memory.add("The form for refunds has two pages")
    memory.add("Exports have a format of their own")
    for query, ids in {"auth": {short.id, wanted.id}, "config": {staging.id, configured.id}}.items():
        assert {hit.learning.id for hit in memory.search(query) if hit.words} == ids
    assert len([hit for hit in memory.search("form") if hit.words]) == 1
    assert wanted.id in memory.brief("renew the auth tokens of the gateway", keep=False).learning_ids


OTHERS_CODE = {
    "Python": r"""Traceback (most recent call last):
  File "/home/ann/shop/shop/worker.py", line 31, in start
    load(batch)
  File "/usr/lib/python3/dist-packages/kernel/pages/engine.py", line 12, in page
    raise TemplateCacheMiss(engine, compiled_template)
ConnectionResetError: the connection pool was closed by the server
""",
    "Python on Windows": r"""Traceback (most recent call last):
  File "C:\Users\ann\shop\shop\worker.py", line 31, in start
    load(batch)
  File "C:\Users\ann\AppData\Python311\Lib\site-packages\kernel\pages\engine.py", line 12, in page
    raise TemplateCacheMiss(engine, compiled_template)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ConnectionResetError: the connection pool was closed by the server
""",
    "JavaScript on Windows": r"""ConnectionResetError: the connection pool was closed by the server
    at compiledTemplate (C:\shop\node_modules\kernel\pages\engine.py:95:5)
    at start (C:\shop\shop\worker.py:5:2)
""",
    "Go": """panic: the connection pool was closed by the server
goroutine 12 [running]:
github.com/acme/kernel/compiled.Template(0x0)
\t/home/ann/go/pkg/mod/github.com/acme/kernel@v5.4/pages/engine.py:700 +0x2c
shop/worker.Start(0x0)
\t/home/ann/shop/shop/worker.py:31 +0x45
""",
}


@pytest.mark.parametrize("trace", OTHERS_CODE.values(), ids=OTHERS_CODE)
def test_other_peoples_code_in_a_stack_trace_is_neither_read_nor_a_trigger(memory: Memory, trace: str) -> None:
    memory.add("The pool of the worker is closed before the server forks", triggers={"files": ["shop/worker.py"]})
    memory.add("Pages have an engine of their own", triggers={"files": ["pages/*.py"]})
    memory.add("Compiled templates are cached: delete the cache of compiled templates")
    assert _said(memory, trace) == ["The pool of the worker is closed before the server forks"]


def test_a_warning_about_other_peoples_code_is_read_without_its_place(memory: Memory) -> None:
    wanted = memory.add("Set `cert` for the gateway", triggers={"errors": ["InsecureRequestWarning"]})
    memory.add("Compiled templates are cached: delete the cache of compiled templates")
    place = "/usr/lib/python3/dist-packages/compiled/templates.py:1050"
    log = f"the log says\n{place}: InsecureRequestWarning: Unverified request\n"
    assert _said(memory, log) == [wanted.title]


@pytest.mark.parametrize(
    "prompt",
    [
        "Why is node_modules/ in the image? It makes the release slow",
        "patch node_modules/sharp/lib/index.js, the release fails",
        "what is site-packages/sharp.py:12 about?",
    ],
)
def test_a_package_that_a_task_is_about_is_read(memory: Memory, prompt: str) -> None:
    wanted = memory.add("`node_modules` and `site-packages` with sharp are patched by `make patches` before a release")
    assert [hit.learning.id for hit in memory.search(prompt) if {"node_modules", "sharp"} & hit.words.keys()] == [
        wanted.id
    ]


def test_all_stores_are_one_corpus(project: Path) -> None:
    exact = "Quote every variable in shell scripts"
    with Memory.open_user() as mine:
        wanted = mine.add(exact)
    with Memory.open(project) as memory:
        memory.add("Variable costs stand in the ledger")
        memory.add_all([{"title": title, **more} for title, more in LEARNINGS.items()])
        hits = memory.search(exact)
        assert (hits[0].learning.id, hits[0].learning.scope) == (wanted.id, "user")
        assert hits[0].score > 2 * hits[1].score
        assert memory.brief(exact, keep=False).learning_ids == (wanted.id,)


def test_better_fits_come_first_and_equal_ones_by_confidence(memory: Memory) -> None:
    weak = memory.add("Cache the schema", confidence=0.6)
    strong = memory.add("Cache the schema", confidence=0.9)
    best = memory.add("Cache the schema of the replica", confidence=0.5)
    found = [hit.learning.id for hit in memory.search("cache schema replica")]
    assert found == [best.id, strong.id, weak.id]


DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("older", "newer", "query"),
    [
        ("The upload service accepts 20 files", "The upload service now accepts 50 files", "How many files at once?"),
        ("Test coverage of the parser is 65%", "Test coverage of the parser is 78%", "coverage percentage of parser"),
        ("The release is planned for April 1", "The release is planned for April 5", "On which date is the release?"),
    ],
)
def test_the_newer_value_of_what_is_asked_for_comes_first(memory: Memory, older: str, newer: str, query: str) -> None:
    """Whichever of them is more like the question."""
    for number, text in enumerate((older, newer)):
        memory.add(text, created_at=NOON_MS + number * DAY_MS)
    repeated = memory.add(f"{older}. {query}", created_at=NOON_MS - DAY_MS)
    found = [hit.learning for hit in memory.search(query)]
    assert found.index(next(one for one in found if one.title == newer)) < found.index(repeated)


def test_a_newer_number_for_something_else_changes_nothing(memory: Memory) -> None:
    first = memory.add("The upload service accepts 20 files, how many at once", created_at=NOON_MS)
    memory.add("The upload service restarts after 50 errors", created_at=NOON_MS + DAY_MS)
    assert memory.search("How many files at once?")[0].learning.id == first.id


@pytest.mark.parametrize("number", [6, 8])
def test_a_single_digit_tells_two_learnings_apart(memory: Memory, number: int) -> None:
    old = memory.add("With Node 8 the image build needs `python2`", created_at=NOON_MS)
    new = memory.add("With Node 6 the image build needs `--harmony`", created_at=NOON_MS + DAY_MS)
    memory.add_all([{"title": title, **more} for title, more in LEARNINGS.items()])
    wanted = old if number == 8 else new
    for text in (f"node {number}", f"the image build on node v{number} fails"):
        first, second = memory.search(text)[:2]
        assert (first.learning.id, second.learning.id) == (wanted.id, ({old.id, new.id} - {wanted.id}).pop())
        assert first.relevance > second.relevance + 0.1
        assert first.words[f"node {number}"] > 0
        assert memory.brief(text, keep=False).learning_ids[0] == wanted.id


def test_a_number_that_is_given_is_not_asked_for(memory: Memory) -> None:
    wanted = memory.add("The staging gateway answers on port 8443 since the move", created_at=NOON_MS)
    memory.add("The staging gateway answers on port 9443 since the move", created_at=NOON_MS + DAY_MS)
    assert memory.search("staging gateway port 8443")[0].learning.id == wanted.id


def test_of_equal_fits_the_one_that_was_learnt_next_to_a_good_one_comes_first(memory: Memory) -> None:
    beside = [memory.add("Renew the certificate of the gateway"), memory.add("The gateway answers on port 8443")]
    for number in range(5):
        memory.add(f"Shelf {number} is empty")
    alone = memory.add("The printer answers on port 8443")
    found = [hit.learning.id for hit in memory.search("certificate renew port")]
    assert found.index(beside[1].id) < found.index(alone.id)


def test_search_is_filtered(memory: Memory) -> None:
    wanted = memory.add("Match here", domain="db", category="sql", goal="mine", confidence=0.6)
    doubtful = memory.add("Match here", confidence=0.3)
    hidden = memory.hide(memory.add("Match here").id)

    def found(**filters: object) -> set[str]:
        return {hit.learning.id for hit in memory.search("match", **filters)}  # type: ignore[arg-type]

    assert found() == {wanted.id}
    assert found(min_confidence=0.0) == {wanted.id, doubtful.id}
    assert found(status=None, min_confidence=0.0) == {wanted.id, doubtful.id, hidden.id}
    assert found(domain="db") == found(category="sql") == {wanted.id}
    assert found(exclude_goal="mine", min_confidence=0.0) == {doubtful.id}
    with pytest.raises(WrongRequest):
        memory.search("match", strategy="guess")


def test_a_filter_finds_the_oldest_of_many_learnings_with_a_common_word(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learnt.recall.query.MAX_POSTINGS", 20)  # what is common from here on, in a small store
    wanted = memory.add("The first okapi", domain="x")
    memory.add_all([{"title": f"Okapi number {number}"} for number in range(300)])
    assert [hit.learning.id for hit in memory.search("okapi", domain="x")] == [wanted.id]
    assert len(memory.search("okapi", limit=70)) == 70


@pytest.mark.parametrize(
    "wrong",
    [{"limit": 2**62}, {"limit": -1}, {"status": "junk"}, {"min_confidence": float("nan")}, {"min_confidence": 7}],
    ids=str,
)
def test_what_cannot_be_searched_for_is_refused(memory: Memory, wrong: dict[str, Any]) -> None:
    memory.add("Match here")
    with pytest.raises(WrongRequest):
        memory.search("match", **wrong)
    with pytest.raises(WrongRequest):
        memory.learnings(**wrong)


def test_tools_commands_and_types_of_task_are_triggers_too(memory: Memory) -> None:
    for kind, pattern, said in (
        ("tools", "Bash", {"tools": ["bash"]}),
        ("commands", "make", {"command": "cd src && make lint"}),
        ("task_types", "Review", {"task_type": "review"}),
    ):
        learning = memory.add(f"About {kind}", triggers={kind: [pattern]})
        hit = memory.search("anything", **said)[0]
        assert (hit.learning.id, hit.trigger) == (learning.id, f"{kind}: {pattern}")
        assert learning.id in memory.brief("anything", **said).learning_ids
        assert memory.search("anything") == []


def test_a_trigger_that_holds_comes_before_any_likeness(memory: Memory) -> None:
    likely = memory.add("Deploy with care when you deploy the deploy script")
    triggers = {
        "files": ["src/**/auth*.py", "Makefile"],
        "commands": ["git push"],
        "errors": ["Connection refused"],
    }
    exact = memory.add("Ask the lead first", triggers=triggers)
    for text in (
        "deploy after you change src/web/auth_views.py",
        "deploy: edit the ./Makefile",
        "then run `git push --force` to deploy",
        "deploy fails with: connection   refused (111)",
    ):
        hits = memory.search(text)
        assert [hit.learning.id for hit in hits] == [exact.id, likely.id], text
        assert hits[0].trigger
    assert memory.search("anything", paths=["src/auth.py"])[0].learning.id == exact.id
    assert all(hit.learning.id != exact.id for hit in memory.search("push the git author to deploy author.py"))


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (
            "src/app.py",
            "src/app.py:42|at src/app.py:42:7|src/app.py#L10|@src/app.py|src/app.py!|is it src/app.py?|**src/app.py**"
            "|--file=src/app.py|src\\app.py|(src/app.py),|tests src/app.py::test_login|[it](./src/app.py)",
        ),
        ("app.py", "src/app.py:42|app.py:42:7|App.py.|see app.py#L3-L9"),
        ("Makefile", "edit the Makefile|Makefile:|**Makefile**|build/Makefile"),
        ("**/Dockerfile", "the Dockerfile fails|docker/Dockerfile"),
        ("[ab].py", "a.py|src/b.py"),
        ("src/[!c-z]*.py", "src/alpha.py|x/src/b.py"),
        ("*.{ts,tsx}", "web/a.ts|b.tsx"),
        ("src/{a,b}/**/*.py", "src/a/x.py|src/b/c/y.py"),
        ("migrations/", "db/migrations/0001.sql|migrations/x"),
        ("src/", "src/app.py|look into src/"),
    ],
)
def test_a_file_is_recognised_however_it_is_written(memory: Memory, pattern: str, texts: str) -> None:
    learning = memory.add("Ask the lead first", triggers={"files": [pattern]})
    for text in texts.split("|"):
        assert [hit.learning.id for hit in memory.search(text)] == [learning.id], text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("Makefile", "make a profile"),
        ("Build", "build it"),
        ("build", "Build it"),
        ("[ab].py", "c.py"),
        ("[z-a].py", "b.py"),
        ("*.{ts,tsx}", "a.tsz"),
        ("src/", "mysrc/app.py"),
        ("src/[ab]/x", "src//x"),
    ],
)
def test_a_file_that_is_not_meant_is_not_recognised(memory: Memory, pattern: str, text: str) -> None:
    memory.add("Ask the lead first", triggers={"files": [pattern]})
    assert memory.search(text) == []


def test_a_command_of_one_word_must_stand_where_a_command_is_meant(memory: Memory) -> None:
    learning = memory.add("Clean first", triggers={"commands": ["make"]})
    for text in (
        "run `make`",
        "`cd src && make lint`",
        "$ make all",
        "```sh\nmake -j4\n```",
        "then `sudo make install`",
    ):
        assert [hit.learning.id for hit in memory.search(text)] == [learning.id], text
    for text in ("make the button blue", "`x = make(3)`", "Make, and `remake`"):
        assert memory.search(text) == [], text


def test_a_learning_whose_trigger_holds_is_scored_by_its_words_too(memory: Memory) -> None:
    exact = memory.add("Schema of the replica", triggers={"files": ["*.sql"]}, confidence=0.6)
    memory.add_all([{"title": f"Replica number {number}"} for number in range(80)])
    for limit in (1, 10):
        hit = memory.search("replica in db.sql", limit=limit)[0]
        assert (hit.learning.id, hit.matched_fields, hit.score > 0) == (exact.id, ("title",), True)


def test_a_pattern_is_tried_once_however_many_learnings_have_it(memory: Memory) -> None:
    memory.add_all([{"title": f"Rule {number}", "triggers": {"files": ["src/**/*.py"]}} for number in range(30)])
    tried: list[str] = []

    def holds(_kind: str, pattern: str) -> bool:
        tried.append(pattern)
        return True

    found = index.find_by_triggers(memory.context.store.database, {"files": {".py"}}, holds, index.Filter())
    assert (tried, len(found)) == (["src/**/*.py"], 30)


def test_an_edited_learning_is_found_by_its_new_words_alone(memory: Memory) -> None:
    learning = memory.add("Old wording", triggers={"files": ["*.old"]})
    memory.edit(learning.id, title="Blue paint", triggers={"files": ["*.new"]})
    assert memory.search("wording") == memory.search("x.old") == []
    assert memory.search("paint")[0].learning.title == "Blue paint"
    assert memory.search("x.new")[0].trigger == "files: *.new"
    memory.undo(learning.id)
    assert memory.search("wording")[0].learning.id == learning.id
    memory.purge(learning.id)
    assert memory.search("wording paint x.old", min_confidence=0.0, status=None) == []


def test_a_purged_word_is_nowhere_in_the_files(sqlite_memory: Memory, project: Path) -> None:
    learning = sqlite_memory.add("The password is xyzzyplugh", observation="xyzzyplugh again")
    sqlite_memory.edit(learning.id, title="Redacted", observation="")
    sqlite_memory.purge(learning.id)
    sqlite_memory.close()
    for file in (project / ".learnt").rglob("*"):
        assert b"xyzzyplugh" not in (file.read_bytes() if file.is_file() else b""), file


def test_both_databases_find_the_same(
    project: Path, tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)

    def text(count: int) -> str:
        return " ".join(f"w{min(399, int(chance.paretovariate(0.6)))}x" for _ in range(count))

    records = [{"title": text(6)[:100], "observation": text(30)} for _ in range(600)]
    queries = [text(12) for _ in range(60)]
    tops = []
    for folder, address in ((project, ""), (tmp_path / "team", postgres.address())):
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv("LEARNT_DATABASE", address)
        with Memory.open(folder) as memory:
            places = {learning.id: place for place, learning in enumerate(memory.add_all(records))}
            tops.append([{places[hit.learning.id] for hit in memory.search(query)} for query in queries])
    overlap = [len(ours & theirs) / 10 for ours, theirs in zip(*tops, strict=True)]
    assert sum(overlap) / len(overlap) >= 0.95


def test_both_databases_have_the_same_order(
    project: Path, tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = []
    for folder, address in ((project, ""), (tmp_path / "team", postgres.address())):
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv("LEARNT_DATABASE", address)
        with Memory.open(folder) as memory:
            _remember(memory)
            found = [[(hit.learning.title, round(hit.relevance, 6)) for hit in memory.search(text)] for text in PROMPTS]
            orders.append((found, [_said(memory, text) for text in PROMPTS]))
    assert orders[0] == orders[1]


def test_learnings_of_before_the_index_are_found_after_the_migration(memory: Memory) -> None:
    learning = memory.add("Stored long ago")
    database = memory.context.store.database
    with memory.context.store.transaction():
        index.clear(database)
    assert memory.search("stored") == []
    with memory.context.store.transaction():
        bulk.index_anew(database)
    assert memory.search("stored")[0].learning.id == learning.id


def test_rare_words_are_looked_up_first_and_common_ones_only_while_there_is_room() -> None:
    frequencies = {"rare": 2, "some": 900, "common": MAX_POSTINGS, "more": MAX_POSTINGS + 1}
    assert words_to_look_up(("common", "rare", "unknown", "some"), frequencies) == ["rare", "some"]
    assert words_to_look_up(("more",), frequencies) == ["more"], "better one common word than none"


def test_endings_are_cut_alike() -> None:
    for word, expected in {
        "failing": "fail",
        "failed": "fail",
        "fails": "fail",
        "migrations": "migrat",
        "is": "is",
    }.items():
        assert stem(word) == expected


@given(st.text(st.characters(exclude_categories=()), max_size=200))
@example("0\ufe70")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gives_words_that_can_be_indexed(text: str) -> None:
    for word in (*Query(text).words, *indexed_words(text)):
        assert word == word.strip()
        assert " " not in word
        assert '"' not in word
    assert mark(text, ()) == text


@given(
    st.sampled_from(["files", "commands", "errors", "tools", "task_types"]), st.text(max_size=30), st.text(max_size=100)
)
def test_whatever_matches_holds_the_anchor(kind: str, pattern: str, text: str) -> None:
    situation = Situation(text=f"{text} {pattern}", paths=(text,), tools=(pattern,), task_type=pattern)
    matcher = SituationMatcher(situation)
    if pattern.strip() and matcher.matches(kind, pattern):
        assert anchor_of(kind, pattern) in matcher.anchors()[kind]


@pytest.mark.parametrize("number", [1, 2_000, 55_263, 55_264, 980_960, 980_961, 981_000, 70_000_000])
def test_a_word_of_any_number_can_be_stored(number: int) -> None:
    text = word_index.encode(number)
    assert list(word_index.decode(text + "\n".strip() + text)) == [number, number]
    assert text.encode().decode() == text


def test_words_with_great_numbers_are_found_like_others(sqlite_memory: Memory) -> None:
    sqlite_memory.context.store.database.execute(
        "insert into word (number, project, word, learnings) values (2000000, 'other', 'x', 1)"
    )
    jars = sqlite_memory.add("Jars rattle on shelves", observation="Jars and jars")
    cups = sqlite_memory.add("Cups stand beside jars")
    assert [hit.learning.id for hit in sqlite_memory.search("jars rattle")] == [jars.id, cups.id]
    assert set(sqlite_memory.search("jars rattle")[0].matched_fields) == {"title", "observation"}
    sqlite_memory.edit(jars.id, title="Boxes rattle on shelves", observation="Quietly")
    assert [hit.learning.id for hit in sqlite_memory.search("jars")] == [cups.id]
