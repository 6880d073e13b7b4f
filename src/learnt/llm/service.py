"""What the services on the network share: their packages, the time limit of a call, and how their errors are told.

The packages of Anthropic and OpenAI are made alike, so their errors have the same names. They find the key and make
the connection; the body of the answer is read by us, as foreign JSON, because servers that only speak the same
protocol leave out what the packages expect.

Their own time limit is one for each wait. A server that sends a byte now and then could hold us for ever, so the call
runs in a thread that is left behind at the limit; it ends with the connection, or with the process.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from learnt.llm.shapes import FAILED, TIMEOUT, Answer, Provider
from learnt.text.clean import fold
from learnt.text.json_values import amount, dig, text_of

LONGEST_WAIT_S = 5.0
_LONGEST_REASON = 300
_TRY_AGAIN = (408, 409, 429)
_WRONG_KEY = (401, 403)


def ask(
    provider: Provider, root: str, send: Callable[[Any], str], read: Callable[[Any], Answer], *, variable: str
) -> Answer:
    """Return what the service says.

    `send` is given the service's package and returns the body of the answer, `read` is given the JSON in it. `root` is
    the name of the package's first error, `variable` where it looks for the key.
    """
    try:
        package: Any = importlib.import_module(provider.name)
    except ImportError:
        return Answer(
            result=FAILED,
            reason=f"the Python package `{provider.name}` is not installed",
            hint=f"pip install 'learnt[{provider.name}]'",
            reached=False,
        )
    key_hint = f"put the key into {variable} in the environment; it is kept in no file of ours"
    return within(
        lambda: _told(package, getattr(package, root), lambda: send(package), read, key_hint), provider.time_limit_s
    )


def within(work: Callable[[], Answer], limit_s: float) -> Answer:
    """Return what the work gives, or that it took too long."""
    answers: SimpleQueue[Answer] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(work())
        finally:
            answers.put(Answer(result=FAILED, reason="the call ended without an answer"))

    threading.Thread(target=run, name="learnt-model-call", daemon=True).start()
    try:
        return answers.get(timeout=limit_s)
    except Empty:
        return too_late(limit_s)


def too_late(limit_s: float) -> Answer:
    """Return that nobody answered in time."""
    return Answer(
        result=TIMEOUT,
        reason=f"no answer came within {limit_s:g} s",
        hint="raise `time_limit_s` under [model] in learnt.toml, or name a faster model",
        again=True,
    )


def _told(
    package: Any, root: type[Exception], send: Callable[[], str], read: Callable[[Any], Answer], key_hint: str
) -> Answer:
    try:
        found = json.loads(send())
    except package.APITimeoutError:
        return Answer(result=TIMEOUT, reason="the service did not answer in time", again=True)
    except package.APIStatusError as error:
        return _refused(error, key_hint)
    except package.APIConnectionError as error:
        why = _short(str(error.__cause__ or error))
        return Answer(result=FAILED, reason=f"the service cannot be reached: {why}", again=True, reached=False)
    except json.JSONDecodeError:
        return Answer(result=FAILED, reason="the service answered with something that is no JSON", again=True)
    except (root, TypeError, ValueError) as error:  # mostly a missing key
        return Answer(result=FAILED, reason=f"cannot ask: {_short(str(error))}", hint=key_hint, reached=False)
    return read(found)


def _refused(error: Any, key_hint: str) -> Answer:
    """Return what an error of the service says, by its status."""
    status = int(error.status_code)
    told = text_of(dig(error.body, "error", "message") or dig(error.body, "message")) or str(error)
    return Answer(
        result=FAILED,
        reason=f"the service answered {status}: {_short(told)}",
        hint=key_hint if status in _WRONG_KEY else "",
        again=status in _TRY_AGAIN or status >= 500,
        wait_s=_wait_s(error.response.headers.get("retry-after")),
        reached=False,
    )


def _wait_s(told: str | None) -> float | None:
    """Return how long a service asks to be left alone, in seconds; a date is passed over."""
    try:
        asked = amount(float(told or ""))
    except ValueError:
        return None
    return None if asked is None else min(asked, LONGEST_WAIT_S)


def _short(text: str) -> str:
    text = fold(text[: 10 * _LONGEST_REASON])
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
