// SPDX-License-Identifier: Apache-2.0
// The types of the package.
import type { Readable, Writable } from "node:stream";

/** A failure. `code` is the name of an errno ("ECANCELED"), and `errno` its
 * negative number, as in errors of Node.js; `metadata` is what a driver has told,
 * such as adbc.sqlstate. */
export class UvarrowError extends Error {
  constructor(
    code: string,
    errno: number,
    message: string,
    metadata?: Readonly<Record<string, string>>,
  );
  readonly code: string;
  readonly errno: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A column, or the root of them all. */
export interface Field {
  name: string;
  /** The format string of the Arrow C data interface: "l", "u", "+s". */
  format: string;
  nullable: boolean;
  /** The flags of the C data interface. */
  flags?: number;
  metadata?: Record<string, string>;
  children?: Field[];
  dictionary?: Field;
}

/** A Field of a stream, with all of its members. */
export interface KnownField extends Field {
  flags: number;
  metadata: Record<string, string>;
  children: KnownField[];
  dictionary?: KnownField;
}

/** One array, and its buffers in the order of Arrow, validity first. They are the
 * memory of the batch, or copies of small buffers. Do not write to them. */
export interface Data {
  readonly field: KnownField;
  readonly length: number;
  /** -1: not counted */
  readonly nullCount: number;
  readonly offset: number;
  readonly buffers: readonly Uint8Array[];
  readonly children: readonly Data[];
  readonly dictionary?: Data;
}

export type Format = "arrow" | "arrow-file" | "csv" | "json";

/** How batches are encoded; members for other formats have no effect. */
export interface EncodeOptions {
  /** of Arrow IPC; "none" */
  compression?: "none" | "lz4" | "zstd";
  /** of CSV: one character of ASCII; a comma */
  delimiter?: string;
  /** of CSV: a line of names; true */
  header?: boolean;
  /** of CSV: lines end with CR LF; false */
  crlf?: boolean;
  /** of CSV: the text of a null; an empty field */
  nullText?: string;
}

/** Rows: the ones with a truthy value, which is in an array for each row, or for
 * all of them. */
export type Mask =
  | boolean | readonly unknown[] | Int8Array | Uint8Array | Uint8ClampedArray;

export class Batch {
  private constructor();
  readonly numRows: number;
  readonly byteLength: number;
  /** its number in the order of the source, from 0 */
  readonly ordinal: number;
  readonly schema: KnownField;
  /** The arrays, made when they are first asked for. */
  readonly data: Data;
  /** A batch of these columns, by name or index, in this order. It shares the
   * memory of all columns, and lives without this batch. */
  select(columns: readonly (string | number)[]): Batch;
  /** A batch of these rows. Rows that follow one another share the memory; others
   * are copied. */
  filter(mask: Mask): Batch;
  /** A stream of Arrow IPC with this batch alone, for tableFromIPC() of
   * apache-arrow and flechette, and readIPCStream() of polars. */
  toIPC(options?: Pick<EncodeOptions, "compression">): Uint8Array;
  /** Frees it now. ArrayBuffers on its memory are detached: they have no bytes any
   * more. */
  close(): void;
  [Symbol.dispose](): void;
}

export interface WindowOptions {
  /** batches read ahead; 64 */
  window?: number;
  /** bytes read ahead; 32 MiB */
  maxBytes?: number;
}

export interface StreamOptions extends WindowOptions {
  /** Aborted, it ends the stream: steps reject with its reason. */
  signal?: AbortSignal;
  /** Smaller buffers are copied together; 8192. Infinity: all, 0: none. */
  copyBelow?: number;
  /** begins the text of each error */
  name?: string;
}

export interface StageStats {
  readonly name: string;
  readonly waiting:
    | "none" | "source" | "consumer" | "worker" | "device" | "memory"
    | "permit" | "time" | "over";
  /** index of the stage that it passes to; -1: the consumer */
  readonly next: number;
  readonly requested: number;
  readonly batches: number;
  readonly rows: number;
  /** -1: not measured */
  readonly bytes: number;
  readonly rowsExpected: number;
  readonly bytesExpected: number;
  readonly queued: number;
  readonly queuedBytes: number;
}

export class Stream implements AsyncIterableIterator<Batch> {
  private constructor();
  next(): Promise<IteratorResult<Batch, undefined>>;
  /** Drops the stream: it is cancelled. */
  return(): Promise<IteratorResult<Batch, undefined>>;
  [Symbol.asyncIterator](): this;
  /** close() */
  [Symbol.asyncDispose](): Promise<void>;
  schema(): Promise<KnownField>;
  /** sent with the schema, such as adbc.rows_affected */
  metadata(): Promise<Record<string, string>>;
  /** Steps reject with ECANCELED and this reason. */
  cancel(reason?: string): void;
  /** Cancels, and waits for the end. */
  close(): Promise<void>;
  readAll(): Promise<Batch[]>;
  stats(): StageStats[];

