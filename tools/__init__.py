"""Programs for developers of learnt, which are not part of the package."""
