//! Takes from a worker what computing does not need: writing and running files, the network, other
//! processes. A flaw in llama.cpp that a model's file reaches cannot get them back.
//!
//! Landlock (Linux 5.13 and newer) refuses files, TCP and signals as far as the kernel knows them,
//! seccomp the system calls. Reading stays possible: adapters may be anywhere, and come later.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetError, RulesetStatus,
    Scope,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

const IS_FOR_GPUS: bool =
    cfg!(any(feature = "cuda", feature = "metal", feature = "rocm", feature = "vulkan"));

/// System calls that a worker never makes: it has its socket and its threads' memory.
const REFUSED: [libc::c_long; 29] = [
    // The network, and sockets of other processes.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    // The file system and its mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
];

/// The parts of a worker's confinement that this machine enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Files, TCP and signals, all or some of them.
    pub landlock: bool,
    /// The system calls.
    pub seccomp: bool,
}

/// The confinement that workers get on this machine, or `None` where they get none: in a build for
/// GPUs, whose drivers use files and sockets of their own.
pub fn confinement() -> Option<Confinement> {
    if IS_FOR_GPUS {
        return None;
    }
    // A thread of its own tries it, and ends.
    std::thread::spawn(confine).join().ok()
}

/// Confines a worker, unless it is built for GPUs.
pub(super) fn confine_worker() {
    if !IS_FOR_GPUS {
        confine();
    }
}

/// Confines the calling thread and the threads that it starts from now on, for good. A kernel that
/// lacks a part leaves it out.
fn confine() -> Confinement {
    let landlock = refuse_objects().is_ok_and(|status| status != RulesetStatus::NotEnforced);
    Confinement { landlock, seccomp: refuse_calls().is_some() }
}

fn refuse_objects() -> Result<RulesetStatus, RulesetError> {
    // What an older kernel does not know is left out.
    let known = ABI::V6;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_write(known) | AccessFs::Execute)?
        .handle_access(AccessNet::from_all(known))?
        .scope(Scope::from_all(known))?;
    Ok(rules.create()?.restrict_self()?.ruleset)
}

/// Nothing where the processor's architecture is not known, or the kernel has no seccomp.
fn refuse_calls() -> Option<()> {
    let calls: BTreeMap<i64, _> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into().ok()?;
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, architecture).ok()?;
    let program: BpfProgram = filter.try_into().ok()?;
    apply_filter(&program).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind::PermissionDenied;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;
    use std::{fs, thread};

    use super::*;

    #[test]
    fn a_confined_thread_computes_and_reads_and_does_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("model.gguf");
        fs::write(&file, "GGUF").expect("a file");

        // A thread of its own: what it gives up, the other tests keep.
        thread::spawn(move || {
            let confined = confine();
            assert_eq!(fs::read_to_string(&file).expect("reading is left"), "GGUF");
            let sum = thread::spawn(|| (1..=4).sum::<i32>()).join().expect("threads are left");
            assert_eq!(sum, 10);

            assert!(confined.seccomp, "every kernel that the tests run on has seccomp");
            let refused = [
                TcpStream::connect(address).err(),
                UdpSocket::bind("127.0.0.1:0").err(),
                UnixDatagram::unbound().err(),
                Command::new("/bin/true").spawn().err(),
            ];
            for error in refused {
                assert_eq!(error.expect("an error").kind(), PermissionDenied);
            }
            if confined.landlock {
                let refused = [
                    File::create(folder.path().join("new")).err(),
                    File::options().write(true).open(&file).err(),
                    fs::remove_file(&file).err(),
                    fs::rename(&file, folder.path().join("other")).err(),
                ];
                for error in refused {
                    assert_eq!(error.expect("an error").kind(), PermissionDenied);
                }
            }
            // The thread cannot remove it.
            folder
        })
        .join()
        .expect("the thread ends")
        .close()
        .expect("this one can");
        drop(listener);
    }
}
