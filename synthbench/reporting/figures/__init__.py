"""Figures, one module each: the data shown, and the drawing."""
