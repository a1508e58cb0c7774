"""The table, sections and notes that every format prints."""
