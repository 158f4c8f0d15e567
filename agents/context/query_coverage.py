"""The terms of a query, weighted by how rare they are among the memories of a boundary. Awaits nothing."""

from agents.ports.lexical_index import LexicalIndex
from agents.rules.answer.term_coverage import TermCoverage
from agents.rules.index.bm25 import idf
from agents.rules.text.tokenizer import content_terms


def query_coverage(query: str, words: LexicalIndex, boundary: str) -> TermCoverage:
    """Return the terms with their idf (`agents.rules.index.bm25.idf`)."""
    terms, memory_columns = content_terms(query), words.memory_columns(boundary)
    postings = words.postings(boundary, terms)
    weights = [idf(len(one.numbers), memory_columns.documents) for one in postings]
    return TermCoverage(terms, weights, memory_columns.languages())
