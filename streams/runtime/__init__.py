"""Faust, adapted: app, consumer, producer, tables and agents. No module outside of this package imports Faust."""
