"""Call network services: Anthropic's Messages API and OpenAI's Chat Completions, each through its own package.

Ollama, vLLM and many other servers use OpenAI's protocol. Options that only OpenAI's servers know are sent only to
them. The packages find the key and open the connection. The response body is parsed here as untrusted JSON, because
other servers leave out fields that the packages expect. Both packages use the same names for their errors.

The packages apply their time limit to each read. A server that sends a byte now and then could block us forever, so the
call runs in a thread that is abandoned at the limit. The thread ends with the connection or with the process.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from learnt.llm.calls import FAILED, REFUSED, TIMEOUT, ModelAnswer, ModelRequest, Provider
from learnt.system.installation import install_command
from learnt.text.clean import clean, fold
from learnt.text.json_values import amount, count, dig, text_of, total

_MAX_RETRY_AFTER_S = 5.0
_MAX_REASON_LENGTH = 300
_RETRY_STATUSES = (408, 409, 429)
_WRONG_KEY_STATUSES = (401, 403)
_ANTHROPIC_TOKENS_IN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OPENAI_HOST = "api.openai.com"
# Reasons why an answer ended before it was complete. The first two are Anthropic's, the last one is OpenAI's.
_CUT_OFF = ("max_tokens", "model_context_window_exceeded", "length")


def ask(request: ModelRequest, provider: Provider) -> ModelAnswer:
    """Return the service's answer."""
    try:
        package: Any = importlib.import_module(provider.name)
    except ImportError:
        return ModelAnswer(
            result=FAILED,
            reason=f"the Python package `{provider.name}` is not installed",
            hint=install_command(provider.name),
            may_have_cost=False,
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
        return make_timeout_answer(provider.time_limit_s)


def make_timeout_answer(limit_s: float) -> ModelAnswer:
    """Return the answer for a call that timed out."""
    return ModelAnswer(
        result=TIMEOUT,
        reason=f"no answer within {limit_s:g} s",
        hint="raise `time_limit_s` under [model] in learnt.toml, or choose a faster model",
        can_retry=True,
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
            **_openai_options(request, is_openai=client.base_url.host == _OPENAI_HOST),
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
        # A local server does not need a key, but the package requires one.
        return openai.OpenAI(api_key="none", **_connection(provider))


def _connection(provider: Provider) -> dict[str, Any]:
    return {"base_url": provider.base_url or None, "timeout": provider.time_limit_s, "max_retries": 0}


def _openai_options(request: ModelRequest, *, is_openai: bool) -> dict[str, Any]:
    if not is_openai:
        return {"max_tokens": request.max_tokens}
    is_object = request.schema.get("type") == "object"
    form = {"response_format": {"type": "json_object"}} if is_object else {}
    return {"max_completion_tokens": request.max_tokens, **form}


def _check_ending(answer: ModelAnswer, ending: Any, *, refused: bool, words: str = "") -> ModelAnswer:
    """Return the answer, marked as failed if the model refused or its answer was cut off."""
    if refused:
        why = f": {words[:200]}" if words else ""
        return answer.replace(result=REFUSED, reason=f"the model refused to answer{why}")
    if ending in _CUT_OFF:
        return answer.replace(result=FAILED, reason="the answer was cut off because it was too long")
    return answer


def _report_errors(package: Any, call: Callable[[], ModelAnswer]) -> ModelAnswer:
    """Return the call's answer, or an answer that describes its error."""
    name = package.__name__
    key_hint = f"put the key into {name.upper()}_API_KEY in the environment; learnt does not store it"
    base_error = package.AnthropicError if name == "anthropic" else package.OpenAIError
    try:
        return call()
    except package.APITimeoutError:
        return ModelAnswer(result=TIMEOUT, reason="the service did not answer in time", can_retry=True)
    except package.APIStatusError as error:
        return _report_status(error, key_hint)
    except package.APIConnectionError as error:
        why = _shorten(str(error.__cause__ or error))
        reason = f"the service cannot be reached: {why}"
        return ModelAnswer(result=FAILED, reason=reason, can_retry=True, may_have_cost=False)
    except json.JSONDecodeError:
        return ModelAnswer(result=FAILED, reason="the service did not answer with JSON", can_retry=True)
    except (base_error, TypeError, ValueError) as error:  # usually a missing key
        reason = f"cannot call the service: {_shorten(str(error))}"
        return ModelAnswer(result=FAILED, reason=reason, hint=key_hint, may_have_cost=False)


def _report_status(error: Any, key_hint: str) -> ModelAnswer:
    """Return an answer that describes a service error."""
    status = int(error.status_code)
    message = text_of(dig(error.body, "error", "message") or dig(error.body, "message")) or str(error)
    return ModelAnswer(
        result=FAILED,
        reason=f"the service answered {status}: {_shorten(message)}",
        hint=key_hint if status in _WRONG_KEY_STATUSES else "",
        can_retry=status in _RETRY_STATUSES or status >= 500,
        retry_after_s=_read_retry_after(error.response.headers.get("retry-after")),
        may_have_cost=False,
    )


def _read_retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header; None for a date, which is not supported."""
    try:
        seconds = amount(float(header or ""))
    except ValueError:
        return None
    return None if seconds is None else min(seconds, _MAX_RETRY_AFTER_S)


def _shorten(text: str) -> str:
    text = fold(text[: 10 * _MAX_REASON_LENGTH])
    return text if len(text) <= _MAX_REASON_LENGTH else f"{text[: _MAX_REASON_LENGTH - 1]}…"
