"""Prompts in many words for the same few intents, and sentences to put into them."""

POSITIVE = (
    "Paraphrase the sentence below.",
    "Please say the same thing again in other words.",
    "Do not change the meaning: find another way to put this sentence.",
    "Change the wording but not the meaning.",
    "Say this differently, without adding, dropping or changing any of its content.",
    "Write one sentence that a reader could infer from the given one.",
    "Don't contradict it; just say it another way.",
    "What else must be true if this is true? Answer with one sentence.",
    "Reword the text so that nothing in its sense is lost.",
    "Use none of its words if you can, yet leave the idea intact.",
    "Find a sentence that no one could call a contradiction of this one, because it is implied by it.",
    "I'd like a shorter version of this sentence which still conveys the same message.",
    "Give me a positive example for contrastive learning, given the anchor sentence.",
    "The answer may look nothing like the input sentence, as long as it does not differ in meaning.",
)
NEGATIVE = (
    "Contradict the sentence below.",
    "Write a sentence that does not mean the same as this sentence, although it looks alike.",
    "Do not paraphrase; say the opposite.",
    "Paraphrase the sentence so that its meaning is reversed.",
    "Give me one sentence that is not implied by the input sentence.",
    "Write something close to this sentence that is false if it is true.",
    "Find a sentence of which both cannot be true together with the given one.",
    "Keep the words, change what is meant: the sense must not be preserved.",
    "Don't just negate it: tell something else about the same people.",
    "Keep most of the words of this sentence, but let the meaning be another one.",
    "Give me a hard negative for contrastive learning, given the anchor sentence.",
    "Turn the statement into one that nobody could infer from it.",
    "Swap one or two details of the sentence, so that it is no longer true.",
    "Please edit the following text until it no longer says the same thing; keep the style and the topic.",
)
LISTS = (
    ("Write 12 sentences on sports and cooking, no two of them with the same meaning.", 12),
    ("Invent fifteen diverse headlines about finance, crime and space exploration.", 15),
    ("I need a dozen image captions. They must not contradict each other.", 12),
    ("Compose 20 different sentences as they may be found in travel diaries, on food, pets, etc.", 20),
    ('Please produce 8 short statements, some as simple as "Rain falls.", touching on politics.', 8),
    ("Come up with a list of sentences that could stand under photographs.", 10),
)
FORMATS = (
    "{prompt}\nSentence: {sentence}",
    '{prompt}\n\nInput: "{sentence}"',
    '{prompt} "{sentence}"',
    "{prompt}\n{sentence}",
    "{sentence}\n\n{prompt}",
    "“{sentence}” {prompt}",
    "{prompt}\n\nInput sentence: {sentence}\nOutput:",
    "{prompt} {sentence}",
    "**Sentence:** {sentence}\n\n{prompt}\n\n**Answer:**",
    '{prompt}\nSentence 1: "{sentence}"\nSentence 2: "',
)
OUTSIDE = (
    "The committee's second report, however, was never published.",
    "She told us that nobody wants the same thing.",
    "The court gave the man a long sentence.",
    "Prices rose 3.5% in May: analysts had expected less.",
    "What a lovely day!",
)
