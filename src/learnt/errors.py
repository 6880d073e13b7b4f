"""The errors of learnt: one tree, each with a way out.

    LearntError                 our failure                          exit 1
    ├── CorruptDatabase         doctor reports it instead of failing
    ├── ModelFailed             what asked goes on without an answer
    ├── SpendingCap             no further call is tried              exit 3
    ├── WrongRequest            the caller can mend it               exit 2
    │   ├── InvalidValue        a value that cannot be built
    │   ├── NotFound            the next store may have it
    │   ├── NoStore             a hook stays silent
    │   ├── NoModel             what can be done without a model is done
    │   └── NewerDatabase       never opened, never written
    └── TryAgain                the database cannot take it now      exit 3

A class exists only where some caller acts differently on it. The code that raises knows the remedy and
gives it as the hint.
"""

import errno


class LearntError(Exception):
    """Something failed; the message says what, the hint what to do."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CorruptDatabase(LearntError):
    """The database file is damaged or is no database."""


class ModelFailed(LearntError):
    """A model gave no answer that can be used; `result` is what the record of the call says."""

    def __init__(self, message: str, *, result: str = "failed", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.result = result


class SpendingCap(LearntError):
    """A call would cost more than may be spent; a later day, or a higher cap, allows it."""

    exit_code = 3


class WrongRequest(LearntError):
    """The request cannot be carried out as it was made."""

    exit_code = 2


class InvalidValue(WrongRequest):
    """A value breaks its own rules."""


class NotFound(WrongRequest):
    """Nothing has this id."""


class NoStore(WrongRequest):
    """There is no store here, and this command does not create one."""


class NoModel(WrongRequest):
    """No model is named, and none is asked unless the user names one."""


class NewerDatabase(WrongRequest):
    """The database was written by a later version."""


class TryAgain(LearntError):
    """The database cannot take it now: busy, full or out of reach."""

    exit_code = 3


def cannot_write(what: str, error: OSError, *, hint: str) -> LearntError:
    """Return the error for something that could not be written: on a full disk, room may come."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TryAgain(f"cannot write {what}: {error.strerror}", hint="free some disk space and try again")
    return LearntError(f"cannot write {what}: {error.strerror}", hint=hint)
