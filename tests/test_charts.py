"""Figures from plain values: lengths, labels, looks; and numbers as texts."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app import charts
from app.charts import Bar
from runners.paths import PROJECT_DIR

LIGHT, DARK = "#ffffff", "#12171d"


def bar(**values: Any) -> Bar:
    plain = {
        "title": "Gaudi2",
        "conditions": "batch 8",
        "value": 1.0,
        "value_text": "1 s",
        "mark": "",
        "tone": "caveats",
    }
    return Bar(**{**plain, **values})


class TestBars:
    def test_lengths_are_the_values_and_a_missing_value_has_no_bar(self) -> None:
        figure = charts.bars([bar(value=2.5), bar(value=None, value_text="not available"), bar(value=0.925)])
        assert list(figure.data[0].x) == [2.5, None, 0.925]
        assert "not available" in [note.text for note in figure.layout.annotations]

    def test_each_row_says_who_under_which_conditions_and_what_of_it(self) -> None:
        figure = charts.bars([bar(mark="2.84× · batch 8 against 1")])
        shown = " ".join(note.text for note in figure.layout.annotations)
        assert "<b>Gaudi2</b>" in shown
        assert "batch 8" in shown
        assert "2.84× · batch 8 against 1" in shown

    def test_the_colour_follows_the_verdict(self) -> None:
        tones = list(charts.TONE_COLOURS)
        figure = charts.bars([bar(tone=tone) for tone in tones])
        assert list(figure.data[0].marker.color) == list(charts.TONE_COLOURS.values())

    def test_own_results_look_different(self) -> None:
        figure = charts.bars([bar(), bar(look="own")])
        assert list(figure.data[0].marker.pattern.shape) == ["", "/"]

    def test_an_interval_is_drawn_where_there_is_one_and_nowhere_else(self) -> None:
        assert len(charts.bars([bar()]).data) == 1
        [_bars, interval] = charts.bars([bar(), bar(value=2.0, interval=(1.8, 2.3))]).data
        assert (list(interval.x), list(interval.y)) == ([2.0], [-1])
        assert list(interval.error_x.array) == pytest.approx([0.3])
        assert list(interval.error_x.arrayminus) == pytest.approx([0.2])

    def test_an_own_bar_far_longer_than_the_published_ones_is_cut_off_and_says_so(self) -> None:
        """A CPU that takes two minutes an image must not squash bars of one to three seconds."""
        slow = bar(value=117.2, value_text="117.2 s/image", look="own", interval=(117.0, 117.4))
        figure = charts.bars([bar(value=3.25), bar(value=0.925), slow], cut_note="Bar cut off")
        assert list(figure.data[0].x) == [3.25, 0.925, 3.25 * charts.LONGEST_OWN]
        assert figure.data[0].text[2] == "<b>117.2 s/image</b>"
        assert figure.layout.xaxis.range[1] < 3.25 * 2.5
        assert [note.y for note in figure.layout.annotations if note.text == "Bar cut off"] == [-2]
        assert {round(shape.y0 + shape.y1) for shape in figure.layout.shapes} == {-4}
        assert len(figure.data) == 1

    def test_the_note_under_a_bar_has_room_above_the_next_row(self) -> None:
        rows = [bar(), bar(value=9.0, look="own"), bar(look="own")]
        plain, figure = charts.bars([bar(), bar(), bar()]), charts.bars(rows)
        assert list(plain.data[0].y) == [0, -1, -2]
        assert figure.data[0].y[1] - figure.data[0].y[2] > 1.2
        assert figure.layout.height > plain.layout.height

    def test_nothing_is_cut_off_where_lengths_are_alike_or_nothing_is_published(self) -> None:
        for rows in (
            [bar(value=3.0), bar(value=3.7, look="own")],
            [bar(value=117.2, look="own")],
            [bar(value=9.0), bar()],
        ):
            figure = charts.bars(rows, cut_note="Bar cut off")
            assert list(figure.data[0].x) == [row.value for row in rows]
            assert not figure.layout.shapes
            assert "Bar cut off" not in [note.text for note in figure.layout.annotations]

    def test_names_from_outside_are_not_markup(self) -> None:
        figure = charts.bars([bar(title="<b>bold</b> & <a href='x'>GPU</a>")])
        assert "&lt;b&gt;" in figure.layout.annotations[0].text

    def test_without_rows_there_is_still_a_figure(self) -> None:
        assert len(charts.bars([]).data[0].x or ()) == 0

    @pytest.mark.parametrize("background", [LIGHT, DARK])
    @pytest.mark.parametrize("tone", charts.TONE_COLOURS)
    def test_verdict_colours_can_be_seen_on_both_backgrounds(self, tone: charts.Tone, background: str) -> None:
        """WCAG 2.2 AA asks for 3:1 where something is drawn."""
        assert _contrast(charts.TONE_COLOURS[tone], background) >= 3


class TestSamples:
    def test_every_sample_is_drawn_and_what_is_not_a_number_leaves_a_gap(self) -> None:
        figure = charts.samples({"loss": [3.0, math.nan, 1.0]}, x_title="Sample", y_title="")
        assert list(figure.data[0].y) == [3.0, None, 1.0]
        assert list(figure.data[0].x) == [1, 2, 3]


class TestStages:
    def test_parts_of_the_whole(self) -> None:
        figure = charts.stages({"Denoising": 3.0, "VAE": 1.0}, unit="s")
        assert list(figure.data[0].x) == [3.0, 1.0]
        assert list(figure.data[0].text) == ["<b>3 s (75%)</b>", "<b>1 s (25%)</b>"]


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (520.2, "520.2"),
            (981.6, "981.6"),
            (1835.8, "1,835.8"),
            (0.925, "0.925"),
            (2.63, "2.63"),
            (8.07, "8.07"),
            (0, "0"),
            (100.0, "100"),
            (0.000123456, "0.000123"),
            (math.inf, "inf"),
        ],
    )
    def test_published_numbers_stay_as_printed(self, value: float, text: str) -> None:
        assert charts.format_number(value) == text

    @pytest.mark.parametrize(("ratio", "text"), [(2.8432, "2.84×"), (1.0, "1.00×"), (0.0123, "0.012×")])
    def test_ratios(self, ratio: float, text: str) -> None:
        assert charts.format_ratio(ratio) == text

    @pytest.mark.parametrize(
        ("low", "high", "text"),
        [(0.4902, 0.4999, "0.4902 – 0.4999"), (10.0, 14.0, "10.0 – 14.0"), (2.0, 2.0, "2.000 – 2.000")],
    )
    def test_intervals_have_the_decimals_that_mean_something(self, low: float, high: float, text: str) -> None:
        assert charts.format_interval(low, high) == text


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_chart_waits_while_another_thread_loads_pandas(tmp_path: Path) -> None:
    """Plotly looks into what is loaded of pandas; half of it made a page fail. Here it is a slow stand-in."""
    (tmp_path / "pandas.py").write_text(
        "import time\nstarted = True\ntime.sleep(1)\nclass Series: ...\nclass Index: ...\nclass DataFrame: ...\n"
    )
    code = (
        "import sys, threading, time\n"
        "from app import charts\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "threading.Thread(target=lambda: __import__('pandas')).start()\n"
        "while not hasattr(sys.modules.get('pandas'), 'started'): time.sleep(0.001)\n"
        "assert not hasattr(sys.modules['pandas'], 'Series')\n"
        "charts.samples({'loss': [1.0, 2.0]}, x_title='Sample', y_title='Loss')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT_DIR, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_measured_samples_go_on_after_the_warm_up_and_a_loss_need_not_show_zero() -> None:
    figure = charts.samples(
        {"warm-up": [3.0, 2.0], "measured": [1.0, 1.1]},
        x_title="Sample",
        y_title="Loss",
        firsts=[1, 3],
        from_zero=False,
    )
    assert [list(trace.x) for trace in figure.data] == [[1, 2], [3, 4]]
    assert figure.layout.yaxis.rangemode == "normal"
