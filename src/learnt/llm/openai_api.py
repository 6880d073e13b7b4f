"""OpenAI's Chat Completions API, through OpenAI's own package; Ollama, vLLM and many others offer the same.

Options that only OpenAI's own servers know are sent to them alone.
"""

from __future__ import annotations

from typing import Any

from learnt.llm import service
from learnt.llm.shapes import FAILED, REFUSED, ModelAnswer, ModelRequest, Provider
from learnt.text.clean import clean, fold
from learnt.text.json_values import count, dig, text_of

_OWN_HOST = "api.openai.com"
# A local server needs no key, but the package insists on one.
_NO_KEY = "none"


def ask(request: ModelRequest, provider: Provider) -> ModelAnswer:
    """Return what the model says."""

    def send(openai: Any) -> str:
        with _client(openai, provider) as client:
            answer = client.chat.completions.with_raw_response.create(
                model=provider.model,
                messages=_messages(request),
                **_options(request, own=client.base_url.host == _OWN_HOST),
            )
            return str(answer.http_response.text)

    return service.ask(provider, "OpenAIError", send, _read, variable="OPENAI_API_KEY")


def _client(openai: Any, provider: Provider) -> Any:
    options = {"base_url": provider.base_url or None, "timeout": provider.time_limit_s, "max_retries": 0}
    try:
        return openai.OpenAI(api_key=provider.api_key or None, **options)
    except openai.OpenAIError:
        if not provider.base_url:
            raise
        return openai.OpenAI(api_key=_NO_KEY, **options)


def _messages(request: ModelRequest) -> list[dict[str, str]]:
    system = [{"role": "system", "content": request.instructions}] if request.instructions else []
    return [*system, {"role": "user", "content": clean(request.prompt)}]


def _options(request: ModelRequest, *, own: bool) -> dict[str, Any]:
    if not own:
        return {"max_tokens": request.max_tokens}
    is_object = request.schema.get("type") == "object"
    form = {"response_format": {"type": "json_object"}} if is_object else {}
    return {"max_completion_tokens": request.max_tokens, **form}


def _read(body: Any) -> ModelAnswer:
    choices = dig(body, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    answer = ModelAnswer(
        text=text_of(dig(choice, "message", "content")),
        model=text_of(dig(body, "model")),
        tokens_in=count(dig(body, "usage", "prompt_tokens")),
        tokens_out=count(dig(body, "usage", "completion_tokens")),
    )
    refusal = fold(text_of(dig(choice, "message", "refusal")))
    if refusal or dig(choice, "finish_reason") == "content_filter":
        words = f": {refusal[:200]}" if refusal else ""
        return answer.replace(result=REFUSED, reason=f"the model refused to answer{words}")
    if dig(choice, "finish_reason") == "length":
        return answer.replace(result=FAILED, reason="the answer was cut off because it grew too long")
    return answer
