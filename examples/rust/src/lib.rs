// SPDX-License-Identifier: Apache-2.0

//! uvarrow on tokio: the rows of a query as a `Stream` of record batches.
//!
//! The runtime has no thread for its loop. tokio watches its descriptor, and
//! `Runtime::run()` makes its turns beside the program's future, on one thread.
//! A batch is taken when it is polled for: what is not polled is not read, beyond
//! a window. Dropping a future loses no batch, dropping `Batches` cancels the
//! query. This is the seed of a crate, not the crate.

use std::cell::RefCell;
use std::ffi::{c_void, CStr, CString};
use std::fmt;
use std::future::Future;
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arrow_array::ffi::{from_ffi, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use tokio::io::{unix::AsyncFd, Interest};
pub use tokio_stream::{Stream, StreamExt};

#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code)]
mod sys {
    include!(concat!(env!("OUT_DIR"), "/uvarrow.rs"));
}

/// An error of the library, inside of `ArrowError::ExternalError`.
#[derive(Debug)]
pub struct Error {
    /// an errno: `ECANCELED` after a cancel
    pub code: i32,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn failure(error: &sys::uva_error) -> ArrowError {
    let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
    ArrowError::ExternalError(Box::new(Error {
        code: error.code,
        message: message.to_string_lossy().into_owned(),
    }))
}

/// Runs a call that returns 0 or fills the error.
fn checked(call: impl FnOnce(*mut sys::uva_error) -> i32) -> Result<(), ArrowError> {
    let mut error: sys::uva_error = unsafe { zeroed() };
    match call(&mut error) {
        0 => Ok(()),
        _ => Err(failure(&error)),
    }
}

fn text(text: &str) -> Result<CString, ArrowError> {
    CString::new(text).map_err(|error| ArrowError::InvalidArgumentError(error.to_string()))
}

struct Handle(*mut sys::uva_runtime);

impl Drop for Handle {
    /// Closes it: the last turns are made here.
    fn drop(&mut self) {
        unsafe { sys::uva_runtime_join(self.0, 0) };
    }
}

/// A runtime whose loop is tokio's. It stays on its thread, as do its streams.
pub struct Runtime(Rc<Handle>);

impl Runtime {
    pub fn open() -> Result<Self, ArrowError> {
        let mut raw = null_mut();
        checked(|error| unsafe {
            sys::uva_runtime_open_turned(None, null_mut(), null(), &mut raw, error)
        })?;
        Ok(Runtime(Rc::new(Handle(raw))))
    }

    /// Runs a future, and the turns that its streams need.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, ArrowError> {
        tokio::select! {
            result = work => Ok(result),
            error = self.turns() => Err(error.into()),
        }
    }

    /// Ends only with an error. The descriptor is told of once: after a turn that
    /// has reached its limit, the next one is due without that.
    async fn turns(&self) -> std::io::Error {
        let fd: RawFd = unsafe { sys::uva_runtime_fd(self.0 .0) };
        let fd = match AsyncFd::with_interest(fd, Interest::READABLE) {
            Ok(fd) => fd,
            Err(error) => return error,
        };
        loop {
            match fd.readable().await {
                Ok(mut guard) => {
                    if unsafe { sys::uva_runtime_turn(self.0 .0) } != sys::UVA_TURN_DUE {
                        guard.clear_ready();
                    }
                }
                Err(error) => return error,
            }
            tokio::task::yield_now().await;
        }
    }

    /// A pool of connections to a database: `sqlite:flights.db`.
    pub fn pool(&self, uri: &str) -> Result<Pool, ArrowError> {
        let uri = text(uri)?;
        let mut options: [sys::uva_pair; 2] = unsafe { zeroed() };
        options[0].key = c"uri".as_ptr();
        options[0].value = uri.as_ptr();
        let mut pool: sys::uva_adbc_pool_options = unsafe { zeroed() };
        pool.options = options.as_ptr();
        let mut raw = null_mut();
        checked(|error| unsafe { sys::uva_adbc_pool_new(self.0 .0, &pool, &mut raw, error) })?;
        Ok(Pool { raw, runtime: self.0.clone() })
    }
}

/// Connections to one database.
pub struct Pool {
    raw: *mut sys::uva_adbc_pool,
    runtime: Rc<Handle>,
}

impl Pool {
    /// Starts a query; its batches are a `Stream`.
    pub fn query(&self, sql: &str) -> Result<Batches, ArrowError> {
        let sql = text(sql)?;
        let mut query: sys::uva_adbc_query = unsafe { zeroed() };
        query.sql = sql.as_ptr();
        let batches = Batches {
            raw: unsafe { sys::uva_stream_from_query(self.raw, &query) },
            waker: Box::default(),
            schema: None,
            is_over: false,
            _runtime: self.runtime.clone(),
        };
        let ctx = &*batches.waker as *const Slot as *mut c_void;
        checked(|error| unsafe {
            sys::uva_stream_start_take(batches.raw, null(), Some(wake), ctx, error)
        })?;
        Ok(batches)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        unsafe { sys::uva_adbc_pool_release(self.raw) };
    }
}

type Slot = RefCell<Option<Waker>>;

/// On the loop thread: a batch waits, or the stream has ended.
unsafe extern "C" fn wake(ctx: *mut c_void) {
    let waker = (*(ctx as *const Slot)).borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The rows of a query.
pub struct Batches {
    raw: *mut sys::uva_stream,
    waker: Box<Slot>,
    schema: Option<SchemaRef>,
    is_over: bool,
    _runtime: Rc<Handle>, // dropped last: the stream needs it
}

impl Batches {
    /// The query is cancelled in the database; the stream ends with `ECANCELED`.
    pub fn cancel(&self) {
        unsafe { sys::uva_stream_cancel(self.raw, 0, c"cancelled by the program".as_ptr()) };
    }

    unsafe fn imported(&mut self, batch: &mut sys::uva_batch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.data.array.length as usize; // the array is moved out of the batch
        let array = FFI_ArrowArray::from_raw((&mut batch.data.array as *mut sys::ArrowArray).cast());
        let schema = &*(batch.schema as *const FFI_ArrowSchema);
        let (_, columns, _) = StructArray::from(from_ffi(array, schema)?).into_parts();
        if self.schema.is_none() {
            self.schema = Some(Arc::new(Schema::try_from(schema)?));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone().unwrap(), columns, &options)
    }
}

impl Stream for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut batch: sys::uva_batch = unsafe { zeroed() };
        let mut outcome: sys::uva_outcome = unsafe { zeroed() };
        match unsafe { sys::uva_stream_take(self.raw, &mut batch, &mut outcome) } {
            0 => return Poll::Ready(Some(unsafe { self.imported(&mut batch) })),
            libc::EAGAIN => {
                *self.waker.borrow_mut() = Some(cx.waker().clone());
                return Poll::Pending;
            }
            libc::ENOENT => {}
            code => outcome.error.code = code,
        }
        self.is_over = true;
        Poll::Ready((outcome.error.code != 0).then(|| Err(failure(&outcome.error))))
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        unsafe { sys::uva_stream_drop(self.raw) };
    }
}
