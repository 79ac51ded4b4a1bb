//! Memory in small pages. The allocator gives memory that it does not need back to the kernel, and
//! gets it again soon after. In huge pages each of these turns clears 2 MiB: with the delivery log
//! on, that was a tenth of the processor time, and an idle server was 12 MiB larger (decision
//! 0165).

/// Asks the kernel for small pages in this process. Where it has no such switch, the process is
/// slower and larger.
pub(super) fn turn_off() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay on");
    }
}
