"""A method of your own that asks an LLM: synthbench imports the class named in my_llm_method.yaml."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from synthbench.api import (
    ChatAmount,
    ChatAnswer,
    ChatRequest,
    Failure,
    GenerationContext,
    Method,
    Record,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    Unit,
    estimated_amount,
    sentence_in,
    why_unusable,
)

PROMPT = 'Paraphrase this sentence in other words: "{}"'
TOKENS_PER_ANSWER = 18


class Paraphrased(Method):
    """Pair each sentence with a paraphrase that the LLM writes."""

    version = 1  # raise it when the same settings give other records
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar = {"sentences": RecordKind.SENTENCE}
    uses_llm = True  # the experiment must name one: llm

    # Fields are settings: keys of the experiment file.
    score: float = Field(1.0, ge=0, le=1, description="the score of a sentence with its paraphrase")
    temperature: float = Field(1.0, ge=0, le=2, description="sampling temperature")

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return how many requests and tokens it takes: `plan` shows time and money."""
        if "sentences" not in num_records:
            return None
        typical = self._request("", "A sentence as long as those that are usually paraphrased.")
        return estimated_amount(num_records["sentences"], [typical.messages], TOKENS_PER_ANSWER)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield a unit for each sentence, in the order in which the answers come."""
        asked = {
            record.id: (position, record.sentence)
            for position, record in enumerate(sources["sentences"])
            if record.id not in context.finished_units  # done before the run was killed
        }
        requests = (self._request(key, sentence) for key, (_, sentence) in asked.items())
        with context.progress.task("asking for paraphrases", len(asked)) as bar:
            for answer in context.chat().answers(requests):
                key = answer.request.key
                position, sentence = asked[key]
                yield Unit(key, position, (self._record(sentence, answer, context.llm.model),))
                bar.advance()

    def _request(self, key: str, sentence: str) -> ChatRequest:
        message = {"role": "user", "content": PROMPT.format(sentence)}
        return ChatRequest(key, (message,), {"temperature": self.temperature})

    def _record(self, sentence: str, answer: ChatAnswer, model: str) -> Record:
        """Return the pair, or a failure that says why there is none."""
        if answer.text is None:  # refused by a filter, cut off, empty or faulty
            return Failure(reason=answer.failure, generator=model)
        written = sentence_in(answer.text)
        if reason := why_unusable(written, [sentence]):  # a refusal in words, or the sentence itself
            return Failure(reason=reason, raw_text=answer.text, generator=model)
        return ScoredPair(sentence1=sentence, sentence2=written, score=self.score, generator=model)
