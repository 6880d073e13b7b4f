"""One client; the registry lists its modules."""
