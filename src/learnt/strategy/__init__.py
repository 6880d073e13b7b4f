"""Which model works on a task, what the record says about each, and when to stop: plain functions."""
