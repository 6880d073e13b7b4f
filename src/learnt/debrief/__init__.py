"""Read an agent's output: what it says in its own words, its sigils and its marks."""
