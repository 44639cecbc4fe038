// SPDX-License-Identifier: Apache-2.0

// Counts the rows of a query: go run . sqlite:flights.db 'SELECT * FROM flights'
package main

// #cgo pkg-config: uvarrow-adbc
// #include <stdlib.h>
// #include <uvarrow/uvarrow.h>
// #include <uvarrow/adbc.h>
// static struct uva_stream *query(struct uva_runtime *rt, const char *uri, const char *sql) {
//     const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};
//     struct uva_adbc_pool *pool;
//     struct uva_error error;
//     if (uva_adbc_pool_new(rt, &(struct uva_adbc_pool_options){.options = options}, &pool, &error) != 0)
//         return uva_stream_from_error(rt, &error);
//     struct uva_stream *s = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
//     uva_adbc_pool_release(pool);
//     return s;
// }
import "C"

import (
	"context"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
)

// Query gives the batches of a query as a reader: what is not read waits in the database.
func Query(ctx context.Context, rt *C.struct_uva_runtime, uri, sql string) (array.RecordReader, error) {
	var failed C.struct_uva_error
	s := C.query(rt, C.CString(uri), C.CString(sql)) // a server would free the two
	out := (*C.struct_ArrowArrayStream)(C.calloc(1, C.sizeof_struct_ArrowArrayStream))
	if C.uva_stream_to_arrow_stream(s, nil, out, &failed) != 0 {
		return nil, fmt.Errorf("%s", C.GoString(&failed.message[0]))
	}
	context.AfterFunc(ctx, func() { C.uva_stream_cancel(s, 0, nil); C.uva_stream_release(s) })
	reader, err := cdata.ImportCRecordReader((*cdata.CArrowArrayStream)(unsafe.Pointer(out)), nil)
	records, _ := reader.(array.RecordReader)
	return records, err // that of the query: its schema was waited for
}

func main() {
	var rt *C.struct_uva_runtime
	C.uva_runtime_open(nil, nil, &rt, nil) // with a thread of its own
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reader, err := Query(ctx, rt, os.Args[1], os.Args[2])
	for rows := int64(0); err == nil; rows += reader.RecordBatch().NumRows() {
		if !reader.Next() {
			fmt.Println(rows, "rows", reader.Err())
			return
		}
	}
	fmt.Println(err)
}
