"""Asking a model: the services through their real packages, programs as they misbehave, and what is spent."""

from __future__ import annotations

import json
import math
import os
import select
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.errors import InvalidValue, ModelFailed, NoModel, SpendingCap, WrongRequest
from learnt.llm import Completion, ModelRequest, Provider, complete
from learnt.llm.calls import check_caps, cost_usd, forecast_usd
from learnt.llm.command import OUTPUT_LIMIT_BYTES
from learnt.llm.schema import check, find_value
from learnt.system.installation import install_command
from learnt.text.words import estimate_tokens
from tests.support.service_stub import TOKENS_IN, TOKENS_OUT, Reply, ServiceStub

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["lessons"],
    "additionalProperties": False,
    "properties": {"lessons": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 20}}},
}
ASKED = ModelRequest(purpose="extract", system="You extract.", prompt="What was learnt?", schema=SCHEMA)
GOOD = '{"lessons": ["run make lint"]}'
KEY = "sk-test-0123456789"


class Entry(NamedTuple):
    """One call in the book."""

    forecast_usd: float
    end: Mapping[str, Any]


class Book:
    """A ledger in memory; the cap is on the sum of the forecasts."""

    def __init__(self, cap_usd: float = math.inf) -> None:
        self.begun: list[float] = []
        self.entries: list[Entry] = []
        self._cap_usd = cap_usd

    def begin(self, request: ModelRequest, provider: Provider, forecast_usd: float) -> str:
        if sum(self.begun) + forecast_usd > self._cap_usd:
            raise SpendingCap("the cap is reached")
        self.begun.append(forecast_usd)
        return str(len(self.begun))

    def end(self, call_id: str, **figures: Any) -> None:
        assert call_id == str(len(self.begun)) == str(len(self.entries) + 1)
        self.entries.append(Entry(self.begun[-1], figures))

    @property
    def results(self) -> list[str]:
        return [entry.end["result"] for entry in self.entries]


class Told(NamedTuple):
    """What came of asking: an answer or a failure, what stands in the book, and how long was waited."""

    completion: Completion | None
    failure: ModelFailed | None
    book: Book
    waits: list[float]

    @property
    def reason(self) -> str:
        return self.failure.message if self.failure else ""


def ask(provider: Provider, request: ModelRequest = ASKED, book: Book | None = None) -> Told:
    book, waits = book or Book(), list[float]()
    try:
        return Told(complete(request, provider=provider, ledger=book, sleep=waits.append), None, book, waits)
    except ModelFailed as failure:
        return Told(None, failure, book, waits)


@pytest.fixture(params=["anthropic", "openai"])
def service(request: pytest.FixtureRequest) -> Callable[..., Provider]:
    """Return what makes a provider, once for each service."""

    def make(stub: ServiceStub, **fields: Any) -> Provider:
        address = stub.address + ("/v1" if request.param == "openai" else "")
        known = {"model": "small", "base_url": address, "api_key": KEY, "input_price": 1.0, "output_price": 5.0}
        return Provider(name=request.param, **{**known, **fields})

    return make


