"""How much a learning is worth: confidence and what moves it."""
