"""Move what has aged and held into permanent documents, without losing anything."""
