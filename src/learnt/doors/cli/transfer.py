"""Commands that move learnings in and out: export, import, backup."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

from learnt.doors.cli.arguments import (
    Arguments,
    Parser,
    add_user,
    open_memory,
    print_result,
    report_redactions,
)
from learnt.doors.cli.rules import RULES, has_rules, import_rules, is_rules_name, suggest_files
from learnt.doors.output import Progress, format_count, format_json, note, say, show_json
from learnt.errors import InvalidValue, TryAgain, WrongRequest, cannot_write
from learnt.flow.transfer import Transfer
from learnt.model import STATUSES, Learning
from learnt.system.files import open_to_read, replace_shared
from learnt.text.entries import read_entries, render_entries
from learnt.text.records import PLACE, as_record

_MAX_BYTES = 500_000_000
_MAX_LINE_BYTES = 10_000_000
_FORMATS = ("jsonl", "markdown")
_MARKDOWN_ENDINGS = (".md", ".markdown")


def export_arguments(parser: Parser) -> None:
    parser.add_argument("--format", choices=_FORMATS, help="default: detected from the file's name, otherwise jsonl")
    parser.add_argument("--output", default="-", metavar="FILE", help="write to a file instead of stdout")
    parser.add_argument("--status", choices=(*STATUSES, "all"), default="all", help="default: all")
    add_user(parser)


def export_run(arguments: Arguments) -> None:
    is_markdown = arguments.output.endswith(_MARKDOWN_ENDINGS) and not arguments.json
    format = arguments.format or ("markdown" if is_markdown else "jsonl")
    with open_memory(arguments) as memory:
        pieces = _render(memory.transfer.export(status=None if arguments.status == "all" else arguments.status), format)
        if arguments.output == "-":
            for piece in pieces:
                sys.stdout.write(piece)
            return
        write_whole(arguments.output, pieces)
    if arguments.json:
        show_json({"id": arguments.output, "format": format})
    else:
        note(f"Exported to {arguments.output}")


def import_arguments(parser: Parser) -> None:
    file = "CLAUDE.md, AGENTS.md, .cursor/rules or the like, a file that `learnt export` wrote, or `-` for stdin"
    parser.add_argument("file", nargs="?", metavar="FILE", help=file)
    parser.add_argument("--format", choices=(*_FORMATS, RULES), help="default: detected from the file")
    as_is = "believe the file's origins, pins, confidences and counters; without it, learnings start anew as `import`"
    parser.add_argument("--as-is", action="store_true", help=as_is)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be imported")
    parser.add_argument(
        "--yes", action="store_true", help="take rules over without asking; necessary without a terminal"
    )
    add_user(parser)


def import_run(arguments: Arguments) -> None:
    if arguments.file is None:
        raise WrongRequest("import needs a file", hint=suggest_files("."))
    if os.path.isdir(arguments.file):
        import_rules(arguments, None)
        return
    with _open_input(arguments.file) as file:
        if arguments.format in (None, "jsonl") and _has_json_lines(file):
            _import_records(arguments, _JsonLines(file, arguments.file))
            return
        content = _read_whole(file, arguments.file)
    if has_rules(content, arguments.file, arguments.format):
        import_rules(arguments, content if arguments.file == "-" else None)
        return
    _import_records(arguments, list(read_records(content, arguments.file, arguments.format)))


def _import_records(arguments: Arguments, records: Iterable[dict[str, Any]]) -> None:
    """Show what records claim, and import them; they are read twice."""
    with open_memory(arguments) as memory:
        if not arguments.json:
            for line in _describe_claims(records, as_is=arguments.as_is):
                say(line)
        if arguments.dry_run:
            return
        with Progress("Importing", None) as progress:
            imported = memory.transfer.import_all(records, as_is=arguments.as_is, progress=progress.show)
    report_redactions(memory)
    counts = imported.as_dict()
    line = ", ".join(f"{count} {name}" for name, count in counts.items() if name not in ("id", "kept"))
    print_result(arguments, counts, f"Imported: {line}")
    if (imported.added or imported.updated) and not arguments.json:
        say(f"`learnt undo {imported.id}` takes it back")
    if counts["kept"] and not arguments.json:
        reason = (
            "Changed here after the file was written" if arguments.as_is else "Known here, and changed by --as-is only"
        )
        note(f"{reason}, so this store's version was kept: {counts['kept']}")


def _describe_claims(records: Iterable[dict[str, Any]], *, as_is: bool) -> Iterator[str]:
    """Yield what a file contains, what it claims about itself, and what is believed of it."""
    claims = Transfer.claims(records)
    kinds, origins = (
        ", ".join(f"{count} {name}" for name, count in counts.items()) for counts in (claims.kinds, claims.origins)
    )
    yield f"{format_count(claims.learnings, 'learning')}: {kinds}"
    confidence = f"{claims.least_confidence:.2f} to {claims.most_confidence:.2f}"
    yield f"The file says: by {origins}; {claims.pinned} pinned; confidence {confidence}"
    if as_is:
        yield "This is believed, because of --as-is"
    else:
        yield "This is not believed: new ones are `import`, unpinned, and start anew. --as-is believes it"


def backup_arguments(parser: Parser) -> None:
    parser.add_argument("--output", metavar="FILE", help="default: a new file in .learnt/backups")
    parser.add_argument("--restore", metavar="FILE", help="restore this backup, after backing up the current store")
    add_user(parser)


def backup_run(arguments: Arguments) -> None:
    with open_memory(arguments) as memory:
        if arguments.restore:
            before = memory.transfer.restore_backup(arguments.restore)
            line = f"Restored {arguments.restore}; the previous store is saved in {before}"
            print_result(arguments, {"id": arguments.restore, "before": before}, line)
            return
        path = memory.transfer.backup(arguments.output)
    print_result(arguments, {"id": path, "path": path}, f"Backed up to {path}")


def read_json(content: bytes, name: str) -> Iterator[dict[str, Any]]:
    """Yield objects from a JSON object, a list of objects, or one object per line."""
    text = _decode(content, name)
    try:
        whole = json.loads(text)
    except RecursionError:
        raise InvalidValue(f"{name} is nested too deeply", hint="write one object per line") from None
    except ValueError:
        yield from _read_json_lines(text, name)
        return
    for record in whole if isinstance(whole, list) else [whole]:
        yield _check_object(record, name)


def _read_json_lines(text: str, name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _read_json_line(line, f"{name}, line {number}")


def _read_json_line(line: str, where: str) -> dict[str, Any]:
    try:
        return _check_object(json.loads(line), where)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{where} is not JSON: {error}", hint="each line must be one JSON object") from None


class _JsonLines:
    """The objects of a file with one object per line. Each iteration reads the file, so that it need not fit into
    memory."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            if line.strip():
                where = f"{self._name}, line {number}"
                yield _read_json_line(_decode(line, where), where)


