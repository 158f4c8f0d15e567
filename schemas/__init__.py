"""What flows: records, events, replies and table values. Imports Pydantic and the standard library only."""
