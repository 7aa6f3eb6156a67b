"""The Playground's form: what to generate, checked as it is filled in.

The limits of the fields are the specification's. Number inputs carry no limits of their own: a browser would refuse a
value without a word about why, and the check below names the limit, the value and the way out.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from app import state
from app.components import error_message, escape, shortened
from app.i18n import _, ngettext
from app.words import FIELDS, word
from runners.bundled_model.vocabulary import EXAMPLE_PROMPTS, counts, unknown_words
from runners.errors import RunnersError, SpecError
from runners.models import ModelChoice
from runners.registry import workload
from runners.spec_fields import fields_of
from runners.specs import PRECISIONS, SCHEDULERS, TextToImageSpec, resolve_text_to_image, spec_from_fields

WORKLOAD = "text-to-image"
PREFIX = "playground_"
LIMITS = {field.name: field.limits for field in fields_of(TextToImageSpec)}

# Streamlit takes None for "nothing chosen yet"; the specification reads an empty text as "the device's own".
OWN = ""

# What a new visitor finds in the form. None is "the model's own", which the placeholders then name.
DEFAULTS: dict[str, Any] = {
    "prompt": EXAMPLE_PROMPTS[0],
    "negative_prompt": "",
    "weights": "bundled",
    "steps": None,
    "guidance": None,
    "seed": "0",
    "scheduler": SCHEDULERS[0],
    "width": None,
    "height": None,
    "images": 1,
    "batch_size": 1,
    "precision": OWN,
    "warmup_batches": 0,
    "previews": True,
}


def fill(fields: Mapping[str, Any]) -> None:
    """Puts values into the form; call from a callback, before the widgets are drawn."""
    for name, default in DEFAULTS.items():
        value = fields.get(name, default)
        if value is None and name == "precision":
            value = OWN
        # Beyond 2^53 a number does not survive the browser, so the seed is a text.
        st.session_state[PREFIX + name] = str(value) if name == "seed" and value is not None else value


def one_image(fields: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The settings of one image of a run: an image's seed gives the same start at every batch size."""
    kept = {name: value for name, value in fields.items() if name in DEFAULTS and value is not None}
    return {**kept, "seed": seed, "images": 1, "batch_size": 1, "warmup_batches": 0}


def form(more_shortcuts: Callable[[], None] = lambda: None) -> dict[str, Any] | None:
    """Draws the form.

    Args:
        more_shortcuts: Draws more ways to fill it, beside the example prompts.

    Returns:
        The fields to generate from when the button was pressed and they are usable, otherwise None.
    """
    for name, default in DEFAULTS.items():
        st.session_state.setdefault(PREFIX + name, default)
    _prompt_inputs()
    _shortcuts(more_shortcuts)
    _model_input()
    _common_inputs()
    _advanced_inputs()
    fields = current_fields()
    error = check(fields)
    pressed = st.button(
        _("Generate"), type="primary", icon=":material/draw:", key="playground_generate", width="stretch"
    )
    if error is not None:
        error_message(error)
        return None
    return fields if pressed else None


def current_fields() -> dict[str, Any]:
    """The form's values as the specification's fields; what was left empty is left to the specification."""
    values = {name: st.session_state[PREFIX + name] for name in DEFAULTS}
    return {name: value for name, value in values.items() if value is not None}


def check(fields: Mapping[str, Any]) -> RunnersError | None:
    """What keeps these fields from being run, or None."""
    try:
        spec_from_fields(WORKLOAD, fields)
    except SpecError as error:
        return error
    return None


def _prompt_inputs() -> None:
    st.text_area(
        word(FIELDS, "prompt"),
        key="playground_prompt",
        height=96,
        help=_(LIMITS["prompt"].help),
        persist_state="session",
    )
    # This line is always there, so that nothing moves under the mouse when its text changes.
    if st.session_state["playground_weights"] != "bundled":
        st.caption(_("Any description; English works best with Stable Diffusion 1.x."))
        return
    unknown = unknown_words(st.session_state["playground_prompt"])
    if unknown:
        listed = ", ".join(shortened(found, 24) for found in unknown[:8]) + (" …" if len(unknown) > 8 else "")
        st.caption(
            ":material/help: "
            + ngettext(
                "The bundled model does not know this word: {words}.",
                "The bundled model does not know these words: {words}.",
                len(unknown),
            ).format(words=escape(listed))
        )
    else:
        known = counts()
        st.caption(
            _("The bundled model draws {objects} objects in {colours} colours, alone or in pairs.").format(**known)
        )


