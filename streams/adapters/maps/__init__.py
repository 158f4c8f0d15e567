"""Kept maps on the disk, and the threads in which they are laid out."""
