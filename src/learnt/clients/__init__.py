"""The programs that agents run in: how they are started, set up, heard and read, each in modules of its own."""
