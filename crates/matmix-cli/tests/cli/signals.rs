//! Signals: a fit keeps its model, nothing else keeps anybody waiting, and the exit code says which one it was.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use matmix::data::npy;

use crate::bits::{LONG, bytes, wait_for};
use crate::{command, fit, names, ok};

/// The program with signals as a terminal would have them, or with some of them ignored: what the tests themselves were
/// started with is passed on otherwise.
fn begun(folder: &Path, signals: &str, args: &[&str]) -> Child {
    let program = command(folder, args);
    let mut env = Command::new("env");
    env.args(["--default-signal=INT,TERM,HUP"]).args(Some(signals).filter(|s| !s.is_empty()));
    env.arg(program.get_program()).args(program.get_args()).current_dir(folder);
    env.stdin(Stdio::piped()).stderr(Stdio::piped());
    env.spawn().unwrap()
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits until the program listens to SIGTERM: before that a signal ends it as it ends any program.
fn wait_until_it_listens(child: &Child) {
    let begun = Instant::now();
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        Some(u64::from_str_radix(caught.trim(), 16).ok()? >> (libc::SIGTERM - 1) & 1 == 1)
    };
    // Where there is no such file, a moment has to be enough.
    while !listens().unwrap_or(begun.elapsed() > Duration::from_millis(500)) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The exit code and what was said, of what ends soon.
fn ended(mut child: Child) -> (i32, String) {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_fit_that_is_stopped_keeps_its_model_and_can_go_on() {
    for (signal, name, code) in [("INT", "Ctrl-C", 130), ("TERM", "SIGTERM", 143), ("HUP", "SIGHUP", 129)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let args = [LONG, &["--checkpoint", "state", "-o", "m.mm"]].concat();
        let child = begun(path, "", &args);
        wait_for(&path.join("state"));
        send(&child, signal);
        let (found, said) = ended(child);
        assert_eq!(found, code, "{said}");
        let words = format!("stopped by {name}, the best model so far is kept, after ");
        assert!(said.contains(&words) && said.contains("wrote m.mm"), "{said}");
        ok(path, &["info", "m.mm"]);
        assert_eq!(names(path), ["m.mm", "state"]);
        if signal == "TERM" {
            ok(path, &[&args[..], &["--resume", "-q"]].concat());
            ok(path, &[LONG, &["--checkpoint", "other", "-o", "whole.mm", "-q"]].concat());
            assert!(bytes(path, "m.mm") == bytes(path, "whole.mm"));
        }
    }
}

#[test]
fn what_is_ignored_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let args = [LONG, &["--checkpoint", "state", "-o", "m.mm", "--n-init", "1000"]].concat();
    let mut child = begun(path, "--ignore-signal=HUP,INT", &args);
    wait_for(&path.join("state"));
    for signal in ["HUP", "INT", "HUP"] {
        send(&child, signal);
    }
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    send(&child, "TERM");
    let (code, said) = ended(child);
    assert_eq!(code, 143, "{said}");
    assert!(said.contains("stopped by SIGTERM"), "{said}");
}

/// Nobody writes to the pipe: data that does not come.
#[test]
fn one_signal_is_enough_before_there_is_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let child = begun(path, "", &["fit", "-", "-k", "2", "-o", "m.mm"]);
        wait_until_it_listens(&child);
        std::thread::sleep(Duration::from_millis(100));
        let sent = Instant::now();
        send(&child, signal);
        let (found, said) = ended(child);
        assert_eq!(found, code, "{said}");
        assert!(sent.elapsed() < Duration::from_secs(3), "{:?}", sent.elapsed());
        assert!(said.starts_with("stopped by "), "{said}");
        assert!(names(path).is_empty());
    }
}

/// Many digits rebuilt take a while, and their file grows as they come.
#[test]
fn whatever_is_being_written_disappears() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fit(path, "m.mm", &[]);
    let digits = matmix::data::digits().samples;
    let pixels: Vec<u8> = digits.to_f64(0..1000).unwrap().iter().map(|&x| x as u8).collect();
    npy::write_array(path.join("x.npy"), &[24_000, 28, 28], &pixels.repeat(24)).unwrap();
    let before = names(path);
    for again in [false, true] {
        let mut child =
            begun(path, "", &["reconstruct", "m.mm", "x.npy", "-o", "rebuilt.npy", "--threads", "1"]);
        let begun = Instant::now();
        while names(path).len() == before.len() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it writes nothing");
            assert!(child.try_wait().unwrap().is_none(), "it was too fast");
        }
        send(&child, "TERM");
        if again {
            send(&child, "TERM");
        }
        let (code, said) = ended(child);
        assert_eq!((code, said.as_str()), (143, "stopped by SIGTERM\n"));
        assert_eq!(names(path), before);
    }
}
