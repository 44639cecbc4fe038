// SPDX-License-Identifier: Apache-2.0

//! Both sides of Arrow's asynchronous streams in Rust, without any library, as a subject
//! of the test suite:
//!
//!     cargo build
//!     python -m uvarrow_tck target/debug/libsubject.so
//!
//! This file has what every subject exports. The rest is the implementation under test:
//! put yours in the place of `producer` and `consumer`.

mod abi;
mod consumer;
mod data;
mod producer;

use std::sync::atomic::Ordering::SeqCst;
use std::sync::Mutex;

use abi::{Handler, EAGAIN};
use consumer::{Consumer, Outcome};

const VERSION: i32 = 1; // UVA_SUBJECT_VERSION
const CANNOT: i32 = -1; // UVA_SUBJECT_CANNOT

/// enum uva_subject_plan
#[allow(dead_code)]
mod plan {
    pub const WHOLE: i32 = 0;
    pub const ENDLESS: i32 = 1;
    pub const SLOW: i32 = 2;
    pub const FAILS: i32 = 3;
    pub const FAILS_FIRST: i32 = 4;
    pub const TASK_FAILS: i32 = 5;
    pub const CANCEL_FAILS: i32 = 6;
    pub const TAGGED: i32 = 7;
    pub const TAGGED_FAILS: i32 = 8;
    pub const STUCK: i32 = 9;
}

/// enum uva_subject_manner
#[allow(dead_code)]
mod manner {
    pub const TAKES_ALL: i32 = 0;
    pub const TAKES_SOME: i32 = 1;
    pub const CANCELS: i32 = 2;
    pub const REFUSES: i32 = 3;
    pub const REFUSES_SCHEMA: i32 = 4;
    pub const HOLDS: i32 = 5;
    pub const HOLDS_AND_CANCELS: i32 = 6;
    pub const TAKES_BARE: i32 = 7;
}

static CONSUMERS: Mutex<Vec<&Consumer>> = Mutex::new(Vec::new());

#[no_mangle]
pub extern "C" fn uva_subject_version() -> i32 {
    VERSION
}

#[no_mangle]
pub unsafe extern "C" fn uva_subject_produce(
    plan: i32,
    batches: i64,
    at: i64,
    handler: *mut Handler,
) -> i32 {
    match plan {
        plan::WHOLE..=plan::STUCK => producer::start(plan, batches, at, handler),
        _ => return CANNOT,
    }
    0
}

#[no_mangle]
pub unsafe extern "C" fn uva_subject_consume(
    manner: i32,
    k: i64,
    id: *mut i64,
    handler: *mut *const Handler,
) -> i32 {
    if !(manner::TAKES_ALL..=manner::TAKES_BARE).contains(&manner) {
        return CANNOT;
    }
    let consumer = Consumer::new(manner, k);
    let mut consumers = CONSUMERS.lock().unwrap();
    *id = consumers.len() as i64;
    *handler = &consumer.handler;
    consumers.push(consumer);
    0
}

#[no_mangle]
pub unsafe extern "C" fn uva_subject_report(id: i64, out: *mut Outcome) -> i32 {
    let consumer = CONSUMERS.lock().unwrap()[id as usize];
    if consumer.report(&mut *out) {
        0
    } else {
        EAGAIN
    }
}

#[no_mangle]
pub extern "C" fn uva_subject_count(what: i32) -> i64 {
    match what {
        0 => data::LIVE.load(SeqCst), // UVA_SUBJECT_LIVE
        1 => data::MADE.load(SeqCst), // UVA_SUBJECT_MADE
        _ => CANNOT as i64,
    }
}

#[no_mangle]
pub extern "C" fn uva_subject_knows(what: i32) -> i32 {
    match what {
        0 => plan::STUCK,        // UVA_SUBJECT_PLANS
        1 => manner::TAKES_BARE, // UVA_SUBJECT_MANNERS
        _ => CANNOT,
    }
}