  // Stages: before it is read; they change it in place, and return it. Times are
  // in milliseconds.

  limit(rows: number): this;
  rebatch(options: { rows?: number; bytes?: number; wait?: number }): this;
  timeout(options: {
    open?: number;
    first?: number;
    between?: number;
    total?: number;
  }): this;
  throttle(options: { batches?: number; bytes?: number }): this;
  /** When it has failed before its first batch, `again` gives a stream to go on
   * with, at most `times` (3) times, after `delay` (100), doubled each time up to
   * `delayMax` (10 s). Null: no more. It is not asynchronous. */
  retry(
    again: (error: Error, attempt: number) => Stream | null | undefined,
    options?: { times?: number; delay?: number; delayMax?: number },
  ): this;
  /** Decodes on so many threads at one time; 0: one a core. */
  parallel(workers?: number, options?: { ordered?: boolean }): this;
  /** Another schema, without a change of any value. */
  cast(schema: Field): this;
  /** Calls a function for each batch, on the thread of JavaScript, for at most
   * `concurrency` (1) of them at one time. Null: no batch. */
  map(
    fn: (
      batch: Batch,
    ) => Batch | null | undefined | Promise<Batch | null | undefined>,
    options?: { concurrency?: number; ordered?: boolean; schema?: Field },
  ): this;
  /** Passes on the rows that a function selects, in the way of map(). A batch
   * without such rows is left out. */
  filter(
    fn: (batch: Batch) => Mask | Promise<Mask>,
    options?: { concurrency?: number; ordered?: boolean },
  ): this;
  /** A second stream with the same batches. */
  tee(options?: Omit<StreamOptions, "window" | "maxBytes">): Stream;

  // Bytes: these read the stream.

