"""The order of things: what is done on each occasion, as functions of a `Context`."""
