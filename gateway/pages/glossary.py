"""The words of the pages that need a definition; a hint opens on hover and on focus."""

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "memory": "Anything that can be recalled: a turn, a fact found in turns, or a summary of several.",
    "turn": "One message of a conversation, as it was said.",
    "fact": "A statement, preference, rule or goal found in a turn. It keeps a link to the words it comes from.",
    "summary": "One memory made of several similar turns by a consolidation.",
    "mode": "A named way of speaking, such as journal or code, with its own vectors and its own search.",
    "embedder": "The model that turns text into vectors, so that memories are found by meaning.",
    "category": "A topic of facts within one project, with a summary.",
    "consolidation": "A run that summarizes similar turns, merges duplicates and lowers the weight of old memories.",
    "superseded": "Replaced by a newer memory. Searches leave it out; it is not deleted.",
    "dead letter": "A record that could not be processed. It is kept in full and can be published again.",
}
