//! `prime-agents serve`: runs the daemon.

use std::process::ExitCode;

use clap::Args;

use super::log::start_daemon_log;
use super::own_model::OwnModel;
use super::{notify, reload};
use crate::cli::output::note;
use prime_service::app::App;
use prime_service::telemetry::Telemetry;

#[derive(Args)]
pub struct ServeArguments {
    #[command(flatten)]
    configuration: OwnModel,
}

pub fn serve(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let configuration = arguments.configuration.resolved()?;
    let settings = configuration.load()?;
    let (log, _written_at_the_end) = start_daemon_log(&settings);
    // Its thread must start outside the event loop.
    let telemetry = Telemetry::start(&settings.telemetry.otlp_endpoint)?;

    actix::System::new().block_on(async {
        let reloads = reload::listen(configuration, log);
        let app = App::start(settings)?;
        let on_ready = |address| {
            note!("prime-agents is ready on http://{address}");
            notify::ready(address);
        };
        prime_daemon::serve(app, telemetry, reloads, on_ready).await?;
        Ok(ExitCode::SUCCESS)
    })
}
