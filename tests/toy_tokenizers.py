"""Tokenizers small enough to be counted by hand."""

from pathlib import Path

from transformers import BertTokenizerFast, PreTrainedTokenizerFast


def by_words(folder: Path) -> BertTokenizerFast:
    """Return a tokenizer that knows the letters a to e as words, and puts [CLS] and [SEP] around a text."""
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcde"]) + "\n", "utf-8")
    return BertTokenizerFast(vocab=str(vocabulary))


def by_bytes(folder: Path) -> PreTrainedTokenizerFast:
    """Return a tokenizer each of whose tokens is a byte, without special tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={each: number for number, each in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
