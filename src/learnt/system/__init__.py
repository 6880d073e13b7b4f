"""Access to the operating system: programs, processes, locks, files, git."""
