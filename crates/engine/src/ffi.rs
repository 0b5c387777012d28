//! Calls of ggml that `llama-cpp-2` does not wrap, and the callbacks for ggml.
//!
//! The only `unsafe` of the crate. Nothing else may call a foreign function, and nothing declares
//! one by hand.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_void};
use std::io::Write as _;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::{LlamaLoraAdapter, LlamaModel};
use llama_cpp_sys_2 as sys;
use prime_printable::Printable;

/// Exit code of a worker in which an assertion of ggml or llama.cpp failed.
pub(super) const ABORTED: i32 = 86;

/// The PCI id of a device in ggml's list, if it has one.
pub(super) fn device_id(index: usize) -> Option<String> {
    // SAFETY: ggml aborts on an index out of range, which is checked. It fills in all of `props`,
    // whose plain fields may be zero before, and its texts live as long as the device, which is
    // never removed.
    unsafe {
        if index >= sys::ggml_backend_dev_count() {
            return None;
        }
        let mut props: sys::ggml_backend_dev_props = std::mem::zeroed();
        sys::ggml_backend_dev_get_props(sys::ggml_backend_dev_get(index), &raw mut props);
        if props.device_id.is_null() {
            None
        } else {
            Some(CStr::from_ptr(props.device_id).to_string_lossy().into_owned())
        }
    }
}

/// An adapter that is loaded beside its model; freed when it is dropped.
pub(super) struct LoadedAdapter<'m> {
    raw: NonNull<sys::llama_adapter_lora>,
    model: PhantomData<&'m LlamaModel>,
}

impl<'m> LoadedAdapter<'m> {
    /// Loads an adapter that was checked against the model. No other thread may use the model
    /// meanwhile.
    pub(super) fn load(model: &'m LlamaModel, path: &Path) -> Result<Self, String> {
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| "its path has a zero byte".to_owned())?;
        drop(take_logs());

        // SAFETY: `LlamaModel` is a transparent wrapper of a pointer to the model, which lives as
        // long as the reference. llama.cpp adds the adapter to the model's list, which nothing else
        // reads or writes meanwhile: a worker uses its model on one thread.
        let raw = unsafe {
            let model = *std::ptr::from_ref(model).cast::<*mut sys::llama_model>();
            sys::llama_adapter_lora_init(model, path.as_ptr())
        };
        let raw = NonNull::new(raw).ok_or_else(take_logs)?;
        Ok(Self { raw, model: PhantomData })
    }

    /// Applies the adapter to a context, in place of others. The context must be dropped first.
    pub(super) fn apply(&self, context: &mut LlamaContext<'m>, scale: f32) -> Result<(), String> {
        // SAFETY: `LlamaLoraAdapter` is a transparent wrapper of such a pointer and frees nothing
        // when it is dropped.
        let mut adapter = unsafe { std::mem::transmute::<NonNull<_>, LlamaLoraAdapter>(self.raw) };
        context.lora_adapter_set(&mut adapter, scale).map_err(|error| error.to_string())
    }
}

impl Drop for LoadedAdapter<'_> {
    fn drop(&mut self) {
        // SAFETY: it was loaded once and is freed once, while its model lives; contexts that use it
        // were dropped before.
        unsafe { sys::llama_adapter_lora_free(self.raw.as_ptr()) }
    }
}

/// Log lines kept for error messages.
const LINES_MAX: usize = 8;

/// Lowest level that goes to the standard error stream; none at first.
static STDERR_LEVEL: AtomicU32 = AtomicU32::new(u32::MAX);

