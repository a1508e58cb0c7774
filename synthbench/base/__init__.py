"""Base layer that all other packages use: errors, durable files, processes, escaping and redaction."""
