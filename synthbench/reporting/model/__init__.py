"""The table, the grids and the notes that every format prints."""
