// SPDX-License-Identifier: Apache-2.0
// Uses of the package by require().
import uvarrow = require("uvarrow");
import flechette = require("uvarrow/flechette");
const { Pool, UvarrowError }: typeof uvarrow = uvarrow;

export async function rows(pool: uvarrow.Pool): Promise<number> {
  let count = 0;
  for await (const batch of pool.query("SELECT 1")) count += batch.numRows;
  return count;
}

export const pool = new Pool("sqlite:a.db");
export const is = (error: unknown) =>
  error instanceof UvarrowError ? error.code : "";
export const table = (batch: uvarrow.Batch) =>
  flechette.tableFromBatches(batch).toColumns();
