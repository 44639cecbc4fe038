// SPDX-License-Identifier: Apache-2.0

//! A producer: one thread reads the source, two batches ahead, and another one makes all
//! callbacks. `request` and `cancel` only set what these threads then see.
//!
//! The object is reference counted: by both threads, and by each task, as a consumer may
//! extract tasks after the stream.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, CStr};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::abi::*;
use crate::data::{metadata, schema, Batch};
use crate::plan::*;

const AHEAD: usize = 2;

struct Stream {
    object: Producer, // the consumer calls it
    handler: *mut Handler,
    plan: i32,
    batches: i64,
    at: i64,
    _about: Vec<u8>,     // what additional_metadata points to
    state: Mutex<State>, // never held in a callback
    changed: Condvar,
}
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

#[derive(Default)]
struct State {
    ahead: VecDeque<Batch>,
    is_read: bool, // the source is at its end
    demand: i64,
    bad_request: bool,
    cancelled: bool,
    held: i64,    // tasks that are not extracted
    spoilt: bool, // an extraction failed
    closed: bool, // no more is read
}

// ---- calls of the consumer, on any thread

unsafe extern "C" fn request(object: *mut Producer, n: i64) {
    let stream = &*((*object).private_data as *const Stream);
    stream.change(|state| match n {
        1.. => state.demand = state.demand.saturating_add(n),
        _ => state.bad_request = true,
    });
}

unsafe extern "C" fn cancel(object: *mut Producer) {
    let stream = &*((*object).private_data as *const Stream);
    stream.change(|state| state.cancelled = true);
}

/// The memory behind a task. The task has a reference, and so has the callback that
/// offers it, which reclaims a task that was refused and not extracted.
struct Payload {
    stream: Arc<Stream>,
    batch: Mutex<Option<Batch>>,
    taken: AtomicBool,
    fails: bool,
}

unsafe extern "C" fn extract_data(task: *mut Task, out: *mut DeviceArray) -> c_int {
    let payload = Arc::from_raw((*task).private_data as *const Payload);
    payload.taken.store(true, SeqCst);
    let batch = payload.batch.lock().unwrap().take();
    payload.stream.change(|state| {
        state.held -= 1;
        state.spoilt |= payload.fails && !out.is_null();
    });
    if out.is_null() {
        return 0; // the batch is dropped
    }
    if payload.fails {
        return EIO;
    }
    if let Some(mut batch) = batch {
        out.write(std::mem::replace(&mut batch.0, DeviceArray::EMPTY));
    }
    0
}

// ---- the threads

