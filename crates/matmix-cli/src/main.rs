//! The program `matmix`; all of it is in the library beside it, which the Python package brings along, too.

fn main() -> std::process::ExitCode {
    matmix_cli::program(std::env::args_os()).into()
}
