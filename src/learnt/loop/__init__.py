"""Working through tasks: agents are run here, and what they start is ended here."""
