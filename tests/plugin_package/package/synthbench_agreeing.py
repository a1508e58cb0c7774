"""A step of somebody else's: an LLM says which pairs stay."""

from collections.abc import Sequence

from synthbench.api import ChatRequest, Record, RecordKind, Step, StepContext

QUESTION = "Do these two sentences mean the same? Answer yes or no.\n1: {}\n2: {}"


class Agreeing(Step):
    """Keep the pairs that an LLM calls the same."""

    version = 1
    kinds = frozenset({RecordKind.SCORED_PAIR})
    uses_llm = True

    def apply(self, records: Sequence[Record], context: StepContext) -> Sequence[Record]:
        """Ask of each pair."""
        asked = ({"role": "user", "content": QUESTION.format(*each.texts())} for each in records)
        requests = (ChatRequest(each.id, (ask,), {}) for each, ask in zip(records, asked, strict=True))
        answers = context.llm.answers(requests)
        kept = {each.request.key for each in answers if (each.text or "").lower().startswith("yes")}
        return [record for record in records if record.id in kept]
