"""Describe the machine and the versions that were measured."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

import apsw
from tests.support.postgres import find_binaries

from learnt import __version__


def describe_machine(folder: str) -> str:
    """Return the heading of the results; `folder` is where the stores are."""
    facts = {
        "processor": f"{_processor()}, {_cores()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "system": f"{_system()}, stores on {_file_system(folder)}",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "versions": ", ".join(_versions()),
    }
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return f"# Measurements of {day}\n\n" + "\n".join(f"- {name}: {fact}" for name, fact in facts.items())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()
    return f"{name} ({platform.system()} {platform.release()})"


def _file_system(folder: str) -> str:
    """Return the type of a folder's file system."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "an unknown file system"
    parents = [(len(mount[1]), mount[2]) for mount in mounts if Path(folder).is_relative_to(mount[1])]
    return max(parents)[1]


def _versions() -> list[str]:
    versions = [f"learnt {__version__}", f"Python {platform.python_version()}"]
    versions += [f"SQLite {apsw.sqlite_lib_version()}", f"apsw {apsw.apsw_version()}"]
    binaries = find_binaries()
    if binaries is None:
        return [*versions, "no PostgreSQL"]
    import psycopg

    words = [str(binaries / "postgres"), "--version"]
    server = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[2]
    return [*versions, f"PostgreSQL {server}", f"psycopg {psycopg.__version__}"]
