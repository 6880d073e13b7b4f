"""Find an agent's own words, as opposed to text that it marks as quoted.

An agent's output repeats prompts, briefs, files and the output of tools. A sigil or a mark in there was not meant by
the agent and may have been planted. So everything quoted is replaced by spaces, and only the rest counts. `own_lines`
decides where in the rest a sigil or a mark counts.

Quoted are: fenced code blocks, block quotes (lines that start with `>`, also indented or in a list), lines of JSON (an
object, or a list that starts with one: output of tools and clients), inline code, comments, and the content of elements
in `QUOTING`. The text is read from left to right: the first opening wins, and openings inside it are ignored. In doubt
the text is quoted, because a lost sigil costs less than a planted one:

- a fence is closed only by a line with an equal or longer fence and nothing else, in as many block quotes and less than
  four columns deeper; an unclosed fence, element or comment runs to the end;
- an element ends when everything opened since is closed: `<prompt><quoted></prompt>` is still open;
- inline code ends within its paragraph; a backtick without a partner there, or after a backslash, is just a backtick.

Every character keeps its position, and line breaks stay. A replaced character is white space, so a `>` after it starts
its line; therefore the text is read until nothing changes. No known text needs more than four readings. A text that
still changes after `_READINGS` is replaced as a whole, so the time is linear in the length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from learnt.text.fence import QUOTING

# Without backtracking (`*+`, `?>`), so that a failed match takes linear time.
ATTRIBUTES = r"""(?>\s++[^\s"'<>/=]++(?>\s*+=\s*+(?>"[^"]*+"|'[^']*+'|[^\s"'<>]++))?+)*+\s*+"""
END_OF_NAME = r"(?![\w.:-])"

_READINGS = 8
_FLAGS = re.IGNORECASE | re.ASCII
_NAMES = "|".join(QUOTING)
_ITEM = r"(?:[-*+]|\d{1,9}[.)])[ \t]++"
_FENCE = rf"\n(?P<lead>[ \t]*+(?:>[ \t]*+|{_ITEM})*+)(?P<fence>`{{3,}}+(?=[^`\n]*+(?:\n|\Z))|~{{3,}}+)"
_QUOTE = rf"\n(?P<quote>[ \t]*+(?:{_ITEM})*+>[^\n]*+)"
_RECORD = r'\n(?P<record>[ \t]*+(?:\{[ \t]*+"|\[[ \t]*+\{))'

# Each alternative starts with a fixed character, the line break included: such a search skips plain text quickly.
_OPENS = re.compile(
    rf"{_FENCE}|{_QUOTE}|{_RECORD}|`(?P<ticks>`*+)|\\[\\`]|<(?P<comment>!--)|<(?P<element>{_NAMES}){END_OF_NAME}",
    _FLAGS,
)
_CLOSES_FENCE = re.compile(r"\n(?P<lead>[ \t>]*+)(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?=\n|\Z)")
_ENDS_PARAGRAPH = re.compile(rf"\n[ \t]*+(?:\n|\Z)|{_FENCE}|{_QUOTE}|{_RECORD}", _FLAGS)
_TICKS = re.compile("`+")
_TAG = re.compile(
    rf"</(?P<closed>{_NAMES}){END_OF_NAME}[^<>]*+>|<(?P<opened>{_NAMES}){END_OF_NAME}(?:{ATTRIBUTES}(?P<empty>/)?+>)?+",
    _FLAGS,
)
_LETTER = re.compile("[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def own_words(output: str) -> str:
    """Return the output with everything quoted replaced by spaces, character by character."""
    text = "\n" + output.replace("\r\n", " \n").replace("\r", "\n")
    for _ in range(_READINGS):
        blanked = _blank_quoted(text)
        if blanked == text:
            break
        text = blanked
    else:
        text = _LETTER.sub(" ", text)
    own = text[1:]
    if "\r" not in output:
        return own
    return "".join("\r" if letter == "\r" else kept for letter, kept in zip(output, own, strict=True))


def _blank_quoted(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for start, stop in _find_quoted(text):
        pieces += (text[end:start], _LETTER.sub(" ", text[start:stop]))
        end = stop
    return "".join((*pieces, text[end:]))


def _find_quoted(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each quoted part starts and stops, from left to right."""
    spans = _CodeSpans(text)
    position = 0
    while opening := _OPENS.search(text, position):
        stop = _find_quoted_end(opening, spans)
        if stop:
            yield opening.start(), stop
        position = stop or opening.end()


