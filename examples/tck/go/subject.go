// SPDX-License-Identifier: Apache-2.0

// A subject of the test suite in Go, in the role producer:
//
//	CGO_CFLAGS=-I"$INCLUDE" go build -buildmode=c-shared -o libsubject.so .
//
// The functions at the end are those that every subject exports. The rest is a small
// producer, the implementation under test: put yours in its place. It makes all
// callbacks on the thread that starts it.
package main

/*
#include <stdlib.h>
#include "uvarrow/tck.h"

// Go cannot call a function by its address.
static inline int on_schema(struct ArrowAsyncDeviceStreamHandler *h, struct ArrowSchema *schema) {
	return h->on_schema(h, schema);
}
static inline int on_next_task(struct ArrowAsyncDeviceStreamHandler *h, struct ArrowAsyncTask *task) {
	return h->on_next_task(h, task, NULL);
}
static inline void on_error(struct ArrowAsyncDeviceStreamHandler *h, int code, const char *text) {
	h->on_error(h, code, text, NULL);
}
static inline void release(struct ArrowAsyncDeviceStreamHandler *h) { h->release(h); }
static inline void release_schema(struct ArrowSchema *s) {
	if (s->release != NULL) s->release(s);
}
static inline void release_array(struct ArrowArray *a) {
	if (a->release != NULL) a->release(a);
}

// What a consumer sees must lie in memory of C.
struct producer { struct ArrowAsyncProducer object; uintptr_t handle; };
struct schema {
	struct ArrowSchema n;
	struct ArrowSchema *children[1];
	int32_t holders; // the struct, and its child
};
struct batch {
	struct ArrowArray n;
	struct ArrowArray *children[1];
	const void *no_buffers[1], *buffers[2];
	int64_t values[UVA_SUBJECT_ROWS];
	int32_t holders; // likewise
};
struct payload {
	struct ArrowDeviceArray array;
	int32_t holders; // the task, and the callback that offers it
	int32_t taken;
};

void requestBatches(struct ArrowAsyncProducer *, int64_t);
void cancelStream(struct ArrowAsyncProducer *);
int extractData(struct ArrowAsyncTask *, struct ArrowDeviceArray *);
void releaseSchema(struct ArrowSchema *);
void releaseArray(struct ArrowArray *);
*/
import "C"

