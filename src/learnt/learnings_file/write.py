"""Render the file: choose the learnings that fit within the limit, their order and their sections.

The same arguments always produce the same text. The limit applies to the whole file, including comments; only loose
text can exceed it, because loose text is never cut. A rendering's bullets are parsed from its text, so that a merge
compares a file with what was really in the rendering. A purged learning is removed without rendering, so that all other
lines stay unchanged.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby

from learnt.learnings_file.lines import (
    GENERAL,
    ON_TRIAL,
    bullet_key,
    drop_ids,
    heading_of,
    line_of,
    split_line,
    statement_of,
)
from learnt.learnings_file.read import (
    GOAL_TITLE,
    TITLE,
    UPDATED,
    Bullet,
    LooseText,
    bullets_by_line,
    parse,
    split_lines,
)
from learnt.model import AVOID, Learning, Value
from learnt.text.redact import black_out
from learnt.text.words import estimate_tokens
from learnt.weigh.confidence import is_persons

_MAX_WITHOUT_HEADINGS = 5
_MAX_ON_TRIAL = 10
_TRAILER_TOKENS = estimate_tokens("<!-- learnt: r_" + "a1" * 7 + " -->\n")  # an id never has more tokens
_MIN_BULLET_TOKENS = 8  # a bullet with its comment never has fewer


class Rendering(Value):
    """A file as it was written."""

    id: str
    goal: str = ""
    bullets: tuple[Bullet, ...] = ()
    loose: tuple[LooseText, ...] = ()
    text: str
    left_out: tuple[str, ...] = ()
    """The ids of the learnings that do not fit, in order."""
    over_limit: bool = False
    """Whether the loose text alone exceeds the limit, so that no learning is shown."""


class Delta(Value):
    """The difference between two renderings, as learnings' ids."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def churn(self) -> float:
        """The share of the learnings in either rendering that are not in both."""
        changed = len(self.added) + len(self.removed)
        return changed / max(1, changed + len(self.kept))


def select(
    candidates: Iterable[Learning],
    *,
    window_tasks: frozenset[str],
    since_ms: int,
    stage: Callable[[Learning], str],
    impact: Callable[[Learning], float],
    cared_for: Collection[str] = (),
) -> list[Learning]:
    """Return the learnings that the file should show, most important first, without learnings with equal texts.

    Vouched, pinned and proven learnings, and those in `cared_for`, are always shown. Other learnings are shown if a
    task in the window taught them, if they have no task and were added in the window, or if they recurred in the
    window. Those that nobody vouches for come last, and only a few of them.
    """

    def is_permanent(learning: Learning) -> bool:
        is_curated = bool(learning.vouched) or learning.id in cared_for
        return learning.pinned or is_curated or stage(learning) == "proven"

    def is_recent(learning: Learning) -> bool:
        last = learning.updated_at if learning.recurrences else 0 if learning.task else learning.created_at
        return learning.task in window_tasks or (last > 0 and last >= since_ms)

    def rank(learning: Learning) -> tuple[object, ...]:
        worth = (-impact(learning), -learning.confidence) if is_permanent(learning) else ()
        order = (not learning.vouched, not learning.pinned, not is_permanent(learning))
        return (*order, *worth, -learning.created_at, learning.id)

    shown = [
        learning
        for learning in candidates
        if learning.status == "active" and (is_permanent(learning) or is_recent(learning))
    ]
    by_text: dict[str, Learning] = {}
    for learning in sorted(shown, key=lambda learning: (not is_persons(learning), *rank(learning))):
        by_text.setdefault(bullet_key(statement_of(learning)), learning)
    ranked = sorted(by_text.values(), key=rank)
    vouched = [learning for learning in ranked if learning.vouched]
    return [*vouched, *[learning for learning in ranked if not learning.vouched][:_MAX_ON_TRIAL]]


