"""`learnings.md`, a file that people and the program share: read, written and merged without losing anybody's text.

    # Project Learnings

    Last updated: 2026-02-19 (from 15 recent tasks)

    ## Testing
    - Use pytest fixtures for database setup to avoid repetition <!-- learn_0abc… -->

    <!-- learnt: r_… -->

Nothing here touches the disk, the store or the clock. Any text can be read; what was written reads back as it was
meant; a merge that was applied changes nothing when it is repeated. When in doubt no learning is hidden.
"""
