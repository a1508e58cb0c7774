"""One module for each figure: what it shows, and how it is drawn."""
