"""Text processing: tokens, stems, languages, sentences, chunks, dates, entities."""
