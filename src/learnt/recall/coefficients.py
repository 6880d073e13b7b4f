"""The coefficients of relevance, fitted by `python -m tools.fit_relevance --write` (see docs/recall.md)."""

INTERCEPT = -5.732
WORDS = 1.582
MEANING = 0.399
SELF_MEANING = 3.144
TRIGGER = 2.83
PROBABILITY_INTERCEPT = 0.419
PROBABILITY_STRENGTH = 0.824
PROBABILITY_MARGIN = 0.465
