# SPDX-License-Identifier: Apache-2.0
"""The cost of a query without a server: runs it TIMES times on each of some
connections at once, ignores the rows, and prints the milliseconds of CPU of a
query.

Usage: driver.py CONNECTIONS TIMES SQL LIBRARY ENTRYPOINT KEY DATABASE
"""
import sys
import threading
import time

import pyarrow
from adbc_driver_manager import AdbcConnection, AdbcDatabase, AdbcStatement


def run(connection, sql, times):
    for _ in range(times):
        statement = AdbcStatement(connection)
        statement.set_sql_query(sql)
        handle, _ = statement.execute_query()
        reader = pyarrow.RecordBatchReader._import_from_c(handle.address)
        for _ in reader:
            pass
        reader.close()
        statement.close()


def main(count, times, sql, library, entrypoint, key, path):
    more = {"entrypoint": entrypoint} if entrypoint else {}
    database = AdbcDatabase(driver=library, **{key: path}, **more)
    connections = [AdbcConnection(database) for _ in range(int(count))]
    for connection in connections:
        run(connection, sql, 1)
    threads = [threading.Thread(target=run, args=(connection, sql, int(times)))
               for connection in connections]
    begun = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.process_time() - begun
    print(seconds * 1e3 / int(times) / len(threads))


if __name__ == "__main__":
    main(*sys.argv[1:])
