"""Read an agent's output: its own words, its sigils and its marks."""
