"""Tables, reports and Markdown say what the records say, and harm nobody who opens them."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from data.exports import drawing
from data.exports.formats import SUFFIXES, write
from data.exports.markdown import to_markdown
from data.exports.report import to_html
from data.exports.selection import ChosenRun, ExportError, choose
from data.exports.tables import COLUMNS, rows, to_csv, to_json, to_parquet
from runners.errors import RecordError
from runners.records import Artifact, Audit, Conditions, DeviceInfo, Metric, Record, Series, record_from_json
from runners.rundir import RunDir, create_run, sha256_of

HOSTILE = '<script>alert("1")</script>|@everyone `x` =1+1'


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def make_run(runs_dir: Path, batch: int = 1, value: float = 2.5, device: str = "A GPU", **changes: Any) -> RunDir:
    run = create_run(runs_dir, "text-to-image", {})
    values: dict[str, Any] = {
        "run_id": run.run_id,
        "workload": "text-to-image",
        "status": "ok",
        "spec": {"prompt": HOSTILE},
        "conditions": Conditions(
            workload="text-to-image",
            model="stable-diffusion-1",
            batch_size_per_device=batch,
            devices=1,
            steps=50,
            width_px=512,
            height_px=512,
            precision="fp16",
        ),
        "device": DeviceInfo(kind="cuda", name=device),
        "environment": {},
        "created_utc": "2026-11-30T12:00:00.000Z",
        "finished_utc": "2026-11-30T12:00:02.000Z",
        "series": (Series(name="loss", unit="", phase="measured", values=(3.0, float("nan"), 1.0)),),
        "metrics": (
            Metric(
                name="s_per_image",
                value=value,
                unit="s/image",
                interval=(value - 0.1, value + 0.1),
                n=9,
                higher_is_better=False,
            ),
            Metric(name="images_per_s", value=1 / value, unit="images/s", n=9, higher_is_better=True),
        ),
        "audit": Audit(sync_policy="edges", warnings=("too-few-samples",)),
    }
    run.write_record(Record(**{**values, **changes}))
    return run


def failed(runs_dir: Path) -> RunDir:
    return make_run(runs_dir, status="failed", metrics=(), series=())


def test_what_is_chosen(runs_dir: Path) -> None:
    first, second, deleted = make_run(runs_dir), make_run(runs_dir, device="Another"), make_run(runs_dir)
    broken = make_run(runs_dir)
    broken.record_path.write_text("{")
    create_run(runs_dir, "synthetic", {})
    deleted.annotate(deleted=True)
    assert [item.run.run_id for item in choose(runs_dir)] == [first.run_id, second.run_id]
    assert [item.run.run_id for item in choose(runs_dir, device="Another")] == [second.run_id]
    named = choose(runs_dir, [second.run_id, deleted.run_id])
    assert [item.run.run_id for item in named] == [second.run_id, deleted.run_id]
    for wanted in ({"workload": "synthetic"}, {"status": "failed"}):
        with pytest.raises(ExportError):
            choose(runs_dir, **wanted)  # type: ignore[arg-type]
    for run_id in (broken.run_id, "../x", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(RecordError):
            choose(runs_dir, [run_id])


def test_csv_and_parquet_hold_each_metric_with_its_conditions(runs_dir: Path) -> None:
    run = make_run(runs_dir, value=2.5)
    run.annotate(note="=HYPERLINK(1)", tags=["a"])
    failed(runs_dir)
    chosen = choose(runs_dir)
    read = list(csv.DictReader(io.StringIO(to_csv(chosen).decode())))
    assert [(row["metric"], row["value"]) for row in read] == [
        ("s_per_image", "2.5"),
        ("images_per_s", "0.4"),
        ("", ""),
    ]
    assert list(read[0]) == list(COLUMNS) and read[0]["note"] == "'=HYPERLINK(1)" and read[2]["status"] == "failed"
    table = pq.read_table(io.BytesIO(to_parquet(chosen)))
    assert table.schema.names == list(COLUMNS) and str(table.schema.field("steps").type) == "int64"
    assert table.to_pylist() == rows(chosen)
    assert table.column("interval_low").to_pylist() == [2.4, None, None]
    assert table.column("note").to_pylist()[0] == "=HYPERLINK(1)", "Parquet runs no formulas"


def test_json_holds_the_whole_record(runs_dir: Path) -> None:
    run = make_run(runs_dir)
    [item] = json.loads(to_json(choose(runs_dir)))["runs"]
    assert repr(record_from_json(item["record"])) == repr(run.record())


class _Page(HTMLParser):
    """Elements and attributes of a page; the texts between them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page_of(runs: list[ChosenRun], **more: str) -> _Page:
    page = _Page()
    page.feed(to_html(runs, **more))
    return page


