"""The HTML page of a report: text, tables, figures, sample records, and how to reproduce it."""
