"""The coefficients of relevance, fitted by `python -m tools.fit_relevance --write` (see docs/recall.md)."""

INTERCEPT = -5.877
WORDS = 1.174
RAREST = 0.793
MEANING = -0.006
SELF_MEANING = 5.52
CUED = -0.568
TRIGGER = 2.527
PROBABILITY_INTERCEPT = 0.245
PROBABILITY_STRENGTH = 0.787
PROBABILITY_MARGIN = 0.414
