"""Audits: compare a method's intended labels with an oracle's or people's judgements."""
