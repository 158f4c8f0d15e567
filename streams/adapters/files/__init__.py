"""Files of all kinds as text with places, read in processes of their own."""
