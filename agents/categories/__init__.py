"""Categories: declarations, assignment of items, summaries. The only writer of the table `categories`."""
