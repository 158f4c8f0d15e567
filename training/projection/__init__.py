"""Learn the projection of MiniLM's token states: `python -m training.projection`.

It is learned from the texts alone, never from questions and answers: a map fitted to these gains next to nothing on
other data, and overstates late interaction on the conversations that the ranking is trained on. Experiments:
`docs/projection_report.md`.
"""
