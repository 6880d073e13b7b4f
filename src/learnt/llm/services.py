"""The services on the network: Anthropic's Messages API and OpenAI's Chat Completions, each through its own package.

Ollama, vLLM and many others offer OpenAI's protocol. Options that only OpenAI's own servers know are sent to them
alone. The packages find the key and make the connection. We read the body of the answer ourselves, as foreign JSON,
because other servers leave out what the packages expect. Both packages are built alike, so their errors have the same
names.

The packages' own time limit applies to each wait. A server that sends a byte now and then could hold us for ever, so
the call runs in a thread that is abandoned at the limit; it ends with the connection, or with the process.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from learnt.llm.calls import FAILED, REFUSED, TIMEOUT, ModelAnswer, ModelRequest, Provider
from learnt.text.clean import clean, fold
from learnt.text.json_values import amount, count, dig, text_of, total

_LONGEST_WAIT_S = 5.0
_LONGEST_REASON = 300
_TRY_AGAIN = (408, 409, 429)
_WRONG_KEY = (401, 403)
_ANTHROPIC_TOKENS_IN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OPENAI_HOST = "api.openai.com"
# The reasons why an answer ends before it is complete: Anthropic's two, and OpenAI's.
_CUT_OFF = ("max_tokens", "model_context_window_exceeded", "length")


def ask(request: ModelRequest, provider: Provider) -> ModelAnswer:
    """Return what the service answers."""
    try:
        package: Any = importlib.import_module(provider.name)
    except ImportError:
        return ModelAnswer(
            result=FAILED,
            reason=f"the Python package `{provider.name}` is not installed",
            hint=f"pip install 'learnt[{provider.name}]'",
            reached=False,
        )
    call = _call_anthropic if provider.name == "anthropic" else _call_openai
    answers: SimpleQueue[ModelAnswer] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(_report_errors(package, lambda: call(package, request, provider)))
        finally:
            answers.put(ModelAnswer(result=FAILED, reason="the call ended without an answer"))

    threading.Thread(target=run, name="learnt-model-call", daemon=True).start()
    try:
        return answers.get(timeout=provider.time_limit_s)
    except Empty:
        return time_out(provider.time_limit_s)


def time_out(limit_s: float) -> ModelAnswer:
    """Return the answer for a call without an answer in time."""
    return ModelAnswer(
        result=TIMEOUT,
        reason=f"no answer came within {limit_s:g} s",
        hint="raise `time_limit_s` under [model] in learnt.toml, or name a faster model",
        again=True,
    )


def _call_anthropic(anthropic: Any, request: ModelRequest, provider: Provider) -> ModelAnswer:
    system = {"system": request.instructions} if request.instructions else {}
    with anthropic.Anthropic(api_key=provider.api_key or None, **_connection(provider)) as client:
        response = client.messages.with_raw_response.create(
            model=provider.model,
            max_tokens=request.max_tokens,
            messages=[{"role": "user", "content": clean(request.prompt)}],
            **system,
        )
        body = json.loads(response.http_response.text)
    content = dig(body, "content")
    parts = content if isinstance(content, list) else []
    answer = ModelAnswer(
        text="".join(text_of(dig(part, "text")) for part in parts if dig(part, "type") == "text"),
        model=text_of(dig(body, "model")),
        tokens_in=total([count(dig(body, "usage", name)) for name in _ANTHROPIC_TOKENS_IN]),
        tokens_out=count(dig(body, "usage", "output_tokens")),
    )
    ending = dig(body, "stop_reason")
    return _check_ending(answer, ending, refused=ending == "refusal")


def _call_openai(openai: Any, request: ModelRequest, provider: Provider) -> ModelAnswer:
    system = [{"role": "system", "content": request.instructions}] if request.instructions else []
    with _connect_openai(openai, provider) as client:
        response = client.chat.completions.with_raw_response.create(
            model=provider.model,
            messages=[*system, {"role": "user", "content": clean(request.prompt)}],
            **_openai_options(request, own=client.base_url.host == _OPENAI_HOST),
        )
        body = json.loads(response.http_response.text)
    choices = dig(body, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    answer = ModelAnswer(
        text=text_of(dig(choice, "message", "content")),
        model=text_of(dig(body, "model")),
        tokens_in=count(dig(body, "usage", "prompt_tokens")),
        tokens_out=count(dig(body, "usage", "completion_tokens")),
    )
    ending, refusal = dig(choice, "finish_reason"), fold(text_of(dig(choice, "message", "refusal")))
    return _check_ending(answer, ending, refused=bool(refusal) or ending == "content_filter", words=refusal)


def _connect_openai(openai: Any, provider: Provider) -> Any:
    try:
        return openai.OpenAI(api_key=provider.api_key or None, **_connection(provider))
    except openai.OpenAIError:
        if not provider.base_url:
            raise
        # A local server needs no key, but the package insists on one.
        return openai.OpenAI(api_key="none", **_connection(provider))


def _connection(provider: Provider) -> dict[str, Any]:
    return {"base_url": provider.base_url or None, "timeout": provider.time_limit_s, "max_retries": 0}


def _openai_options(request: ModelRequest, *, own: bool) -> dict[str, Any]:
    if not own:
        return {"max_tokens": request.max_tokens}
    is_object = request.schema.get("type") == "object"
    form = {"response_format": {"type": "json_object"}} if is_object else {}
    return {"max_completion_tokens": request.max_tokens, **form}


def _check_ending(answer: ModelAnswer, ending: Any, *, refused: bool, words: str = "") -> ModelAnswer:
    """Return the answer, marked as not done when the model refused or its answer was cut off."""
    if refused:
        why = f": {words[:200]}" if words else ""
        return answer.replace(result=REFUSED, reason=f"the model refused to answer{why}")
    if ending in _CUT_OFF:
        return answer.replace(result=FAILED, reason="the answer was cut off because it grew too long")
    return answer


def _report_errors(package: Any, call: Callable[[], ModelAnswer]) -> ModelAnswer:
    """Return what the call returns, or an answer that describes its error."""
    name = package.__name__
    key_hint = f"put the key into {name.upper()}_API_KEY in the environment; it is kept in no file of ours"
    base_error = package.AnthropicError if name == "anthropic" else package.OpenAIError
    try:
        return call()
    except package.APITimeoutError:
        return ModelAnswer(result=TIMEOUT, reason="the service did not answer in time", again=True)
    except package.APIStatusError as error:
        return _report_status(error, key_hint)
    except package.APIConnectionError as error:
        why = _shorten(str(error.__cause__ or error))
        return ModelAnswer(result=FAILED, reason=f"the service cannot be reached: {why}", again=True, reached=False)
    except json.JSONDecodeError:
        return ModelAnswer(result=FAILED, reason="the service answered with something that is no JSON", again=True)
    except (base_error, TypeError, ValueError) as error:  # mostly a missing key
        return ModelAnswer(result=FAILED, reason=f"cannot ask: {_shorten(str(error))}", hint=key_hint, reached=False)


def _report_status(error: Any, key_hint: str) -> ModelAnswer:
    """Return what an error of the service says, by its status."""
    status = int(error.status_code)
    message = text_of(dig(error.body, "error", "message") or dig(error.body, "message")) or str(error)
    return ModelAnswer(
        result=FAILED,
        reason=f"the service answered {status}: {_shorten(message)}",
        hint=key_hint if status in _WRONG_KEY else "",
        again=status in _TRY_AGAIN or status >= 500,
        wait_s=_wait_s(error.response.headers.get("retry-after")),
        reached=False,
    )


def _wait_s(header: str | None) -> float | None:
    """Return how long a service asks us to wait, in seconds; a date is ignored."""
    try:
        wait_s = amount(float(header or ""))
    except ValueError:
        return None
    return None if wait_s is None else min(wait_s, _LONGEST_WAIT_S)


def _shorten(text: str) -> str:
    text = fold(text[: 10 * _LONGEST_REASON])
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
