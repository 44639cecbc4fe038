# SPDX-License-Identifier: Apache-2.0
"""The table of a pool's options in docs/adbc.md has the defaults of the package."""
import inspect

import pytest

import driver_page as page
import uvarrow.adbc

DEFAULTS = inspect.signature(uvarrow.adbc.Pool).parameters
ROWS = page.table("in `struct uva_adbc_pool_options`", "`Pool()`", "default",
                  "meaning")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["`Pool()`"])
def test_a_default(row):
    name = page.code(row["`Pool()`"].split(",")[0])
    default = DEFAULTS[name].default
    text = row["default"].replace(",", "")
    assert default == {"none": None, "as many": None, "no": False}.get(
        text, float(text.removesuffix(" s")) if text[0].isdigit() else text)


def test_all_limits_are_there():
    named = {page.code(name.strip()) for row in ROWS
             for name in row["`Pool()`"].split(",")}
    assert named == set(DEFAULTS) - {"driver", "entrypoint"}
