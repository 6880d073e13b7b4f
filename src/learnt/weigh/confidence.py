"""Where confidence starts and what moves it.

Confidence lies in 0.1 to 1.0: nothing is certain for ever and nothing is quite forgotten.
"""

from __future__ import annotations

from learnt.model import LEAST_CONFIDENCE

# A person's word counts at once; what an agent, a model or a foreign file says has to prove itself.
_START_OF_PERSON = 0.7
_START = 0.5
_START_OF_DISCOVERY = {"blocker": 0.7, "constraint": 0.6}
_LIKE = 0.05
_HELPFUL = 0.05
_NOT_HELPFUL = -0.1


def start(origin: str) -> float:
    """Return the confidence of a new learning of this origin."""
    return _START_OF_PERSON if origin == "person" else _START


def start_of_discovery(type: str) -> float:
    """Return the confidence of a learning that comes from a discovery of this type."""
    return _START_OF_DISCOVERY.get(type, _START)


def marked(confidence: float, *, helpful: bool) -> float:
    """Return the confidence after one mark."""
    return within_bounds(confidence + (_HELPFUL if helpful else _NOT_HELPFUL))


def liked(confidence: float) -> float:
    """Return the confidence after one more person liked the learning."""
    return within_bounds(confidence + _LIKE)


def within_bounds(confidence: float) -> float:
    """Return the confidence kept within its bounds, without the dust of floating point."""
    return round(min(1.0, max(LEAST_CONFIDENCE, confidence)), 6)
