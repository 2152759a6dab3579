"""What all tests share: where the public data lie, a browser, and how hypothesis runs."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("LABEL_AUDIT_SHARED") or ROOT.parent / "shared")

# Cores are slow and shared where the tests run: no deadline on an example. CI draws the same examples each time.
settings.register_profile("tests", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("tests")


def missing(what: str) -> None:
    """Skip the test for want of ``what``; with LABEL_AUDIT_STRICT set (as CI does) fail it."""
    if os.environ.get("LABEL_AUDIT_STRICT"):
        pytest.fail(f"LABEL_AUDIT_STRICT is set, but {what}")
    pytest.skip(what)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked ``shared_data`` run only where the data are."""
    if item.get_closest_marker("shared_data") and not SHARED.is_dir():
        missing(f"the public data sets are not in {SHARED} (set LABEL_AUDIT_SHARED to their folder)")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the public data sets."""
    if not SHARED.is_dir():
        missing(f"the public data sets are not in {SHARED} (set LABEL_AUDIT_SHARED to their folder)")
    return SHARED


@pytest.fixture
def endpoint_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A key for endpoints in the environment, and nothing else of theirs."""
    from tests.relabel_kit import KEY

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("ADJUDICATOR_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return KEY


@pytest.fixture(scope="session")
def browser_session() -> Iterator[Any]:
    """One headless Chromium for the whole run; use the ``browser`` fixture."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver_program = shutil.which("chromedriver")
    if program is None or driver_program is None:
        missing("Chromium and its driver are not installed (apt install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    quiet = (
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "disable-quic",
    )
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", *quiet):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_program))
    yield driver
    driver.quit()


@pytest.fixture
def browser(browser_session: Any) -> Iterator[Any]:
    """A selenium driver of headless Chromium: light colours, 1200 x 900, nothing in its console log.

    ``browser.get(path.as_uri())`` opens a report. For dark colours, a phone or print:
    ``browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme",
    "value": "dark"}]})``, ``browser.set_window_size(500, 900)``, ``browser.print_page()``.
    """
    features = [{"name": "prefers-color-scheme", "value": "light"}]
    browser_session.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    browser_session.set_window_size(1200, 900)
    browser_session.get("about:blank")
    browser_session.get_log("browser")
    yield browser_session
    browser_session.get("about:blank")