def test_the_report_needs_nothing_and_runs_nothing(runs_dir: Path) -> None:
    run = make_run(runs_dir, device=HOSTILE)
    run.annotate(note=HOSTILE)
    run.images_dir.mkdir()
    image = run.images_dir / "000.png"
    Image.new("RGB", (8, 8)).save(image)
    document = json.loads(run.record_path.read_text())
    document["artifacts"] = [{"path": "images/000.png", "kind": "image", "sha256": sha256_of(image)}]
    run.record_path.write_text(json.dumps(document))
    page = page_of(choose(runs_dir), title=HOSTILE, about=HOSTILE)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "iframe", "object", "form", "base"} and {"svg", "table", "img"} <= tags
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes), tag
        assert "href" not in attributes and (attributes.get("src") or "data:image/png;").startswith("data:image/png;")
    assert "default-src 'none'" in to_html(choose(runs_dir))
    assert any(HOSTILE in text for text in page.texts), "shown as it is"


def test_the_report_shows_conditions_verdicts_and_warnings(runs_dir: Path) -> None:
    make_run(runs_dir, batch=1, value=2.0, device="First")
    make_run(runs_dir, batch=8, value=1.0, device="Second")
    failed(runs_dir)
    text = " ".join(page_of(choose(runs_dir)).texts)
    assert "Second is 2.00 times as fast as First" in text and "batches of 8" in text
    assert "stable-diffusion-1" in text and "Fewer than 6 measured batches" in text
    assert "2 s/image (1.9 to 2.1)" in text and "failed" in text


def test_an_image_outside_the_run_is_not_taken_along(runs_dir: Path, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "private.png")
    for path in ("../../private.png", "images/../../../private.png", str(tmp_path / "private.png"), "images/link.png"):
        run = make_run(runs_dir, artifacts=(Artifact(path=path, kind="image", sha256="0"),))
        run.images_dir.mkdir()
        (run.images_dir / "link.png").symlink_to(tmp_path / "private.png")
        assert "img" not in {tag for tag, _ in page_of(choose(runs_dir, [run.run_id])).elements}


def test_markdown_is_one_table_whatever_the_texts(runs_dir: Path) -> None:
    make_run(runs_dir, batch=1, device=HOSTILE)
    make_run(runs_dir, batch=8, device="two\nlines")
    failed(runs_dir)
    text = to_markdown(choose(runs_dir))
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 5
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {6}
    assert "precision: fp16" in text and "@everyone" not in text and "<script>" not in text
    assert "batch size per device" in table[0] and "2.5 s/image (2.4 to 2.6)" in text


def test_charts_are_well_formed() -> None:
    bars = [
        drawing.Bar(label=HOSTILE, value=2.0, text="2 s", interval=(1.0, float("inf"))),
        drawing.Bar(label="zero", value=0.0, text="0"),
        drawing.Bar(label="less", value=-3.0, text="-3"),
    ]
    for text in (
        drawing.bars(bars, HOSTILE),
        drawing.bars([], "nothing"),
        drawing.lines([("a", (1, 2, 3), (3.0, float("nan"), 1.0)), (HOSTILE, (1.0,), (2.0,))], "t", "steps"),
        drawing.lines([("long", tuple(range(100_000)), tuple(map(float, range(100_000))))], "t", "steps"),
    ):
        ElementTree.fromstring(text)
        assert len(text) < 60_000
    assert drawing.lines([("a", (1.0,), (float("nan"),))], "t", "steps") == ""
    assert "M" in drawing.lines([("a", (1, 2, 3), (3.0, float("nan"), 1.0))], "t", "s").split("curve")[0]


def test_every_format_is_written_whole_or_not_at_all(runs_dir: Path, tmp_path: Path) -> None:
    make_run(runs_dir)
    chosen = choose(runs_dir)
    for suffix in SUFFIXES:
        target = tmp_path / f"out{suffix.upper()}"
        write(chosen, target, runs_dir)
        assert target.stat().st_size > 100
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    for target in (
        tmp_path / "x.docx",
        tmp_path / "noend",
        tmp_path / "missing" / "x.csv",
        tmp_path / "missing" / "x.zip",
    ):
        with pytest.raises(ExportError):
            write(chosen, target, runs_dir)
