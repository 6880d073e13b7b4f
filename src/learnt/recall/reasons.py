"""Say what the probability of a learning consists of: how much each figure adds to it, and what would raise it.

The effect of a figure is the difference that it makes: the probability with it, less the probability without it. So the
effects do not add up to the probability, but each can be read by itself.
"""

from __future__ import annotations

from learnt.model import Value
from learnt.recall.relevance import MAX_MARGIN, estimate_probability, measure_strength

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MARGIN = "margin"
_ONE_CUE = 0.25


class Features(Value):
    """The figures of a learning; see `relevance`."""

    words: float = 0.0
    rarest: float = 0.0
    meaning: float = 0.0
    self_meaning: float = 0.0
    cued: float = 0.0
    trigger: bool = False

    def strength(self) -> float:
        """Return how much speaks for the learning, all in all."""
        return measure_strength(**self.as_dict())


class Reason(Value):
    """A figure that speaks for or against a learning."""

    name: str
    """As in `Features`, or `margin`."""
    value: float
    effect: float


def list_reasons(figures: Mapping[str, float]) -> list[Reason]:
    """Return what each figure of a hit adds to its probability, in the order of `Features`."""
    features, margin = _read(figures)
    whole = _estimate(features, margin, features)
    reasons = [
        Reason(
            name=name,
            value=float(figures.get(name, 0.0)),
            effect=whole - _estimate(features, margin, features.replace(**{name: default})),
        )
        for name, default in Features().as_dict().items()
    ]
    return [*reasons, Reason(name=MARGIN, value=margin, effect=whole - estimate_without_rival(figures))]


def estimate_again(figures: Mapping[str, float]) -> float:
    """Return the probability by the present coefficients."""
    features, margin = _read(figures)
    return _estimate(features, margin, features)


def estimate_with_cue(figures: Mapping[str, float], cue: tuple[float, float]) -> float:
    """Return about what probability a learning would have with a sentence of the text as a cue.

    Such a cue means the same as the sentence. `cue` is the weight of its words, and of the rarest of them.
    """
    features, margin = _read(figures)
    like_it = features.replace(
        words=max(features.words, cue[0]),
        rarest=max(features.rarest, cue[1]),
        self_meaning=(1 + features.self_meaning) / 2,
        cued=min(1.0, features.cued + _ONE_CUE),
    )
    return _estimate(features, margin, like_it)


def estimate_without_rival(figures: Mapping[str, float]) -> float:
    """Return the probability that a learning would have if as much spoke for the best other one."""
    features, _ = _read(figures)
    return _estimate(features, 0.0, features)


def _read(figures: Mapping[str, float]) -> tuple[Features, float]:
    read = {name: type(default)(figures.get(name, default)) for name, default in Features().as_dict().items()}
    return Features(**read), float(figures.get(MARGIN, 0.0))


def _estimate(features: Features, margin: float, changed: Features) -> float:
    """Return the probability with other features; whatever changes a learning's strength changes its lead, too."""
    strength = changed.strength()
    lead = margin + strength - features.strength()
    return estimate_probability(strength, max(-MAX_MARGIN, min(MAX_MARGIN, lead)))
