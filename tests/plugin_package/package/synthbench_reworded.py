"""A method of somebody else's: an LLM says each sentence in other words."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from synthbench.api import ChatRequest, GenerationContext, Method, Pair, RecordKind, SyntheticDataset


class Reworded(Method):
    """Pairs each sentence with an LLM's paraphrase of it."""

    version = 1
    record_kind = RecordKind.PAIR
    source_roles: ClassVar = {"texts": RecordKind.SENTENCE}
    uses_llm = True

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Pair]:
        texts = sources["texts"].texts
        asked = ({"role": "user", "content": f'Please paraphrase this sentence: "{text}"'} for text in texts)
        for answer in context.llm.answers(
            ChatRequest(t, (a,), {}) for t, a in zip(texts, asked, strict=True)
        ):
            yield Pair(anchor=answer.request.key, positive=answer.text or answer.request.key)