def render(
    learnings: Sequence[Learning],
    *,
    id: str,
    goal: str = "",
    today: str,
    task_count: int,
    max_tokens: int,
    sections: Sequence[str] = (),
    loose: Sequence[LooseText] = (),
) -> Rendering:
    """Return a file with as many of the learnings as fit, in the given order.

    `sections` are the file's current headings: they keep their order, and a file with headings always gets headings
    again.
    """
    layout = _Layout(goal=goal, updated=f"{UPDATED} {today} (from {task_count} recent tasks)", id=id, loose=loose)
    listed = dict.fromkeys([*sections, *(piece.section for piece in loose if piece.section)])
    headings = [heading for heading in listed if heading != ON_TRIAL]
    has_sections = bool(headings) or any(piece.section for piece in loose)
    shown = layout.select_fitting(learnings, headings, max_tokens, sectioned=has_sections or _needs_headings(learnings))
    sectioned = has_sections or _needs_headings(shown)
    if not sectioned:
        vouched = [learning for learning in learnings if learning.vouched]
        shown = layout.select_fitting(vouched, headings, max_tokens, sectioned=False)
    text = layout.text(shown, headings, sectioned=sectioned)
    parsed = parse(text)
    if headings and not parsed.sections:
        # No heading remains, so the next rendering would start from a file without headings. Render that now.
        return render(
            learnings, id=id, goal=goal, today=today, task_count=task_count, max_tokens=max_tokens, loose=loose
        )
    ids = {bullet.id for bullet in parsed.bullets}
    return Rendering(
        id=id,
        goal=goal,
        bullets=parsed.bullets,
        loose=parsed.loose,
        text=text,
        left_out=tuple(learning.id for learning in learnings if learning.id not in ids),
        over_limit=estimate_tokens(text) > max_tokens,
    )


def compare_renderings(before: Rendering | None, after: Rendering) -> Delta:
    """Return the difference between two renderings."""
    old = dict.fromkeys(bullet.id for bullet in (before.bullets if before else ()))
    new = dict.fromkeys(bullet.id for bullet in after.bullets)
    return Delta(
        added=tuple(id for id in new if id not in old),
        removed=tuple(id for id in old if id not in new),
        kept=tuple(id for id in new if id in old),
    )


