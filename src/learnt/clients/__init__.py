"""The programs that agents run in: `registry` lists them, each has a folder, and `kit` holds shared code."""
