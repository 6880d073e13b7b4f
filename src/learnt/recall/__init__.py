"""Find the learnings that are relevant to a text: by exact triggers first, then by words."""
