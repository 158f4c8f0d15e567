"""Stores turns, items and claims; edits, moves and forgets them. The only writer of the table `memories`."""
