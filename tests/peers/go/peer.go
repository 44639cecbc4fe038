// SPDX-License-Identifier: Apache-2.0

// arrow-go as a library of C: Arrow IPC to and from streams of the C interface,
// and streams that pass through its record batches.
package main

// #include <stdint.h>
// #include <string.h>
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
)

// What leaves Go is no memory of its collector.
var memory = mallocator.NewMallocator()

func main() {}

// Runs a function; its error or panic is the text of a code that is not 0.
func guarded(text *C.char, room C.int, run func() error) (code C.int) {
	fail := func(err any) {
		code = 5
		said := append([]byte(fmt.Sprint(err)), 0)
		n := min(len(said), int(room))
		said[n-1] = 0
		C.memcpy(unsafe.Pointer(text), unsafe.Pointer(&said[0]), C.size_t(n))
	}
	defer func() {
		if err := recover(); err != nil {
			fail(fmt.Sprint("panic: ", err))
		}
	}()
	if err := run(); err != nil {
		fail(err)
	}
	return code
}

type stream = cdata.CArrowArrayStream

func imported(in unsafe.Pointer) (array.RecordReader, error) {
	reader, err := cdata.ImportCRecordReader((*stream)(in), nil)
	if err != nil {
		return nil, err
	}
	return reader.(array.RecordReader), nil
}

// A reader of batches that are there, and no more.
func give(schema *arrow.Schema, batches []arrow.RecordBatch, out unsafe.Pointer) error {
	reader, err := array.NewRecordReader(schema, batches)
	if err != nil {
		return err
	}
	cdata.ExportRecordReader(reader, (*stream)(out))
	reader.Release()
	return nil
}

func fileBatches(file *os.File) (*arrow.Schema, []arrow.RecordBatch, error) {
	reader, err := ipc.NewFileReader(file, ipc.WithAllocator(memory))
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	var batches []arrow.RecordBatch
	for i := range reader.NumRecords() {
		batch, err := reader.RecordBatchAt(i)
		if err != nil {
			return nil, nil, err
		}
		batches = append(batches, batch)
	}
	return reader.Schema(), batches, nil
}

func streamBatches(file *os.File) (*arrow.Schema, []arrow.RecordBatch, error) {
	reader, err := ipc.NewReader(file, ipc.WithAllocator(memory))
	if err != nil {
		return nil, nil, err
	}
	defer reader.Release()
	var batches []arrow.RecordBatch
	for reader.Next() {
		batch := reader.RecordBatch()
		batch.Retain()
		batches = append(batches, batch)
	}
	return reader.Schema(), batches, reader.Err()
}

// Reads a file of Arrow IPC.
//
//export peer_read
func peer_read(path *C.char, isFile C.int, out unsafe.Pointer, text *C.char, room C.int) C.int {
	return guarded(text, room, func() error {
		file, err := os.Open(C.GoString(path))
		if err != nil {
			return err
		}
		defer file.Close()
		read := streamBatches
		if isFile != 0 {
			read = fileBatches
		}
		schema, batches, err := read(file)
		if err != nil {
			return err
		}
		return give(schema, batches, out)
	})
}

type writer interface {
	Write(arrow.RecordBatch) error
	Close() error
}

func newWriter(file *os.File, schema *arrow.Schema, isFile, codec C.int) (writer, error) {
	options := []ipc.Option{ipc.WithSchema(schema), ipc.WithAllocator(memory),
		ipc.WithDictionaryDeltas(isFile == 0)}
	if codec == 1 {
		options = append(options, ipc.WithLZ4())
	} else if codec == 2 {
		options = append(options, ipc.WithZstd())
	}
	if isFile != 0 {
		return ipc.NewFileWriter(file, options...)
	}
	return ipc.NewWriter(file, options...), nil
}

// Writes a stream as Arrow IPC, and releases it.
//
//export peer_write
func peer_write(in unsafe.Pointer, path *C.char, isFile, codec C.int, text *C.char, room C.int) C.int {
	return guarded(text, room, func() error {
		reader, err := imported(in)
		if err != nil {
			return err
		}
		defer reader.Release()
		file, err := os.Create(C.GoString(path))
		if err != nil {
			return err
		}
		defer file.Close()
		out, err := newWriter(file, reader.Schema(), isFile, codec)
		if err != nil {
			return err
		}
		for reader.Next() {
			if err = out.Write(reader.RecordBatch()); err != nil {
				return err
			}
		}
		return errors.Join(reader.Err(), out.Close())
	})
}

// Imports a stream, and exports what it gives as another one.
//
//export peer_pass
func peer_pass(in, out unsafe.Pointer, text *C.char, room C.int) C.int {
	return guarded(text, room, func() error {
		reader, err := imported(in)
		if err != nil {
			return err
		}
		cdata.ExportRecordReader(reader, (*stream)(out))
		reader.Release()
		return nil
	})
}

// Reads batches until the end, or at most so many, and releases the stream.
//
//export peer_drain
func peer_drain(in unsafe.Pointer, most C.int64_t, rows *C.int64_t, text *C.char, room C.int) C.int {
	return guarded(text, room, func() error {
		reader, err := imported(in)
		if err != nil {
			return err
		}
		defer reader.Release()
		for n := C.int64_t(0); (most < 0 || n < most) && reader.Next(); n++ {
			*rows += C.int64_t(reader.RecordBatch().NumRows())
		}
		return reader.Err()
	})
}
