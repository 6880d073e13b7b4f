"""What an agent is given before it works: which learnings, in which form, within which budget."""
