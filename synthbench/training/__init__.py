"""Trainers shared by all methods."""