def diff(before: str | None, after: str | None, *, name: str = "learnings.md", applied: bool = False) -> str:
    """Return a change to a file as a unified diff; None means that there is no file."""
    lines = difflib.unified_diff(
        split_lines(before) if before else [],
        split_lines(after) if after else [],
        f"{name} ({'a new file' if before is None else 'as it was' if applied else 'as it is'})",
        f"{name} ({'no file any more' if after is None else 'as it is' if applied else 'as it would be'})",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def remove_learning(text: str, id: str, texts: Collection[str]) -> str:
    """Return the file without a purged learning, given the learning's id and all texts that it has ever had.

    A bullet without an id belongs to the learning if it has one of the learning's texts. Other text stays, except for
    full copies of the learning's texts.
    """
    lines = split_lines(text)
    keys = {bullet_key(start + own_text) for own_text in texts for start in ("", AVOID)} - {""}
    own_lines: set[int] = set()
    other_lines: set[int] = set()
    for numbers, bullet in bullets_by_line(lines):
        own_keys = {bullet_key(bullet.text), bullet_key(split_line(bullet.text)[0])} & keys
        is_own = bullet.id == id or (not bullet.id and bool(own_keys))
        (own_lines if is_own else other_lines).update(numbers)
    kept = [number for number in range(len(lines)) if number not in own_lines]
    parts = []
    for is_bullet, run in groupby(kept, key=other_lines.__contains__):
        part = "\n".join(lines[number] for number in run)
        parts.append(part if is_bullet else black_out(part, texts))
    rest = "\n".join(parts)
    if rest == "\n".join(lines):
        return text
    byte_order_mark = "\ufeff" if text.startswith("\ufeff") else ""
    return byte_order_mark + (rest.replace("\n", "\r\n") if "\r\n" in text else rest)


class _Layout:
    """Lays out a file: head, sections with loose text and learnings, trailer."""

    def __init__(self, *, goal: str, updated: str, id: str, loose: Sequence[LooseText]) -> None:
        self._head = [f"{GOAL_TITLE}{goal}" if goal else TITLE, "", updated, ""]
        self._trailer = f"<!-- learnt: {id} -->"
        self._loose = loose
        self._with_action: set[str] = set()  # the learnings whose actions fit

    def select_fitting(
        self, learnings: Sequence[Learning], headings: Sequence[str], max_tokens: int, *, sectioned: bool
    ) -> list[Learning]:
        """Return the learnings that fit; the lines' token counts are added up, which never underestimates the whole.

        An action takes only room that no learning needs.
        """
        # A rendering's id is random, and so is its number of tokens, so the selection must not depend on it.
        empty = self.text((), headings, sectioned=sectioned).removesuffix(f"{self._trailer}\n")
        room = max_tokens - estimate_tokens(empty) - _TRAILER_TOKENS
        paid_headings = {piece.section for piece in self._loose}
        shown: list[Learning] = []
        for learning in learnings:
            if room < _MIN_BULLET_TOKENS:
                break
            heading = _section_of(learning)
            is_new = sectioned and heading not in paid_headings
            cost = _count_tokens(learning, statement_of(learning))
            cost += estimate_tokens(f"## {heading}\n") if is_new else 0
            if cost <= room and drop_ids(statement_of(learning)):
                room -= cost
                paid_headings.add(heading)
                shown.append(learning)
        self._with_action = set()
        for learning in shown:
            cost = _count_tokens(learning, line_of(learning)) - _count_tokens(learning, statement_of(learning))
            if cost <= room:
                room -= cost
                self._with_action.add(learning.id)
        return shown

    def text(self, shown: Sequence[Learning], headings: Sequence[str], *, sectioned: bool) -> str:
        """Return the whole file."""
        lines = [*self._head]
        if sectioned:
            lines += self._part("", ())
            for heading in _order_headings(headings, shown):
                in_section = [learning for learning in shown if _section_of(learning) == heading]
                part = self._part(heading, in_section)
                # The list comes directly below its heading, as people write it.
                gap = [""] if part and not part[0].startswith("- ") else []
                lines += [f"## {heading}", *gap, *part] if part else []
        else:
            lines += self._part("", shown)
        return "\n".join([*lines, self._trailer]) + "\n"

    def _part(self, section: str, shown: Sequence[Learning]) -> list[str]:
        above, below = (
            [piece.text for piece in self._loose if piece.section == section and piece.below is below]
            for below in (False, True)
        )
        bullets = [
            _format_bullet(learning, (line_of if learning.id in self._with_action else statement_of)(learning))
            for learning in shown
        ]
        lists = ["\n".join(bullets)] if shown else []
        return [line for block in (*above, *lists, *below) for line in (block, "")]


def _order_headings(headings: Sequence[str], shown: Sequence[Learning]) -> list[str]:
    new = {_section_of(learning) for learning in shown} - {*headings, ON_TRIAL}
    return [*headings, *sorted(new - {GENERAL}), *(new & {GENERAL}), ON_TRIAL]


def _needs_headings(learnings: Sequence[Learning]) -> bool:
    sections = {_section_of(learning) for learning in learnings}
    return ON_TRIAL in sections or (len(learnings) > _MAX_WITHOUT_HEADINGS and len(sections) > 1)


def _section_of(learning: Learning) -> str:
    return heading_of(learning.category) if learning.vouched else ON_TRIAL


def _count_tokens(learning: Learning, line: str) -> int:
    return estimate_tokens(_format_bullet(learning, line) + "\n")


def _format_bullet(learning: Learning, line: str) -> str:
    return f"- {drop_ids(line)} <!-- {learning.id} -->"