import (
	"math"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const eio, einval = 5, 22

var live, made atomic.Int64 // for uva_subject_count()

var formats = [...]*C.char{C.CString("+s"), C.CString("l")}
var names = [...]*C.char{C.CString(""), C.CString("n")}

// ---- data

func newSchema(out *C.struct_ArrowSchema) {
	own := (*C.struct_schema)(C.calloc(1, C.sizeof_struct_schema))
	own.holders = 2
	own.children[0] = &own.n
	own.n = C.struct_ArrowSchema{format: formats[1], name: names[1],
		release: (*[0]byte)(C.releaseSchema), private_data: unsafe.Pointer(own)}
	*out = C.struct_ArrowSchema{format: formats[0], name: names[0], n_children: 1, children: &own.children[0],
		release: (*[0]byte)(C.releaseSchema), private_data: unsafe.Pointer(own)}
	live.Add(1)
}

//export releaseSchema
func releaseSchema(schema *C.struct_ArrowSchema) {
	own := (*C.struct_schema)(schema.private_data)
	if schema.n_children > 0 {
		C.release_schema(own.children[0]) // unless the consumer has taken it
	}
	schema.release = nil
	if atomic.AddInt32((*int32)(&own.holders), -1) == 0 {
		C.free(unsafe.Pointer(own))
		live.Add(-1)
	}
}

func newBatch(ordinal int64, out *C.struct_ArrowDeviceArray) {
	own := (*C.struct_batch)(C.calloc(1, C.sizeof_struct_batch))
	for row := range own.values {
		own.values[row] = C.int64_t(ordinal*C.UVA_SUBJECT_ROWS + int64(row))
	}
	own.holders = 2
	own.children[0] = &own.n
	own.buffers[1] = unsafe.Pointer(&own.values)
	own.n = C.struct_ArrowArray{length: C.UVA_SUBJECT_ROWS, n_buffers: 2, buffers: &own.buffers[0],
		release: (*[0]byte)(C.releaseArray), private_data: unsafe.Pointer(own)}
	out.array = C.struct_ArrowArray{length: C.UVA_SUBJECT_ROWS, n_buffers: 1, buffers: &own.no_buffers[0],
		n_children: 1, children: &own.children[0],
		release: (*[0]byte)(C.releaseArray), private_data: unsafe.Pointer(own)}
	out.device_id = -1
	out.device_type = C.ARROW_DEVICE_CPU
	live.Add(1)
	made.Add(1)
}

//export releaseArray
func releaseArray(array *C.struct_ArrowArray) {
	own := (*C.struct_batch)(array.private_data)
	if array.n_children > 0 {
		C.release_array(own.children[0]) // likewise
	}
	array.release = nil
	if atomic.AddInt32((*int32)(&own.holders), -1) == 0 {
		C.free(unsafe.Pointer(own))
		live.Add(-1)
	}
}

// ---- a task

func (p *producer) offer(ordinal int64) bool {
	own := (*C.struct_payload)(C.calloc(1, C.sizeof_struct_payload))
	task := (*C.struct_ArrowAsyncTask)(C.calloc(1, C.sizeof_struct_ArrowAsyncTask))
	defer C.free(unsafe.Pointer(task))
	newBatch(ordinal, &own.array)
	own.holders = 2
	task.extract_data = (*[0]byte)(C.extractData)
	task.private_data = unsafe.Pointer(own)
	accepted := C.on_next_task(p.handler, task) == 0
	if !accepted && atomic.LoadInt32((*int32)(&own.taken)) == 0 {
		C.release_array(&own.array.array)
		dropPayload(own)
	}
	dropPayload(own)
	return accepted
}

func dropPayload(own *C.struct_payload) {
	if atomic.AddInt32((*int32)(&own.holders), -1) == 0 {
		C.free(unsafe.Pointer(own))
	}
}

//export extractData
func extractData(task *C.struct_ArrowAsyncTask, out *C.struct_ArrowDeviceArray) C.int {
	own := (*C.struct_payload)(task.private_data)
	if out != nil {
		*out = own.array
	} else {
		C.release_array(&own.array.array)
	}
	atomic.StoreInt32((*int32)(&own.taken), 1)
	dropPayload(own)
	return 0
}

// ---- the producer

type producer struct {
	handler    *C.struct_ArrowAsyncDeviceStreamHandler
	plan       C.int32_t
	batches    int64
	lock       sync.Mutex // never held in a callback
	changed    *sync.Cond
	demand     int64
	cancelled  bool
	badRequest bool
}

func of(object *C.struct_ArrowAsyncProducer) *producer {
	own := (*C.struct_producer)(object.private_data)
	return cgo.Handle(own.handle).Value().(*producer)
}

//export requestBatches
func requestBatches(object *C.struct_ArrowAsyncProducer, n C.int64_t) {
	p := of(object)
	p.lock.Lock()
	defer p.lock.Unlock()
	if n <= 0 {
		p.badRequest = true
	} else if int64(n) > math.MaxInt64-p.demand {
		p.demand = math.MaxInt64
	} else {
		p.demand += int64(n)
	}
	p.changed.Signal()
}

//export cancelStream
func cancelStream(object *C.struct_ArrowAsyncProducer) {
	p := of(object)
	p.lock.Lock()
	defer p.lock.Unlock()
	p.cancelled = true
	p.changed.Signal()
}

type step int

const (
	stop step = iota
	complain
	finish
	offer
)

// Waits for the next callback to make.
func (p *producer) wait(isOver bool) step {
	p.lock.Lock()
	defer p.lock.Unlock()
	for !isOver && !p.cancelled && !p.badRequest && p.demand == 0 {
		p.changed.Wait()
	}
	switch {
	case p.cancelled:
		return stop
	case p.badRequest:
		return complain
	case isOver:
		return finish
	}
	if p.demand < math.MaxInt64 {
		p.demand--
	}
	return offer
}

func (p *producer) fail(code C.int, text string) {
	message := C.CString(text)
	C.on_error(p.handler, code, message)
	C.free(unsafe.Pointer(message))
}

func (p *producer) play() {
	if p.plan == C.UVA_SUBJECT_FAILS_FIRST {
		p.fail(eio, "there is no schema")
		return
	}
	schema := (*C.struct_ArrowSchema)(C.calloc(1, C.sizeof_struct_ArrowSchema))
	newSchema(schema)
	code := C.on_schema(p.handler, schema)
	C.release_schema(schema)
	C.free(unsafe.Pointer(schema))
	for n := int64(0); code == 0; n++ {
		step := p.wait(p.plan != C.UVA_SUBJECT_ENDLESS && n == p.batches)
		switch {
		case step == complain:
			p.fail(einval, "a request must be for 1 or more")
		case step == finish && p.plan == C.UVA_SUBJECT_FAILS:
			p.fail(eio, "the source failed")
		case step == finish:
			C.on_next_task(p.handler, nil)
		}
		if p.plan == C.UVA_SUBJECT_SLOW {
			time.Sleep(5 * time.Millisecond)
		}
		if step != offer || !p.offer(n) {
			return
		}
	}
}

func (p *producer) run() {
	own := (*C.struct_producer)(C.calloc(1, C.sizeof_struct_producer))
	handle := cgo.NewHandle(p)
	own.handle = C.uintptr_t(handle)
	own.object = C.struct_ArrowAsyncProducer{device_type: C.ARROW_DEVICE_CPU,
		request: (*[0]byte)(C.requestBatches), cancel: (*[0]byte)(C.cancelStream),
		private_data: unsafe.Pointer(own)}
	p.changed = sync.NewCond(&p.lock)
	p.handler.producer = &own.object
	p.play()
	C.release(p.handler)
	handle.Delete()
	C.free(unsafe.Pointer(own))
}

// ---- the functions of the subject

//export uva_subject_version
func uva_subject_version() C.int32_t { return C.UVA_SUBJECT_VERSION }

//export uva_subject_produce
func uva_subject_produce(plan C.int32_t, batches, at C.int64_t, handler *C.struct_ArrowAsyncDeviceStreamHandler) C.int32_t {
	switch plan {
	case C.UVA_SUBJECT_WHOLE, C.UVA_SUBJECT_ENDLESS, C.UVA_SUBJECT_SLOW,
		C.UVA_SUBJECT_FAILS, C.UVA_SUBJECT_FAILS_FIRST:
		(&producer{handler: handler, plan: plan, batches: int64(batches)}).run()
		return 0
	}
	return C.UVA_SUBJECT_CANNOT
}

//export uva_subject_count
func uva_subject_count(what C.int32_t) C.int64_t {
	switch what {
	case C.UVA_SUBJECT_LIVE:
		return C.int64_t(live.Load())
	case C.UVA_SUBJECT_MADE:
		return C.int64_t(made.Load())
	}
	return C.UVA_SUBJECT_CANNOT
}

func main() {}
