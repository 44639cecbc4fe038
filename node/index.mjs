// SPDX-License-Identifier: Apache-2.0
// The package for `import`: the same objects as for require().
import uvarrow from "./index.js";

export const {
  Batch,
  Pool,
  Session,
  Stream,
  UvarrowError,
  concat,
  file,
  fromBatches,
  fromIPC,
  fromPointer,
  merge,
  stats,
} = uvarrow;
export default uvarrow;