class TestServices:
    def test_a_good_answer_is_returned_with_its_figures(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(GOOD)) as stub:
            told = ask(service(stub))

        assert told.completion is not None
        assert told.completion.data == {"lessons": ["run make lint"]}
        assert (told.completion.model, told.completion.text) == ("stub-1", GOOD)
        assert (told.completion.tokens_in, told.completion.tokens_out) == (TOKENS_IN, TOKENS_OUT)
        assert told.completion.cost_usd == pytest.approx((TOKENS_IN + 5 * TOKENS_OUT) / 1_000_000)
        entry = told.book.entries[0].end
        assert (entry["result"], entry["reason"], entry["cost_usd"]) == ("done", "", told.completion.cost_usd)
        assert told.waits == []

    def test_the_model_is_told_the_system_text_the_prompt_and_the_form(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(GOOD)) as stub:
            ask(service(stub))

        sent = json.dumps(stub.asked[0].body)
        assert stub.asked[0].body["model"] == "small"
        assert stub.asked[0].body["max_tokens"] == 2_000
        assert KEY in (stub.asked[0].headers.get("x-api-key", "") + stub.asked[0].headers.get("authorization", ""))
        assert "You extract." in sent
        assert "What was learnt?" in sent
        assert "JSON schema" in sent

    def test_without_a_schema_the_answer_is_plain_text(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply("Just words.\n")) as stub:
            told = ask(service(stub), ModelRequest(purpose="summary", prompt="Sum up"))

        assert told.completion is not None
        assert (told.completion.text, told.completion.data) == ("Just words.", None)
        assert "JSON" not in json.dumps(stub.asked[0].body)

    @pytest.mark.parametrize(
        "text",
        [
            f"```json\n{GOOD}\n```",
            f"Here you are [1]:\n\n{GOOD}\n\nTell me if {{anything}} is missing.",
            f'The form is {{"type": "object"}}, so: {GOOD}',
        ],
        ids=["fence", "talk", "another value first"],
    )
    def test_json_is_found_in_what_stands_around_it(self, text: str, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(text)) as stub:
            told = ask(service(stub))

        assert told.completion is not None
        assert told.completion.data == {"lessons": ["run make lint"]}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("I would rather talk about the weather.", "contains no JSON"),
            (GOOD[:-5], "broken or cut off"),
            ("", "is empty"),
            ('{"lessons": [7]}', "lessons[0] is a number, not a string"),
        ],
        ids=["rubbish", "half", "empty", "another form"],
    )
    def test_an_answer_that_cannot_be_used_is_asked_for_once_more_and_then_fails(
        self, text: str, reason: str, service: Callable[..., Provider]
    ) -> None:
        with ServiceStub(Reply(text)) as stub:
            told = ask(service(stub))

        assert len(stub.asked) == 2
        assert reason in told.reason
        assert told.failure is not None
        assert told.failure.result == "failed"
        assert told.book.results == ["failed", "failed"]
        # It was answered, so it was paid for.
        assert told.book.entries[1].end["cost_usd"] == pytest.approx((TOKENS_IN + 5 * TOKENS_OUT) / 1_000_000)

    def test_rubbish_and_then_a_good_answer_is_a_good_answer(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply("Hm."), Reply(GOOD)) as stub:
            told = ask(service(stub))

        assert told.completion is not None
        assert told.book.results == ["failed", "done"]
        assert 0 < told.waits[0] <= 1

    def test_429_is_tried_again_after_the_time_that_the_service_names(self, service: Callable[..., Provider]) -> None:
        busy = Reply("slow down", status=429, headers={"retry-after": "3"})
        with ServiceStub(busy, Reply(GOOD)) as stub:
            told = ask(service(stub))

        assert told.completion is not None
        assert told.waits == [3.0]
        assert told.book.results == ["failed", "done"]
        assert told.book.entries[0].end["cost_usd"] == 0

    @pytest.mark.parametrize(("named", "least", "most"), [("3600", 5, 5), ("soon", 0, 1), ("-1", 0, 1), ("nan", 0, 1)])
    def test_the_wait_is_short_whatever_the_service_names(
        self, named: str, least: float, most: float, service: Callable[..., Provider]
    ) -> None:
        with ServiceStub(Reply("slow down", status=429, headers={"retry-after": named}), Reply(GOOD)) as stub:
            told = ask(service(stub))

        assert least <= told.waits[0] <= most

    def test_500_and_then_a_good_answer_is_a_good_answer(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply("oops", status=500), Reply(GOOD)) as stub:
            told = ask(service(stub))

        assert told.completion is not None
        assert told.book.results == ["failed", "done"]

    def test_500_twice_fails_with_what_the_service_said(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply("the cat sat on the keyboard", status=500)) as stub:
            told = ask(service(stub))

        assert len(stub.asked) == 2
        assert "500" in told.reason
        assert "the cat sat on the keyboard" in told.reason

    @pytest.mark.parametrize("status", [400, 404, 413, 422])
    def test_a_request_that_the_service_refuses_is_not_repeated(
        self, status: int, service: Callable[..., Provider]
    ) -> None:
        with ServiceStub(Reply("no such model", status=status)) as stub:
            told = ask(service(stub))

        assert len(stub.asked) == 1
        assert "no such model" in told.reason

    def test_a_wrong_key_is_told_with_a_hint_and_without_the_key(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(f"incorrect key {KEY}", status=401)) as stub:
            told = ask(service(stub))

        assert len(stub.asked) == 1
        assert "401" in told.reason
        assert KEY not in told.reason + told.book.entries[0].end["reason"]
        assert told.failure is not None
        assert "_API_KEY in the environment" in told.failure.hint

    @pytest.mark.parametrize("reply", [Reply(silent=True), Reply(drips=True)], ids=["silent", "a byte now and then"])
    def test_a_service_that_does_not_finish_is_left_at_the_time_limit(
        self, reply: Reply, service: Callable[..., Provider]
    ) -> None:
        with ServiceStub(reply) as stub:
            told = ask(service(stub, time_limit_s=0.3))

        assert told.failure is not None
        assert told.failure.result == "timeout"
        assert told.book.results == ["timeout", "timeout"]
        # Nobody tells what it cost; a cap must hold all the same.
        assert told.book.entries[0].end["cost_usd"] == told.book.entries[0].forecast_usd > 0

    def test_nobody_at_the_address_fails_with_the_reason(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(GOOD)) as stub:
            provider = service(stub)
        told = ask(provider)

        assert "cannot be reached" in told.reason
        assert told.book.entries[0].end["cost_usd"] == 0

    @pytest.mark.parametrize(
        "body", ["<html>proxy</html>", "", "[]", "null", '{"choices": 7, "content": "x"}', '{"choices": [null]}']
    )
    def test_a_body_that_is_no_answer_fails_in_words(self, body: str, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(body=body)) as stub:
            told = ask(service(stub))

        assert told.failure is not None
        assert told.book.results == ["failed", "failed"]

    def test_figures_that_cannot_be_are_unknown(self, service: Callable[..., Provider]) -> None:
        usage = dict.fromkeys(("input_tokens", "prompt_tokens"), -5) | {"output_tokens": math.nan}
        with ServiceStub(Reply(GOOD, usage=usage)) as stub:
            told = ask(service(stub))

        assert told.completion is not None
        assert (told.completion.tokens_in, told.completion.tokens_out) == (None, None)

    def test_a_missing_package_is_told_with_the_way_to_install_it(
        self, service: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with ServiceStub(Reply(GOOD)) as stub:
            provider = service(stub)
            monkeypatch.setitem(sys.modules, provider.name, None)
            told = ask(provider)

        assert "not installed" in told.reason
        assert told.failure is not None
        assert told.failure.hint == install_command(provider.name)
        assert told.book.results == ["failed"]
        assert stub.asked == []

    def test_a_missing_key_is_told_with_where_it_belongs(
        self, service: Callable[..., Provider], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in list(os.environ):
            if name.startswith(("ANTHROPIC_", "OPENAI_")):
                monkeypatch.delenv(name)
        with ServiceStub(Reply(GOOD)) as stub:
            provider = service(stub, api_key="")
            told = ask(provider.replace(base_url="") if provider.name == "openai" else provider)

        assert told.failure is not None
        assert f"{provider.name.upper()}_API_KEY" in told.failure.hint
        assert told.book.results == ["failed"]

    def test_at_the_cap_nobody_is_asked(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(GOOD)) as stub, pytest.raises(SpendingCap):
            ask(service(stub), book=Book(cap_usd=0))

        assert stub.asked == []

    def test_the_second_try_is_not_made_when_the_cap_has_no_room_for_it(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply("Hm.")) as stub:
            provider = service(stub)
            book = Book(cap_usd=1.5 * forecast_usd(ASKED, provider))
            with pytest.raises(SpendingCap):
                ask(provider, book=book)

        assert len(stub.asked) == 1
        assert book.results == ["failed"]

    def test_a_service_needs_the_name_of_a_model(self, service: Callable[..., Provider]) -> None:
        with ServiceStub(Reply(GOOD)) as stub, pytest.raises(NoModel, match="name of a model"):
            ask(service(stub, model=""))


class TestEachService:
    @pytest.mark.parametrize(
        ("name", "reply"),
        [
            ("anthropic", Reply("I cannot", ending="refusal")),
            ("openai", Reply("", refusal="I cannot do that")),
            ("openai", Reply("", ending="content_filter")),
        ],
    )
    def test_a_refusal_is_told_and_not_argued_with(self, name: str, reply: Reply) -> None:
        with ServiceStub(reply) as stub:
            told = ask(Provider(name=name, model="small", base_url=f"{stub.address}/v1", api_key=KEY))

        assert told.failure is not None
        assert told.failure.result == "refused"
        assert "refused" in told.reason
        assert told.book.results == ["refused"]
        assert len(stub.asked) == 1

    @pytest.mark.parametrize(("name", "ending"), [("anthropic", "max_tokens"), ("openai", "length")])
    def test_an_answer_that_grew_too_long_is_not_asked_for_again(self, name: str, ending: str) -> None:
        with ServiceStub(Reply(GOOD, ending=ending)) as stub:
            told = ask(Provider(name=name, model="small", base_url=f"{stub.address}/v1", api_key=KEY))

        assert "cut off" in told.reason
        assert told.book.results == ["failed"]

    def test_what_was_read_from_a_cache_counts_as_read(self) -> None:
        usage = {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 3000}
        with ServiceStub(Reply(GOOD, usage=usage)) as stub:
            told = ask(Provider(name="anthropic", model="small", base_url=stub.address, api_key=KEY))

        assert told.completion is not None
        assert (told.completion.tokens_in, told.completion.tokens_out) == (3210, None)

    def test_openai_itself_is_asked_for_json_in_its_own_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        with ServiceStub(Reply(GOOD)) as stub:
            monkeypatch.setenv("http_proxy", stub.address)
            told = ask(Provider(name="openai", model="small", base_url="http://api.openai.com/v1", api_key=KEY))

        assert told.completion is not None
        assert stub.asked[0].body["response_format"] == {"type": "json_object"}
        assert stub.asked[0].body["max_completion_tokens"] == 2_000
        assert "max_tokens" not in stub.asked[0].body

    def test_a_server_of_ones_own_needs_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with ServiceStub(Reply(GOOD)) as stub:
            told = ask(Provider(name="openai", model="llama", base_url=f"{stub.address}/v1"))

        assert told.completion is not None
        assert told.completion.cost_usd is None


def script(folder: Path, body: str, **fields: Any) -> Provider:
    """Return a provider whose command is a Python program of this body."""
    path = folder / "model.py"
    path.write_text(f"import os, sys, subprocess, time\n{body}\n")
    known = {"environment": dict(os.environ), "time_limit_s": 20, "call_price": 0.01}
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(path))} {fields.pop('arguments', '')}"
    return Provider(name="command", command=command, **{**known, **fields})


