#!/usr/bin/env python3
"""Makes flights.csv of the first flights, and flights.parquet of those, with
Arrow. Usage: make_flights.py FLIGHTS.CSV.ZIP FOLDER"""
import itertools
import sys
import zipfile

import pyarrow.csv
import pyarrow.parquet

ROWS = 60_000

archive, folder = sys.argv[1:]
with zipfile.ZipFile(archive).open("flights.csv") as flights, \
        open(f"{folder}/flights.csv", "wb") as out:
    out.writelines(itertools.islice(flights, 1 + ROWS))
pyarrow.parquet.write_table(pyarrow.csv.read_csv(f"{folder}/flights.csv"),
                            f"{folder}/flights.parquet", row_group_size=9_000)
