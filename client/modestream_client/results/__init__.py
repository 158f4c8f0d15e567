"""Typed results of calls, parsed from replies. Unknown fields are ignored."""
