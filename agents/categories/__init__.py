"""Keeps the categories: declarations, assignment of items, summaries. One writer for the table `categories`."""
