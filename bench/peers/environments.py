"""Where peers are installed: virtual environments in the user's cache, made on demand by pip and reused later.

LEARNT_PEERS is another folder for them. An environment is complete once it has its list of packages in `peers.txt`;
otherwise, or if the list has changed, it is made again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.report import say

CACHE = Path(
    os.environ.get("LEARNT_PEERS") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "learnt-peers"
)
# Read before the measurement sets an empty home: pip and a version manager are configured in the user's own.
_USER_ENVIRONMENT = dict(os.environ)
_PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
_INSTALL_LIMIT_S = 1800
_READY = "peers.txt"


class NotInstalled(Exception):
    """An environment cannot be made here; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with these packages; several peers may share one."""

    name: str
    packages: tuple[str, ...]
    alone: tuple[str, ...] = ()
    """Packages that are installed without what they require."""
    python: tuple[int, int] = (3, 11)
    loads_extensions: bool = False
    """Whether the interpreter's SQLite must be able to load extensions; that of many version managers is not."""

    def prepare(self) -> str:
        """Return its interpreter; install the packages first if they are not there."""
        folder = CACHE / self.name
        interpreter = str(folder / "bin" / "python")
        wanted = "\n".join((*self.packages, *self.alone))
        ready = folder / _READY
        if not ready.exists() or ready.read_text() != wanted:
            say(f"  installing {self.name}: {', '.join((*self.packages, *self.alone))}")
            shutil.rmtree(folder, ignore_errors=True)
            _run(_find_python(self.python, loads_extensions=self.loads_extensions), "-m", "venv", str(folder))
            pip = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            _run(*pip, *self.packages)
            if self.alone:
                _run(*pip, "--no-deps", *self.alone)
            ready.write_text(wanted)
        return interpreter


def _run(*words: str) -> None:
    try:
        done = subprocess.run(
            words, env=_USER_ENVIRONMENT, capture_output=True, text=True, timeout=_INSTALL_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"installing it takes longer than {_INSTALL_LIMIT_S // 60} minutes") from error
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotInstalled((errors or done.stderr.splitlines() or ["pip failed"])[-1])


def _find_python(least: tuple[int, int], *, loads_extensions: bool) -> str:
    """Return an interpreter: our own if it will do, else one of a version manager, on PATH, or of the system."""
    names = [f"python3.{minor}" for minor in range(least[1], 20)]
    managed = [str(path) for name in names for path in sorted(_PYENV.glob(f"versions/*/bin/{name}"))]
    on_path = [path for name in names if (path := shutil.which(name, path=_USER_ENVIRONMENT.get("PATH")))]
    test = f"import sys, sqlite3; assert sys.version_info >= {least}"
    if loads_extensions:
        test += "; sqlite3.connect(':memory:').enable_load_extension(True)"
    for path in (sys.executable, *managed, *on_path, "/usr/bin/python3"):
        if Path(path).exists() and subprocess.run([path, "-c", test], capture_output=True, check=False).returncode == 0:
            return path
    wanted = f"Python {'.'.join(map(str, least))}{' whose SQLite loads extensions' * loads_extensions}"
    raise NotInstalled(f"it needs {wanted}, which is not here")
