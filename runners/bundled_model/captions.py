"""What people might type for a scene: many phrasings of it, and back from a phrase to what it says."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from runners.bundled_model.scenes import Item, Scene
from runners.bundled_model.vocabulary import (
    COLOUR_SPELLINGS,
    COLOURS,
    OBJECTS,
    OPENINGS,
    RELATIONS,
    SIZE_WORDS,
    known_words,
)

OPENING_SHARE = 0.2
STRANGER_SHARE = 0.1
_VOWELS = "aeiou"
_PLAIN = ("nice", "cute", "beautiful", "simple", "flat", "plain")


@dataclass(frozen=True)
class Meaning:
    """What a phrase asks for: (size, colour, object) of each item, the layout, the background if it is named."""

    items: tuple[tuple[str, str, str], ...]
    layout: str
    background: str | None


def plain_caption(scene: Scene) -> str:
    """Return the plainest full phrase for a scene, always the same one."""
    relation = {"single": "", "row": " left of ", "column": " above "}[scene.layout]
    phrases = [_with_article(_noun_phrase(item, None), "a") for item in scene.items]
    return f"{relation.join(phrases)} on a {scene.background} background"


def caption(scene: Scene, rng: random.Random) -> str:
    """Return one of the many ways to ask for a scene."""
    style = rng.choices(("sentence", "tags"), (0.75, 0.25))[0]
    article = rng.choice(("a", "a", "a", "the", "one")) if style == "sentence" else ""
    phrases = [_with_article(_noun_phrase(item, rng), article) for item in scene.items]
    if scene.layout != "single":
        choices = [(words, first) for words, (layout, first) in RELATIONS.items() if layout == scene.layout]
        words, first = rng.choice(choices)
        phrases = [f" {words} ".join(phrases if first else reversed(phrases))]
    text = phrases[0]
    if style == "sentence" and rng.random() < OPENING_SHARE:
        text = f"{rng.choice(OPENINGS)} {text}"
    if scene.background_said:
        text += _background_phrase(scene.background, style, rng)
    return _with_stranger(text, rng)


def _noun_phrase(item: Item, rng: random.Random | None) -> str:
    sizes = SIZE_WORDS[item.size]
    words = [rng.choice(sizes) if rng else sizes[0]] if sizes else []
    if rng and rng.random() < 0.05:
        words.append(rng.choice(_PLAIN))
    spellings = [item.colour, *(other for other, usual in COLOUR_SPELLINGS.items() if usual == item.colour)]
    words.append(rng.choice(spellings) if rng else item.colour)
    return " ".join([*words, item.name])


def _with_article(phrase: str, article: str) -> str:
    if article == "a" and phrase[0] in _VOWELS:
        article = "an"
    return f"{article} {phrase}".strip()


def _background_phrase(colour: str, style: str, rng: random.Random) -> str:
    article = "an" if colour[0] in _VOWELS else "a"
    if style == "tags":
        return rng.choice((f", {colour} background", f" on {colour}", f" {colour} background", f", on {colour}"))
    usual = f" on {article} {colour} background"
    others = (f" on {colour}", f" with {article} {colour} background", f" in front of {article} {colour} background")
    return rng.choice((usual, usual, usual, *others, f" on the {colour} background", f", {colour} background"))


def _with_stranger(text: str, rng: random.Random) -> str:
    """Sometimes put in a word that means nothing, so that words the model does not know do no harm later."""
    if rng.random() >= STRANGER_SHARE:
        return text
    letters = "abcdefghijklmnopqrstuvwxyz"
    stranger = "".join(rng.choice(letters) for _ in range(rng.randint(3, 8)))
    if stranger in known_words():
        return text
    words = text.split(" ")
    words.insert(rng.randint(0, len(words)), stranger)
    return " ".join(words)


def parse(prompt: str) -> Meaning:
    """Return what a phrase asks for, by the same reading that the captions follow.

    Args:
        prompt: A phrase; words that mean nothing here are passed over.

    Returns:
        The items in the order of a scene (left or upper first), with colours in their usual spelling.
    """
    known = known_words()
    text = " ".join(word for word in re.findall(r"\w+", prompt.lower()) if word in known)
    found = re.search(r"\b(?:on|with|in front of) (?:\w+ )?(\w+) background|(\w+) background$|on (\w+)$", text)
    background = next((group for group in found.groups() if group), None) if found else None
    if found and background:
        text = text[: found.start()]
    sizes = {word: size for size, words in SIZE_WORDS.items() for word in words}
    items, colour, size = [], "", "normal"
    for word in text.split():
        word = COLOUR_SPELLINGS.get(word, word)
        size = sizes.get(word, size)
        colour = word if word in COLOURS else colour
        if word in OBJECTS:
            items.append((size, colour, word))
            colour, size = "", "normal"
    layout, first = _relation(text) if len(items) > 1 else ("single", True)
    usual = COLOUR_SPELLINGS.get(background, background) if background else None
    return Meaning(tuple(items if first else reversed(items)), layout, usual)


def _relation(text: str) -> tuple[str, bool]:
    longest_first = sorted(RELATIONS, key=len, reverse=True)
    phrase = next((words for words in longest_first if re.search(rf"\b{words}\b", text)), "and")
    return RELATIONS[phrase]
