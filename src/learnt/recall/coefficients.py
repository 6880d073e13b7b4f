"""The coefficients of relevance, fitted by `python -m tools.fit_relevance --write` (see docs/recall.md)."""

INTERCEPT = -5.734
WORDS = 1.114
RAREST = 0.932
MEANING = 0.294
SELF_MEANING = 6.113
CUED = -0.68
TRIGGER = 2.472
PROBABILITY_INTERCEPT = 0.221
PROBABILITY_STRENGTH = 0.788
PROBABILITY_MARGIN = 0.393
