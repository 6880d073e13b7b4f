"""Any other program that takes a prompt and prints an answer."""
