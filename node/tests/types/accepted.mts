// SPDX-License-Identifier: Apache-2.0
// Uses of the package that its types must accept.
import { createReadStream, createWriteStream } from "node:fs";
import { createServer } from "node:http";
import { pipeline } from "node:stream/promises";
import all, {
  Batch, Pool, Session, Stream, UvarrowError, concat, file, fromBatches, fromIPC,
  fromPointer, merge, stats,
} from "uvarrow";
import type {
  Data, Field, KnownField, Mask, Params, PoolStats, QueryOptions, Rows, StageStats,
} from "uvarrow";
import { columnFromData, tableFromBatches } from "uvarrow/flechette";

const pool: Pool = new Pool({
  driver: "sqlite", uri: "a.db", options: { a: "b" }, connections: 2,
});
const same: typeof Pool = all.Pool;
const controller = new AbortController();
const how: QueryOptions = {
  window: 4, maxBytes: 1e6, signal: controller.signal, name: "flights",
  copyBelow: Infinity, busy: 100, byName: true, options: { a: "b" },
};

// ---- databases

async function databases(): Promise<void> {
  const stream: Stream = pool.query("SELECT ?", [1, 2n, "a", null, true,
    new Date(), new Uint8Array(1)], how);
  const named: Params = { ":a": 1 };
  const changed: number = await pool.execute("DELETE FROM t WHERE a = :a", named);
  await pool.execute("INSERT INTO t VALUES (?)", stream);
  for (const rows of [stream, [], createReadStream("a.arrow"),
    new Uint8Array(8)] satisfies Rows[])
    await pool.ingest("t", rows, { mode: "createAppend" });
  await using session: Session = pool.session({ autocommit: false });
  await session.ingest("t", pool.query("SELECT 1"));
  await session.commit();
  await session.rollback();
  const { connectionsIdle }: PoolStats = pool.stats();
  await pool.objects({ depth: 2, table: "t", signal: controller.signal }).readAll();
  await pool.close();
  void [changed, connectionsIdle];
}

// ---- batches

function batches(batch: Batch): void {
  using mine = batch;
  const data: Data = mine.data;
  const bytes: readonly Uint8Array[] = data.children[0]!.buffers;
  const values: string | undefined = data.dictionary?.field.format;
  const schema: KnownField = batch.schema;
  const metadata: Record<string, string> = schema.children[0]!.metadata;
  const some: Batch = batch.select(["a", 2] as const).filter([true, null, 1]);
  const mask: Mask = Uint8Array.of(1, 0);
  const ipc: Uint8Array = batch.toIPC({ compression: "zstd" });
  batch.close();
  void [bytes, values, metadata, some, batch.filter(mask), ipc];
}

// ---- flechette

async function columns(batch: Batch): Promise<number> {
  const table = tableFromBatches([batch], { useDate: true });
  const more: number = tableFromBatches(await pool.query("SELECT 1").readAll())
    .numRows;
  const values = columnFromData(batch.data.children[0]!, { useBigInt: true });
  return more + values.length + table.getChild("a").nullCount;
}

// ---- streams

async function streams(owner: object): Promise<void> {
  const field: Field = {
    name: "", format: "+s", nullable: false,
    children: [{ name: "a", format: "l", nullable: true }],
  };
  const stream = merge(
    file(new URL("file:///a.arrow"), { mmap: true }).limit(10),
    fromIPC(createReadStream("a")), fromPointer(1n, { owner }));
  const stage: StageStats[] = stream.rebatch({ rows: 1, bytes: 2, wait: 3 })
    .timeout({ open: 1, total: 2 }).throttle({ batches: 1 }).parallel(2)
    .cast(field)
    .map(async (batch) => batch.numRows > 0 ? batch : null,
      { concurrency: 2, ordered: false, schema: field })
    .filter(async ({ numRows }) => numRows > 5, { concurrency: 2 })
    .retry((error, attempt) => attempt < 2 && error.message ? stream : null,
      { times: 2, delay: 1 })
    .stats();
  if (stage[0]!.waiting === "over") stream.cancel("why");
  const second: Stream = stream.tee({ name: "second" });
  const { value, done } = await stream.next();
  if (!done) batches(value);
  const list: Batch[] = await concat(stream, second).readAll();
  await fromBatches(list).close();
  const { name }: KnownField = await stream.schema();
  void [name, stats().batchesHeld];
}

// ---- bytes

createServer(async (request, response) => {
  try {
    const bytes: number = await pool.query("SELECT 1").pipeTo(response, {
      format: "csv", header: false, delimiter: ";", crlf: true, end: false,
      signal: controller.signal,
    });
    await pool.ingest("t", request);
    void bytes;
  } catch (error) {
    if (error instanceof UvarrowError && error.code === "ENOENT")
      response.end(error.metadata["adbc.sqlstate"] ?? String(error.errno));
  }
});

const fetched = async (): Promise<Stream> =>
  fromIPC((await fetch("http://a")).body!);
const answer = (): Response => new Response(
  pool.query("SELECT 1").toWeb({ format: "json" }));
await pipeline(pool.query("SELECT 1").toCSV({ nullText: "-" }),
  createWriteStream("a.csv"));

export { answer, columns, databases, fetched, same, streams };
