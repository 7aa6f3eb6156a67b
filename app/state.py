"""Everything that is shared between pages or readers: cached resources, the keys of the session, the address.

Whatever `st.cache_resource` returns here is one object for all sessions of the process, so it is safe for threads.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import streamlit as st

from data.measurements import Measurement
from runners.errors import SpecError
from runners.models import ModelChoice, list_models
from runners.paths import database_path, runs_dir
from runners.plausibility import marked
from runners.records import DeviceInfo, Record
from runners.rundir import RunDir, has_runs

if TYPE_CHECKING:
    from data.catalogue import BadRow, Catalogue
    from data.query_copies import QueryCopies
    from data.store import Store
    from runners.queue import RunQueue

# Session keys that more than one module uses. Widget keys of a page start with the page's name.
PLAYGROUND_RUN = "playground_run"
RUN_PARAMETER = "run"


def store() -> "Store":
    """The one owner of the database in this process, with what the run folders held a moment ago.

    Raises:
        StoreError: The file is open in another process, or cannot be opened.
    """
    _take_in(database_path(), runs_dir())
    return _store(database_path(), runs_dir())


def query_copy() -> Path:
    """A copy of the database for a question of the reader; at most a few seconds old.

    Raises:
        StoreError: The database is in other hands, or cannot be opened.
    """
    store()
    return _query_copies(database_path(), runs_dir()).latest()


def run_ended() -> None:
    """Makes the next look at the store take in the run that has just ended."""
    _take_in.clear()


def own_measurements(workload: str, metric: str, *, timed_regions: Sequence[str], limit: int) -> list[Measurement]:
    """The reader's own newest result of each device and configuration, newest first.

    Raises:
        StoreError: The database is in other hands, or cannot be opened.
    """
    if not has_runs(runs_dir()):
        return []  # Nothing to ask the database for: a visitor's first page does without opening one.
    opened = store()
    return _newest(opened, opened.generation, workload, metric, tuple(timed_regions), limit)


def queue() -> "RunQueue":
    """The queue of runs; its processes start with the first run, not here."""
    return _queue(runs_dir())[0]


@st.cache_data(ttl=30, max_entries=1, show_spinner=False)
def storage_problem() -> SpecError | None:
    """Why nothing can be kept, or None: asked before anybody's work is taken."""
    try:
        queue().check_writable()
    except SpecError as error:
        return error
    return None


@st.cache_data(ttl=5, max_entries=1, show_spinner=False)
def look_after_queue() -> None:
    """Brings the dispatcher back where it was killed while runs wait or go on."""
    queue().ensure_dispatcher()


def catalogue() -> "Catalogue":
    """The published numbers: every row that can be used."""
    return _catalogue()[0]


def catalogue_problems() -> list["BadRow"]:
    """The rows that cannot be used, of whoever has edited the CSV files."""
    return _catalogue()[1]


@st.cache_data(ttl=60, max_entries=1, show_spinner=False)
def device() -> DeviceInfo:
    """The accelerator that runs would most likely use."""
    from runners.environment import likely_device

    return likely_device()


@st.cache_data(ttl=10, max_entries=1, show_spinner=False)
def models() -> list[ModelChoice]:
    """The models that can be chosen; looked up again soon, since a download may have ended."""
    return list_models()


@st.cache_data(max_entries=512, show_spinner=False)
def finished_record(run_path: Path) -> Record:
    """The record of a run that has ended; it never changes again."""
    return marked(RunDir(run_path).record())


def choose_from_address(key: str, options: Sequence[str], default: str | None) -> None:
    """Gives a widget its first value from the address (`?key=option`), before the widget is drawn.

    Streamlit's own `bind="query-params"` writes the label that the reader sees; ours are translated, and a link must
    open the same in every language.
    """
    if key not in st.session_state:
        asked = st.query_params.get(key)
        st.session_state[key] = asked if asked in options else default


def keep_in_address(key: str, default: str | None) -> None:
    """Writes a widget's value into the address, or removes it where it is the default; call after drawing."""
    value = st.session_state.get(key)
    if value is None or value == default:
        if key in st.query_params:
            del st.query_params[key]
    elif st.query_params.get(key) != value:
        st.query_params[key] = value


@st.cache_data(max_entries=64, show_spinner=False)
def _newest(
    _opened: "Store", generation: int, workload: str, metric: str, timed_regions: tuple[str, ...], limit: int
) -> list[Measurement]:
    # `generation` is another one as soon as the index has changed.
    return _opened.newest_measurements(workload=workload, name=metric, timed_regions=timed_regions, limit=limit)


@st.cache_resource(show_spinner=False)
def _catalogue() -> tuple["Catalogue", list["BadRow"]]:
    # It changes with the program only, or by an editor of the files, who starts the program again.
    from data.catalogue import read_catalogue

    return read_catalogue()


@st.cache_resource(show_spinner=False, on_release=lambda opened: opened.close())
def _store(database: Path, runs: Path) -> "Store":
    from data.store import Store

    return Store(database, runs)


@st.cache_resource(show_spinner=False, on_release=lambda copies: copies.close())
def _query_copies(database: Path, runs: Path) -> "QueryCopies":
    from data.query_copies import QueryCopies

    return QueryCopies(_store(database, runs))


@st.cache_data(ttl=3, max_entries=4, show_spinner=False)
def _take_in(database: Path, runs: Path) -> None:
    # Every page asks for the store, often several times a run: looking at all folders once in a while is enough.
    _store(database, runs).ingest_changed()


@st.cache_resource(show_spinner=False, on_release=lambda opened: opened[1] and opened[1].close())
def _queue(runs: Path) -> tuple["RunQueue", IO[str] | None]:
    from runners.queue import RunQueue

    opened = RunQueue(runs)
    try:
        # Held as long as this process lives: the generation worker is kept for readers, not for nobody.
        return opened, opened.watch()
    except SpecError:
        return opened, None  # The folder cannot be written; whoever submits a run is told why.
