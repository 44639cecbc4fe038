// SPDX-License-Identifier: Apache-2.0

//! The data of the suite: batches of a column `n` that counts up from 0, and metadata.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::Arc;

use crate::abi::*;

pub const ROWS: usize = 3;

/// Batches and schemas that are not freed, and batches made, for uva_subject_count().
pub static LIVE: AtomicI64 = AtomicI64::new(0);
pub static MADE: AtomicI64 = AtomicI64::new(0);

/// The memory of a batch. Its array and its child each have a reference, as a consumer
/// may keep the child alone.
struct Numbers {
    child: Array,
    children: [*mut Array; 1],
    buffers: [*const c_void; 2],
    no_buffers: [*const c_void; 1],
    values: [i64; ROWS],
}

impl Drop for Numbers {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, SeqCst);
    }
}

unsafe extern "C" fn array_release(array: *mut Array) {
    for i in 0..(*array).n_children as usize {
        let child = *(*array).children.add(i);
        if let Some(release) = (*child).release {
            release(child);
        }
    }
    (*array).release = None;
    drop(Arc::from_raw((*array).private_data as *const Numbers));
}

/// A batch that is released unless it is given away.
pub struct Batch(pub DeviceArray);
unsafe impl Send for Batch {}
unsafe impl Sync for Batch {}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(release) = self.0.array.release {
            unsafe { release(&mut self.0.array) }
        }
    }
}

impl Batch {
    pub fn new(ordinal: i64) -> Batch {
        let own = Arc::into_raw(Arc::new(Numbers {
            child: Array::EMPTY,
            children: [ptr::null_mut()],
            buffers: [ptr::null(); 2],
            no_buffers: [ptr::null()],
            values: std::array::from_fn(|row| ordinal * ROWS as i64 + row as i64),
        })) as *mut Numbers;
        LIVE.fetch_add(1, SeqCst);
        MADE.fetch_add(1, SeqCst);
        unsafe {
            (*own).buffers[1] = (&raw const (*own).values).cast();
            (*own).children[0] = &raw mut (*own).child;
            (*own).child = Array {
                length: ROWS as i64,
                n_buffers: 2,
                buffers: (&raw const (*own).buffers).cast(),
                release: Some(array_release),
                private_data: own.cast(),
                ..Array::EMPTY
            };
            Arc::increment_strong_count(own); // the child's
            Batch(DeviceArray {
                array: Array {
                    length: ROWS as i64,
                    n_buffers: 1,
                    buffers: (&raw const (*own).no_buffers).cast(),
                    n_children: 1,
                    children: (&raw const (*own).children).cast(),
                    release: Some(array_release),
                    private_data: own.cast(),
                    ..Array::EMPTY
                },
                ..DeviceArray::EMPTY
            })
        }
    }
}

unsafe extern "C" fn schema_release(schema: *mut Schema) {
    for i in 0..(*schema).n_children as usize {
        let child = *(*schema).children.add(i);
        if let Some(release) = (*child).release {
            release(child);
        }
    }
    (*schema).release = None;
    if (*schema).n_children > 0 {
        drop(Box::from_raw(
            (*schema).private_data as *mut (Schema, [*mut Schema; 1]),
        ));
        LIVE.fetch_sub(1, SeqCst);
    }
}

pub fn schema() -> Schema {
    let child = Schema {
        format: c"l".as_ptr(),
        name: c"n".as_ptr(),
        release: Some(schema_release),
        ..Schema::EMPTY
    };
    let own = Box::leak(Box::new((child, [ptr::null_mut(); 1])));
    own.1[0] = &raw mut own.0;
    LIVE.fetch_add(1, SeqCst);
    Schema {
        format: c"+s".as_ptr(),
        name: c"".as_ptr(),
        n_children: 1,
        children: own.1.as_ptr(),
        release: Some(schema_release),
        private_data: (own as *mut (Schema, [*mut Schema; 1])).cast(),
        ..Schema::EMPTY
    }
}

/// One pair in Arrow's encoding: the number of pairs, then each text after its length.
pub fn metadata(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::from(1i32.to_ne_bytes());
    for part in [b"tck", value] {
        text.extend((part.len() as i32).to_ne_bytes());
        text.extend(part);
    }
    text
}

/// The value of the key "tck", if there is one. Metadata may lie at any address.
pub unsafe fn find_tag(metadata: *const c_char) -> Option<Vec<u8>> {
    if metadata.is_null() {
        return None;
    }
    let mut at = metadata as *const u8;
    let count = number(&mut at);
    for _ in 0..count {
        let mut pair = [&[][..]; 2];
        for part in &mut pair {
            let size = usize::try_from(number(&mut at)).ok()?; // malformed, if negative
            *part = std::slice::from_raw_parts(at, size);
            at = at.add(size);
        }
        if pair[0] == b"tck" {
            return Some(pair[1].to_vec());
        }
    }
    None
}

unsafe fn number(at: &mut *const u8) -> i32 {
    let n = at.cast::<i32>().read_unaligned();
    *at = at.add(4);
    n
}
