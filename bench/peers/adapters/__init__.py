"""What runs inside a peer's own environment: one module per peer, and `serve.py`, which they all are run by.

Nothing here may import `learnt` or `bench` (but the adapter of learnt itself): a peer's environment has neither.
"""
