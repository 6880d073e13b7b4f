"""Functions on text that all packages share. Apart from reading templates, they do not use files, clock or settings."""
