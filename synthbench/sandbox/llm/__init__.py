"""A chat model of the sandbox: it works out from the messages what is asked, and answers by the grammar.

Behind a real HTTP server on loopback that speaks OpenAI's chat-completions API, with the faults that such
services have, so that whatever talks to a commercial LLM can be run, and broken, without one.
"""

MODEL = "sandbox/llm"
VERSION = 1
"""Raise it whenever the same request may get another answer."""
