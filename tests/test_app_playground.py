"""Gallery, files dropped into the form, pairs, and what can be done with an image."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import gallery, side_by_side
from app.gallery import PER_PAGE, Shown, zipped
from runners.paths import runs_dir
from runners.queue import RunQueue
from runners.rundir import RunDir, create_run, list_runs
from tests.test_app_views import EXPLORER, PLAYGROUND, app, make_image_run, texts
from tests.test_png_settings import A1111, png

__all__ = ["app"]  # the fixture


def names(at: AppTest) -> list[str]:
    """The prompts in the gallery, in order; each card ends in a menu of its own."""
    keys = [str(menu.key) for menu in at.get("menu_button") if str(menu.key).startswith("menu-gallery-")]
    runs = {run.run_id: str(run.request().fields["prompt"]) for run in list_runs(runs_dir())}
    return [runs[key.removeprefix("menu-gallery-")[:36]] for key in keys]


def menu_of(at: AppTest, run: RunDir) -> Any:
    return at.get_by_key(f"menu-gallery-{run.run_id}-0")


def open_playground(app: AppTest) -> AppTest:
    at = app.run().switch_page(PLAYGROUND).run()
    assert not at.exception
    return at


class TestGallery:
    def test_every_word_of_a_search_must_be_found(self, app: AppTest) -> None:
        for prompt in ("a red cat", "a red house", "a blue CAT"):
            make_image_run(prompt)
        at = open_playground(app)
        assert names(at) == ["a blue CAT", "a red house", "a red cat"], "newest first"
        at.text_input(key=gallery.SEARCH_KEY).set_value("cat red").run()
        assert names(at) == ["a red cat"]
        at.text_input(key=gallery.SEARCH_KEY).set_value("no such thing").run()
        assert names(at) == []
        assert "No image matches" in texts(at)

    def test_favourites_are_kept_and_found(self, app: AppTest) -> None:
        kept, _other = make_image_run("keep me"), make_image_run("not me")
        at = open_playground(app)
        at.button(key=f"star-{kept.run_id}-0").click().run()
        assert kept.annotations()["favourite"] is True
        at.toggle(key=gallery.FAVOURITES_KEY).set_value(True).run()
        assert names(at) == ["keep me"]
        at.button(key=f"star-{kept.run_id}-0").click().run()
        assert names(at) == []

    def test_what_is_deleted_can_be_brought_back(self, app: AppTest) -> None:
        run, _other = make_image_run("goes"), make_image_run("stays")
        at = open_playground(app)
        menu_of(at, run).click("delete").run()
        assert names(at) == ["stays"]
        assert run.annotations()["deleted"] is True
        assert (run.images_dir / "000.png").exists(), "its files stay"
        at.switch_page(EXPLORER).run()
        assert list(at.dataframe[0].value["Prompt"]) == ["stays"]
        at.switch_page(PLAYGROUND).run()
        at.button(key="gallery_undo").click().run()
        assert names(at) == ["stays", "goes"]

    def test_more_than_a_page_can_be_turned(self, app: AppTest) -> None:
        for number in range(PER_PAGE + 3):
            make_image_run(f"image no{number}")
        at = open_playground(app)
        assert len(names(at)) == PER_PAGE
        at.get_by_key(gallery.PAGE_KEY).select(2).run()
        assert names(at) == ["image no2", "image no1", "image no0"]
        at.text_input(key=gallery.SEARCH_KEY).set_value("image no20").run()
        assert names(at) == ["image no20"], "a search begins at its first page"

    def test_the_zip_holds_the_files_as_they_are(self) -> None:
        run = make_image_run("a cat")
        path = run.images_dir / "000.png"
        shown = [Shown(run, run.record(), 0, path, favourite=False)]
        with zipfile.ZipFile(io.BytesIO(zipped(shown))) as archive:
            assert archive.namelist() == [f"{run.run_id}-000.png"]
            assert archive.read(archive.namelist()[0]) == path.read_bytes()


class TestWhatCanBeDone:
    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        calls: list[tuple[dict[str, Any], dict[str, Any]]] = []

        def submit(_self: RunQueue, workload: str, fields: dict[str, Any], **rest: Any) -> RunDir:
            calls.append((fields, rest))
            return create_run(runs_dir(), workload, fields, source=rest["source"], group_id=rest.get("group_id"))

        monkeypatch.setattr(RunQueue, "submit", submit)
        monkeypatch.setattr(RunQueue, "ensure_dispatcher", lambda _self: None)
        return calls

    def test_again_fills_the_form(self, app: AppTest) -> None:
        run = make_image_run("a cat")
        at = open_playground(app)
        at.text_area(key="playground_prompt").set_value("something else").run()
        menu_of(at, run).click("again").run()
        assert at.text_area(key="playground_prompt").value == "a cat"
        assert at.text_input(key="playground_seed").value == "7"

    def test_varying_generates_from_another_seed(self, app: AppTest, asked: list[Any]) -> None:
        run = make_image_run("a cat")
        at = open_playground(app)
        menu_of(at, run).click("vary").run()
        assert not at.exception
        [(fields, rest)] = asked
        assert rest["source"] == "playground"
        assert (fields["prompt"], fields["images"], fields["batch_size"]) == ("a cat", 1, 1)
        assert fields["seed"] != 7
        assert at.text_input(key="playground_seed").value == str(fields["seed"])

    def test_one_click_makes_a_benchmark_of_it(self, app: AppTest, asked: list[Any]) -> None:
        run = make_image_run("a cat")
        menu_of(open_playground(app), run).click("benchmark").run()
        [(fields, rest)] = asked
        assert rest["source"] == "benchmarks"
        assert (fields["images"], fields["warmup_batches"], fields["previews"]) == (80, 2, False), "8 a batch, 8 + 2"

    def test_how_it_is_made_again_is_shown(self, app: AppTest) -> None:
        run = make_image_run("it's $5")
        at = menu_of(open_playground(app), run).click("how").run()
        assert not at.exception
        assert "python -m runners run text-to-image" in texts(at)

    def test_a_pair_differs_in_one_field_only(self, app: AppTest, asked: list[Any]) -> None:
        at = open_playground(app)
        at.selectbox(key=side_by_side.FIELD_KEY).set_value("guidance").run()
        at.button(key="playground_side_start").click().run()
        assert "differs from the one in the form" in texts(at)
        assert asked == []
        at.number_input(key=f"{side_by_side.VALUE_KEY}_guidance").set_value(9.0).run()
        at.button(key="playground_side_start").click().run()
        assert not at.exception
        (first, rest), (second, other_rest) = asked
        assert {**first, "guidance": 9.0} == second
        assert rest["group_id"] == other_rest["group_id"] is not None
        assert first["previews"] is False
        with pytest.raises(KeyError):
            at.button(key="playground_none")

    def test_a_pair_with_an_impossible_value_starts_nothing(self, app: AppTest, asked: list[Any]) -> None:
        at = open_playground(app)
        at.selectbox(key=side_by_side.FIELD_KEY).set_value("steps").run()
        at.number_input(key=f"{side_by_side.VALUE_KEY}_steps").set_value(100_000).run()
        at.button(key="playground_side_start").click().run()
        assert "between 1 and 500" in texts(at)
        assert asked == []


class TestDroppedFiles:
    def drop(self, app: AppTest, content: bytes) -> AppTest:
        at = open_playground(app)
        at.get_by_key("playground_png").upload("image.png", content, "image/png").run()
        assert not at.exception
        return at

    def test_its_settings_are_taken_over_and_the_rest_is_named(self, app: AppTest) -> None:
        at = self.drop(app, png(parameters=A1111))
        assert at.text_area(key="playground_prompt").value.startswith("a red fox")
        assert at.number_input(key="playground_steps").value == 28
        assert at.text_input(key="playground_seed").value == "4294967295"
        assert at.selectbox(key="playground_scheduler").value == "DPM++ 2M"
        assert at.selectbox(key="playground_weights").value == "bundled", "what the file does not say stays"
        assert any("AUTOMATIC1111" in item.value for item in at.success)
        assert "dreamy_v1" in texts(at)

    def test_a_file_without_settings_says_so(self, app: AppTest) -> None:
        at = self.drop(app, png())
        assert "says nothing about how its image was made" in texts(at)
        assert at.text_area(key="playground_prompt").value

    def test_a_file_of_another_kind_says_so(self, app: AppTest) -> None:
        assert "no PNG file" in texts(self.drop(app, b"\xff\xd8\xff\xe0"))


def test_ours_come_back_whole(app: AppTest, tmp_path: Path) -> None:
    from runners.images import parameters_text

    text = parameters_text(
        prompt="a moon",
        negative_prompt="",
        steps=9,
        scheduler="Euler",
        guidance=2.5,
        seed=1,
        width_px=64,
        height_px=64,
        model="bundled",
        extra={"Precision": "fp32", "Version": "LikeForLike"},
    )
    at = TestDroppedFiles().drop(app, png(parameters=text))
    assert at.selectbox(key="playground_precision").value == "fp32"
    assert any("LikeForLike" in item.value for item in at.success)
    assert "Not taken over" not in texts(at)
