"""What the services on the network share: their packages, the time limit of a call, and how errors are reported.

The packages of Anthropic and OpenAI are built alike, so their errors have the same names. They find the key and make
the connection. We read the body of the answer ourselves, as foreign JSON, because other servers with the same protocol
leave out what the packages expect.

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

from learnt.llm.shapes import FAILED, TIMEOUT, ModelAnswer, Provider
from learnt.text.clean import fold
from learnt.text.json_values import amount, dig, text_of

_LONGEST_WAIT_S = 5.0
_LONGEST_REASON = 300
_TRY_AGAIN = (408, 409, 429)
_WRONG_KEY = (401, 403)


def ask(
    provider: Provider, root: str, send: Callable[[Any], str], read: Callable[[Any], ModelAnswer], *, variable: str
) -> ModelAnswer:
    """Return what the service says.

    `send` is given the service's package and returns the body of the answer, `read` is given the JSON in it. `root` is
    the name of the package's base error, `variable` where the package looks for the key.
    """
    try:
        package: Any = importlib.import_module(provider.name)
    except ImportError:
        return ModelAnswer(
            result=FAILED,
            reason=f"the Python package `{provider.name}` is not installed",
            hint=f"pip install 'learnt[{provider.name}]'",
            reached=False,
        )
    key_hint = f"put the key into {variable} in the environment; it is kept in no file of ours"
    return _within(
        lambda: _call(package, getattr(package, root), lambda: send(package), read, key_hint), provider.time_limit_s
    )


def _within(work: Callable[[], ModelAnswer], limit_s: float) -> ModelAnswer:
    """Return the answer, or that it took too long."""
    answers: SimpleQueue[ModelAnswer] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(work())
        finally:
            answers.put(ModelAnswer(result=FAILED, reason="the call ended without an answer"))

    threading.Thread(target=run, name="learnt-model-call", daemon=True).start()
    try:
        return answers.get(timeout=limit_s)
    except Empty:
        return time_out(limit_s)


def time_out(limit_s: float) -> ModelAnswer:
    """Return the answer for a call without an answer in time."""
    return ModelAnswer(
        result=TIMEOUT,
        reason=f"no answer came within {limit_s:g} s",
        hint="raise `time_limit_s` under [model] in learnt.toml, or name a faster model",
        again=True,
    )


def _call(
    package: Any, root: type[Exception], send: Callable[[], str], read: Callable[[Any], ModelAnswer], key_hint: str
) -> ModelAnswer:
    try:
        body = json.loads(send())
    except package.APITimeoutError:
        return ModelAnswer(result=TIMEOUT, reason="the service did not answer in time", again=True)
    except package.APIStatusError as error:
        return _report_status(error, key_hint)
    except package.APIConnectionError as error:
        why = _shorten(str(error.__cause__ or error))
        return ModelAnswer(result=FAILED, reason=f"the service cannot be reached: {why}", again=True, reached=False)
    except json.JSONDecodeError:
        return ModelAnswer(result=FAILED, reason="the service answered with something that is no JSON", again=True)
    except (root, TypeError, ValueError) as error:  # mostly a missing key
        return ModelAnswer(result=FAILED, reason=f"cannot ask: {_shorten(str(error))}", hint=key_hint, reached=False)
    return read(body)


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