class TestCommand:
    def test_a_program_gets_the_prompt_on_stdin_and_answers_on_stdout(self, tmp_path: Path) -> None:
        seen = tmp_path / "seen"
        told = ask(script(tmp_path, f"open({str(seen)!r}, 'w').write(sys.stdin.read())\nprint('''{GOOD}''')"))

        assert told.completion is not None
        assert told.completion.data == {"lessons": ["run make lint"]}
        assert told.completion.cost_usd == 0.01
        assert (told.completion.tokens_in, told.completion.tokens_out) == (None, None)
        assert "You extract." in seen.read_text()
        assert "What was learnt?" in seen.read_text()
        assert "JSON schema" in seen.read_text()

    def test_a_program_can_have_the_prompt_as_a_file_and_the_models_name(self, tmp_path: Path) -> None:
        body = "print(sys.argv[2], open(sys.argv[1]).read(), repr(sys.stdin.read()))"
        provider = script(tmp_path, body, arguments="{prompt_file} --model={model}", model="haiku")
        told = ask(provider, ModelRequest(purpose="summary", prompt="Sum up"))

        assert told.completion is not None
        assert told.completion.text == "--model=haiku Sum up\n ''"
        assert told.completion.model == "haiku"

    def test_a_prompt_larger_than_a_pipe_needs_no_reader(self, tmp_path: Path) -> None:
        request = ModelRequest(purpose="summary", prompt="word " * 200_000)
        told = ask(script(tmp_path, "print('x' * 500_000); sys.stderr.write('y' * 500_000)"), request)

        assert told.completion is not None
        assert len(told.completion.text) == 500_000

    def test_a_program_sees_that_the_call_is_ours_and_only_the_environment_given(self, tmp_path: Path) -> None:
        provider = script(tmp_path, "print(sorted(os.environ), os.environ['LEARNT_INTERNAL'])")
        told = ask(provider.replace(environment={"COLOUR": "red"}), ModelRequest(purpose="summary", prompt="Sum up"))

        assert told.completion is not None
        assert "'COLOUR'" in told.completion.text
        assert "'LEARNT_INTERNAL'" in told.completion.text
        assert "'HOME'" not in told.completion.text
        assert told.completion.text.endswith(" 1")

    def test_a_program_runs_in_a_folder_of_its_own(self, tmp_path: Path) -> None:
        provider = script(tmp_path, "print(os.getcwd(), os.listdir())")
        told = ask(provider, ModelRequest(purpose="summary", prompt="Sum up"))

        assert told.completion is not None
        assert told.completion.text.endswith("['prompt.md']")
        assert not Path(told.completion.text.split()[0]).exists()

    def test_a_failing_program_is_tried_again_and_told_by_its_last_complaint(self, tmp_path: Path) -> None:
        told = ask(script(tmp_path, "sys.stderr.write('thinking\\n\\x1b[31mnot logged in\\x1b[0m\\n\\n'); sys.exit(7)"))

        assert told.reason.endswith("ended with exit code 7: not logged in")
        assert told.book.results == ["failed", "failed"]

    def test_a_program_that_fails_once_is_asked_again(self, tmp_path: Path) -> None:
        flag = tmp_path / "flag"
        body = f"if not os.path.exists({str(flag)!r}): open({str(flag)!r}, 'w'); sys.exit(1)\nprint('''{GOOD}''')"
        told = ask(script(tmp_path, body))

        assert told.completion is not None
        assert told.book.results == ["failed", "done"]

    @pytest.mark.parametrize("command", ["no-such-program-anywhere -p", "/", "/dev/null"])
    def test_a_program_that_cannot_be_started_is_not_tried_again(self, command: str) -> None:
        told = ask(Provider(name="command", command=command, environment=dict(os.environ), call_price=0.01))

        assert command.split(maxsplit=1)[0] in told.reason
        assert told.book.results == ["failed"]
        assert told.book.entries[0].end["cost_usd"] == 0

    def test_a_program_that_hangs_is_killed_with_its_children(self, tmp_path: Path) -> None:
        pids = tmp_path / "pids"
        sleeper = [sys.executable, "-c", "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"]
        body = (
            f"child = subprocess.Popen({sleeper!r})\n"
            f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} {{child.pid}}\\n')\n"
            "print('half an answer', flush=True)\nchild.wait()"
        )
        told = ask(script(tmp_path, body, time_limit_s=1.5))

        assert told.failure is not None
        assert told.failure.result == "timeout"
        assert told.book.results == ["timeout", "timeout"]
        started = [int(pid) for pid in pids.read_text().split()]
        assert len(started) >= 2
        assert not any(map(is_running, started))

    def test_a_child_that_outlives_its_program_neither_holds_us_nor_stays(self, tmp_path: Path) -> None:
        pids = tmp_path / "pids"
        sleeper = [sys.executable, "-c", "import signal; signal.pause()"]
        body = f"open({str(pids)!r}, 'w').write(str(subprocess.Popen({sleeper!r}).pid))\nprint('''{GOOD}''')"
        told = ask(script(tmp_path, body))

        assert told.completion is not None
        assert not is_running(int(pids.read_text()))

    def test_a_program_that_prints_without_end_is_ended(self, tmp_path: Path) -> None:
        told = ask(script(tmp_path, "while True: sys.stdout.write('{' * 100_000)"))

        assert f"more than {OUTPUT_LIMIT_BYTES:,} bytes" in told.reason
        assert told.book.results == ["failed", "failed"]

    def test_a_great_deal_of_brackets_is_no_answer(self, tmp_path: Path) -> None:
        told = ask(script(tmp_path, f"sys.stdout.write('[' * {OUTPUT_LIMIT_BYTES})"))

        assert "broken or cut off" in told.reason

    def test_bytes_that_are_no_text_are_no_answer(self, tmp_path: Path) -> None:
        told = ask(script(tmp_path, "sys.stdout.buffer.write(bytes(range(256)) * 10)"))

        assert told.failure is not None
        assert told.failure.result == "failed"

    def test_a_call_that_a_person_interrupts_is_written_down(self, tmp_path: Path) -> None:
        book = Book()
        body = f"os.kill({os.getpid()}, {int(signal.SIGINT)}); time.sleep(60)"
        with pytest.raises(KeyboardInterrupt):
            ask(script(tmp_path, body), book=book)

        assert book.results == ["failed"]
        assert book.entries[0].end["reason"] == "the call was interrupted"

    def test_a_command_line_with_a_stray_quote_says_where_to_mend_it(self) -> None:
        with pytest.raises(WrongRequest) as caught:
            ask(Provider(name="command", command="claude -p 'hello"))

        assert "[model]" in caught.value.hint