def _has_json_lines(file: BinaryIO) -> bool:
    """Return whether the first line of a file is a JSON object, and there are more lines."""
    file.seek(0)
    first, second = file.readline(_MAX_LINE_BYTES), file.read(1)
    try:
        return bool(second) and isinstance(json.loads(first.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def _check_object(record: object, where: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise InvalidValue(f"{where} is not a JSON object", hint='an object looks like {"title": "…", "action": "…"}')
    return record


def read_records(content: bytes, name: str, format: str | None) -> Iterable[dict[str, Any]]:
    """Return the learnings in a file; if `format` is None, detect it from the name and the content."""
    if format is None:
        looks_like_json = content.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")
        format = "markdown" if name.endswith(_MARKDOWN_ENDINGS) or not looks_like_json else "jsonl"
    if format == "jsonl":
        return read_json(content, name)
    entries = list(read_entries(_decode(content, name)))
    if not entries:
        raise InvalidValue(
            f"{name} does not contain any learnings",
            hint="rules are list items; a Markdown entry starts with `## title`; JSONL has one object per line",
        )
    return entries


def read_bytes(name: str) -> bytes:
    """Return the bytes in a file, or from stdin for `-`."""
    with _open_input(name) as file:
        return _read_whole(file, name)


def _read_whole(file: BinaryIO, name: str) -> bytes:
    file.seek(0)
    content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise WrongRequest(f"{name} has more than {_MAX_BYTES:,} bytes", hint="split it, or choose another file")
    return content


@contextmanager
def _open_input(name: str) -> Iterator[BinaryIO]:
    """Open a file, or stdin for `-`; what can be read only once is copied to a temporary file first."""
    with ExitStack() as stack:
        source = sys.stdin.buffer if name == "-" else stack.enter_context(_open_file(name))
        if name != "-" and source.seekable():
            yield source
            return
        copy = stack.enter_context(tempfile.TemporaryFile())
        shutil.copyfileobj(source, copy)
        yield cast(BinaryIO, copy)


def _open_file(name: str) -> BinaryIO:
    # A pipe may be what the user wants, but not one that came with a clone under the name of a file with rules.
    opener = open_to_read if is_rules_name(name) else None
    try:
        return open(name, "rb", opener=opener)
    except OSError as error:
        raise WrongRequest(
            f"cannot read {name}: {error.strerror}", hint="choose an existing file, or `-` for stdin"
        ) from None


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(
            f"{name} is not UTF-8 text: {error.reason} at byte {error.start}", hint="convert it to UTF-8 first"
        ) from None


def _render(learnings: Iterator[Learning], format: str) -> Iterator[str]:
    if format == "markdown":
        yield from render_entries(learnings)
        return
    for learning in learnings:
        record = {name: value for name, value in as_record(learning).items() if name not in PLACE}
        yield format_json(record) + "\n"


def write_whole(path: str, pieces: Iterable[str]) -> None:
    """Write a file completely or not at all; write to a pipe or device directly."""
    path = os.path.realpath(path)
    is_plain = os.path.isfile(path) or not os.path.exists(path)
    content = (piece.encode() for piece in pieces)
    try:
        if is_plain:
            replace_shared(path, content, mode=0o666, durable=False)
            return
        with open(path, "wb") as file:
            file.writelines(content)
    except OSError as error:
        failure = cannot_write(path, error, hint="choose another file")
        raise failure if isinstance(failure, TryAgain) else WrongRequest(failure.message, hint=failure.hint) from None
