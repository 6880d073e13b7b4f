"""One client: see the registry for what it offers."""
