// SPDX-License-Identifier: Apache-2.0

// The package flechette: reads Arrow IPC, and writes it again.

import { tableFromIPC, tableToIPC } from '@uwdata/flechette';
import { each, suffix } from './each.mjs';

const [, folder, form] = process.argv.slice(2);

each(folder, suffix[form], '.out' + suffix[form], (data) => tableToIPC(
    tableFromIPC(new Uint8Array(data), { useBigInt: true }), { format: form }));
