//! The few functions of ggml that `llama-cpp-2` does not offer, and the callbacks that we give to ggml.
//!
//! The only `unsafe` of the crate. Nothing else may declare or call a foreign function.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};

/// Exit code of a worker in which an assertion of ggml or llama.cpp failed.
pub(super) const ABORTED: i32 = 86;

type LogCallback = unsafe extern "C" fn(c_uint, *const c_char, *mut c_void);
type AbortCallback = unsafe extern "C" fn(*const c_char);

// SAFETY: the declarations of ggml.h, llama.h and unistd.h at the versions of the pinned llama-cpp-2; the libraries
// are linked through it.
unsafe extern "C" {
    fn llama_log_set(callback: Option<LogCallback>, user_data: *mut c_void);
    fn ggml_set_abort_callback(callback: Option<AbortCallback>) -> Option<AbortCallback>;
    fn ggml_abort(file: *const c_char, line: c_int, format: *const c_char, ...) -> !;
    fn _exit(code: c_int) -> !;
    fn ggml_backend_dev_count() -> usize;
    fn ggml_backend_dev_get(index: usize) -> *mut c_void;
    fn ggml_backend_dev_get_props(device: *mut c_void, props: *mut DeviceProps);
}

/// `ggml_backend_dev_props` of ggml-backend.h.
#[repr(C)]
struct DeviceProps {
    name: *const c_char,
    description: *const c_char,
    memory_free: usize,
    memory_total: usize,
    kind: c_uint,
    device_id: *const c_char,
    caps: [bool; 5],
}

/// The PCI id of a device of ggml's list, if it has one.
pub(super) fn device_id(index: usize) -> Option<String> {
    let mut props = DeviceProps {
        name: std::ptr::null(),
        description: std::ptr::null(),
        memory_free: 0,
        memory_total: 0,
        kind: 0,
        device_id: std::ptr::null(),
        caps: [false; 5],
    };
    // SAFETY: ggml aborts on an index out of range, which is checked. It fills in all of `props`, and its texts live as
    // long as the device, which is never removed.
    unsafe {
        if index >= ggml_backend_dev_count() {
            return None;
        }
        ggml_backend_dev_get_props(ggml_backend_dev_get(index), &raw mut props);
        if props.device_id.is_null() {
            None
        } else {
            Some(CStr::from_ptr(props.device_id).to_string_lossy().into_owned())
        }
    }
}

const LEVEL_WARN: c_uint = 3;
const LEVEL_ERROR: c_uint = 4;
const LEVEL_CONTINUED: c_uint = 5;

/// Lines that are kept for error messages.
const LINES_MAX: usize = 8;

/// Lowest level that goes to the standard error stream; above every level at first.
static STDERR_LEVEL: AtomicU8 = AtomicU8::new(u8::MAX);

thread_local! {
    /// The last warnings and errors that llama.cpp logged on this thread.
    static LINES: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// What reaches the standard error stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stderr {
    /// Nothing.
    Silent,
    /// Errors; a worker's parent keeps the last ones for its own message.
    Errors,
    /// Everything.
    All,
}

/// Routes llama.cpp's log here instead of to the standard error stream.
pub(super) fn keep_logs(stderr: Stderr) {
    let level = match stderr {
        Stderr::Silent => u8::MAX,
        Stderr::Errors => 4,
        Stderr::All => 0,
    };
    STDERR_LEVEL.store(level, Ordering::Relaxed);
    // SAFETY: `on_log` keeps to the callback's contract (it neither unwinds nor keeps `text`), and needs no user data.
    unsafe { llama_log_set(Some(on_log), std::ptr::null_mut()) }
}

/// Takes the last warnings and errors of this thread, joined.
pub(super) fn take_logs() -> String {
    let lines: Vec<String> = LINES.with_borrow_mut(|lines| lines.drain(..).collect());
    let joined: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    if joined.is_empty() { "it gave no reason".to_owned() } else { joined.join("; ") }
}

unsafe extern "C" fn on_log(level: c_uint, text: *const c_char, _user_data: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: not null, and ggml passes a NUL-terminated text that lives for the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let stderr_level = STDERR_LEVEL.load(Ordering::Relaxed);
    if level >= c_uint::from(stderr_level) && (level != LEVEL_CONTINUED || stderr_level == 0) {
        // A closed error stream is no reason to stop.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    if level == LEVEL_WARN || level == LEVEL_ERROR {
        // During a thread's end the lines are gone; then there is nobody to read them either.
        let _ = LINES.try_with(|lines| {
            if let Ok(mut lines) = lines.try_borrow_mut() {
                if lines.len() == LINES_MAX {
                    lines.pop_front();
                }
                lines.push_back(text.into_owned());
            }
        });
    }
}

/// Makes a failed assertion of ggml end this process with [`ABORTED`] and its message on the standard error stream.
/// For worker processes only.
pub(super) fn exit_on_abort() {
    // SAFETY: `on_abort` does not unwind and does not return.
    unsafe { ggml_set_abort_callback(Some(on_abort)) };
}

unsafe extern "C" fn on_abort(message: *const c_char) {
    if !message.is_null() {
        // SAFETY: not null, and ggml passes a NUL-terminated text.
        let message = unsafe { CStr::from_ptr(message) };
        let mut line = message.to_bytes().to_vec();
        line.push(b'\n');
        let _ = std::io::stderr().write_all(&line);
    }
    // SAFETY: always allowed. Not `exit`: exit handlers would run in a context that is broken.
    unsafe { _exit(ABORTED) }
}

/// Fails an assertion, as ggml does it. For the fault that a test asks for.
pub(super) fn abort_on_purpose() -> ! {
    // SAFETY: the arguments are NUL-terminated and the format takes no further ones.
    unsafe { ggml_abort(c"fault".as_ptr(), 1, c"asked for by a test".as_ptr()) }
}
