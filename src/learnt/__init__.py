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

__all__ = ["Brief", "CorruptDatabase", "Debrief", "Event", "Hit", "InvalidValue", "Learning", "LearntError", "Memory"]
__all__ += ["NewerDatabase", "NoStore", "NotFound", "Task", "Triggers", "TryAgain", "WrongRequest"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module `learnt` has no attribute `{name}`")
    import importlib

    values = ("Brief", "Debrief", "Event", "Hit", "Learning", "Task", "Triggers")
    home = "memory" if name == "Memory" else "model" if name in values else "errors"
    return getattr(importlib.import_module(f"learnt.{home}"), name)
