"""What can be learnt from what agents did: the rules, and the request to a model."""
