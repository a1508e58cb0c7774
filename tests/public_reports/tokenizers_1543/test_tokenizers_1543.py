"""huggingface/tokenizers #1543: a decoded text lacks the blanks before its punctuation.

What a language model with a byte-level tokenizer writes is kept to the letter, whatever its configuration
says of blanks: training data are texts that were written, not texts that were tidied.
"""

import json
import shutil
from pathlib import Path

import pytest
import transformers

from synthbench.base.runtime import Runtime
from synthbench.generation.language_model import LanguageModel

TEXT = "hello ! x != y , he said . it 's n't"


@pytest.mark.parametrize("cleans", [True, False])
def test_spaces_before_punctuation_survive(chat_model: Path, tmp_path: Path, *, cleans: bool) -> None:
    folder = shutil.copytree(chat_model, tmp_path / "model")
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**settings, "clean_up_tokenization_spaces": cleans}), "utf-8")
    tokenizer = LanguageModel(model=str(folder)).load(Runtime(device="cpu", threads=1)).tokenizer
    assert isinstance(tokenizer, transformers.PreTrainedTokenizerBase)
    assert tokenizer.decode(tokenizer(TEXT)["input_ids"], skip_special_tokens=True) == TEXT
