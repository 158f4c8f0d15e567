"""Background topics that calibrate the similarity of items and categories. Data.

They are the cohort of score normalisation (Auckenthaler, Carey and Lloyd-Thomas, "Score normalization for
text-independent speaker verification systems", 2000): the same cosine means different things in different spaces.
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
"""Everyday life and work, in the few words that users describe categories with. After a change of this list the
weights of `agents.rules.categories.assignment` must be fitted again."""
