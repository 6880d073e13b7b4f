"""Find the learnings that matter for a text: exact triggers first, then words."""
