"""Work on the next batch in a second process, while the caller is busy with the last one.

The second process is a copy of this one that only computes: it opens and closes nothing. Where there is no second
processor, or no way to copy a process, the work is done in this process.
"""

from __future__ import annotations

import gc
import marshal
import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO, TypeVar

from learnt.errors import LearntError

_Batch = TypeVar("_Batch")
_DONE, _FAILED = b"\1", b"\0"
_LENGTH_BYTES = 8


def work_ahead(work: Callable[[_Batch], Any], batches: Iterable[_Batch]) -> Iterator[tuple[_Batch, Any]]:
    """Yield each batch with the result of its work; a result consists of numbers, texts, bytes, lists and the like.

    A LearntError that the work raises is raised here, after the results of the batches before.
    """
    waiting = iter(batches)
    first = list(islice(waiting, 2))
    if len(first) < 2 or not _can_copy():
        for batch in chain(first, waiting):
            yield batch, work(batch)
        return
    copy = _Copy(work)
    try:
        last = first[0]
        copy.send(last)
        for batch in chain(first[1:], waiting):
            result = copy.receive()
            copy.send(batch)
            yield last, result
            last = batch
        yield last, copy.receive()
    finally:
        copy.end()


def _can_copy() -> bool:
    """Return whether a copy of this process can work; one of a process with several threads might wait forever."""
    return hasattr(os, "fork") and (os.cpu_count() or 1) > 1 and threading.active_count() == 1


class _Copy:
    """A copy of this process that works on what it is sent."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        to_copy, from_copy = os.pipe(), os.pipe()
        fork: Callable[[], int] = getattr(os, "fork")  # noqa: B009  (Windows has none, see `_can_copy`)
        self._pid = fork()
        if self._pid == 0:
            os.close(to_copy[1])
            os.close(from_copy[0])
            _serve(work, to_copy[0], from_copy[1])
        os.close(to_copy[0])
        os.close(from_copy[1])
        self._out, self._in = os.fdopen(to_copy[1], "wb"), os.fdopen(from_copy[0], "rb")

    def send(self, batch: object) -> None:
        try:
            _write(self._out, pickle.dumps(batch))
        except BrokenPipeError:
            raise _ended() from None

    def receive(self) -> Any:
        mark = self._in.read(1)
        content = _read(self._in)
        if mark == _DONE:
            return marshal.loads(content)  # noqa: S302 - our own process wrote it
        raise pickle.loads(content) if mark == _FAILED else _ended()  # noqa: S301 - our own process wrote it

    def end(self) -> None:
        """End the copy, which stops when nothing more can come."""
        for file in (self._in, self._out):
            try:
                file.close()
            except BrokenPipeError:
                continue  # it has ended already
        os.waitpid(self._pid, 0)


def _serve(work: Callable[[Any], Any], source: int, target: int) -> None:
    """Work in the copy until the other end is closed, and leave without any of the usual farewells."""
    code = 1
    gc.disable()  # looking at all objects of the copy would also copy their memory
    try:
        with os.fdopen(source, "rb") as requests, os.fdopen(target, "wb") as answers:
            while content := _read(requests):
                try:
                    batch = pickle.loads(content)  # noqa: S301 - our own process wrote it
                    answer = _DONE, marshal.dumps(work(batch))
                except LearntError as error:
                    answer = _FAILED, pickle.dumps(error)
                answers.write(answer[0])
                _write(answers, answer[1])
        code = 0
    except (OSError, KeyboardInterrupt):
        code = 1  # the other end is gone, and tells why
    finally:
        os._exit(code)


def _write(file: BinaryIO, content: bytes) -> None:
    file.write(len(content).to_bytes(_LENGTH_BYTES, "little"))
    file.write(content)
    file.flush()


def _read(file: BinaryIO) -> bytes:
    return file.read(int.from_bytes(file.read(_LENGTH_BYTES), "little"))


def _ended() -> LearntError:
    return LearntError("a process that prepared a batch has ended", hint="run the same command again")
