"""Topics of all kinds that nobody declared: what a category's nearness to an item is held against. Data.

They play the cohort of score normalisation (Auckenthaler, Carey and Lloyd-Thomas, "Score normalization for
text-independent speaker verification systems", 2000): a cosine alone means another thing in every vector space.
"""

BACKGROUND_TOPICS: tuple[str, ...] = (
    "food and cooking",
    "sports and health",
    "work meetings and colleagues",
    "family and relatives",
    "travel and holidays",
    "money and shopping",
    "films, books and music",
    "computers and software",
    "weather and nature",
    "politics and history",
    "home and furniture",
    "cars and transport",
    "school and studies",
    "feelings and moods",
    "friends and parties",
    "animals",
    "science and mathematics",
    "clothes and fashion",
    "law and contracts",
    "languages and writing",
    "art and photography",
    "time and calendar",
    "religion and traditions",
    "games and hobbies",
)
"""Everyday life and work, each a few words, as people describe categories. Another list needs the weights of
`agents.rules.categories.assignment` anew."""
