// SPDX-License-Identifier: Apache-2.0

// arrow-go as a subject of the test suite: its exporter of asynchronous streams
// is the producer, its importer the handler. This is only an adapter: whatever
// arrow-go does, right or wrong, passes through unchanged, and a plan that its
// interface cannot express is refused.
//
//	go mod tidy
//	CGO_CFLAGS=-I$UVARROW/include go build -buildmode=c-shared -o subject.so .
package main

// #include <errno.h>
// #include <stdlib.h>
// #include "uvarrow/tck.h"
import "C"

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

//export uva_subject_version
func uva_subject_version() C.int32_t { return C.UVA_SUBJECT_VERSION }

//export uva_subject_knows
func uva_subject_knows(what C.int32_t) C.int32_t {
	switch what {
	case C.UVA_SUBJECT_PLANS:
		return C.UVA_SUBJECT_TAGGED_FAILS
	case C.UVA_SUBJECT_MANNERS:
		return C.UVA_SUBJECT_TAKES_BARE
	}
	return C.UVA_SUBJECT_CANNOT
}

func main() {}

// ---- the data --------------------------------------------------------------

const rows = C.UVA_SUBJECT_ROWS

var schema = arrow.NewSchema(
	[]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)

// Makes the values of batch k.
func batch(k int64) arrow.RecordBatch {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for row := int64(0); row < rows; row++ {
		b.Append(k*rows + row)
	}
	n := b.NewArray()
	defer n.Release()
	return array.NewRecordBatch(schema, []arrow.Array{n}, rows)
}

// Sends the batches of a plan, each when arrow-go takes it.
func source(plan C.int32_t, batches int64, to chan<- cdata.RecordMessage) {
	for k := int64(0); plan == C.UVA_SUBJECT_ENDLESS || k < batches; k++ {
		if plan == C.UVA_SUBJECT_SLOW {
			time.Sleep(5 * time.Millisecond)
		}
		to <- cdata.RecordMessage{Record: batch(k)}
	}
	if plan == C.UVA_SUBJECT_FAILS {
		to <- cdata.RecordMessage{Err: errors.New("the source has failed")}
	}
	close(to)
}

// ---- producer --------------------------------------------------------------

// Returns when the stream is over, as arrow-go does. It fails before on_schema
// only if it is given no schema.
//
//export uva_subject_produce
func uva_subject_produce(plan C.int32_t, batches, at C.int64_t,
	handler *C.struct_ArrowAsyncDeviceStreamHandler) C.int32_t {
	from := schema
	switch plan {
	case C.UVA_SUBJECT_WHOLE, C.UVA_SUBJECT_ENDLESS, C.UVA_SUBJECT_SLOW,
		C.UVA_SUBJECT_FAILS:
	case C.UVA_SUBJECT_FAILS_FIRST:
		from = nil
	default:
		return C.UVA_SUBJECT_CANNOT
	}
	messages := make(chan cdata.RecordMessage)
	go source(plan, int64(batches), messages)
	_ = cdata.ExportAsyncRecordBatchStream(from, messages,
		(*cdata.CArrowAsyncDeviceStreamHandler)(unsafe.Pointer(handler)))
	return 0
}

// ---- handler ---------------------------------------------------------------

// One consumer: arrow-go's handler, read by a goroutine. Lives as long as the
// process.
type reader struct {
	lock    sync.Mutex
	over    bool
	outcome C.struct_uva_subject_outcome
}

var (
	readers sync.Map // of *reader, by number
	number  atomic.Int64
)

func (r *reader) fail(err error) {
	var stream cdata.AsyncStreamError

	r.outcome.end = C.UVA_SUBJECT_FAILED
	r.outcome.code = C.EINVAL
	if errors.As(err, &stream) {
		r.outcome.code = C.int32_t(stream.Code)
	}
	text := err.Error()
	for i := 0; i < len(text) && i < len(r.outcome.message)-1; i++ {
		r.outcome.message[i] = C.char(text[i])
	}
}

func (r *reader) take(m cdata.RecordMessage) {
	defer m.Record.Release()
	r.outcome.batches++
	r.outcome.rows += C.int64_t(m.Record.NumRows())
	if n, ok := m.Record.Column(0).(*array.Int64); ok {
		for i := 0; i < n.Len(); i++ {
			r.outcome.sum += C.int64_t(n.Value(i))
		}
	}
	tag, ok := m.AdditionalMetadata.GetValue("tck")
	if !ok {
		return
	}
	r.outcome.tag_size = C.int64_t(len(tag))
	for i := 0; i < len(tag) && i < len(r.outcome.tag); i++ {
		r.outcome.tag[i] = C.char(tag[i])
	}
}

func (r *reader) read(opened <-chan cdata.AsyncRecordBatchStream) {
	stream, ok := <-opened

	r.lock.Lock()
	defer r.lock.Unlock()
	r.over = true
	if !ok {
		r.outcome.end = C.UVA_SUBJECT_FAILED
		return
	}
	if stream.Err != nil {
		r.fail(stream.Err)
		return
	}
	for m := range stream.Stream {
		if m.Err != nil {
			r.fail(m.Err)
		} else {
			r.take(m)
		}
	}
}

// arrow-go's reader requests one more batch for each that it takes, and cannot
// refuse. It extracts each task on a goroutine of its own.
//
//export uva_subject_consume
func uva_subject_consume(manner C.int32_t, k C.int64_t, id *C.int64_t,
	handler **C.struct_ArrowAsyncDeviceStreamHandler) C.int32_t {
	switch manner {
	case C.UVA_SUBJECT_TAKES_ALL, C.UVA_SUBJECT_HOLDS, C.UVA_SUBJECT_TAKES_BARE:
	default:
		return C.UVA_SUBJECT_CANNOT
	}
	const size = unsafe.Sizeof(C.struct_ArrowAsyncDeviceStreamHandler{})
	r := &reader{}
	*handler = (*C.struct_ArrowAsyncDeviceStreamHandler)(C.calloc(1,
		C.size_t(size)))
	opened := cdata.CreateAsyncDeviceStreamHandler(context.Background(), 5,
		(*cdata.CArrowAsyncDeviceStreamHandler)(unsafe.Pointer(*handler)))
	*id = C.int64_t(number.Add(1))
	readers.Store(int64(*id), r)
	go r.read(opened)
	return 0
}

// arrow-go does not report the release of a handler, so the end of the reader
// counts as the end.
//
//export uva_subject_report
func uva_subject_report(id C.int64_t,
	out *C.struct_uva_subject_outcome) C.int32_t {
	found, _ := readers.Load(int64(id))
	r := found.(*reader)
	if !r.lock.TryLock() {
		return C.EAGAIN
	}
	defer r.lock.Unlock()
	if !r.over {
		return C.EAGAIN
	}
	*out = r.outcome
	return 0
}
