// SPDX-License-Identifier: Apache-2.0

//! The structs of Arrow's C interfaces, as arrow/c/abi.h has them.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

pub const CPU: i32 = 1;
pub const EIO: c_int = 5;
pub const EAGAIN: c_int = 11;
pub const EINVAL: c_int = 22;
pub const ENOTSUP: c_int = 95;

#[repr(C)]
pub struct Schema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *const *mut Schema,
    pub dictionary: *mut Schema,
    pub release: Option<unsafe extern "C" fn(*mut Schema)>,
    pub private_data: *mut c_void,
}

#[repr(C)]
pub struct Array {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *const *const c_void,
    pub children: *const *mut Array,
    pub dictionary: *mut Array,
    pub release: Option<unsafe extern "C" fn(*mut Array)>,
    pub private_data: *mut c_void,
}

#[repr(C)]
pub struct DeviceArray {
    pub array: Array,
    pub device_id: i64,
    pub device_type: i32,
    pub sync_event: *mut c_void,
    pub reserved: [i64; 3],
}

#[repr(C)]
pub struct Task {
    pub extract_data: unsafe extern "C" fn(*mut Task, *mut DeviceArray) -> c_int,
    pub private_data: *mut c_void,
}

#[repr(C)]
pub struct Producer {
    pub device_type: i32,
    pub request: unsafe extern "C" fn(*mut Producer, i64),
    pub cancel: unsafe extern "C" fn(*mut Producer),
    pub additional_metadata: *const c_char,
    pub private_data: *mut c_void,
}

#[repr(C)]
pub struct Handler {
    pub on_schema: unsafe extern "C" fn(*mut Handler, *mut Schema) -> c_int,
    pub on_next_task: unsafe extern "C" fn(*mut Handler, *mut Task, *const c_char) -> c_int,
    pub on_error: unsafe extern "C" fn(*mut Handler, c_int, *const c_char, *const c_char),
    pub release: unsafe extern "C" fn(*mut Handler),
    pub producer: *mut Producer,
    pub private_data: *mut c_void,
}

/// The structs that are passed between threads: whoever has one may use it anywhere.
pub struct Sent<T>(pub T);
unsafe impl<T> Send for Sent<T> {}
unsafe impl<T> Sync for Sent<T> {}

impl Schema {
    pub const EMPTY: Schema = Schema {
        format: ptr::null(),
        name: ptr::null(),
        metadata: ptr::null(),
        flags: 0,
        n_children: 0,
        children: ptr::null(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    };
}

impl Array {
    pub const EMPTY: Array = Array {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: ptr::null(),
        children: ptr::null(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    };
}

impl DeviceArray {
    pub const EMPTY: DeviceArray = DeviceArray {
        array: Array::EMPTY,
        device_id: -1,
        device_type: CPU,
        sync_event: ptr::null_mut(),
        reserved: [0; 3],
    };
}