enum Step {
    Offer(Batch),
    End,
    Fail(c_int, &'static CStr),
    Stop,
}

impl Stream {
    fn change(&self, set: impl FnOnce(&mut State)) {
        set(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.changed
            .wait_while(self.state.lock().unwrap(), condition)
            .unwrap()
    }

    /// The thread of the source.
    fn read(&self) {
        let count = match self.plan {
            ENDLESS | CANCEL_FAILS => i64::MAX,
            _ => self.batches,
        };
        for ordinal in 0..count {
            let wait = |state: &mut State| state.ahead.len() >= AHEAD && !state.closed;
            if self.wait_while(wait).closed {
                return;
            }
            if self.plan == SLOW {
                thread::sleep(Duration::from_millis(5));
            }
            let batch = Batch::new(ordinal);
            self.change(|state| {
                if !state.closed {
                    state.ahead.push_back(batch);
                }
            });
        }
        while self.plan == STUCK {
            thread::park();
        }
        self.change(|state| state.is_read = true);
    }

    /// Waits until there is a callback to make. `after_end`: only release may follow, or
    /// the failure of an extraction.
    fn next(&self, after_end: bool) -> Step {
        let is_ready = |state: &State| match after_end {
            true => self.plan != TASK_FAILS || state.held == 0,
            false if state.bad_request => true,
            false if state.ahead.is_empty() => state.is_read,
            false => state.demand > 0,
        };
        let mut state =
            self.wait_while(|state| !state.cancelled && !state.spoilt && !is_ready(state));
        if state.cancelled && self.plan == CANCEL_FAILS {
            return Step::Fail(EIO, c"the cancel failed");
        }
        if state.cancelled {
            return Step::Stop;
        }
        if state.spoilt {
            return Step::Fail(EIO, c"a batch could not be extracted");
        }
        if after_end {
            return Step::Stop;
        }
        if state.bad_request {
            return Step::Fail(EINVAL, c"a request must be for 1 or more");
        }
        match state.ahead.pop_front() {
            Some(batch) => {
                if state.demand < i64::MAX {
                    state.demand -= 1;
                }
                state.held += 1;
                self.changed.notify_all();
                Step::Offer(batch)
            }
            None if matches!(self.plan, FAILS | TAGGED_FAILS) => {
                Step::Fail(EIO, c"the source failed")
            }
            None => Step::End,
        }
    }

    /// Offers a task. Returns whether it was accepted.
    unsafe fn offer(self: &Arc<Self>, ordinal: i64, batch: Batch) -> bool {
        let payload = Arc::new(Payload {
            stream: self.clone(),
            batch: Mutex::new(Some(batch)),
            taken: AtomicBool::new(false),
            fails: self.plan == TASK_FAILS && ordinal == self.at,
        });
        let own = Arc::into_raw(payload.clone());
        let mut task = Task {
            extract_data,
            private_data: own as *mut _,
        };
        let tag = metadata(ordinal.to_string().as_bytes());
        let about = if self.plan == TAGGED {
            tag.as_ptr().cast()
        } else {
            ptr::null()
        };
        let code = ((*self.handler).on_next_task)(self.handler, &mut task, about);
        if code != 0 && !payload.taken.load(SeqCst) {
            drop(Arc::from_raw(own));
        }
        code == 0
    }

    /// The calls of a stream, apart from release.
    unsafe fn play(self: &Arc<Self>) {
        let handler = self.handler;
        let fail = |code: c_int, text: &CStr| {
            let tag = metadata(b"a\0b\0c");
            let about = if self.plan == TAGGED_FAILS {
                tag.as_ptr().cast()
            } else {
                ptr::null()
            };
            ((*handler).on_error)(handler, code, text.as_ptr(), about);
        };
        if self.plan == FAILS_FIRST {
            return fail(EIO, c"there is no schema");
        }
        let mut schema = schema();
        let refused = ((*handler).on_schema)(handler, &mut schema) != 0;
        if let Some(release) = schema.release {
            release(&mut schema);
        }
        if refused {
            return;
        }
        let (mut ordinal, mut after_end) = (0, false);
        loop {
            match self.next(after_end) {
                Step::Offer(batch) => {
                    if !self.offer(ordinal, batch) {
                        return;
                    }
                    ordinal += 1;
                }
                Step::End => {
                    if ((*handler).on_next_task)(handler, ptr::null_mut(), ptr::null()) != 0 {
                        return;
                    }
                    after_end = true;
                }
                Step::Fail(code, text) => return fail(code, text),
                Step::Stop => return,
            }
        }
    }
}

pub unsafe fn start(plan: i32, batches: i64, at: i64, handler: *mut Handler) {
    let stream = Arc::new_cyclic(|own: &std::sync::Weak<Stream>| {
        let about = metadata(b"about");
        let text = if plan == TAGGED {
            about.as_ptr().cast::<c_char>()
        } else {
            ptr::null()
        };
        Stream {
            object: Producer {
                device_type: CPU,
                request,
                cancel,
                additional_metadata: text,
                private_data: own.as_ptr() as *mut _,
            },
            handler,
            plan,
            batches,
            at,
            _about: about,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    });
    (*handler).producer = &raw const stream.object as *mut Producer;
    let source = stream.clone();
    thread::spawn(move || source.read());
    thread::spawn(move || {
        stream.play();
        stream.change(|state| {
            state.closed = true;
            state.ahead.clear();
        });
        ((*stream.handler).release)(stream.handler);
    });
}
