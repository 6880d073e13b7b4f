"""How much a learning is worth: its confidence, and what changes it."""
