"""What we ask of the operating system: programs, processes, locks, files, git."""
