// SPDX-License-Identifier: Apache-2.0

//! arrow-rs as a library of C: Arrow IPC to and from streams of the C interface,
//! and streams that pass through its record batches.

use std::error::Error;
use std::ffi::{c_char, c_int, CStr};
use std::fs::File;
use std::panic::{catch_unwind, AssertUnwindSafe};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::CompressionType;
use arrow_schema::ArrowError;

type Outcome = Result<(), Box<dyn Error>>;

/// Runs a function; its error or panic is the text of a code that is not 0.
unsafe fn guarded(text: *mut c_char, room: c_int, run: impl FnOnce() -> Outcome) -> c_int {
    let said = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error.to_string(),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            format!("panic: {}", said.unwrap_or("?"))
        }
    };
    let count = said.len().min(room as usize - 1);
    text.copy_from(said.as_ptr().cast(), count);
    *text.add(count) = 0;
    5
}

unsafe fn opened(path: *const c_char) -> Result<File, Box<dyn Error>> {
    Ok(File::open(CStr::from_ptr(path).to_str()?)?)
}

/// Reads a file of Arrow IPC.
///
/// # Safety
/// As in C: `path` is a string, `out` has room for a stream, `text` for `room`.
#[no_mangle]
pub unsafe extern "C" fn peer_read(
    path: *const c_char,
    is_file: c_int,
    out: *mut FFI_ArrowArrayStream,
    text: *mut c_char,
    room: c_int,
) -> c_int {
    guarded(text, room, || {
        let file = opened(path)?;
        let reader: Box<dyn RecordBatchReader + Send> = if is_file != 0 {
            Box::new(FileReader::try_new(file, None)?)
        } else {
            Box::new(StreamReader::try_new(file, None)?)
        };
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, ArrowError>>()?;
        let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        out.write(FFI_ArrowArrayStream::new(Box::new(batches)));
        Ok(())
    })
}

/// The two writers have no trait in common.
enum Writer {
    File(FileWriter<File>),
    Stream(StreamWriter<File>),
}

impl Writer {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Writer::File(writer) => writer.write(batch),
            Writer::Stream(writer) => writer.write(batch),
        }
    }
    fn finish(&mut self) -> Result<(), ArrowError> {
        match self {
            Writer::File(writer) => writer.finish(),
            Writer::Stream(writer) => writer.finish(),
        }
    }
}

/// Writes a stream as Arrow IPC, and releases it.
///
/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn peer_write(
    stream: *mut FFI_ArrowArrayStream,
    path: *const c_char,
    is_file: c_int,
    codec: c_int,
    text: *mut c_char,
    room: c_int,
) -> c_int {
    guarded(text, room, || {
        let reader = RecordBatchStreamReader::from_raw(stream)?;
        let codec = match codec {
            1 => Some(CompressionType::LZ4_FRAME),
            2 => Some(CompressionType::ZSTD),
            _ => None,
        };
        let options = IpcWriteOptions::default().try_with_compression(codec)?;
        let file = File::create(CStr::from_ptr(path).to_str()?)?;
        let schema = reader.schema();
        let mut writer = if is_file != 0 {
            Writer::File(FileWriter::try_new_with_options(file, &schema, options)?)
        } else {
            Writer::Stream(StreamWriter::try_new_with_options(file, &schema, options)?)
        };
        for batch in reader {
            writer.write(&batch?)?;
        }
        Ok(writer.finish()?)
    })
}

/// Imports a stream, and exports what it gives as another one.
///
/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn peer_pass(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowArrayStream,
    text: *mut c_char,
    room: c_int,
) -> c_int {
    guarded(text, room, || {
        let reader = RecordBatchStreamReader::from_raw(stream)?;
        out.write(FFI_ArrowArrayStream::new(Box::new(reader)));
        Ok(())
    })
}

/// Reads batches until the end, or at most so many, and releases the stream.
///
/// # Safety
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn peer_drain(
    stream: *mut FFI_ArrowArrayStream,
    most: i64,
    rows: *mut i64,
    text: *mut c_char,
    room: c_int,
) -> c_int {
    guarded(text, room, || {
        let reader = RecordBatchStreamReader::from_raw(stream)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        for batch in reader.take(most) {
            *rows += batch?.num_rows() as i64;
        }
        Ok(())
    })
}
