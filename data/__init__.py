"""Remembers: the store of runs, the catalogue of published numbers, and the verdict on two of them."""
