"""DuckDB, by its package of Python: the C stream interface, as it has no reader of
Arrow IPC. Its types are its own: values are compared, not schemas."""

import duckdb

import columns
from python.capsules import Package


class DuckDB(Package):
    name, version = "DuckDB", duckdb.__version__
    forms = codecs = ()
    difference = staticmethod(columns.difference_of_values)
    keeps_python = True
    errors = Exception

    def again(self, given):
        self.base = duckdb.connect()  # an error may end the one before
        return self.base.from_arrow(given)
