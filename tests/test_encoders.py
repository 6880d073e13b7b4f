"""Encoders: a service or a sentence model compares meanings in a search, and the embedded table stands in for it."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from learnt import Memory
from learnt.errors import ModelFailed, WrongRequest
from learnt.flow import vectors as flow
from learnt.flow.vectors import Vectors, measure_progress, text_to_encode
from learnt.llm.calls import TIMEOUT
from learnt.llm.encoders import EncoderName
from learnt.model import Learning
from learnt.recall.find import ENCODER_WEIGHT, SEMANTIC_WEIGHT
from learnt.settings import Settings
from learnt.store import calls, vectors
from learnt.text.meaning import MODEL, likenesses, shorten_numbers
from tests.conftest import Clock
from tests.support.doors import Learnt
from tests.support.embedding_stub import TOKENS, EmbeddingStub, make_vector

KINDS = {"openai": "openai:small@{}/v1", "ollama": "ollama:small@{}"}
LEARNINGS = (
    "Renew the token before the session ends",
    "Invoices round VAT per line",
    "Makefiles want tabs",
    "A long transaction keeps the database locked",
)
QUESTION = "authentication"  # no learning has this word
ONNX = os.environ.get("LEARNT_TEST_ONNX", "")


@pytest.fixture(autouse=True)
def _forget_failures(alone: None) -> Iterator[None]:
    yield
    flow._paused_until.clear()


@pytest.fixture
def stub() -> Iterator[EmbeddingStub]:
    with EmbeddingStub() as service:
        yield service


Use = Callable[..., None]


@pytest.fixture
def use(memory: Memory, stub: EmbeddingStub) -> Use:
    """Let the memory use the service, with further settings."""

    def set_up(encoder: str = "", **settings: object) -> None:
        name = encoder or KINDS["openai"].format(stub.address)
        changed = memory.context.settings.replace(search_encoder=name, search_encoder_deadline_ms=20_000, **settings)
        memory.context.settings = changed

    set_up()
    return set_up


def add_all(memory: Memory) -> list[Learning]:
    return [memory.add(title) for title in LEARNINGS]


def build(memory: Memory) -> int:
    return Vectors(memory.context).build(limit_s=60).made


def titles(memory: Memory, query: str, **how: object) -> list[str]:
    return [hit.learning.title for hit in memory.search(query, **how)]  # type: ignore[arg-type]


class TestSearch:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_learning_is_found_by_what_it_means(
        self, memory: Memory, use: Use, stub: EmbeddingStub, kind: str
    ) -> None:
        use(KINDS[kind].format(stub.address))
        add_all(memory)
        assert memory.worker.catch_up().remarks == ()
        assert titles(memory, QUESTION)[0] == LEARNINGS[0]
        assert titles(memory, "indentation", strategy="semantic")[0] == LEARNINGS[2]
        assert {asked.path for asked in stub.asked} == {"/v1/embeddings" if kind == "openai" else "/api/embed"}
        assert {asked.model for asked in stub.asked} == {"small"}
        assert memory.remarks == []

    def test_writing_never_waits_for_the_encoder(self, memory: Memory, use: Use, stub: EmbeddingStub) -> None:
        add_all(memory)
        assert stub.asked == []

    def test_the_strategy_says_what_counts(self, memory: Memory, use: Use, stub: EmbeddingStub) -> None:
        add_all(memory)
        build(memory)
        asked = len(stub.asked)
        assert titles(memory, QUESTION, strategy="bm25") == titles(memory, QUESTION, strategy="words") == []
        assert titles(memory, QUESTION, semantic_weight=0.0) == []
        assert len(stub.asked) == asked
        use(search_strategy="bm25")
        assert titles(memory, QUESTION) == []
        assert titles(memory, QUESTION, strategy="hybrid")[0] == LEARNINGS[0]
        with pytest.raises(WrongRequest, match="there is no strategy"):
            memory.search(QUESTION, strategy="guess")
        with pytest.raises(WrongRequest, match="semantic_weight"):
            memory.search(QUESTION, semantic_weight=2)

    def test_a_brief_uses_the_embedded_table(self, memory: Memory, use: Use, stub: EmbeddingStub) -> None:
        add_all(memory)
        build(memory)
        asked = len(stub.asked)
        memory.brief("Let the authentication survive a restart")
        assert len(stub.asked) == asked

    def test_a_new_learning_is_found_before_it_has_a_vector(self, memory: Memory, use: Use) -> None:
        add_all(memory)
        build(memory)
        memory.add("Authentication needs two factors")
        assert titles(memory, QUESTION)[:2] == ["Authentication needs two factors", LEARNINGS[0]]

    def test_without_most_vectors_the_embedded_table_orders_the_hits(self, memory: Memory, use: Use) -> None:
        add_all(memory)
        for strategy in ("hybrid", "semantic"):
            found = [(hit.learning.id, hit.score) for hit in memory.search("database locked", strategy=strategy)]
            use("embedded")
            expected = [(hit.learning.id, hit.score) for hit in memory.search("database locked", strategy=strategy)]
            use()
            assert found == expected

    def test_relevance_does_not_depend_on_the_encoder(self, memory: Memory, use: Use) -> None:
        add_all(memory)
        build(memory)
        by_encoder = {hit.learning.id: hit.relevance for hit in memory.search("the database is locked")}
        use("embedded")
        for hit in memory.search("the database is locked"):
            assert by_encoder.get(hit.learning.id, hit.relevance) == hit.relevance

    def test_secrets_are_not_sent(self, memory: Memory, use: Use, stub: EmbeddingStub) -> None:
        memory.search("login with ghp_" + "a1B2" * 9)
        assert stub.texts
        assert "ghp_" not in stub.texts[0]


class TestFailures:
    def test_a_service_that_cannot_be_reached_is_not_asked_again_at_once(
        self, memory: Memory, use: Use, stub: EmbeddingStub
    ) -> None:
        add_all(memory)
        build(memory)
        stub.fail_after = 0
        asked = len(stub.asked)
        for _ in range(3):
            assert titles(memory, "database lock")[0] == LEARNINGS[3]
        assert len(stub.asked) == asked + 1
        (remark,) = memory.remarks
        assert "searched with the embedded table instead" in remark
        assert "out of order" in remark

    def test_a_slow_service_is_not_waited_for(self, memory: Memory, use: Use) -> None:
        add_all(memory)
        with EmbeddingStub(silent=True) as slow:
            use(KINDS["ollama"].format(slow.address))
            memory.context.settings = memory.context.settings.replace(search_encoder_deadline_ms=50)
            assert titles(memory, "database lock")[0] == LEARNINGS[3]
        assert "did not answer within 0.05 s" in memory.remarks[0]

    @pytest.mark.parametrize(
        "body", ["no JSON", "[]", '{"data": 1}', '{"data": [{"embedding": "x"}]}', '{"data": [{"embedding": []}]}']
    )
    def test_an_unusable_answer_is_a_remark(self, memory: Memory, use: Use, stub: EmbeddingStub, body: str) -> None:
        add_all(memory)
        stub.body = body
        assert titles(memory, "database lock")[0] == LEARNINGS[3]
        assert len(memory.remarks) == 1

    def test_a_wrong_setting_is_a_remark(self, memory: Memory, use: Use) -> None:
        add_all(memory)
        for wrong in ("bert", "openai:", "ollama:small@ftp://x", "onnx:/nowhere/at/all"):
            use(wrong)
            assert titles(memory, "database lock")[0] == LEARNINGS[3]
            assert len(memory.worker.catch_up().remarks) == (1 if memory.context.settings.search_encoder else 0)
        assert len(memory.remarks) == 4

    def test_the_command_says_so_once_on_stderr(
        self, sqlite_memory: Memory, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sqlite_memory.add(LEARNINGS[3])
        monkeypatch.setenv("LEARNT_SEARCH_ENCODER", "onnx:/nowhere")
        done = learnt("search", "database lock", "--json")
        assert [hit["learning"]["title"] for hit in json.loads(done.out)] == [LEARNINGS[3]]
        assert done.err.count("searched with the embedded table instead") == 1


class TestWorker:
    def test_an_interrupted_run_continues(self, memory: Memory, use: Use, stub: EmbeddingStub) -> None:
        memory.add_all([{"title": f"Makefile rule {number} wants tabs"} for number in range(150)])
        stub.fail_after = 1
        with pytest.raises(ModelFailed):
            build(memory)
        progress = measure_progress(memory.context.store, memory.context.settings)
        assert progress is not None
        assert 0 < progress.done < progress.total == 150
        stub.fail_after = None
        assert build(memory) == 150 - progress.done
        assert build(memory) == 0

    def test_a_run_without_time_for_another_batch_ends_without_a_failure(
        self, memory: Memory, use: Use, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory.add_all([{"title": f"Makefile rule {number} wants tabs"} for number in range(150)])
        real, calls = flow._embed, []

        def answer_once(*arguments: object, **named: object) -> object:
            calls.append(arguments)
            if len(calls) == 2:
                raise ModelFailed("the encoder did not answer", hint="", result=TIMEOUT, is_temporary=True)
            return real(*arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(flow, "_embed", answer_once)
        assert build(memory) == 64
        assert build(memory) == 150 - 64

    def test_a_changed_learning_gets_another_vector(self, memory: Memory, use: Use) -> None:
        first = add_all(memory)[0]
        build(memory)
        memory.edit(first.id, title="Rounding differs for each price")
        assert build(memory) == 1
        assert titles(memory, "vat", strategy="semantic")[0] in (LEARNINGS[1], "Rounding differs for each price")
        assert LEARNINGS[0] not in titles(memory, QUESTION, strategy="semantic")

    def test_a_learning_that_changes_meanwhile_is_left_for_the_next_run(
        self, memory: Memory, use: Use, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        learning = memory.add(LEARNINGS[0])
        real = flow._embed

        def edit_meanwhile(*arguments: object, **named: object) -> object:
            memory.edit(learning.id, title="Something else")
            return real(*arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(flow, "_embed", edit_meanwhile)
        assert build(memory) == 0
        monkeypatch.undo()
        assert build(memory) == 1

    def test_nothing_of_a_purged_learning_is_left(self, memory: Memory, use: Use) -> None:
        first = add_all(memory)[0]
        build(memory)
        memory.purge(first.id)
        database = memory.context.store.database
        assert vectors.count(database, "openai:small") == len(LEARNINGS) - 1
        blocks = database.column("select signs from vector_block where project = :project")
        assert all(signs[0] == 0 for signs in map(bytes, blocks))

    def test_vectors_of_other_models_go_after_a_week(self, memory: Memory, use: Use, clock: Clock) -> None:
        add_all(memory)
        build(memory)
        database = memory.context.store.database
        use("embedded")
        build(memory)
        assert vectors.list_models(database) == [MODEL, "openai:small"]
        clock.advance(days=8)
        build(memory)
        assert vectors.list_models(database) == [MODEL]
        assert vectors.count(database, MODEL) == len(LEARNINGS)
        assert vectors.count(database, "openai:small") == 0

    def test_the_doctor_says_how_far_it_is(
        self, sqlite_memory: Memory, stub: EmbeddingStub, learnt: Learnt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_all(sqlite_memory)
        monkeypatch.setenv("LEARNT_SEARCH_ENCODER", KINDS["ollama"].format(stub.address))
        assert "0 of 4 learnings have vectors of ollama:small; the worker makes the others" in learnt("doctor").out


class TestCost:
    def test_the_cap_holds(self, memory: Memory, use: Use, stub: EmbeddingStub) -> None:
        add_all(memory)
        use(search_encoder_price=1.0, model_daily_cap_usd=0.0)
        assert titles(memory, "database lock")[0] == LEARNINGS[3]
        assert "does not allow a call" in memory.remarks[0]
        assert "does not allow a call" in " ".join(memory.worker.catch_up().remarks)
        assert stub.asked == []

    def test_a_call_with_a_price_is_recorded(self, memory: Memory, use: Use) -> None:
        add_all(memory)
        use(search_encoder_price=2.0)
        build(memory)
        spent = calls.spent_since(memory.context.store.database, 0)
        assert spent == pytest.approx(2.0 * TOKENS / 1_000_000)

    def test_a_call_without_a_price_is_not(self, memory: Memory, use: Use) -> None:
        add_all(memory)
        build(memory)
        memory.search(QUESTION)
        assert calls.spent_since(memory.context.store.database, 0) == 0

    def test_a_key_is_sent_only_if_its_variable_is_named(
        self, memory: Memory, use: Use, stub: EmbeddingStub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "for-openai")
        monkeypatch.setenv("SHOP_KEY", "for-the-shop")
        memory.search("one")
        use(search_encoder_key="SHOP_KEY")
        memory.search("two")
        sent = [asked.headers.get("authorization") for asked in stub.asked]
        assert sent == [None, "Bearer for-the-shop"]


def test_with_pgvector_the_server_searches(memory: Memory, use: Use, engine: str) -> None:
    if engine != "postgres":
        pytest.skip("only a server has the extension")
    database = memory.context.store.database
    if not database.has("select 1 from pg_available_extensions where name = 'vector'"):
        pytest.skip("the server has no pgvector")
    learnings = add_all(memory)
    query = shorten_numbers(make_vector(QUESTION)) or b""
    assert database.find_by_extension("openai:small", query, limit=2) is None
    build(memory)
    near = database.find_by_extension("openai:small", query, limit=2)
    assert near is not None
    assert near[0] == 1
    assert titles(memory, QUESTION)[0] == LEARNINGS[0]
    memory.purge(learnings[0].id)
    assert database.find_by_extension("openai:small", query, limit=9) == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("embedded", None),
        ("", None),
        ("onnx:~/models/mini", ("onnx", "~/models/mini", "")),
        ("openai:text-embedding-3-small", ("openai", "text-embedding-3-small", "https://api.openai.com/v1")),
        ("openai:org/m@v2@https://host/v1/", ("openai", "org/m@v2", "https://host/v1")),
        ("ollama:nomic-embed-text:v1.5", ("ollama", "nomic-embed-text:v1.5", "http://localhost:11434")),
    ],
)
def test_an_encoder_has_a_name(text: str, expected: tuple[str, str, str] | None) -> None:
    name = EncoderName.parse(text)
    assert (name and (name.kind, name.model, name.address)) == expected


def test_a_key_goes_to_openai_by_itself_and_to_nobody_else() -> None:
    names = [EncoderName.parse(text) for text in ("openai:m", "openai:m@https://other/v1", "ollama:m")]
    assert [name.key_variable for name in names if name] == ["OPENAI_API_KEY", "", ""]


def test_vectors_of_any_length_can_be_compared() -> None:
    one, other, third = (shorten_numbers([float(at == place) for at in range(700)]) or b"" for place in (0, 0, 5))
    assert shorten_numbers([0.0, 0.0]) is None
    assert shorten_numbers([float("nan"), 1.0]) is None
    # A single dimension is cut off at 127 of 400.
    assert likenesses(one, [other, third]) == pytest.approx([0.1, 0.0], abs=0.01)


def test_an_encoder_reads_nothing_twice(sqlite_memory: Memory) -> None:
    learning = sqlite_memory.add(
        "Run make first", observation="Run make first, because it writes x.py", cues=("x.py fails",)
    )
    assert text_to_encode(learning) == "x.py fails\nRun make first, because it writes x.py"


def test_the_settings_have_the_weights_that_were_measured() -> None:
    assert (Settings().search_semantic_weight, Settings().search_encoder_weight) == (SEMANTIC_WEIGHT, ENCODER_WEIGHT)


@pytest.mark.skipif(not ONNX, reason="LEARNT_TEST_ONNX names no folder with a sentence model")
@pytest.mark.skipif(not importlib.util.find_spec("onnxruntime"), reason="onnxruntime is not installed")
def test_a_sentence_model_in_a_folder(memory: Memory, use: Use) -> None:
    add_all(memory)
    use(f"onnx:{ONNX}")
    assert build(memory) == len(LEARNINGS)
    assert titles(memory, "I cannot sign in any more", strategy="semantic")[0] == LEARNINGS[0]
    assert memory.remarks == []


def test_a_folder_without_a_model_is_an_error(tmp_path: Path, memory: Memory, use: Use) -> None:
    use(f"onnx:{tmp_path}")
    with pytest.raises(ModelFailed, match=r"no model\.onnx"):
        build(memory)


def test_the_worker_makes_vectors_of_the_embedded_table_for_learnings_of_an_older_version(memory: Memory) -> None:
    learning = memory.add("A long transaction keeps the database locked")
    database = memory.context.store.database
    with memory.context.store.transaction():
        (vector,) = vectors.read(database, [learning.id]).values()
        vectors.clear(database)
        vectors.put(database, {1: vector}, model="learnt-192-older")
    question = "SQLite refuses to write"  # no learning has these words
    assert memory.search(question) == []

    memory.worker.catch_up()

    assert [hit.learning.id for hit in memory.search(question)] == [learning.id]
    assert vectors.list_models(database) == [MODEL]
