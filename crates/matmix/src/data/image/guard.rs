//! A decoder that panics has met a file that cannot be read.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use super::Problem;

thread_local! {
    /// Whether panics of this thread are caught and told as errors, so that nothing need be printed about them.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; its panic is a problem like any other. Whatever else panics is reported as ever.
pub(super) fn guarded<T>(work: impl FnOnce() -> Problem<T>) -> Problem<T> {
    static HOOK: Once = Once::new();
    // The hook cannot be changed by a thread that is panicking already.
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !QUIET.get() {
                    before(info);
                }
            }));
        });
    }
    let before = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    result.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(format!("it is damaged in a way its decoder is not prepared for ({text})"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_problem_and_the_thread_goes_on() {
        let error = guarded::<()>(|| panic!("row {} of {}", 3, 2)).unwrap_err();
        assert_eq!(error, "it is damaged in a way its decoder is not prepared for (row 3 of 2)");
        assert!(!QUIET.get());
        assert_eq!(guarded(|| Ok(7)), Ok(7));
    }
}
