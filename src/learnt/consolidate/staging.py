"""The staging file, in which new learnings wait: what a handed-over text contains, and the entries of the file.

A text is read as `<learning>` sigils if it has any, else as `## ` entries, as bullets, or as paragraphs. What it says
of itself besides its words (confidence, origin, whether it is pinned) is not believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from learnt.debrief.sigils import read_sigils
from learnt.errors import InvalidValue
from learnt.model import PARAGRAPHS, Learning
from learnt.text.entries import EntryText, read_entries, render_form, split_entries
from learnt.text.shorten import shorten

TITLE = "# Learnings"
MOST_LEARNINGS = 1_000
NO_OCCASION = "its title does not say when it applies"
_FIELDS = ("title", *PARAGRAPHS, "tags", "cues", "domain", "category", "kind")
_BULLET = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+(?=\S)", re.MULTILINE)
# Something that can be recognised in the work at hand: code, a path, an option, an identifier, a file, a number.
_NAMED = re.compile(
    r"\d|`[^`]+`|\w+/\w+|(?<!\w)--?\w[\w-]*|\w+_\w+|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\w*\b|\b\w+\.[a-z]{1,5}\b"
)
_OCCASION = re.compile(
    r"\b(?:when|whenever|where|if|unless|while|during|before|after|until|once|as soon as|instead of|without|because|"
    r"in|on|for|from|at|with|to|of|by|inside|outside|between|per|each|every|"
    r"wenn|falls|bevor|nach|vor|bei|beim|im|in|für|während|ohne|statt|"
    r"quand|lorsque|si|avant|après|pendant|dans|pour|sans|chaque|"
    r"cuando|antes|después|durante|en|para|sin|cada)\b",
    re.IGNORECASE,
)


def read_handed_over(text: str) -> Iterator[dict[str, Any] | InvalidValue]:
    """Yield the record of each learning in a text, with its id if it names one, or why it cannot be read."""
    for number, record in enumerate(_read_handed_over(text)):
        if number == MOST_LEARNINGS:
            yield InvalidValue(
                f"a handoff takes {MOST_LEARNINGS:,} learnings, and this is one more", hint="hand the others over alone"
            )
            return
        yield record


def _read_handed_over(text: str) -> Iterator[dict[str, Any] | InvalidValue]:
    sigils = read_sigils(text)
    entries = split_entries(text)[1]
    if sigils.learnings:
        for sigil in sigils.learnings:
            record = {name: value for name, value in sigil.as_dict().items() if name in _FIELDS and value}
            yield {**record, "observation": sigil.text}
        yield from (InvalidValue(reason, hint="hand it over again as a bullet") for reason in sigils.ignored)
    elif entries:
        for entry in entries:
            yield _read_entry(entry)
    else:
        for said in _split_plain(text):
            title = shorten(said)
            yield {"title": title, "observation": "" if title.rstrip(".") == said.rstrip(".") else said}


def _read_entry(entry: EntryText) -> dict[str, Any] | InvalidValue:
    try:
        record = next(read_entries(entry.text))
    except InvalidValue as error:
        return error
    return {name: value for name, value in record.items() if name in _FIELDS} | ({"id": entry.id} if entry.id else {})


def _split_plain(text: str) -> list[str]:
    """Return the bullets of a text or, without any, its paragraphs; each on one line."""
    parts = _BULLET.split(text)[1:] if _BULLET.search(text) else re.split(r"\n[ \t\r]*\n", text)
    return [line for part in parts if (line := " ".join(part.split()))]


def find_occasion_flaw(learning: Learning) -> str:
    """Return why nobody could tell when a learning applies; empty if its title, its cues or its triggers say it."""
    is_said = _NAMED.search(learning.title) or _OCCASION.search(learning.title)
    if is_said or learning.cues or learning.context or any(learning.triggers.as_dict().values()):
        return ""
    return NO_OCCASION


def render_staged(learning: Learning) -> str:
    """Return a learning as an entry of the staging file; the rest of it is in the store."""
    paragraphs = {name: value for name in PARAGRAPHS if (value := getattr(learning, name))}
    comment = f"<!-- learnt: {json.dumps({'id': learning.id})} -->\n"
    lines = render_form(learning.title, paragraphs, comment=comment).split("\n")
    return "\n".join(line for line in lines if line not in _EMPTY_LABELS)


_EMPTY_LABELS = frozenset(f"**{name.capitalize()}**:" for name in PARAGRAPHS)


def append_entries(text: str, entries: Iterable[str]) -> str:
    """Return the text of a staging file with more entries at its end, and with the line endings that it has."""
    joined = "".join(f"\n{entry.strip()}\n" for entry in entries)
    above = text if text.strip() else f"{TITLE}\n"
    above += "" if above.endswith("\n") else "\n"
    return above + (joined.replace("\n", "\r\n") if "\r\n" in above else joined)


def remove_entries(text: str, lines: Collection[int]) -> str:
    """Return the text of a staging file without the entries whose headings stand in these lines, counted from 1."""
    above, entries = split_entries(text)
    kept = [entry.text for entry in entries if entry.line not in lines]
    rest = above + "".join(kept)
    end = "\r\n" if "\r\n" in text else "\n"
    return rest if len(kept) == len(entries) else rest.rstrip() + end
