"""Base layer of every package: errors, durable files, processes, escaping and redaction."""
