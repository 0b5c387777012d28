use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("engine-worker") {
        return prime_agents::engine::worker_main();
    }
    ExitCode::SUCCESS
}
