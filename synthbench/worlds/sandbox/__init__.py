"""A small world whose truth is known: events, the English sentences that tell them, exact similarities.

An event is a handful of slots (who does what to what, where, when, how many, or not); every slot has several
words, and every event several sentence forms. So a sentence's meaning, and the similarity of two sentences,
is known exactly, and a sentence can be parsed back into its event.
"""

VERSION = 2
