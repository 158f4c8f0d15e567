"""Everything that bends Faust: app, worker, consumer, held events, delivery, awaited table writes."""
