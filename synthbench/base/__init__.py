"""What every package stands on: errors, safe files, processes, texts from outside."""
