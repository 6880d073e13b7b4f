"""Commands that carry learnings in and out: export, import, backup."""

from __future__ import annotations

import json
import sys

from learnt.doors.cli.arguments import add_user, open_memory
from learnt.doors.cli.screen import Progress, note, say, show_json
from learnt.errors import InvalidValue, LearntError, WrongRequest
from learnt.model import STATUSES
from learnt.text.records import PLACE, as_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator
    from typing import Any

    from learnt.model import Learning

_FORMATS = ("jsonl", "markdown")


def export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=_FORMATS, default="jsonl", help="default: jsonl, one object a line")
    parser.add_argument("--output", metavar="FILE", help="write into a file instead of stdout")
    parser.add_argument("--status", choices=(*STATUSES, "all"), default="all", help="default: all")
    add_user(parser)


def export_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        learnings = memory.export(status=None if arguments.status == "all" else arguments.status)
        pieces = _rendered(learnings, "jsonl" if arguments.json else arguments.format)
        if arguments.output:
            _write(arguments.output, pieces)
            note(f"Exported to {arguments.output}")
        else:
            for piece in pieces:
                sys.stdout.write(piece)


def import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file that `learnt export` wrote, or `-` for stdin")
    parser.add_argument("--format", choices=_FORMATS, help="default: seen from the file")
    add_user(parser)


def import_run(arguments: argparse.Namespace) -> None:
    content = _content(arguments.file)
    records = _records(content, arguments.file, arguments.format)
    with open_memory(arguments) as memory, Progress("Importing", None) as progress:
        imported = memory.import_all(records, progress=progress.show)
    if arguments.json:
        show_json(imported.as_dict())
        return
    counts = imported.as_dict()
    kept = counts.pop("kept")
    say("Imported: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    if kept:
        note(f"{kept} were changed here after the file was written; this store's version was kept")


def backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", help="default: a new file in .learnt/backups")
    add_user(parser)


def backup_run(arguments: argparse.Namespace) -> None:
    with open_memory(arguments) as memory:
        path = memory.backup(arguments.output)
    if arguments.json:
        show_json({"id": path, "path": path})
    else:
        say(f"Backed up to {path}")


def read_json(content: bytes, name: str) -> Iterator[dict[str, Any]]:
    """Yield objects from one JSON object, a list of them, or one a line."""
    text = _decoded(content, name)
    try:
        whole = json.loads(text)
    except RecursionError:
        raise InvalidValue(f"{name} is nested too deeply", hint="give one object a line") from None
    except ValueError:
        yield from _json_lines(text, name)
        return
    for record in whole if isinstance(whole, list) else [whole]:
        yield _object(record, name)


def _json_lines(text: str, name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _object(json.loads(line), f"{name}, line {number}")
        except (ValueError, RecursionError) as error:
            raise InvalidValue(
                f"{name}, line {number} is not JSON: {error}", hint="each line must hold one JSON object"
            ) from None


def _object(record: object, where: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise InvalidValue(f"{where} is not a JSON object", hint='an object looks like {"title": "…", "action": "…"}')
    return record


def _records(content: bytes, name: str, format: str | None) -> Iterable[dict[str, Any]]:
    if format is None:
        looks_like_json = content.lstrip()[:1] in (b"{", b"[", b"")
        format = "markdown" if name.endswith((".md", ".markdown")) or not looks_like_json else "jsonl"
    if format == "jsonl":
        return read_json(content, name)
    from learnt.text.entries import read_entries

    entries = list(read_entries(_decoded(content, name)))
    if not entries:
        raise InvalidValue(
            f"{name} holds no learnings", hint="a Markdown entry starts with `## title`; JSONL has one object a line"
        )
    return entries


def _content(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise WrongRequest(f"cannot read {name}: {error.strerror}", hint="name an existing file, or `-`") from None


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(
            f"{name} is not UTF-8 text: {error.reason} at byte {error.start}", hint="convert it to UTF-8 first"
        ) from None


def _rendered(learnings: Iterator[Learning], format: str) -> Iterator[str]:
    if format == "markdown":
        from learnt.text.entries import render_entries

        yield from render_entries(learnings)
        return
    for learning in learnings:
        record = {name: value for name, value in as_record(learning).items() if name not in PLACE}
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _write(path: str, pieces: Iterator[str]) -> None:
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
    except OSError as error:
        raise LearntError(f"cannot write {path}: {error.strerror}", hint="choose another file") from None
