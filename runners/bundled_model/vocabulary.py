"""What the bundled model knows: its objects, colours, words and defaults. Standard library only: any page may ask."""

from __future__ import annotations

import re

RGB = tuple[int, int, int]

OBJECTS: tuple[str, ...] = (
    "apple",
    "arrow",
    "balloon",
    "boat",
    "butterfly",
    "car",
    "cat",
    "circle",
    "cloud",
    "crown",
    "cup",
    "diamond",
    "fish",
    "flower",
    "heart",
    "house",
    "moon",
    "mushroom",
    "rocket",
    "snowman",
    "square",
    "star",
    "sun",
    "tree",
    "triangle",
    "umbrella",
)

COLOURS: dict[str, RGB] = {
    "black": (30, 30, 36),
    "blue": (52, 101, 228),
    "brown": (130, 85, 50),
    "cyan": (70, 200, 215),
    "gray": (150, 150, 155),
    "green": (60, 165, 75),
    "orange": (243, 140, 45),
    "pink": (245, 150, 185),
    "purple": (140, 80, 200),
    "red": (221, 51, 51),
    "white": (250, 250, 250),
    "yellow": (247, 211, 60),
}

COLOUR_SPELLINGS: dict[str, str] = {"grey": "gray"}

SIZE_WORDS: dict[str, tuple[str, ...]] = {
    "small": ("small", "tiny", "little"),
    "normal": (),
    "large": ("large", "big", "huge"),
}

# A relation says where the first object stands; each is drawn as one of two layouts, the first name in it first.
# Value: (layout, whether the phrase names the left or upper object first).
RELATIONS: dict[str, tuple[str, bool]] = {
    "left of": ("row", True),
    "to the left of": ("row", True),
    "on the left of": ("row", True),
    "next to": ("row", True),
    "beside": ("row", True),
    "and": ("row", True),
    "right of": ("row", False),
    "to the right of": ("row", False),
    "on the right of": ("row", False),
    "above": ("column", True),
    "over": ("column", True),
    "on top of": ("column", True),
    "below": ("column", False),
    "under": ("column", False),
    "beneath": ("column", False),
}

OPENINGS: tuple[str, ...] = (
    "a picture of",
    "a drawing of",
    "an image of",
    "an illustration of",
    "a painting of",
    "a photo of",
    "an icon of",
    "draw",
)

# Harmless in a prompt: the model has read them, and they change nothing.
_PLAIN_WORDS = frozenset(
    [
        *("a", "an", "the", "one", "of", "on", "in", "with", "at", "to", "is", "it", "its", "and", "front"),
        *("background", "picture", "drawing", "image", "illustration", "painting", "photo", "icon", "draw"),
        *("color", "colored", "colour", "coloured", "simple", "flat", "plain", "nice", "cute", "beautiful"),
    ]
)

EXAMPLE_PROMPTS: tuple[str, ...] = (
    "a red circle on a white background",
    "a small red fish on a blue background",
    "a large yellow star on a purple background",
    "a blue star above a yellow boat",
    "a black cat next to a pink flower on a white background",
    "orange mushroom, green background",
    "a white cloud above a green umbrella on a cyan background",
    "a picture of a red rocket to the left of a yellow moon on a black background",
)

DEFAULT_STEPS = 15
DEFAULT_GUIDANCE = 4.0
IMAGE_SIZE = 64
MAX_TOKENS = 32


def known_words() -> frozenset[str]:
    """Return every word, in lower case, that the model was taught."""
    words = set(OBJECTS) | set(COLOURS) | set(COLOUR_SPELLINGS) | _PLAIN_WORDS
    for spellings in SIZE_WORDS.values():
        words.update(spellings)
    for phrase in (*RELATIONS, *OPENINGS):
        words.update(phrase.split())
    return frozenset(words)


def unknown_words(prompt: str) -> list[str]:
    """Return the words of a prompt that the model was never taught, in order, each once.

    Args:
        prompt: What a person typed; any language, any length.

    Returns:
        Words in lower case, without punctuation. Numbers count as words, punctuation and emoji do not.
    """
    known = known_words()
    found = re.findall(r"\w+(?:['’]\w+)*", prompt.lower())
    return list(dict.fromkeys(word for word in found if word not in known))


def counts() -> dict[str, int]:
    """Return how many objects, colours and sizes the model knows, for one line of description."""
    return {"objects": len(OBJECTS), "colours": len(COLOURS), "sizes": len(SIZE_WORDS)}


def describe() -> str:
    """Return one English line: how much the model knows."""
    known = counts()
    return f"it knows {known['objects']} objects and {known['colours']} colours"
