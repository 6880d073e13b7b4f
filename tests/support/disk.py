"""A small disk that tests can fill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


class Disk:
    """A small mounted file system or, if mounting is not permitted, a folder that can be made read-only."""

    def __init__(self, folder: Path, *, mounted: bool) -> None:
        self.folder = folder
        self.mounted = mounted

    def fill(self, *, keep_free: int) -> None:
        if not self.mounted:
            pytest.skip("only root can mount a small disk")
        free = os.statvfs(self.folder)
        # Another process may write at the same time; then the disk is full as well.
        with suppress(OSError), (self.folder / "ballast").open("wb", buffering=0) as ballast:
            ballast.write(b"x" * max(0, free.f_bavail * free.f_frsize - keep_free))

    def free(self) -> None:
        (self.folder / "ballast").unlink()

    def forbid_writing(self) -> None:
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)
        else:
            for path in (*self.folder.rglob("*"), self.folder):
                path.chmod(0o500 if path.is_dir() else 0o400)


@contextmanager
def small_disk(folder: Path, size: int = 2_000_000) -> Iterator[Disk]:
    """Create a folder that is a small disk, for the duration of the block."""
    folder.mkdir()
    if sys.platform == "win32":
        pytest.skip("Windows mounts no small disks")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    may_mount = os.getuid() == 0 and sys.platform == "linux"
    mounted = may_mount and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if os.getuid() == 0 and not mounted:
        pytest.skip("root ignores permissions, and may not mount here")
    try:
        yield Disk(folder, mounted=mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)
        else:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o700)
