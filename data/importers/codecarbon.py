"""codecarbon's `emissions.csv`: one row for each tracked stretch of work, energy in kWh, power in W.

The energy is that of the whole machine unless the row says "process", and most of it may be estimated from constants.
Place, host and ids are not kept. Some versions pad the cells with blanks.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from data.importers.draft import MAX_RUNS, Draft, ImportRefused, metric, present, utc_text
from data.importers.privacy import clean
from data.importers.reading import Source, cell_number, csv_rows

KWH_J = 3_600_000
MAX_POWER_W = 1_000_000
"""More than any machine draws."""
_ENERGIES = ("energy_consumed", "gpu_energy", "cpu_energy", "ram_energy")
_KINDS = (("nvidia", "cuda"), ("amd", "rocm"), ("radeon", "rocm"), ("gaudi", "hpu"), ("apple", "mps"))


def is_ours(start: str) -> bool:
    """Whether the header is that of emissions.csv."""
    names = {name.strip() for name in start.partition("\n")[0].split(",")}
    return {"timestamp", "project_name", "duration", "energy_consumed"} <= names


def read(source: Source) -> list[Draft]:
    """One run for each row.

    Raises:
        ImportRefused: A row is cut short, its numbers are impossible or disagree, or there are too many.
    """
    drafts: list[Draft] = []
    for line, row in csv_rows(source):
        drafts.append(_draft(source, line, row))
        if len(drafts) > MAX_RUNS:
            raise ImportRefused("import-too-many-runs", file=source.name, count=f"> {MAX_RUNS}", maximum=MAX_RUNS)
    if not drafts:
        raise ImportRefused("import-no-numbers", file=source.name)
    return drafts


def _draft(source: Source, line: int, row: Mapping[str, str]) -> Draft:
    duration_s = _checked(source, line, row, "duration", most=1e9)
    energies = {name: _checked(source, line, row, name, most=1e9) for name in _ENERGIES if row.get(name)}
    total = energies.get("energy_consumed")
    if not duration_s or total is None:
        raise ImportRefused("import-row-empty", file=source.name, line=line)
    parts = sum(energies.get(name, 0.0) for name in _ENERGIES[1:])
    pue = cell_number(row.get("pue")) or 1.0
    if parts and min(abs(total / parts - 1), abs(total / (parts * pue) - 1)) > 0.02:
        raise ImportRefused("import-energy-disagrees", file=source.name, line=line)
    finished = _time(source, line, row.get("timestamp", ""))
    name, kind, devices = _device(row)
    power_w = total * KWH_J / duration_s
    stated_w = sum(cell_number(row.get(name)) or 0.0 for name in ("cpu_power", "gpu_power", "ram_power"))
    # The stated power is that of the last interval only, so it shows another unit and nothing finer.
    if power_w > MAX_POWER_W or (stated_w > 0 and not 1 / 50 < power_w / stated_w < 50):
        raise ImportRefused("import-cell", file=source.name, line=line, what="energy_consumed", value=f"{total} kWh")
    return Draft(
        title=clean(row.get("project_name", "")),
        conditions={"devices": devices},
        device_name=name,
        device_kind=kind,
        started_utc=utc_text(finished - duration_s),
        finished_utc=utc_text(finished),
        metrics=present(
            metric("energy_j", total * KWH_J, "J", better="lower"),
            metric("mean_power_w", power_w, "W", better="lower"),
            metric("duration_s", duration_s, "s", better="lower"),
            *(
                metric(f"{part}_j", energies[part] * KWH_J, "J", better="lower")
                for part in _ENERGIES[1:]
                if part in energies
            ),
            metric("emissions_kg", cell_number(row.get("emissions")), "kg", better="lower"),
        ),
        environment={
            key: clean(value)
            for key, column in (("os", "os"), ("python", "python_version"), ("cpu", "cpu_model"))
            if (value := row.get(column))
        },
        details={key: clean(row[key]) for key in ("tracking_mode", "codecarbon_version", "pue") if row.get(key)},
        warnings=(
            "import-local-time",
            *(() if row.get("tracking_mode") == "process" else ("import-energy-whole-machine",)),
        ),
    )


def _checked(source: Source, line: int, row: Mapping[str, str], name: str, most: float) -> float:
    number = cell_number(row.get(name))
    if number is None or not 0 <= number <= most:
        value = str(row.get(name))[:40]
        raise ImportRefused("import-cell", file=source.name, line=line, what=name, value=value)
    return number


def _time(source: Source, line: int, stamp: str) -> float:
    """The column holds the local time without a zone; it is read as UTC, and a warning says so."""
    try:
        moment = datetime.fromisoformat(stamp)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = 0.0
    if utc_text(seconds) is None:
        raise ImportRefused("import-cell", file=source.name, line=line, what="timestamp", value=stamp[:40])
    return seconds


def _device(row: Mapping[str, str]) -> tuple[str | None, str | None, int | None]:
    """Name, kind and number of the devices: "8 x NVIDIA H100"; the processor where the machine has no other."""
    gpu = row.get("gpu_model", "")
    match = re.fullmatch(r"(?:(\d{1,4}) ?[x×] ?)?([^|;]+)", gpu)
    if match:
        name = clean(match[2])
        kind = next((kind for word, kind in _KINDS if word in name.lower()), None)
        return name, kind, int(match[1]) if match[1] else None
    if not gpu and row.get("cpu_model"):
        return clean(row["cpu_model"]), "cpu", None
    return None, None, None
