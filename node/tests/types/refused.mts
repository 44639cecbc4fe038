// SPDX-License-Identifier: Apache-2.0
// Mistakes that the types of the package must refuse.
import { Batch, Pool, Session, Stream, file, fromBatches, fromIPC, fromPointer,
  merge } from "uvarrow";
import { columnFromData, tableFromBatches } from "uvarrow/flechette";

// @ts-expect-error Pool and Session have it in common, and JavaScript has not
import { Queries } from "uvarrow";

const pool = new Pool("sqlite:a.db");
const stream = pool.query("SELECT 1");
declare const batch: Batch;

// @ts-expect-error batches come from streams
new Batch();
// @ts-expect-error streams come from sources
new Stream();
// @ts-expect-error sessions come from pools
new Session();
// @ts-expect-error what it opens
new Pool();
// @ts-expect-error no such option
new Pool({ uri: "a", connection: 2 });
// @ts-expect-error options of a driver are texts
new Pool({ options: { a: 1 } });
// @ts-expect-error no statement
pool.query();
// @ts-expect-error a symbol is no parameter
pool.query("SELECT ?", [Symbol("a")]);
// @ts-expect-error parameters are not one value
pool.query("SELECT ?", 1);
// @ts-expect-error the signal, not its controller
pool.query("SELECT 1", [], { signal: new AbortController() });
// @ts-expect-error no such mode
void pool.ingest("a", stream, { mode: "truncate" });
// @ts-expect-error texts are no batches
void pool.ingest("a", ["b"]);
// @ts-expect-error commits are of sessions
void pool.commit();
// @ts-expect-error rows are of its batches
stream.numRows;
// @ts-expect-error it is asynchronous
for (const each of stream) void each;
// @ts-expect-error a map gives batches
stream.map((each) => each.numRows);
// @ts-expect-error retries are not asynchronous
stream.retry(async () => stream);
// @ts-expect-error a limit is a number
stream.limit("10");
// @ts-expect-error milliseconds, by name
stream.timeout(100);
// @ts-expect-error no such format
void stream.pipeTo(process.stdout, { format: "parquet" });
// @ts-expect-error Arrow IPC has no header
stream.toIPC({ header: true });
// @ts-expect-error no such codec
batch.toIPC({ compression: "gzip" });
// @ts-expect-error it is not asynchronous
batch.toIPC().then;
// @ts-expect-error the buffers are not replaced
batch.data.buffers[0] = new Uint8Array(1);
// @ts-expect-error batches, not their stream
tableFromBatches(stream);
// @ts-expect-error the data, not the batch
columnFromData(batch);
// @ts-expect-error no such option
tableFromBatches(batch, { useDates: true });
// @ts-expect-error several columns, by an array
batch.select("a");
// @ts-expect-error a mask has a value for each row
batch.filter((row: number) => row > 1);
// @ts-expect-error texts are no masks
stream.filter(() => "yes");
// @ts-expect-error the catalog is read at once
pool.objects({ window: 2 });
// @ts-expect-error a batch has what it has
batch.numRows = 1;
// @ts-expect-error addresses are of 64 bits
fromPointer(1234);
// @ts-expect-error texts are no bytes
fromIPC("a.arrow");
// @ts-expect-error batches, not streams
fromBatches([stream]);
// @ts-expect-error one at least
merge();
// @ts-expect-error no such option
file("a.arrow", { map: true });
