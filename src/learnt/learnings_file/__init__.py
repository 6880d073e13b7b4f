"""Read, write and merge `learnings.md`, which people and the program share, without losing text.

    # Project Learnings

    Last updated: 2026-02-19 (from 15 recent tasks)

    ## Testing
    - Use pytest fixtures for database setup to avoid repetition <!-- learn_0abc… -->

    <!-- learnt: r_… -->

Nothing here uses the disk, the store or the clock. Any text can be read, and every rendering reads back correctly.
Repeating a merge changes nothing. In case of doubt, no learning is hidden.
"""
