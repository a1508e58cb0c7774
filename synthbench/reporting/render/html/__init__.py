"""One page that holds a whole report: words, tables, figures, records of the data, and how to do it again."""
