"""Encoders: models that turn a text into a vector, so that texts can be compared by what they mean.

An encoder is named by one text: `onnx:FOLDER`, `openai:MODEL@ADDRESS` or `ollama:MODEL@ADDRESS`. Its vectors are bytes
like those of the embedded table; `model` says which model made them, and only vectors of the same model can be
compared. Whatever goes wrong is a `ModelFailed` with a hint.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from learnt.errors import LearntError, ModelFailed, WrongRequest
from learnt.llm.calls import TIMEOUT
from learnt.llm.onnx import OnnxModel
from learnt.model import Value
from learnt.text.clean import clean, fold
from learnt.text.json_values import count, dig, text_of
from learnt.text.meaning import shorten_numbers

EMBEDDED = "embedded"
_SERVICES = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434"}
_PATHS = {"openai": "/embeddings", "ollama": "/api/embed"}
_FORMS = "`embedded`, `onnx:FOLDER`, `openai:MODEL@ADDRESS` or `ollama:MODEL@ADDRESS`"
_MAX_TEXT_LENGTH = 8_000
_MAX_ANSWER_BYTES = 100_000_000
_MAX_REASON_LENGTH = 300
_HINT = "`learnt doctor` shows the encoder's state; `encoder` stands under [search] in your settings"
_ServiceAnswer = tuple[list[list[float]], int | None]
Result = TypeVar("Result")


class EncoderName(Value):
    """What the setting names: the kind, the model or folder, and a service's address."""

    kind: str
    model: str
    address: str = ""

    @classmethod
    def parse(cls, text: str) -> EncoderName | None:
        """Return what a setting names; None for the embedded table. Raise if it is none of the forms."""
        kind, _, rest = text.strip().partition(":")
        if kind in ("", EMBEDDED) and not rest:
            return None
        model, address = rest, ""
        if kind in _SERVICES:
            model, _, address = rest.partition("@http")
            address = f"http{address}" if address else _SERVICES[kind]
        if kind not in ("onnx", *_SERVICES) or not model or not re.fullmatch(r"(https?://[^\s/]+\S*)?", address):
            raise WrongRequest(f"`{text}` is no encoder", hint=f"set `encoder` under [search] to {_FORMS}")
        return cls(kind=kind, model=model, address=address.rstrip("/"))

    @property
    def key_variable(self) -> str:
        """The variable that holds the key, unless the settings name one."""
        return "OPENAI_API_KEY" if self.address == _SERVICES["openai"] else ""


class EncoderAnswer(Value):
    """The vectors of texts, in their order; None for a text without any meaning."""

    vectors: Sequence[bytes | None]
    tokens: int | None = None


class Encoder(Protocol):
    """Turns texts into vectors of one model."""

    is_service: bool
    model: str

    def embed(self, texts: Sequence[str], *, limit_s: float) -> EncoderAnswer:
        """Return the vectors of texts; raise ModelFailed if there are none within the limit."""


def open_encoder(name: EncoderName, *, api_key: str) -> Encoder:
    """Return the encoder of this name, which is loaded when it is first used."""
    return OnnxEncoder(name) if name.kind == "onnx" else ServiceEncoder(name, api_key)


class OnnxEncoder:
    """A sentence model in a folder of this machine."""

    is_service = False

    def __init__(self, name: EncoderName) -> None:
        self._model = OnnxModel(name.model)
        self.model = f"onnx:{self._model.identify()}"

    def embed(self, texts: Sequence[str], *, limit_s: float) -> EncoderAnswer:
        """Return the vectors of texts."""
        shortened = [clean(text)[:_MAX_TEXT_LENGTH] for text in texts]
        numbers = _run_within(limit_s, lambda: self._model.embed(shortened))
        return EncoderAnswer(vectors=[shorten_numbers(row) for row in numbers])


