from itertools import combinations
from pathlib import Path

import pytest
from hub_cache import tiny_bert
from wording import refused, worded

from synthbench.models.cards import languages_of
from synthbench.sources.guessing import guess
from synthbench.sources.looking import look

GERMAN = ["Mein Konto ist gesperrt.", "Wo bleibt meine Bestellung?", "Wie kann ich mit der Karte bezahlen?"]

ENGLISH = "My account has been locked since yesterday, and nobody answers the telephone."


def _pairs(path: Path, number: int = 200) -> Path:
    rows = [f"The parcel {row} is late.,Where is my parcel {row}?,{row % 6}" for row in range(number)]
    path.write_text("\n".join(["a,b,score", *rows]), encoding="utf-8")
    return path


def _model(folder: Path, language: str) -> str:
    folder.mkdir()
    (folder / "README.md").write_text(f"---\nlanguage: {language}\n---\n# A model\n", encoding="utf-8")
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"")
    return str(folder)


def test_each_finding_is_said_in_a_line(tmp_path: Path) -> None:
    sentences = tmp_path / "sentences.txt"
    sentences.write_text(
        "\n".join(["where is my PARCEL 7", *(" ".join([ENGLISH] * 20), ENGLISH) * 2]),
        encoding="utf-8",
    )
    sources = {
        "gold": guess(_pairs(tmp_path / "pairs.csv"), "gold"),
        "sentences": guess(sentences, "sentences"),
    }
    found = list(look(sources, "sandbox/encoder"))
    worded(found, "100 train, 40 dev, 60 test", "longer than 128 tokens", "language: en")


def test_pairs_that_connect_parts_are_counted(tmp_path: Path) -> None:
    """All pairs of 25 sentences: no division by sentences keeps all of them."""
    parcels = [f"The parcel {number} is late." for number in range(25)]
    rows = [f"{a},{b},{number % 6}" for number, (a, b) in enumerate(combinations(parcels, 2))]
    (tmp_path / "pairs.csv").write_text("\n".join(["a,b,score", *rows]), encoding="utf-8")
    lines = look({"gold": guess(tmp_path / "pairs.csv", "gold")}, None)
    [line] = [line for line in lines if "divided" in line]
    train, dev, test, cut = (int(word) for word in line.split() if word.isdecimal())
    assert (train + dev + test + cut, cut > 0) == (300, True)
    assert line.endswith("so fewer differences show")


def test_test_sentences_in_other_data_are_found(tmp_path: Path) -> None:
    sentences = tmp_path / "sentences.txt"
    sentences.write_text(
        "\n".join(f"where is my PARCEL {row}!" for row in range(200)) + "\n", encoding="utf-8"
    )
    sources = {
        "gold": guess(_pairs(tmp_path / "pairs.csv"), "gold"),
        "sentences": guess(sentences, "sentences"),
    }
    leaks = [line for line in look(sources, None) if line.startswith("leak")]
    assert leaks == ["leak: 60 of 60 pairs in gold's test part have a sentence in sentences"]


def test_a_model_that_is_not_here_is_said(tmp_path: Path) -> None:
    found = list(look({"gold": guess(_pairs(tmp_path / "pairs.csv"), "gold")}, "unheard-of/model"))
    assert found[-1].startswith("lengths and language: ")
    assert found[-1].endswith("unheard-of/model is not on this machine")


def test_a_tokenizer_that_cant_be_loaded_is_said(tmp_path: Path) -> None:
    base = tmp_path / "bert"
    tiny_bert(base)
    (base / "tokenizer.json").write_text("{}", encoding="utf-8")
    (base / "README.md").write_text("---\nlanguage: en\n---\n", encoding="utf-8")
    found = list(look({"gold": guess(_pairs(tmp_path / "pairs.csv"), "gold")}, str(base)))
    assert found[-1].startswith("lengths: ")
    assert f"{base}: its tokenizer can't be loaded" in found[-1]


def test_texts_in_a_language_that_the_base_lacks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(GERMAN), encoding="utf-8")
    sources = {"sentences": guess(tmp_path / "texts.txt", "sentences")}
    with refused("sentences", "de", "english", "en only"):
        list(look(sources, _model(tmp_path / "english", "en")))
    for language in ("[en, de]", "multilingual", ""):
        base = _model(tmp_path / f"model-{len(language)}", language)
        assert any("language: de" in line for line in look(sources, base))


@pytest.mark.parametrize(
    ("language", "codes"), [("de", ("de",)), ("[en, de]", ("en", "de")), ("multilingual", ()), ("7", ())]
)
def test_a_card_names_the_languages(tmp_path: Path, language: str, codes: tuple[str, ...]) -> None:
    assert languages_of(_model(tmp_path / "model", language)) == codes
