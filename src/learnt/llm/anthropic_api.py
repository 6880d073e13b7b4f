"""Anthropic's Messages API, through Anthropic's own package."""

from __future__ import annotations

from typing import Any

from learnt.llm import service
from learnt.llm.shapes import FAILED, REFUSED, ModelAnswer, ModelRequest, Provider
from learnt.text.clean import clean
from learnt.text.json_values import count, dig, text_of, total

_TOKENS_IN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT = ("max_tokens", "model_context_window_exceeded")


def ask(request: ModelRequest, provider: Provider) -> ModelAnswer:
    """Return what the model says."""

    def send(anthropic: Any) -> str:
        client = anthropic.Anthropic(
            api_key=provider.api_key or None,
            base_url=provider.base_url or None,
            timeout=provider.time_limit_s,
            max_retries=0,
        )
        system = {"system": request.instructions} if request.instructions else {}
        with client:
            answer = client.messages.with_raw_response.create(
                model=provider.model,
                max_tokens=request.max_tokens,
                messages=[{"role": "user", "content": clean(request.prompt)}],
                **system,
            )
            return str(answer.http_response.text)

    return service.ask(provider, "AnthropicError", send, _read, variable="ANTHROPIC_API_KEY")


def _read(body: Any) -> ModelAnswer:
    content = dig(body, "content")
    parts = content if isinstance(content, list) else []
    answer = ModelAnswer(
        text="".join(text_of(dig(part, "text")) for part in parts if dig(part, "type") == "text"),
        model=text_of(dig(body, "model")),
        tokens_in=total([count(dig(body, "usage", name)) for name in _TOKENS_IN]),
        tokens_out=count(dig(body, "usage", "output_tokens")),
    )
    ending = dig(body, "stop_reason")
    if ending == "refusal":
        return answer.replace(result=REFUSED, reason="the model refused to answer")
    if ending in _CUT:
        return answer.replace(result=FAILED, reason="the answer was cut off because it grew too long")
    return answer
