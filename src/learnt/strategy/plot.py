"""Plot each model's share of tasks done against its cost, as a self-contained SVG.

Points are models, and bars are the intervals of their shares. The plot follows the viewer's light or dark theme. It
does not load or run anything, and names are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from learnt.model import Value
from learnt.strategy.figures import Figure

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 48, 56
_LINE, _LETTER = 15, 7.5  # the approximate height of a line and width of a letter
_STYLE = """
  .paper { fill: #ffffff } text { fill: #1f2328; font: 13px system-ui, sans-serif } .title { font-weight: 600 }
  .grid { stroke: #d1d9e0 } .bar { stroke: #59636e; stroke-width: 1.5 } .point { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } text { fill: #f0f6fc } .grid { stroke: #3d444d } .bar { stroke: #9198a1 }
    .point { fill: #4493f8 }
  }
"""


def plot(figures: Sequence[Figure]) -> str:
    """Return the plot. Models whose cost is unknown are listed at the top."""
    shown = [figure for figure in figures if figure.mean_cost_usd is not None]
    left_out = [figure.model for figure in figures if figure.mean_cost_usd is None]
    max_cost = _round_up(max((figure.mean_cost_usd or 0.0 for figure in shown), default=0.0))
    title = "Tasks done against cost, by model"
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
        _draw_text(_LEFT, 26, title, "start", "title"),
        *_draw_axes(max_cost),
        *(
            _draw_model(figure, max_cost, label)
            for figure, label in zip(shown, _place_labels(shown, max_cost), strict=True)
        ),
    ]
    if not shown:
        pieces.append(_draw_text(_WIDTH / 2, _HEIGHT / 2, "no attempt with a known cost yet", "middle"))
    if left_out:
        pieces.append(_draw_text(_WIDTH - _RIGHT, 26, f"cost unknown: {', '.join(left_out)}", "end"))
    return "\n".join([*pieces, "</svg>", ""])


def _draw_axes(max_cost: float) -> list[str]:
    lines = []
    for step in range(5):
        x, y = _x_of(max_cost * step / 4, max_cost), _y_of(step / 4)
        lines.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}"/>')
        lines.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>')
        lines.append(_draw_text(x, _HEIGHT - _BOTTOM + 18, f"${max_cost * step / 4:.3g}", "middle"))
        lines.append(_draw_text(_LEFT - 8, y + 4, f"{step * 25} %", "end"))
    lines.append(_draw_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 14, "mean cost of an attempt (USD)", "middle"))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    turned = f'<text x="16" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 16 {middle:.1f})">'
    return [*lines, f"{turned}attempts that got the task done</text>"]


class _Label(Value):
    """A model's name next to its point, on the side with room."""

    x: float
    y: float
    text: str
    is_right: bool

    def overlaps(self, other: _Label) -> bool:
        """Return whether two labels would overlap."""
        (start, end), (their_start, their_end) = self._span(), other._span()
        return start < their_end and their_start < end and abs(self.y - other.y) < _LINE

    def _span(self) -> tuple[float, float]:
        width = len(self.text) * _LETTER
        return (self.x, self.x + width) if self.is_right else (self.x - width, self.x)


def _place_labels(figures: Sequence[Figure], max_cost: float) -> list[_Label]:
    """Return the labels, each as near to its point as the earlier labels allow."""
    placed: list[_Label] = []
    for figure in figures:
        x, y = _x_of(figure.mean_cost_usd or 0.0, max_cost), _y_of(figure.share.share) + 4
        is_right = x < _WIDTH * 0.7
        text = f"{figure.model} ({_format_share(figure)})"
        wanted = _Label(x=x + (9 if is_right else -9), y=y, text=text, is_right=is_right)
        shifts = sorted(range(-_HEIGHT // _LINE, _HEIGHT // _LINE + 1), key=lambda lines: (abs(lines), -lines))
        tried = (wanted.replace(y=y + lines * _LINE) for lines in shifts)
        inside = (label for label in tried if _TOP <= label.y <= _HEIGHT - _BOTTOM + 4)
        free = (label for label in inside if not any(label.overlaps(other) for other in placed))
        placed.append(next(free, wanted))
    return placed


def _format_share(figure: Figure) -> str:
    return f"{figure.share.done:.0f} of {figure.share.attempts:.0f}"


def _draw_model(figure: Figure, max_cost: float, label: _Label) -> str:
    """Return a model's point, bar and name."""
    x, y = _x_of(figure.mean_cost_usd or 0.0, max_cost), _y_of(figure.share.share)
    low, high = (_y_of(bound) for bound in figure.share.interval)
    title = f"{figure.model}: {_format_share(figure)} done at ${figure.mean_cost_usd:.3g}"
    return "\n".join(
        [
            f"<g><title>{escape(title)}</title>",
            f'<line class="bar" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"/>',
            f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5"/>',
            _draw_text(label.x, label.y, label.text, "start" if label.is_right else "end"),
            "</g>",
        ]
    )


def _draw_text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def _x_of(cost: float, max_cost: float) -> float:
    return _LEFT + cost / max_cost * (_WIDTH - _LEFT - _RIGHT)


def _y_of(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _round_up(cost: float) -> float:
    """Return the next 1, 2, 4 or 10 times a power of ten, with a small margin."""
    if cost <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(cost * 1.05))
    return next(step * power for step in (1, 2, 4, 10) if cost * 1.05 <= step * power * 1.000001)
