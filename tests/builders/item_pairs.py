"""Pairs of equivalent and nearly equivalent sentences, with the cosine of the general model (MiniLM, int8).

They separate duplicates from near misses.
"""

Pair = tuple[str, str, float]

DOUBLES: tuple[Pair, ...] = (
    ("I prefer tea to coffee.", "I'd prefer tea to coffee.", 0.92),
    ("I live in Bonn.", "I am living in Bonn.", 0.95),
    ("My dog is called Rex.", "The name of my dog is Rex.", 0.96),
    ("We use Postgres for billing.", "For billing we use Postgres.", 0.98),
    ("I'm allergic to peanuts.", "I have an allergy to peanuts.", 0.91),
    ("My sister lives in Lisbon.", "My sister is living in Lisbon.", 0.97),
    ("I work at a bakery.", "I am working at a bakery.", 0.93),
    ("The office opens at nine.", "Our office opens at nine.", 0.92),
    ("I like hiking in the Alps.", "I do like to hike in the Alps.", 0.95),
    ("I play the violin.", "I am a violin player.", 0.84),
    ("We decided to use Kafka.", "We have decided to use Kafka.", 0.95),
    ("Answer me in German, please.", "Please answer me in German.", 0.95),
    ("I want to learn Spanish.", "I would like to learn Spanish.", 0.94),
    ("My birthday is on 4 May.", "My birthday is 4 May.", 0.96),
    ("The build takes ten minutes.", "The build is taking ten minutes.", 0.96),
    ("I hate cilantro.", "I hate cilantro so much.", 0.97),
    ("I drive an electric car.", "My car is electric.", 0.83),
    ("We meet every Monday.", "We are meeting on Mondays.", 0.79),
    ("I am a vegetarian.", "I'm vegetarian.", 0.94),
    ("The server runs Debian.", "The server is running on Debian.", 0.91),
)
"""They say the same."""

NEAR_MISSES: tuple[Pair, ...] = (
    ("I moved from Rome to Bonn.", "I moved from Bonn to Rome.", 0.99),
    ("The shop opens at nine.", "The shop opens at ten.", 0.87),
    ("I have a dog.", "I had a dog.", 0.81),
    ("I like green tea.", "I don't like green tea.", 0.81),
    ("I like hiking.", "I used to like hiking.", 0.83),
    ("We use Postgres for billing.", "We should use Postgres for billing.", 0.96),
    ("My sister lives in Lisbon.", "My sister lived in Lisbon.", 0.95),
    ("I work at a bakery.", "I worked at a bakery.", 0.92),
    ("Ana teaches Ben.", "Ben teaches Ana.", 0.98),
    ("I prefer tea to coffee.", "I prefer coffee to tea.", 0.99),
    ("My dog is called Rex.", "Her dog is called Rex.", 0.77),
    ("I drink before I run.", "I drink after I run.", 0.94),
    ("The key is under the mat.", "The key is on the mat.", 0.96),
    ("I will move to Bonn.", "I moved to Bonn.", 0.83),
    ("I can eat nuts.", "I can't eat nuts.", 0.88),
    ("He works with Ana.", "He works for Ana.", 0.96),
    ("I run every day.", "I run some days.", 0.86),
    ("We may use Kafka.", "We use Kafka.", 0.92),
    ("My flight is on 4 May.", "My flight is on 5 May.", 0.95),
    ("I eat fish but not meat.", "I eat meat but not fish.", 0.99),
)
"""They do not, and one that is merged into the other is lost."""
