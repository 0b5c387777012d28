//! `prime-agents serve`: the daemon.

use std::process::ExitCode;

use clap::Args;

use super::{Configuration, start_log};
use crate::app::App;
use crate::daemon;

#[derive(Args)]
pub struct ServeArguments {
    #[command(flatten)]
    configuration: Configuration,
}

pub fn serve(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.configuration.load()?;
    start_log(&settings);
    actix::System::new().block_on(async {
        let app = App::start(settings)?;
        daemon::serve(app, |address| eprintln!("prime-agents is ready on http://{address}")).await?;
        Ok(ExitCode::SUCCESS)
    })
}
