"""The projection of MiniLM's token states: conversations in, a binary file out. `python -m training.projection`.

It is made of the texts alone, never of questions and answers: a map that is fitted to these gains next to nothing
elsewhere, and makes late interaction look better where the ranking is trained than it is. `docs/projection_report.md`
has everything that was tried.
"""
