# SPDX-License-Identifier: Apache-2.0
"""The examples in the README of the package are true."""
import doctest
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def test_the_readme_shows_what_happens():
    result = doctest.testfile(os.path.join(ROOT, "README.md"),
                              module_relative=False)
    assert result.attempted >= 10
    assert result.failed == 0
