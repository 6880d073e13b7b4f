"""The coefficients of relevance, fitted by `python -m tools.fit_relevance --write` (see docs/recall.md)."""

INTERCEPT = -5.57
WORDS = 1.144
RAREST = 0.742
MEANING = 0.15
SELF_MEANING = 6.026
CUED = -0.671
TRIGGER = 2.482
PROBABILITY_INTERCEPT = 0.218
PROBABILITY_STRENGTH = 0.789
PROBABILITY_MARGIN = 0.39
