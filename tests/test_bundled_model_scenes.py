"""The bundled model's words and scenes: no torch needed."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from runners.bundled_model import vocabulary
from runners.bundled_model.captions import caption, parse, plain_caption
from runners.bundled_model.scenes import (
    Item,
    Scene,
    any_scene,
    is_held_out,
    places,
    render,
    sample_held_out_scene,
    sample_scene,
)


def test_it_knows_enough() -> None:
    assert len(vocabulary.OBJECTS) >= 24
    assert len(vocabulary.COLOURS) == 12
    assert vocabulary.describe() == "it knows 26 objects and 12 colours"


@pytest.mark.parametrize("prompt", vocabulary.EXAMPLE_PROMPTS)
def test_example_prompts_use_known_words_and_name_an_object(prompt: str) -> None:
    assert vocabulary.unknown_words(prompt) == []
    assert parse(prompt).items


@pytest.mark.parametrize(
    ("prompt", "unknown"),
    [
        ("a red dragon on a white background", ["dragon"]),
        ("Dragon, DRAGON and a knight!", ["dragon", "knight"]),
        ("", []),
        ("🐉 ... , -", []),
        ("ein roter Kreis", ["ein", "roter", "kreis"]),
        ("一隻紅色的魚", ["一隻紅色的魚"]),
        ("a grey cat", []),
    ],
)
def test_unknown_words_are_named_once(prompt: str, unknown: list[str]) -> None:
    assert vocabulary.unknown_words(prompt) == unknown


def test_the_words_are_light_to_import() -> None:
    code = (
        "import sys; from runners.bundled_model import vocabulary, scenes, captions; "
        "print(sorted({'torch', 'numpy', 'PIL', 'diffusers', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_same_seed_makes_the_same_scene_and_the_same_pixels() -> None:
    first = [sample_scene(random.Random(7)) for _ in range(3)]
    second = [sample_scene(random.Random(7)) for _ in range(3)]
    assert first == second
    assert render(first[0]).tobytes() == render(second[0]).tobytes()


def test_training_never_sees_a_held_out_combination() -> None:
    rng = random.Random(1)
    for scene in (sample_scene(rng) for _ in range(5000)):
        assert not any(is_held_out(item.name, item.colour, scene.background) for item in scene.items)


def test_evaluation_sees_only_held_out_combinations() -> None:
    rng = random.Random(2)
    for pair in (False, True):
        for scene in (sample_held_out_scene(rng, pair) for _ in range(50)):
            assert len(scene.items) == 1 + pair
            assert all(is_held_out(item.name, item.colour, scene.background) for item in scene.items)


def test_about_a_tenth_is_held_out_and_every_object_and_colour_is_in_it() -> None:
    combinations = [
        (name, colour, background)
        for name in vocabulary.OBJECTS
        for colour in vocabulary.COLOURS
        for background in vocabulary.COLOURS
        if colour != background
    ]
    held_out = [combination for combination in combinations if is_held_out(*combination)]
    assert 0.08 < len(held_out) / len(combinations) < 0.12
    assert {name for name, _, _ in held_out} == set(vocabulary.OBJECTS)
    assert {colour for _, colour, _ in held_out} == set(vocabulary.COLOURS)
    assert {background for _, _, background in held_out} == set(vocabulary.COLOURS)


def test_the_hold_out_does_not_move() -> None:
    """It must be the same on every machine and in every version: the committed weights were trained with it."""
    held_out = [name for name in vocabulary.OBJECTS if is_held_out(name, "red", "white")]
    assert held_out == HELD_OUT_RED_ON_WHITE


HELD_OUT_RED_ON_WHITE: list[str] = ["cloud", "star", "tree"]


def test_objects_stay_inside_the_image() -> None:
    rng = random.Random(3)
    for scene in (any_scene(rng, pair=rng.random() < 0.5) for _ in range(500)):
        for x, y, radius in places(scene):
            assert min(x, y) - radius >= 1
            assert max(x, y) + radius <= 63


def test_a_caption_says_what_the_scene_shows() -> None:
    rng = random.Random(4)
    for scene in (sample_scene(rng) for _ in range(3000)):
        meaning = parse(caption(scene, rng))
        assert meaning.items == tuple((item.size, item.colour, item.name) for item in scene.items)
        assert meaning.layout == scene.layout
        assert meaning.background == (scene.background if scene.background_said else None)


@pytest.mark.parametrize(
    ("prompt", "items", "layout", "background"),
    [
        ("a small red fish on a blue background", [("small", "red", "fish")], "single", "blue"),
        ("red fish, blue background", [("normal", "red", "fish")], "single", "blue"),
        ("A large grey cat", [("large", "gray", "cat")], "single", None),
        ("a blue star above a yellow boat", [("normal", "blue", "star"), ("normal", "yellow", "boat")], "column", None),
        ("a red cup under a pink sun", [("normal", "pink", "sun"), ("normal", "red", "cup")], "column", None),
        ("a red cup to the right of a pink sun", [("normal", "pink", "sun"), ("normal", "red", "cup")], "row", None),
    ],
)
def test_phrases(prompt: str, items: list[tuple[str, str, str]], layout: str, background: str | None) -> None:
    meaning = parse(prompt)
    assert (list(meaning.items), meaning.layout, meaning.background) == (items, layout, background)


def test_the_plain_caption_has_its_articles() -> None:
    scene = Scene((Item("apple", "orange"), Item("cup", "red")), "white", "row")
    assert plain_caption(scene) == "an orange apple left of a red cup on a white background"
