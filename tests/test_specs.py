"""What can be asked of a workload, and what is said about what cannot."""

import pytest

from runners.errors import SpecError, UnknownWorkload
from runners.registry import WORKLOADS, listing, load_function, make_spec
from runners.spec_fields import fields_of, parse_assignments
from runners.specs import MAX_PROMPT_CHARACTERS, SPECS, TextToImageSpec, resolve_text_to_image


def refusal(values: dict[str, object], workload: str = "text-to-image", preset: str | None = None) -> SpecError:
    with pytest.raises(SpecError) as caught:
        make_spec(workload, values, preset)
    return caught.value


def test_every_field_is_explained_and_its_default_is_accepted() -> None:
    for name, spec_class in SPECS.items():
        for field in fields_of(spec_class):
            assert field.limits.help
            make_spec(name, {field.name: field.default})


def test_every_preset_makes_a_specification() -> None:
    for workload in WORKLOADS.values():
        for preset in workload.presets:
            make_spec(workload.name, {}, preset)


def test_every_workload_can_be_loaded() -> None:
    for name in WORKLOADS:
        assert callable(load_function(name))


def test_listing_holds_what_the_forms_need() -> None:
    entry = next(item for item in listing() if item["name"] == "text-to-image")
    assert {"bundled", "architecture"} <= set(entry["presets"])
    assert next(field for field in entry["fields"] if field["name"] == "width")["unit"] == "px"


def test_texts_become_values() -> None:
    spec = make_spec("text-to-image", {"steps": "7", "guidance": "2.5", "previews": "off", "scheduler": "ddim"})
    assert (spec.steps, spec.guidance, spec.previews, spec.scheduler) == (7, 2.5, False, "DDIM")


def test_values_win_over_the_preset() -> None:
    assert make_spec("text-to-image", {"steps": "3"}, "architecture").steps == 3


@pytest.mark.parametrize("prompt", ["🐟🚀", "דג אדום על רקע כחול", "سمكة حمراء", "a\u202ebackwards", "第一\n第二"])
def test_any_script_is_a_prompt(prompt: str) -> None:
    assert make_spec("text-to-image", {"prompt": prompt}).prompt == prompt


@pytest.mark.parametrize(
    ("values", "message_id"),
    [
        ({"prompt": ""}, "prompt-empty"),
        ({"prompt": " \n\t "}, "prompt-empty"),
        ({"prompt": "x" * 10_000}, "text-too-long"),
        ({"width": 500}, "not-a-multiple"),
        ({"width": "0"}, "out-of-range"),
        ({"height": 4096}, "out-of-range"),
        ({"steps": 0}, "out-of-range"),
        ({"steps": 1000}, "out-of-range"),
        ({"steps": "ten"}, "not-a-number"),
        ({"steps": 2.5}, "not-a-number"),
        ({"steps": True}, "not-a-number"),
        ({"steps": "9" * 5000}, "not-a-number"),
        ({"seed": 2**64}, "out-of-range"),
        ({"seed": -1}, "out-of-range"),
        ({"guidance": "nan"}, "not-a-decimal"),
        ({"guidance": "inf"}, "out-of-range"),
        ({"scheduler": "DDMI"}, "unknown-value"),
        ({"precision": "int4"}, "unknown-value"),
        ({"images": 3, "batch_size": 2}, "images-not-multiple"),
        ({"images": 2, "warmup_batches": 2}, "warmup-too-long"),
        ({"promt": "x"}, "unknown-field"),
        ({"previews": "perhaps"}, "not-a-boolean"),
        ({"prompt": "half a pair: \ud800"}, "not-text"),
    ],
)
def test_bad_values_are_named(values: dict[str, object], message_id: str) -> None:
    error = refusal(values)
    assert error.message_id == message_id
    assert "{" not in str(error), "a placeholder was left unfilled"
    assert len(str(error)) < 600, "a long value must not fill the screen"


def test_messages_name_the_nearest_match() -> None:
    assert "Nearest: prompt." in str(refusal({"promt": "x"}))
    assert "Nearest: DDIM." in str(refusal({"scheduler": "DDMI"}))
    assert "Nearest: 496." in str(refusal({"width": 500}))
    assert "Nearest: bundled." in str(refusal({}, preset="bundeld"))
    with pytest.raises(UnknownWorkload, match="Nearest: text-to-image"):
        make_spec("text2image", {})


def test_the_longest_prompt_is_taken() -> None:
    assert make_spec("text-to-image", {"prompt": "x" * MAX_PROMPT_CHARACTERS})


def test_assignments() -> None:
    assert parse_assignments(["prompt=a=b", "steps=2"]) == {"prompt": "a=b", "steps": "2"}
    with pytest.raises(SpecError, match="FIELD=VALUE"):
        parse_assignments(["steps"])


def test_defaults_depend_on_the_model() -> None:
    bundled = resolve_text_to_image(TextToImageSpec())
    published = resolve_text_to_image(TextToImageSpec(weights="architecture"))
    assert (bundled.width, bundled.height) == (64, 64)
    assert (published.width, published.height, published.steps, published.guidance) == (512, 512, 50, 7.5)


def test_what_was_given_is_kept() -> None:
    spec = resolve_text_to_image(TextToImageSpec(weights="architecture", steps=3, guidance=1.0, width=256))
    assert (spec.steps, spec.guidance, spec.width, spec.height) == (3, 1.0, 256, 512)