  toIPC(options?: Pick<EncodeOptions, "compression">): Readable;
  toCSV(options?: Omit<EncodeOptions, "compression">): Readable;
  toJSON(): Readable;
  toWeb(
    options?: EncodeOptions & { format?: Format },
  ): ReadableStream<Uint8Array>;
  /** Writes it to a response, a socket or a file, ends that, and gives the number
   * of bytes. Each batch is freed when it was written. After a failure `out` is
   * destroyed, unless no byte was written. */
  pipeTo(
    out: Writable,
    options?: EncodeOptions & {
      format?: Format;
      signal?: AbortSignal;
      /** end `out`; true */
      end?: boolean;
    },
  ): Promise<number>;
}

/** A Date is its text of ISO 8601. */
export type Param =
  | null | undefined | boolean | number | bigint | string | Date | Uint8Array;

/** In order; by name; or rows of them, for each of which the query is executed. */
export type Params =
  | readonly Param[] | Readonly<Record<string, Param>> | Batch | Stream;

export interface QueryOptions extends StreamOptions {
  /** of the statement */
  options?: Readonly<Record<string, string>>;
  /** the most milliseconds that the driver may spend; 0: no limit */
  busy?: number;
  /** bind the columns of a Batch or a Stream by their names; false */
  byName?: boolean;
}

export interface IngestOptions extends QueryOptions {
  /** "create" */
  mode?: "create" | "append" | "replace" | "createAppend";
}

/** Batches, or the bytes of Arrow IPC. */
export type Rows =
  | Stream | Batch | Uint8Array
  | AsyncIterable<Batch> | Iterable<Batch>
  | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export interface PoolStats {
  readonly connectionsUsed: number;
  readonly connectionsIdle: number;
  readonly connectionsStuck: number;
  readonly connectionsMax: number;
  readonly queriesWaiting: number;
  readonly queries: number;
}

declare abstract class Queries {
  query(sql: string, params?: Params, options?: QueryOptions): Stream;
  /** Gives how many rows were changed; -1: the driver does not report it. */
  execute(
    sql: string,
    params?: Params,
    options?: QueryOptions,
  ): Promise<number>;
  /** Writes all rows into a table, or none. */
  ingest(table: string, rows: Rows, options?: IngestOptions): Promise<number>;
  /** The catalogs, schemas, tables and columns, as GetObjects of ADBC has them. */
  objects(
    options?: Omit<StreamOptions, "window" | "maxBytes"> & {
      depth?: number;
      catalog?: string;
      schema?: string;
      table?: string;
      column?: string;
    },
  ): Stream;
  stats(): PoolStats;
  /** No more queries; those that were made go on. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PoolOptions {
  /** a name or a file; left out: the scheme of `uri` */
  driver?: string;
  entrypoint?: string;
  uri?: string;
  /** of the database */
  options?: Readonly<Record<string, string>>;
  connectionOptions?: Readonly<Record<string, string>>;
  /** 8 */
  connections?: number;
  /** milliseconds to wait for a connection; 30 s */
  wait?: number;
  /** milliseconds until an idle connection is closed; 60 s */
  idle?: number;
  /** milliseconds to wait for a lock, where the driver has a setting for that */
  lock?: number;
  /** a query finds the session as the one before has left it; false */
  keepsSession?: boolean;
}

export class Pool extends Queries {
  constructor(options: PoolOptions | string);
  /** One connection, for queries that belong together. */
  session(options?: {
    /** each query is a transaction; false: they are one */
    autocommit?: boolean;
    /** of the connection */
    options?: Readonly<Record<string, string>>;
  }): Session;
}

export class Session extends Queries {
  private constructor();
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** Batches of a file of Arrow IPC. With `mmap` its pages are not copied until they
 * are looked at: only for a file that no one changes. */
export function file(
  path: string | URL,
  options?: StreamOptions & { mmap?: boolean },
): Stream;

/** Batches of the bytes of Arrow IPC that arrive: a request, fetch(), a file. */
export function fromIPC(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array> | Uint8Array,
  options?: StreamOptions,
): Stream;

/** Batches that JavaScript has, all of one schema. */
export function fromBatches(
  source: AsyncIterable<Batch> | Iterable<Batch>,
  options?: StreamOptions,
): Stream;

/** An ArrowArrayStream of another addon, by its address. Its content is moved, so
 * that its `release` is NULL, and it is not needed any more. `owner` lives until the
 * content is released. */
export function fromPointer(
  address: bigint,
  options?: StreamOptions & { owner?: unknown },
): Stream;

/** The batches of all streams as they come. The others become parts of the first. */
export function merge(first: Stream, ...others: Stream[]): Stream;

/** The batches of one stream after the other, in the same way. */
export function concat(first: Stream, ...others: Stream[]): Stream;

/** The runtime of this thread. */
export function stats(): {
  readonly streamsOpen: number;
  readonly streamsHeld: number;
  readonly threadsCompute: number;
  readonly threadsBlocking: number;
  readonly threadsStuck: number;
  readonly callsStuck: number;
  readonly turns: number;
  /** batches, and encoded parts of them, that JavaScript holds */
  readonly batchesHeld: number;
  /** bytes in them that V8 does not count by itself */
  readonly bytesHeld: number;
};

export {}; // only what says so is exported
