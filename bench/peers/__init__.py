"""learnt beside other memories and search libraries, on the same texts in one run: `python -m bench peers`.

The modules: `sets` (what is searched, and the scores), `peers` (who takes part), `environments` (where a peer is
installed), `measure` (runs them and reports), and `adapters/` (what runs inside a peer's own environment).
"""
