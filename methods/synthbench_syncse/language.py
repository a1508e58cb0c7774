"""Whether a sentence is English, as far as its letters and its commonest words tell."""

import re
import unicodedata

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SMALL_WORDS = {
    "English": "the a an and or but of to in on at for with from by is are was were be been has have had do"
    " does did not no it its he she they we you i his her their our your my this that these those who what"
    " which there as if will would can could when where how than then so into over after before about",
    "German": "der die das ein eine einen dem den und oder nicht ist sind mit von zu im auf für sich wie er"
    " sie es wir",
    "French": "le la les un une des et ou ne pas est sont avec de du dans sur pour qui que il elle nous vous"
    " ce au",
    "Spanish": "el la los las un una y o no es son con de del en por para que se su como lo al más",
    "Italian": "il lo la gli le un una e o non è sono con di del della in per che si su come nel",
    "Portuguese": "o a os as um uma e ou não é são com de do da em no na por para que se como",
    "Dutch": "de het een en of niet is zijn met van te in op voor dat die er ik hij wij naar",
}
_WORDS_OF = {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}
_LEAST_WORDS = 3
_LEAST_LATIN = 0.8


def is_english(sentence: str) -> bool:
    """Say whether a sentence may be English: Latin letters, no other language has more small words.

    Knows the small words of German, French, Spanish, Italian, Portuguese and Dutch. Short sentences and those
    without small words count as English if their letters are Latin.
    """
    letters = [character for character in sentence if character.isalpha()]
    num_latin = sum("LATIN" in unicodedata.name(letter, "") for letter in letters)
    if letters and num_latin < _LEAST_LATIN * len(letters):
        return False
    words = [word.lower() for word in _WORD.findall(sentence)]
    if len(words) < _LEAST_WORDS:
        return True
    counts = {language: sum(word in known for word in words) for language, known in _WORDS_OF.items()}
    return counts["English"] == max(counts.values())
