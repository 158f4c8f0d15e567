"""Contexts: budgets, candidates for each section, packing, rendering."""
