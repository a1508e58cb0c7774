"""A small world with known truth: events, English sentences that describe them, exact similarities.

An event has a few slots (who does what to what, where, when, how many, negated or not). Each slot can be
put in several words, each event in several sentence forms. So a sentence's meaning and the similarity of two
sentences are known exactly, and a sentence can be parsed back into its event.
"""

VERSION = 2
