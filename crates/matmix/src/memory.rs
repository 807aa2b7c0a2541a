//! How much memory there is.

/// The bytes that can be had without taking them from others, where the system tells.
pub(crate) fn available() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_tells_is_understood_and_anything_else_is_unknown() {
        let told = "MemTotal:       24608268 kB\nMemFree:        20000000 kB\nMemAvailable:   23456789 kB\n";
        assert_eq!(parse(told), Some(23_456_789 * 1024));
        for told in [
            "",
            "MemAvailable:",
            "MemAvailable: x kB",
            "MemAvailable: 99999999999999999999 kB",
            "MemAvailable: 1",
        ] {
            assert_eq!(parse(told), None, "{told}");
        }
    }
}
