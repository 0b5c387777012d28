"""Adapters for other packages, one module each. Importing one needs its package, and no other."""
