"""What models take and give: vectors, embedders, language model profiles."""