def is_running(pid: int) -> bool:
    """Say whether a process lives on; a killed one may take a moment to vanish."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([handle], [], [], 5)[0]
    finally:
        os.close(handle)


class TestProvider:
    @pytest.mark.parametrize("provider", [Provider(), Provider(name="command"), Provider(name="command", command=" ")])
    def test_without_a_model_nobody_is_asked_and_the_way_to_name_one_is_told(self, provider: Provider) -> None:
        book = Book()
        with pytest.raises(NoModel) as caught:
            ask(provider, book=book)

        assert 'provider = "command"' in caught.value.hint
        assert "claude -p --model haiku" in caught.value.hint
        assert book.begun == []

    @pytest.mark.parametrize(
        "fields",
        [
            {"name": "litellm"},
            {"time_limit_s": 0},
            {"time_limit_s": math.nan},
            {"input_price": -1},
            {"call_price": math.nan},
        ],
    )
    def test_a_provider_that_cannot_be_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(InvalidValue):
            Provider(**fields)

    def test_the_key_does_not_show_in_a_log(self) -> None:
        assert KEY not in repr(Provider(name="openai", api_key=KEY, environment={"SECRET": KEY}))


class TestSpend:
    priced = Provider(name="anthropic", model="small", input_price=1.0, output_price=5.0, call_price=0.5)

    def test_a_forecast_is_what_is_sent_and_the_longest_answer_at_the_providers_prices(self) -> None:
        request = ModelRequest(purpose="summary", prompt="Sum up", max_tokens=1_000)

        assert forecast_usd(request, self.priced) == (estimate_tokens("Sum up") + 5 * 1_000) / 1_000_000

    def test_without_prices_a_call_counts_as_its_assumed_price_and_else_as_free(self) -> None:
        unpriced = self.priced.replace(input_price=None, output_price=None)

        assert forecast_usd(ASKED, unpriced) == cost_usd(unpriced, 10, 10) == 0.5
        assert forecast_usd(ASKED, unpriced.replace(call_price=None)) == 0
        assert cost_usd(unpriced.replace(call_price=None), 10, 10) is None

    def test_a_command_costs_its_assumed_price_whatever_tokens_would_cost(self) -> None:
        assert forecast_usd(ASKED, self.priced.replace(name="command", command="x")) == 0.5

    def test_tokens_that_nobody_tells_cost_the_assumed_price(self) -> None:
        assert cost_usd(self.priced, None, None) == 0.5
        assert cost_usd(self.priced, 1_000_000, None) == 1.0

    @pytest.mark.parametrize(
        ("spent", "forecast", "caps", "refused"),
        [
            ((0, 0), 0.1, (None, None), ""),
            ((0, 0), 0.1, (0, None), "a day"),
            ((0, 0), 0, (0, 0), ""),
            ((5, 5), 0, (1, 1), ""),
            ((0.1, 0.1), 0.2, (0.3, None), ""),
            ((0.1, 0.1), 0.21, (0.3, None), "a day"),
            ((0, 9.95), 0.1, (1, 10), "a month"),
            ((math.nan, 0), 0.1, (1, None), "a day"),
            ((0, 0), 0.1, (math.nan, None), "a day"),
        ],
    )
    def test_a_cap_refuses_what_would_go_beyond_it(
        self, spent: tuple[float, float], forecast: float, caps: tuple[float | None, float | None], refused: str
    ) -> None:
        reason = check_caps(*spent, forecast, *caps)

        assert (refused in reason) if refused else (reason == "")


class TestSchema:
    @pytest.mark.parametrize(
        ("value", "schema", "flaw"),
        [
            ({"a": 1}, {}, ""),
            ([], {"type": "object"}, "the value is an array, not an object"),
            (None, {"type": "string"}, "the value is null, not a string"),
            (True, {"type": "integer"}, "the value is a boolean, not an integer"),
            (1.5, {"type": "integer"}, "the value is a number, not an integer"),
            (1, {"type": "number"}, ""),
            (1, {"type": "boolean"}, "the value is a number, not a boolean"),
            ("c", {"enum": ["a", "b"]}, 'the value is "c", not one of a, b'),
            ({}, {"type": "object", "required": ["a"]}, "a is missing"),
            ({"a": 1, "b": 2}, {"properties": {"a": {}}, "additionalProperties": False}, 'unknown field "b"'),
            ({"a": 1, "b": 2}, {"properties": {"a": {}}}, ""),
            ([1], {"minItems": 2}, "has 1 entries; at least 2 are needed"),
            ([1, 2], {"maxItems": 1}, "has 2 entries; at most 1 are allowed"),
            ({"lessons": ["x" * 21]}, SCHEMA, "lessons[0] has 21 characters; at most 20 are allowed"),
        ],
    )
    def test_what_does_not_fit_is_named_with_its_place(self, value: Any, schema: dict[str, Any], flaw: str) -> None:
        found = check(value, schema)

        assert (flaw in found) if flaw else (found == "")

    @pytest.mark.parametrize("text", ['{"lessons": NaN}', "{" * 1000, "[" * 100_000, f'{{"lessons": [{"9" * 5000}]}}'])
    def test_what_only_looks_like_json_is_none(self, text: str) -> None:
        assert find_value(text, SCHEMA)[0] is None

    @given(st.text())
    def test_any_text_gives_an_answer(self, text: str) -> None:
        value, flaw = find_value(text, SCHEMA)
        assert (value is None) == bool(flaw)

    @given(st.text(alphabet='abc \n`[]{}",:1'), st.text(alphabet='abc \n`[]{}",:1'))
    def test_a_good_value_is_found_behind_any_talk_that_opens_no_string(self, before: str, after: str) -> None:
        talk = before.replace('"', "").replace("[", "(").replace("{", "(")
        assert find_value(f"{talk}{GOOD}{after}", SCHEMA) == ({"lessons": ["run make lint"]}, "")