def _shortcuts(more_shortcuts: Callable[[], None]) -> None:
    with st.container(horizontal=True):
        _example_prompts()
        more_shortcuts()
        titles = {name: _(preset.title) for name, preset in workload(WORKLOAD).presets.items()}
        st.menu_button(
            _("Presets"),
            list(titles),
            format_func=titles.__getitem__,
            icon=":material/playlist_add_check:",
            key="playground_preset",
            on_click=_use_preset,
            help=_("Fills the form with the settings of a published number, or of the bundled model."),
        )


def _use_preset() -> None:
    name = st.session_state["playground_preset"]
    if name is not None:
        fill(workload(WORKLOAD).presets[name].fields)


def _example_prompts() -> None:
    if st.session_state["playground_weights"] != "bundled":
        return
    with st.popover(_("Example prompts"), icon=":material/lightbulb:"):
        for number, prompt in enumerate(EXAMPLE_PROMPTS):
            st.button(
                prompt,
                key=f"playground_example_{number}",
                type="tertiary",
                on_click=_use_prompt,
                args=(prompt,),
            )


def _use_prompt(prompt: str) -> None:
    st.session_state["playground_prompt"] = prompt


def _model_input() -> None:
    choices = {choice.id: choice for choice in state.models()}
    chosen = st.session_state["playground_weights"]
    titles = {name: _model_title(choices.get(name), name) for name in (*choices, chosen)}
    st.selectbox(
        word(FIELDS, "weights"),
        list(titles),
        format_func=lambda name: titles.get(name, name),
        key="playground_weights",
        accept_new_options=True,
        help=_("Choose one, or type a local pipeline folder or the id of a model on the hub."),
        persist_state="session",
    )


def _model_title(choice: ModelChoice | None, name: str) -> str:
    if choice is None:
        return name
    return _(choice.title) if choice.cached else _("{model} (is downloaded first)").format(model=choice.title)


def _common_inputs() -> None:
    defaults = resolve_text_to_image(TextToImageSpec(weights=st.session_state["playground_weights"] or "bundled"))
    with st.grid(2, min_column_width=150):
        _number("steps", _default_text(defaults.steps), step=1)
        _number("images", "1", step=1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(word(FIELDS, "seed"), key="playground_seed", help=_(LIMITS["seed"].help), persist_state="session")
        st.button(
            _("Random seed"),
            icon=":material/casino:",
            key="playground_random_seed",
            on_click=_draw_seed,
            width="content",
        )


def _draw_seed() -> None:
    st.session_state["playground_seed"] = str(secrets.randbelow(2**32))


def _advanced_inputs() -> None:
    defaults = resolve_text_to_image(TextToImageSpec(weights=st.session_state["playground_weights"] or "bundled"))
    with st.expander(_("More settings"), icon=":material/tune:", key="playground_more"):
        st.text_input(
            word(FIELDS, "negative_prompt"),
            key="playground_negative_prompt",
            help=_(LIMITS["negative_prompt"].help),
            persist_state="session",
        )
        with st.grid(2, min_column_width=150):
            _number("width", _default_text(defaults.width), step=8)
            _number("height", _default_text(defaults.height), step=8)
            _number("guidance", _default_text(defaults.guidance), step=0.5)
            _select("scheduler", SCHEDULERS)
            _number("batch_size", "1", step=1)
            _select("precision", (OWN, *PRECISIONS))
            _number("warmup_batches", "0", step=1)
        st.toggle(
            word(FIELDS, "previews"),
            key="playground_previews",
            help=_(LIMITS["previews"].help),
            persist_state="session",
        )


def _default_text(value: float | None) -> str:
    return _("the model's own: {value}").format(value=f"{value:g}" if value is not None else "-")


def _number(name: str, placeholder: str, *, step: float) -> None:
    unit = LIMITS[name].unit
    st.number_input(
        f"{word(FIELDS, name)} ({unit})" if unit else word(FIELDS, name),
        value=None,
        step=step,
        format="%g" if isinstance(step, float) else "%d",
        key=PREFIX + name,
        placeholder=placeholder,
        help=_(LIMITS[name].help),
        persist_state="session",
    )


def _select(name: str, options: Sequence[str]) -> None:
    labels = {value: value or _("the device's own") for value in options}
    st.selectbox(
        word(FIELDS, name),
        options,
        format_func=labels.__getitem__,
        key=PREFIX + name,
        help=_(LIMITS[name].help),
        persist_state="session",
    )