thread_local! {
    /// The last warnings and errors that llama.cpp logged on this thread.
    static LINES: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
    /// All that llama.cpp logs on this thread, while somebody records it.
    static RECORD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work` and returns all that llama.cpp logged on this thread meanwhile. Only after
/// [`keep_logs`].
pub(super) fn recorded<T>(work: impl FnOnce() -> T) -> (T, String) {
    RECORD.set(Some(String::new()));
    let result = work();
    (result, RECORD.take().unwrap_or_default())
}

/// What reaches the standard error stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stderr {
    /// Nothing.
    Silent,
    /// Errors; a worker's parent quotes the last ones in its own message.
    Errors,
    /// Everything.
    All,
}

/// Routes llama.cpp's log here instead of to the standard error stream.
pub(super) fn keep_logs(stderr: Stderr) {
    let level = match stderr {
        Stderr::Silent => u32::MAX,
        Stderr::Errors => sys::GGML_LOG_LEVEL_ERROR,
        Stderr::All => sys::GGML_LOG_LEVEL_NONE,
    };

    STDERR_LEVEL.store(level, Ordering::Relaxed);
    // SAFETY: `on_log` honours the callback's contract (it neither unwinds nor keeps `text`), and
    // needs no user data.
    unsafe { sys::llama_log_set(Some(on_log), std::ptr::null_mut()) }
}

/// Removes and joins the last warnings and errors of this thread.
pub(super) fn take_logs() -> String {
    let lines: Vec<String> = LINES.with_borrow_mut(|lines| lines.drain(..).collect());
    let joined: Vec<&str> =
        lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    if joined.is_empty() { "it gave no reason".to_owned() } else { joined.join("; ") }
}

unsafe extern "C" fn on_log(
    level: sys::ggml_log_level,
    text: *const c_char,
    _user_data: *mut c_void,
) {
    if text.is_null() {
        return;
    }
    // SAFETY: not null, and ggml passes a NUL-terminated text that lives for the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();

    let stderr_level = STDERR_LEVEL.load(Ordering::Relaxed);
    // A continuation has no level of its own: it is only shown where everything is.
    let is_continued = level == sys::GGML_LOG_LEVEL_CONT;
    if level >= stderr_level && (!is_continued || stderr_level == sys::GGML_LOG_LEVEL_NONE) {
        // A closed error stream is no reason to stop.
        let _ = stderr().write_all(text.as_bytes());
    }

    let _ = RECORD.try_with(|record| {
        if let Ok(mut record) = record.try_borrow_mut()
            && let Some(record) = &mut *record
        {
            record.push_str(&text);
        }
    });

    if level == sys::GGML_LOG_LEVEL_WARN || level == sys::GGML_LOG_LEVEL_ERROR {
        // While a thread ends, its lines no longer exist, and nobody reads them.
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

/// Standard error for llama.cpp's messages, which repeat names and metadata of a model's file.
#[expect(clippy::disallowed_methods, reason = "through the writer that escapes")]
fn stderr() -> Printable<std::io::Stderr> {
    Printable::new(std::io::stderr())
}

/// Makes a failed assertion of ggml end this process with [`ABORTED`] and its message on the
/// standard error stream. For worker processes only.
pub(super) fn exit_on_abort() {
    // SAFETY: `on_abort` does not unwind and does not return.
    unsafe { sys::ggml_set_abort_callback(Some(on_abort)) };
}

unsafe extern "C" fn on_abort(message: *const c_char) {
    if !message.is_null() {
        // SAFETY: not null, and ggml passes a NUL-terminated text.
        let message = unsafe { CStr::from_ptr(message) };
        let mut line = message.to_bytes().to_vec();
        line.push(b'\n');
        let _ = stderr().write_all(&line);
    }
    // SAFETY: always allowed. Unlike `exit`, it runs no exit handlers, which could touch the broken
    // context.
    unsafe { libc::_exit(ABORTED) }
}

/// Lets this process use AMX's tiles, which a llama.cpp built for this processor (`LLAMA_NATIVE=1`)
/// multiplies with. Linux grants them only while no thread has a signal stack that is too small for
/// their registers, as those that Rust makes are, so a worker calls this while it has one thread,
/// which then has no signal stack of its own any more. Without AMX nothing changes.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) fn allow_tiles() {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;

    let none =
        libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: zeroes are a valid `stack_t`, which the first call fills in. No handler runs on the
    // signal stack that is put aside, and the last call puts back the same one. The request
    // changes what the kernel saves of this process, and no memory of it.
    unsafe {
        let mut before: libc::stack_t = std::mem::zeroed();
        if libc::sigaltstack(&raw const none, &raw mut before) != 0 {
            return;
        }
        if libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) != 0 {
            libc::sigaltstack(&raw const before, std::ptr::null_mut());
        }
    }
}

/// Fails an assertion as ggml does, for [`Fault::AbortOn`](super::Fault::AbortOn).
pub(super) fn abort_on_purpose() -> ! {
    // SAFETY: the arguments are NUL-terminated and the format takes no further ones.
    unsafe { sys::ggml_abort(c"fault".as_ptr(), 1, c"asked for by a test".as_ptr()) };
    unreachable!("ggml_abort does not return")
}
