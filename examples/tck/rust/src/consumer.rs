// SPDX-License-Identifier: Apache-2.0

//! A consumer: its handler takes each batch in the callback, or has a thread of its own
//! take them. It keeps an account of what it received.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, CStr};
use std::ptr;
use std::sync::{Condvar, Mutex};
use std::thread::{self, ThreadId};

use crate::abi::*;
use crate::data::find_tag;
use crate::manner::*;

const WINDOW: i64 = 4;

/// How a stream ends, as struct uva_subject_outcome has it.
pub const COMPLETE: i32 = 0;
pub const FAILED: i32 = 1;
pub const CANCELLED: i32 = 2;
pub const REFUSED: i32 = 3;

#[repr(C)]
pub struct Outcome {
    pub end: i32,
    pub code: i32,
    pub batches: i64,
    pub rows: i64,
    pub sum: i64,
    pub tag_size: i64,
    pub tag: [u8; 64],
    pub message: [u8; 256],
    pub reserved: [i64; 4],
}

pub struct Consumer {
    pub handler: Handler, // the producer calls it
    manner: i32,
    k: i64,
    state: Mutex<State>, // never held in a call
    changed: Condvar,
}
unsafe impl Send for Consumer {}
unsafe impl Sync for Consumer {}

#[derive(Default)]
struct State {
    end: Option<i32>, // the first thing that decided it
    code: c_int,
    message: Vec<u8>,
    tag: Vec<u8>,
    bare: bool,   // the stream is no struct
    arrived: i64, // tasks
    batches: i64,
    rows: i64,
    sum: i64,
    waiting: VecDeque<Sent<Task>>, // for the consumer's thread
    taking: bool,                  // that thread has one
    calling: Option<ThreadId>,     // it calls the producer, which may not end meanwhile
    is_over: bool,                 // by NULL, an error or release
    is_released: bool,
}

unsafe extern "C" fn on_schema(handler: *mut Handler, schema: *mut Schema) -> c_int {
    let own = Consumer::of(handler);
    let format = CStr::from_ptr((*schema).format).to_bytes().to_vec();
    if let Some(release) = (*schema).release {
        release(schema);
    }
    let is_known = format == b"+s" || (format == b"i" && own.manner == TAKES_BARE);
    if !is_known || own.manner == REFUSES_SCHEMA {
        own.decide(REFUSED, EINVAL, b"");
        return EINVAL;
    }
    own.state.lock().unwrap().bare = format == b"i";
    let n = if own.manner == TAKES_SOME {
        own.k
    } else {
        WINDOW
    };
    if n > 0 {
        ((*(*handler).producer).request)((*handler).producer, n);
    }
    0
}

unsafe extern "C" fn on_next_task(
    handler: *mut Handler,
    task: *mut Task,
    metadata: *const c_char,
) -> c_int {
    let own = Consumer::of(handler);
    if task.is_null() {
        own.finish();
        own.decide(COMPLETE, 0, b"");
        return 0;
    }
    let ordinal = own.note(metadata);
    let task = ptr::read(task);
    if matches!(own.manner, HOLDS | HOLDS_AND_CANCELS) {
        own.state.lock().unwrap().waiting.push_back(Sent(task));
        own.changed.notify_all();
    } else if own.manner == REFUSES && ordinal == own.k {
        own.decide(REFUSED, EIO, b"");
        own.take(task, false);
        return EIO;
    } else {
        if own.manner == CANCELS && ordinal == own.k {
            own.decide(CANCELLED, 0, b"");
            ((*(*handler).producer).cancel)((*handler).producer);
        }
        if !own.take(task, true) {
            own.decide(REFUSED, ENOTSUP, b"");
            return ENOTSUP;
        }
    }
    let is_over = own.state.lock().unwrap().end.is_some();
    if own.manner != TAKES_SOME && !is_over {
        ((*(*handler).producer).request)((*handler).producer, 1);
    }
    0
}

unsafe extern "C" fn on_error(
    handler: *mut Handler,
    code: c_int,
    message: *const c_char,
    metadata: *const c_char,
) {
    let own = Consumer::of(handler);
    let text = if message.is_null() {
        c""
    } else {
        CStr::from_ptr(message)
    };
    if let Some(tag) = find_tag(metadata) {
        own.state.lock().unwrap().tag = tag;
    }
    own.finish();
    own.decide(FAILED, code, text.to_bytes());
}

unsafe extern "C" fn release(handler: *mut Handler) {
    let own = Consumer::of(handler);
    // Waits after an error, too, as that may have come inside a cancel.
    if !own.finish() {
        own.decide(FAILED, EIO, b"the stream just stopped");
    }
    own.state.lock().unwrap().is_released = true;
    own.changed.notify_all();
}

