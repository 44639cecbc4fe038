// SPDX-License-Identifier: Apache-2.0

// Converts each file of a folder; an error becomes NAME.error.

import fs from 'node:fs';
import path from 'node:path';

export const suffix = { stream: '.arrows', file: '.arrow' };

export function each(folder, from, to, convert) {
    for (const file of fs.readdirSync(folder)) {
        if (!file.endsWith(from)) continue;
        const name = path.join(folder, file.slice(0, -from.length));
        try {
            fs.writeFileSync(name + to, convert(fs.readFileSync(name + from)));
        } catch (error) {
            fs.writeFileSync(name + '.error', String(error));
        }
    }
}
