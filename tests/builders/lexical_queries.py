from agents.rules.text.tokenizer import question_terms
from streams.flow.stores import LexicalStore


def found(words: LexicalStore, query: str, boundary: str = "ana", partition: int = 0) -> set[str]:
    ids = words.memory_columns(partition, boundary).id_of
    return {
        ids[number]
        for postings in words.postings(partition, boundary, question_terms(query))
        for number in postings.numbers.tolist()
    }
