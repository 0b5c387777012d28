//! Checks a configuration without a daemon.

use super::attestation_key;
use super::daemon_error::DaemonError;
use super::guard;
use super::guard::descriptors;
use prime_service::app::environment_of_the_process;
use prime_service::runs::Schedules;
use prime_service::webhooks::Webhooks;
use prime_settings::Settings;

/// Checks what [`serve`](super::serve) refuses before it opens anything. Returns notes about what
/// only the environment of the daemon decides: secrets that are not set here, limits of this
/// process, tasks that must be uploaded.
///
/// # Errors
/// The first reason why a daemon would not start with these settings.
pub fn check(settings: &Settings) -> Result<Vec<String>, DaemonError> {
    guard::check_bind(&settings.server)?;
    // Read as at a start, although nothing is signed.
    let _key = attestation_key(&settings.server)?;

    let mut notes = Vec::new();
    let environment = environment_of_the_process();
    // Any key will do for the other checks.
    let stand_in = || format!("whsec_{}", "A".repeat(32));
    let lookup = |variable: &str| Some(environment(variable).unwrap_or_else(stand_in));
    drop(Webhooks::new(&settings.webhooks, lookup)?);

    let mut needs = |key: String, variable: &String| {
        if environment(variable).is_none() {
            notes.push(format!(
                "`{key}` names {variable}, which is not set here: a daemon needs it"
            ));
        }
    };
    for (name, webhook) in &settings.webhooks {
        if let Some(variable) = &webhook.secret_env {
            needs(format!("webhooks.{name}.secret_env"), variable);
        }
    }
    for name in settings.pools_needed() {
        let upstreams = settings.pools.get(&name).map(|pool| pool.upstreams.as_slice());
        for variable in
            upstreams.unwrap_or_default().iter().filter_map(|one| one.api_key_env.as_ref())
        {
            needs(format!("pools.{name}.upstreams.api_key_env"), variable);
        }
    }

    notes.extend(descriptors::check(settings.server.connections_max).err());
    notes.extend(Schedules::of(settings)?.notes().map(str::to_owned));
    Ok(notes)
}
