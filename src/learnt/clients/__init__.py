"""The programs that agents run in: `registry` lists them, each one has a folder, and `kit` has the shared code."""