def _find_quoted_end(opening: re.Match[str], spans: _CodeSpans) -> int:
    """Return where the quoted part that opens here ends, or 0 if none opens."""
    text, kind = opening.string, opening.lastgroup
    if kind == "ticks":
        return spans.end(opening.start(), opening.end() - opening.start())
    if kind == "fence":
        return _find_fence_end(opening)
    if kind == "element":
        return _find_element_end(text, opening.start())
    if kind == "record":
        return _find_record_end(opening)
    if kind == "comment":
        stop = text.find("-->", opening.end())
        return len(text) if stop < 0 else stop + 3
    return opening.end() if kind == "quote" else 0


def _find_fence_end(opening: re.Match[str]) -> int:
    fence, lead = opening["fence"], opening["lead"]
    deepest = len(lead.expandtabs(4)) + 3
    for closing in _CLOSES_FENCE.finditer(opening.string, opening.end()):
        if (
            closing["fence"].startswith(fence)
            and closing["lead"].count(">") == lead.count(">")
            and len(closing["lead"].expandtabs(4)) <= deepest
        ):
            return closing.end()
    return len(opening.string)


def _find_record_end(opening: re.Match[str]) -> int:
    """Return where a line of JSON ends, or 0 if it is not JSON."""
    stop = opening.string.find("\n", opening.end())
    line = opening.string[opening.start("record") : stop if stop >= 0 else None]
    try:
        json.loads(line.strip().removesuffix(","), strict=False, parse_int=str)  # a long number is not an error
    except RecursionError:
        pass  # nested too deep to be anything but a record
    except ValueError:
        return 0
    return opening.start("record") + len(line)


def _find_element_end(text: str, start: int) -> int:
    opened = dict.fromkeys(QUOTING, 0)
    depth = 0
    for tag in _TAG.finditer(text, start):
        if tag["opened"] and not tag["empty"]:
            opened[tag["opened"].lower()] += 1
            depth += 1
        elif tag["closed"] and opened[tag["closed"].lower()]:
            opened[tag["closed"].lower()] -= 1
            depth -= 1
        if not depth:
            return tag.end()
    return len(text)


class _CodeSpans:
    """Finds the partner of a run of backticks; must be called from left to right.

    The runs of a paragraph are collected once: searching for each partner again would be slow for runs without one.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._paragraph_end = 0
        self._runs: dict[int, list[int]] = {}

    def end(self, start: int, length: int) -> int:
        """Return where the span that starts here ends, or 0 if it has no partner in its paragraph."""
        if start >= self._paragraph_end:
            self._read_paragraph(start)
        ahead = self._runs.get(length, [])
        while ahead and ahead[-1] <= start:
            ahead.pop()
        return ahead[-1] + length if ahead else 0

    def _read_paragraph(self, start: int) -> None:
        boundaries = _ENDS_PARAGRAPH.finditer(self._text, start)
        ends = (
            boundary.start() for boundary in boundaries if boundary.lastgroup != "record" or _find_record_end(boundary)
        )
        self._paragraph_end = next(ends, len(self._text))
        self._runs = {}
        for run in _TICKS.finditer(self._text, start, self._paragraph_end):
            self._runs.setdefault(run.end() - run.start(), []).append(run.start())
        for starts in self._runs.values():
            starts.reverse()
