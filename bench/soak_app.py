"""The app as `bench.soak` kills it: its real pages, run again and again without a browser, until the process ends."""

import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

from runners.paths import PROJECT_DIR

PAGES = ("app/views/compare.py", "app/views/playground.py", "app/views/explorer.py")


def main() -> None:
    """Looks at every page in turn; a page that raises ends the process with its traceback."""
    app = AppTest.from_file(str(PROJECT_DIR / "streamlit_app.py"), default_timeout=60).run()
    while True:
        for page in PAGES:
            app.switch_page(page).run()
            if app.exception:
                raise SystemExit(f"{Path(page).name}: {[item.value for item in app.exception]}")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
