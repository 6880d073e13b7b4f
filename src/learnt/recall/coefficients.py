"""The coefficients of relevance, fitted by `python -m tools.fit_relevance --write` (see docs/recall.md)."""

INTERCEPT = -5.16
WORDS = 1.079
RAREST = 0.194
MEANING = 3.185
SELF_MEANING = 3.15
CUED = -0.619
TRIGGER = 2.471
PROBABILITY_INTERCEPT = 0.221
PROBABILITY_STRENGTH = 0.809
PROBABILITY_MARGIN = 0.373
