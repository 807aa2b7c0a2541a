//! What Ctrl-C, `kill` and a terminal that goes away do.
//!
//! A fit that has a model ends after the iteration under way and keeps it. Everything else is asked to stop and, should it
//! not do so within a second, made to. A second signal ends the program at once. No temporary file stays behind, and
//! the exit code is 128 and the number of the signal, as shells have it. A signal that was ignored when the program began
//! (`nohup`) stays ignored.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::Duration;

use matmix::Meter;
use matmix::data::atomic::remove_temporaries;

/// How long whatever is asked to stop may take to do so.
const PATIENCE: Duration = Duration::from_secs(1);

/// The first signal that came, or 0.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Whether there is a model that is not written yet.
static KEEPING: AtomicBool = AtomicBool::new(false);

/// Whether the program is being ended: its temporary files are gone, or about to be.
static ENDING: AtomicBool = AtomicBool::new(false);

/// What stops the passes over data.
static METERS: Mutex<Vec<Weak<Meter>>> = Mutex::new(Vec::new());

/// A signal that ends programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal(i32);

impl Signal {
    pub(crate) fn exit_code(self) -> u8 {
        128 + self.0 as u8
    }
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            libc::SIGINT => f.write_str("Ctrl-C"),
            libc::SIGTERM => f.write_str("SIGTERM"),
            #[cfg(unix)]
            libc::SIGHUP => f.write_str("SIGHUP"),
            other => write!(f, "signal {other}"),
        }
    }
}

/// The signal that asked the program to end, if one did.
pub(crate) fn by() -> Option<Signal> {
    Some(Signal(RECEIVED.load(Ordering::SeqCst))).filter(|signal| signal.0 != 0)
}

/// What counts the samples of a pass, and ends it when a signal comes.
pub(crate) fn meter() -> Arc<Meter> {
    let meter = Arc::new(Meter::new());
    METERS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&meter));
    if by().is_some() {
        meter.stop();
    }
    meter
}

/// The signal that ends the program while it still runs. What fails then (a temporary file that is gone) fails for that.
pub(crate) fn ending() -> Option<Signal> {
    by().filter(|_| ENDING.load(Ordering::SeqCst))
}

/// From now on there is a model: the first signal leaves time to write it.
pub(crate) fn keep() {
    KEEPING.store(true, Ordering::SeqCst);
}

/// The model is written: a signal need not wait any longer.
pub(crate) fn kept() {
    KEEPING.store(false, Ordering::SeqCst);
}

fn receive(number: i32) {
    let signal = Signal(number);
    let first = RECEIVED.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    system::pass_on();
    if !first {
        end(signal);
    }
    if KEEPING.load(Ordering::SeqCst) {
        return;
    }
    for meter in METERS.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade) {
        meter.stop();
    }
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        // A model may have come in the meantime.
        if !KEEPING.load(Ordering::SeqCst) {
            end(signal);
        }
    });
}

/// The last words of a program that was told to end. What stops by itself and a second signal may come to them at the
/// same time: they are said once, and nobody goes on before they are.
pub(crate) fn say_stopped(signal: Signal) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        // A bar may stand on the line.
        let clear = if std::io::stderr().is_terminal() { "\r\u{1b}[2K" } else { "" };
        crate::output::stderr(&format!("{clear}stopped by {signal}\n"));
    });
}

fn end(signal: Signal) -> ! {
    ENDING.store(true, Ordering::SeqCst);
    remove_temporaries();
    say_stopped(signal);
    std::process::exit(signal.exit_code().into())
}

#[cfg(unix)]
mod system {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Output};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

    use signal_hook::iterator::Signals;

    /// The process that fits for this one, or 0.
    static CHILD: AtomicI32 = AtomicI32::new(0);

    /// From now on signals are listened to.
    pub(crate) fn watch() {
        // A file larger than the system allows is an error like any other, and not the end of the program.
        let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false)));
        let wanted = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().filter(|&s| !is_ignored(s));
        // Where nobody listens, a signal ends the program as it ever did: no reason not to run.
        if let Ok(mut signals) = Signals::new(wanted) {
            let listen = move || signals.forever().for_each(super::receive);
            let _ = std::thread::Builder::new().name("signals".into()).spawn(listen);
        }
    }

    #[allow(unsafe_code, reason = "no safe interface tells what is done about a signal")]
    fn is_ignored(signal: libc::c_int) -> bool {
        let mut now = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: without a new action the call changes nothing; it fills `now` whenever it returns 0.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) == 0
                && now.assume_init().sa_sigaction == libc::SIG_IGN
        }
    }

    /// Runs a process that fits. Whatever signal comes for this one reaches it as Ctrl-C, on which it ends with a
    /// model; in a group of its own, no signal reaches it twice.
    pub(crate) fn run(command: &mut Command) -> std::io::Result<Output> {
        let child: Child = command.process_group(0).spawn()?;
        CHILD.store(child.id() as i32, Ordering::SeqCst);
        if super::by().is_some() {
            pass_on();
        }
        let output = child.wait_with_output();
        CHILD.store(0, Ordering::SeqCst);
        output
    }

    #[allow(unsafe_code, reason = "the standard library can kill a process, but not ask it to end")]
    pub(super) fn pass_on() {
        let child = CHILD.load(Ordering::SeqCst);
        if child > 0 {
            // SAFETY: `kill` reads no memory of ours. The number is that of a child which, but for a
            // moment, has not been waited for.
            unsafe { libc::kill(child, libc::SIGINT) };
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::process::{Command, Output};

    /// From now on Ctrl-C is listened to.
    pub(crate) fn watch() {
        let _ = ctrlc::set_handler(|| super::receive(libc::SIGINT));
    }

    /// Runs a process that fits; Ctrl-C reaches it anyway.
    pub(crate) fn run(command: &mut Command) -> std::io::Result<Output> {
        command.spawn()?.wait_with_output()
    }

    pub(super) fn pass_on() {}
}

pub(crate) use system::{run, watch};
