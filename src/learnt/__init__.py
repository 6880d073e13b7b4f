"""learnt remembers what coding agents learn.

    from learnt import Memory

    memory = Memory.open(".")
    learning = memory.add("Run `make lint` before each commit", action="Run it; the hook rejects the commit otherwise")

The names below are public and stable. Each is loaded on first use, so that a hook loads only what it needs.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.errors import (
        CorruptDatabase,
        InvalidValue,
        LearntError,
        NewerDatabase,
        NoStore,
        NotFound,
        TryAgain,
        WrongRequest,
    )
    from learnt.memory import Memory
    from learnt.model import Brief, Debrief, Event, Hit, Learning, Task, Triggers

_HOMES = {
    "Memory": "learnt.memory",
    "Learning": "learnt.model",
    "Brief": "learnt.model",
    "Debrief": "learnt.model",
    "Task": "learnt.model",
    "Event": "learnt.model",
    "Hit": "learnt.model",
    "Triggers": "learnt.model",
    "LearntError": "learnt.errors",
    "CorruptDatabase": "learnt.errors",
    "WrongRequest": "learnt.errors",
    "InvalidValue": "learnt.errors",
    "NotFound": "learnt.errors",
    "NoStore": "learnt.errors",
    "NewerDatabase": "learnt.errors",
    "TryAgain": "learnt.errors",
}

__all__ = [
    "Brief",
    "CorruptDatabase",
    "Debrief",
    "Event",
    "Hit",
    "InvalidValue",
    "Learning",
    "LearntError",
    "Memory",
    "NewerDatabase",
    "NoStore",
    "NotFound",
    "Task",
    "Triggers",
    "TryAgain",
    "WrongRequest",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module `learnt` has no attribute `{name}`")
    import importlib

    return getattr(importlib.import_module(home), name)
