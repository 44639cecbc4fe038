// SPDX-License-Identifier: Apache-2.0

// The package apache-arrow: writes the JSON of the integration tests as Arrow IPC, and
// Arrow IPC again. It has no codec of its own, and its JSON cannot be read.

import {
    RecordBatchFileWriter, RecordBatchReader, RecordBatchStreamWriter,
} from 'apache-arrow';
import { each, suffix } from './each.mjs';

const [verb, folder, form] = process.argv.slice(2);

function written(Writer, reader) {
    reader.open({ autoDestroy: false });
    const writer = new Writer();
    writer.reset(writer._sink, reader.schema);
    for (const batch of reader) writer.write(batch);
    return writer.finish();
}

const Writer = form === 'file' ? RecordBatchFileWriter : RecordBatchStreamWriter;

const toArrow = (data) => written(
    Writer, RecordBatchReader.from(JSON.parse(data))).toUint8Array(true);

const again = (data) => written(
    Writer, RecordBatchReader.from(data)).toUint8Array(true);

if (verb === 'echo') each(folder, suffix[form], '.out' + suffix[form], again);
else each(folder, '.json', suffix[form], toArrow);
