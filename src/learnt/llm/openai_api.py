"""OpenAI's Chat Completions, through its own package; Ollama, vLLM and many others speak the same.

What only OpenAI's own servers know is asked of them alone.
"""

from __future__ import annotations

from typing import Any

from learnt.llm import service
from learnt.llm.shapes import FAILED, REFUSED, Answer, Provider, Request
from learnt.text.clean import clean, fold
from learnt.text.json_values import count, dig, text_of

_OWN_HOST = "api.openai.com"
# A server on one's own machine asks for no key, but the package does.
_NO_KEY = "none"


def ask(request: Request, provider: Provider) -> Answer:
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


def _messages(request: Request) -> list[dict[str, str]]:
    system = [{"role": "system", "content": request.instructions}] if request.instructions else []
    return [*system, {"role": "user", "content": clean(request.prompt)}]


def _options(request: Request, *, own: bool) -> dict[str, Any]:
    if not own:
        return {"max_tokens": request.max_tokens}
    is_object = request.schema.get("type") == "object"
    form = {"response_format": {"type": "json_object"}} if is_object else {}
    return {"max_completion_tokens": request.max_tokens, **form}


def _read(found: Any) -> Answer:
    choices = dig(found, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    answer = Answer(
        text=text_of(dig(choice, "message", "content")),
        model=text_of(dig(found, "model")),
        tokens_in=count(dig(found, "usage", "prompt_tokens")),
        tokens_out=count(dig(found, "usage", "completion_tokens")),
    )
    refused = fold(text_of(dig(choice, "message", "refusal")))
    if refused or dig(choice, "finish_reason") == "content_filter":
        told = f": {refused[:200]}" if refused else ""
        return answer.replace(result=REFUSED, reason=f"the model refused to answer{told}")
    if dig(choice, "finish_reason") == "length":
        return answer.replace(result=FAILED, reason="the answer was cut off because it grew too long")
    return answer
