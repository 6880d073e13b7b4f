"""A moment by which a door must have answered."""

from __future__ import annotations

import sys

from learnt.errors import TryAgain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

# An error that is raised within a callback of Python's own is swallowed there: it is raised again.
_AGAIN_S = 0.1


class Deadline:
    """A block that is left with TryAgain when its time is up; 0 milliseconds mean no limit.

    Where there is no such timer, nothing happens: SQLite's wait is short anyway.
    """

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def __enter__(self) -> None:
        self._set(self._milliseconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set(0)

    def _set(self, milliseconds: int) -> None:
        if sys.platform == "win32" or not self._milliseconds:
            return
        if TYPE_CHECKING:
            import signal
        else:
            import _signal as signal  # the same without its enumerations, which take longer to make than a query

        signal.signal(signal.SIGALRM, self._give_up)
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000, _AGAIN_S if milliseconds else 0)

    def _give_up(self, _number: int, _frame: object) -> None:
        raise TryAgain(f"no answer within {self._milliseconds} ms", hint="allow more time, or try again")
