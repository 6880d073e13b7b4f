"""What a learning has done so far, as one number to compare by."""

from __future__ import annotations

from learnt.model import Learning


def impact(learning: Learning) -> float:
    """Return the helpful marks less the others and, behind the point, how often it was learnt again.

    Marks are trusted more than recurrence: however often a learning came again, one mark counts for more.
    """
    return round(learning.times_helpful - learning.times_not_helpful + _below_one(learning.recurrences), 2)


def _below_one(count: int) -> float:
    return min(0.99, count / (count + 1))
