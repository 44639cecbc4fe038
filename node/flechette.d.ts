// SPDX-License-Identifier: Apache-2.0
// The types of uvarrow/flechette.
import type { Column, ExtractionOptions, Table } from "@uwdata/flechette" with {
  "resolution-mode": "import"
};
import type { Batch, Data } from "uvarrow";

/** A table of one batch, or of several of one schema, on their buffers: it has no
 * bytes any more when they are closed. A type that flechette has not fails with
 * ENOTSUP. */
export function tableFromBatches(
  batches: Batch | Iterable<Batch>,
  options?: ExtractionOptions,
): Table;

/** A column of an array, or of several of one type, such as
 * `batch.data.children[0]`. */
export function columnFromData(
  data: Data | readonly Data[],
  options?: ExtractionOptions,
): Column<unknown>;

export {}; // only what says so is exported