class ServiceEncoder:
    """A service with OpenAI's embeddings or Ollama's."""

    is_service = True

    def __init__(self, name: EncoderName, api_key: str) -> None:
        self.model = f"{name.kind}:{name.model}"
        self._name = name
        self._api_key = api_key

    def embed(self, texts: Sequence[str], *, limit_s: float) -> EncoderAnswer:
        """Return the vectors of texts."""
        body = {"model": self._name.model, "input": [clean(text)[:_MAX_TEXT_LENGTH] or " " for text in texts]}
        if self._name.kind == "openai":
            body["encoding_format"] = "float"
        answer = _run_within(limit_s, lambda: self._post(body, limit_s))
        numbers, tokens = (_read_openai if self._name.kind == "openai" else _read_ollama)(answer)
        if len(numbers) != len(texts) or len(set(map(len, numbers))) != 1 or not numbers[0]:
            raise ModelFailed(f"{self.model} did not answer with a vector for each text", hint=_HINT)
        return EncoderAnswer(vectors=[shorten_numbers(row) for row in numbers], tokens=tokens)

    def _post(self, body: Mapping[str, Any], limit_s: float) -> Any:
        headers = {"content-type": "application/json"}
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key}"
        address = self._name.address + _PATHS[self._name.kind]
        request = Request(address, json.dumps(body).encode(), headers)  # noqa: S310 - only http and https are accepted
        try:
            with build_opener(_NoRedirect).open(request, timeout=limit_s + 1) as response:
                return json.loads(response.read(_MAX_ANSWER_BYTES))
        except HTTPError as error:
            raise self._failed(f"the service answered {error.code}: {_read_reason(error)}") from None
        except (URLError, HTTPException, OSError) as error:
            raise self._failed(f"the service cannot be reached: {getattr(error, 'reason', error)}") from None
        except (ValueError, RecursionError):
            raise self._failed("the service did not answer with JSON") from None

    def _failed(self, reason: str) -> ModelFailed:
        reason = fold(reason.replace(self._api_key, "…") if self._api_key else reason)
        return ModelFailed(f"{self.model}: {reason[:_MAX_REASON_LENGTH]}", hint=_HINT, is_temporary=True)


class _NoRedirect(HTTPRedirectHandler):
    """Redirects are not followed, because the key and the texts are for the configured address only."""

    def redirect_request(self, *_: object) -> None:
        return None


def _read_reason(error: HTTPError) -> str:
    try:
        body = json.loads(error.read(_MAX_REASON_LENGTH * 10))
    except (ValueError, RecursionError, OSError, HTTPException):
        return str(error.reason)
    return text_of(dig(body, "error", "message") or dig(body, "error") or dig(body, "message")) or str(error.reason)


def _read_openai(answer: Any) -> _ServiceAnswer:
    rows = dig(answer, "data")
    rows = rows if isinstance(rows, list) else []
    in_order = sorted(rows, key=lambda row: count(dig(row, "index")) or 0)
    return [_read_numbers(dig(row, "embedding")) for row in in_order], count(dig(answer, "usage", "prompt_tokens"))


def _read_ollama(answer: Any) -> _ServiceAnswer:
    rows = dig(answer, "embeddings")
    numbers = [_read_numbers(row) for row in rows] if isinstance(rows, list) else []
    return numbers, count(dig(answer, "prompt_eval_count"))


def _read_numbers(value: Any) -> list[float]:
    """Return a list of numbers; empty if it is anything else."""
    if not isinstance(value, list) or not all(type(number) in (int, float) for number in value):
        return []
    return [float(number) for number in value]


def _run_within(limit_s: float, act: Callable[[], Result]) -> Result:
    """Return what a function returns, or raise what it raises; raise ModelFailed if it takes longer.

    The function runs in a thread that is abandoned at the limit: a server may send a byte now and then forever.
    """
    outcomes: SimpleQueue[tuple[Result | None, LearntError | None]] = SimpleQueue()

    def run() -> None:
        failure = ModelFailed("the encoder failed", hint=_HINT)
        try:
            outcomes.put((act(), None))
        except LearntError as error:
            failure = error if isinstance(error, ModelFailed) else ModelFailed(error.message, hint=error.hint)
        finally:
            outcomes.put((None, failure))

    threading.Thread(target=run, name="learnt-encoder", daemon=True).start()
    try:
        result, failure = outcomes.get(timeout=limit_s)
    except Empty:
        raise ModelFailed(
            f"the encoder did not answer within {limit_s:g} s",
            result=TIMEOUT,
            hint="raise `encoder_deadline_ms` under [search] in your settings, or choose a faster encoder",
            is_temporary=True,
        ) from None
    if failure:
        raise failure
    return result  # type: ignore[return-value]
