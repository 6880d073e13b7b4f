"""Programs for developers of learnt; not part of the package."""
