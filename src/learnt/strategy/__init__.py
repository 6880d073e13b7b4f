"""Which model works on a task, what the record says about each model, and when work is stuck."""