impl Consumer {
    /// A consumer is never freed, so that its account can be read.
    pub fn new(manner: i32, k: i64) -> &'static Consumer {
        let own = Box::leak(Box::new(Consumer {
            handler: Handler {
                on_schema,
                on_next_task,
                on_error,
                release,
                producer: ptr::null_mut(),
                private_data: ptr::null_mut(),
            },
            manner,
            k,
            state: Mutex::default(),
            changed: Condvar::new(),
        }));
        own.handler.private_data = (own as *mut Consumer).cast();
        let own: &'static Consumer = own;
        if matches!(manner, HOLDS | HOLDS_AND_CANCELS) {
            thread::spawn(move || unsafe { own.work() });
        }
        own
    }

    unsafe fn of(handler: *mut Handler) -> &'static Consumer {
        &*((*handler).private_data as *const Consumer)
    }

    fn decide(&self, end: i32, code: c_int, text: &[u8]) {
        let mut state = self.state.lock().unwrap();
        let is_late = state.end == Some(COMPLETE) && end == FAILED; // of a task
        if state.end.is_none() || is_late {
            state.end = Some(end);
            state.code = code;
            state.message = text.to_vec();
        }
    }

    /// The stream is over, once no other thread is in a call of the producer. Returns
    /// whether it was over before.
    fn finish(&self) -> bool {
        let this = thread::current().id();
        let busy = |state: &mut State| state.calling.is_some_and(|other| other != this);
        let state = self.state.lock().unwrap();
        let mut state = self.changed.wait_while(state, busy).unwrap();
        std::mem::replace(&mut state.is_over, true)
    }

    /// Counts a task. Returns its number, from 0.
    unsafe fn note(&self, metadata: *const c_char) -> i64 {
        let mut state = self.state.lock().unwrap();
        if let Some(tag) = find_tag(metadata) {
            state.tag = tag;
        }
        state.arrived += 1;
        state.arrived - 1
    }

    /// Extracts a task, and reads its rows if they are wanted. Returns whether the device
    /// is known.
    unsafe fn take(&self, mut task: Task, wanted: bool) -> bool {
        let mut batch = DeviceArray::EMPTY;
        if !wanted {
            (task.extract_data)(&mut task, ptr::null_mut());
            return true;
        }
        let code = (task.extract_data)(&mut task, &mut batch);
        let Some(release) = batch.array.release.filter(|_| code == 0) else {
            self.decide(
                FAILED,
                if code == 0 { EIO } else { code },
                b"no batch was given",
            );
            return true;
        };
        let is_known = batch.device_type == CPU;
        if is_known {
            self.read(&batch.array);
        }
        release(&mut batch.array);
        is_known
    }

    unsafe fn read(&self, array: &Array) {
        let mut state = self.state.lock().unwrap();
        state.batches += 1;
        state.rows += array.length;
        let sum: i64 = if state.bare {
            let values = (*array.buffers.add(1)).cast::<i32>();
            (0..array.length)
                .map(|row| *values.offset((array.offset + row) as isize) as i64)
                .sum()
        } else {
            let n = &**array.children;
            let values = (*n.buffers.add(1)).cast::<i64>();
            (0..array.length)
                .map(|row| *values.offset((array.offset + n.offset + row) as isize))
                .sum()
        };
        state.sum += sum;
    }

    /// The consumer's thread, which extracts later and cancels outside of callbacks.
    unsafe fn work(&self) {
        loop {
            let state = self.state.lock().unwrap();
            let idle = |state: &mut State| state.waiting.is_empty() && !state.is_released;
            let mut state = self.changed.wait_while(state, idle).unwrap();
            let is_due = self.manner == HOLDS_AND_CANCELS && state.arrived > self.k;
            if is_due && state.end.is_none() && !state.is_over {
                state.end = Some(CANCELLED);
                state.calling = Some(thread::current().id());
                drop(state);
                ((*self.handler.producer).cancel)(self.handler.producer);
                self.state.lock().unwrap().calling = None;
                self.changed.notify_all();
                continue;
            }
            let Some(task) = state.waiting.pop_front() else {
                return;
            };
            let wanted = state.end != Some(CANCELLED);
            state.taking = true;
            drop(state);
            self.take(task.0, wanted);
            self.state.lock().unwrap().taking = false;
        }
    }

    pub fn report(&self, out: &mut Outcome) -> bool {
        let state = self.state.lock().unwrap();
        if !state.is_released || state.taking || !state.waiting.is_empty() {
            return false;
        }
        let end = state.end.unwrap_or(FAILED);
        *out = Outcome {
            end,
            code: if end == FAILED { state.code } else { 0 },
            batches: state.batches,
            rows: state.rows,
            sum: state.sum,
            tag_size: state.tag.len() as i64,
            tag: [0; 64],
            message: [0; 256],
            reserved: [0; 4],
        };
        let size = state.tag.len().min(64);
        out.tag[..size].copy_from_slice(&state.tag[..size]);
        let size = state.message.len().min(255);
        out.message[..size].copy_from_slice(&state.message[..size]);
        true
    }
}
