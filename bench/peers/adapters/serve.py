"""Run one peer: `python serve.py ADAPTER OPTION DISTRIBUTION FOLDER`, with JSON lines on stdin and stdout.

Each line of input is one store: `{"store": name, "documents": [{"id", "text", "time_ms"}, …], "queries": [{"id",
"text"}, …]}`. The answers are `{"version"}` once, and for each store `{"added_s"}`, a line `{"query", "ids", "ms",
"cpu_ms"}` per query, and `{"closed": name}`; or `{"error"}`, after which nothing follows. The adapter is a module
beside this file whose `open_store(folder, option)` returns an object with `add(documents)`, `search(text, limit)` and
`close()`.

Only `add` and `search` are timed: neither the start of Python nor the loading of a model counts. A store's first query
is asked once before, so that the times are those of a warm store.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

LIMIT = 10


def main() -> None:
    """Serve every store of the input."""
    adapter, option, distribution, folder = sys.argv[1:]
    answers = _take_stdout()
    sys.excepthook = lambda kind, error, trace: _fail(answers, error)
    peer = importlib.import_module(adapter)
    _answer(answers, version=metadata.version(distribution))
    for line in sys.stdin:
        request = json.loads(line)
        _serve(peer, option, Path(folder) / f"store-{request['store']}", request, answers)


def _fail(answers: TextIO, error: BaseException) -> None:
    """Answer with an error that nobody handled: it is the reason why a peer is not measured."""
    traceback.print_exception(error)
    _answer(answers, error=f"{type(error).__name__}: {error}")
    _end(1)


def _take_stdout() -> TextIO:
    """Return the real stdout; what a peer prints goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _serve(peer: Any, option: str, folder: Path, request: dict[str, Any], answers: TextIO) -> None:
    folder.mkdir(parents=True)
    store = peer.open_store(folder, option)
    started = time.perf_counter()
    store.add(request["documents"])
    _answer(answers, added_s=time.perf_counter() - started)
    for query in request["queries"][:1]:
        store.search(query["text"], LIMIT)
    for query in request["queries"]:
        started, cpu_before = time.perf_counter(), time.process_time()
        ids = store.search(query["text"], LIMIT)
        ms, cpu_ms = (time.perf_counter() - started) * 1000, (time.process_time() - cpu_before) * 1000
        _answer(answers, query=query["id"], ids=ids, ms=ms, cpu_ms=cpu_ms)
    store.close()
    _answer(answers, closed=request["store"])


def _answer(answers: TextIO, **fields: Any) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


def _end(code: int) -> None:
    """End at once: threads that a peer leaves behind do not keep the process alive."""
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
    _end(0)
