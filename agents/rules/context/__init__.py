"""Assembled contexts: token budgets, candidates of each section, packing, rendering."""
