// SPDX-License-Identifier: Apache-2.0
// uvarrow/flechette for `import`: the same functions as for require().
import flechette from "./lib/flechette.js";

export const { columnFromData, tableFromBatches } = flechette;
