import importlib.util

import pytest

from tests.conftest import ROOT


def measure(rows):
    spec = importlib.util.spec_from_file_location("relabel_memory", ROOT / "benchmarks" / "relabel_memory.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.measure(rows)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows():
    """What a row leaves in memory must be next to nothing: its prompt and reply alone are over 5 kB.

    The readers' buffers fill up with the first rows, so both sizes are beyond that.
    """
    small, large = measure(8_000), measure(40_000)
    assert large["peak"] - small["peak"] < 32_000 * 2_000 / 1e6
    assert large["peak"] < 500
