// SPDX-License-Identifier: Apache-2.0

package main

// #include <stdint.h>
// #include <stdlib.h>
// struct ArrowAsyncDeviceStreamHandler;
import "C"

import (
	"context"
	"errors"
	"os"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
)

const handlerSize = 64 // more than the struct

// Sends the batches of a file to a handler, as a foreign producer; the schema goes
// first. Called by uva_stream_from_async(), which asks for a return.
//
//export peer_start
func peer_start(path, handler, _ unsafe.Pointer) C.int {
	file, err := os.Open(C.GoString((*C.char)(path)))
	if err != nil {
		return 2
	}
	schema, batches, err := streamBatches(file)
	file.Close()
	if err != nil {
		return 5
	}
	messages := make(chan cdata.RecordMessage)
	over := make(chan struct{})
	go func() {
		defer close(messages)
		for _, batch := range batches {
			select {
			case messages <- cdata.RecordMessage{Record: batch}:
			case <-over:
				batch.Release()
			}
		}
	}()
	go func() {
		defer close(over)
		cdata.ExportAsyncRecordBatchStream(schema, messages,
			(*cdata.CArrowAsyncDeviceStreamHandler)(handler))
	}()
	return 0
}

// What arrives at a handler.
type arrival struct {
	opened <-chan cdata.AsyncRecordBatchStream
	cancel context.CancelFunc
}

var arrivals = map[unsafe.Pointer]arrival{}

// Makes a handler, for uva_stream_drive().
//
//export peer_handler
func peer_handler(queue C.uint64_t) unsafe.Pointer {
	handler := C.calloc(1, handlerSize)
	ctx, cancel := context.WithCancel(context.Background())
	arrivals[handler] = arrival{cdata.CreateAsyncDeviceStreamHandler(ctx, uint64(queue),
		(*cdata.CArrowAsyncDeviceStreamHandler)(handler)), cancel}
	return handler
}

// Writes what arrives at a handler, at most so many batches, to a file.
//
//export peer_arrived
func peer_arrived(handler unsafe.Pointer, most C.int64_t, path, text *C.char, room C.int) C.int {
	return guarded(text, room, func() error {
		at := arrivals[handler]
		delete(arrivals, handler)
		defer at.cancel()
		stream := <-at.opened
		if stream.Err != nil {
			return stream.Err
		}
		file, err := os.Create(C.GoString(path))
		if err != nil {
			return err
		}
		defer file.Close()
		out, err := newWriter(file, stream.Schema, 0, 0)
		if err != nil {
			return err
		}
		for n := C.int64_t(0); n != most; n++ {
			message, more := <-stream.Stream
			if !more {
				break
			}
			if message.Err != nil {
				err = errors.Join(err, message.Err)
				continue
			}
			err = errors.Join(err, writeAndRelease(out, message.Record))
		}
		return errors.Join(err, out.Close())
	})
}

func writeAndRelease(out writer, batch arrow.RecordBatch) error {
	defer batch.Release()
	return out.Write(batch)
}
