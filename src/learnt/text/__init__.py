"""Pure functions over text, shared by all rooms: nothing here reads a file, the clock or a setting."""
