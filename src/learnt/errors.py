"""learnt's errors: one tree, in which each error has a remedy.

    LearntError                 our failure                          exit 1
    ├── CorruptDatabase         doctor reports it instead of failing
    ├── ModelFailed             the rules do its work, or it is asked later
    ├── SpendingCap             the rules do the model's work        exit 3
    ├── WrongRequest            the caller can fix it                exit 2
    │   ├── InvalidValue        a value that cannot be built
    │   ├── NotFound            the next store may have it
    │   ├── NoStore             a hook stays silent
    │   ├── NotTrusted          a hook says so once
    │   ├── NoModel             the caller continues without a model
    │   └── NewerDatabase       never opened, never written
    └── TryAgain                a later attempt may succeed          exit 3

A class exists only where some caller acts differently on it. The code that raises an error knows the
remedy and passes it as the hint.
"""

import errno
import os


class LearntError(Exception):
    """Something failed; the message says what failed, and the hint says what to do."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CorruptDatabase(LearntError):
    """The database file is damaged, or is not a database."""


class ModelFailed(LearntError):
    """A model did not return a usable answer; `result` is stored with the call.

    `is_temporary` means that it was not reached or not ready, so that asking it later may succeed.
    """

    def __init__(self, message: str, *, result: str = "failed", hint: str = "", is_temporary: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.result = result
        self.is_temporary = is_temporary


class SpendingCap(LearntError):
    """A call would exceed a spending cap; it is possible later, or with a higher cap."""

    exit_code = 3


class WrongRequest(LearntError):
    """The request is wrong; the caller must change it."""

    exit_code = 2


class InvalidValue(WrongRequest):
    """A value is invalid."""


class NotFound(WrongRequest):
    """Nothing has this id."""


class NoStore(WrongRequest):
    """There is no store here, and this command does not create one."""


class NotTrusted(WrongRequest):
    """The project came from somebody else, and the user has not trusted it."""


class NoModel(WrongRequest):
    """No model is configured."""


class NewerDatabase(WrongRequest):
    """The database was written by a later version."""


class TryAgain(LearntError):
    """The database is busy, full or unreachable."""

    exit_code = 3


class OldSchema(TryAgain):
    """The database must be brought up to date first, which takes longer than a client can wait."""


def make_writable(folder: str) -> str:
    """Return what to type if a folder, or a file in it, cannot be written to; if it is missing, the one above it."""
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return f"`chmod -R u+w {folder}`, if it is yours"


def cannot_write(what: str, error: OSError, *, hint: str) -> LearntError:
    """Return the error for something that could not be written; TryAgain if the disk is full."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TryAgain(f"cannot write {what}: {error.strerror}", hint="free some disk space and try again")
    return LearntError(f"cannot write {what}: {error.strerror}", hint=hint)
