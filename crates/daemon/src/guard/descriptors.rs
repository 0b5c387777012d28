//! File descriptors for the connections that the configuration allows. Where they run out, not even
//! `/livez` is answered, so there must be enough from the start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::connection_table::RESERVE;

/// Descriptors of a connection: its socket, and that of its watchdog.
const OF_CONNECTION: u64 = 2;
/// Descriptors for everything else: the journal, servers of models, programs, workers, logs.
const OF_THE_REST: u64 = 192;

/// The descriptors that a server with this many connections needs.
#[must_use]
pub fn needed(connections_max: u32) -> u64 {
    OF_CONNECTION * (u64::from(connections_max) + RESERVE as u64) + OF_THE_REST
}

/// The soft limit to set; `None` if the present one is enough.
///
/// # Errors
/// What is wrong and what to do, if the hard limit does not allow as many.
fn wanted(connections_max: u32, limit: Rlimit) -> Result<Option<u64>, String> {
    let needed = needed(connections_max);
    let [soft, hard] = [limit.current, limit.maximum].map(|limit| limit.unwrap_or(u64::MAX));
    if soft >= needed {
        return Ok(None);
    }
    if hard >= needed {
        return Ok(Some(needed));
    }

    let possible = hard.saturating_sub(OF_THE_REST) / OF_CONNECTION;
    let lower = match possible.saturating_sub(RESERVE as u64) {
        0 | 1 => String::new(),
        most => format!(", or set server.connections_max to {most} or less"),
    };
    Err(format!(
        "server.connections_max = {connections_max} needs {needed} file descriptors, but this process may have only {hard}: \
         raise the limit (`ulimit -n`, or LimitNOFILE= of a systemd unit){lower}"
    ))
}

/// Checks that the limit can be raised as far as needed, without raising it.
///
/// # Errors
/// Like `wanted`.
pub fn check(connections_max: u32) -> Result<(), String> {
    wanted(connections_max, getrlimit(Resource::Nofile)).map(drop)
}

/// Makes sure of enough file descriptors: raises the soft limit as far as needed. Returns the limit
/// that is then in force.
///
/// # Errors
/// Like `wanted`; also if the limit cannot be raised.
pub fn ensure(connections_max: u32) -> Result<u64, String> {
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = wanted(connections_max, limit)? else {
        return Ok(limit.current.unwrap_or(u64::MAX));
    };

    setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..limit }).map_err(|reason| {
        format!(
            "server.connections_max = {connections_max} needs {soft} file descriptors, and the limit cannot be raised to that: \
             {reason}"
        )
    })?;
    tracing::debug!(limit = soft, "raised the limit of file descriptors");
    Ok(soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_as_far_as_needed() {
        // 2 × (256 + 64) + 192.
        assert_eq!(needed(256), 832);
        let wanted = |soft, hard| wanted(256, Rlimit { current: soft, maximum: hard });
        for (soft, hard, expected) in [
            (Some(832), Some(832), None),
            (None, None, None),
            (Some(1_024), Some(4_096), None),
            (Some(831), Some(832), Some(832)),
            (Some(64), None, Some(832)),
        ] {
            assert_eq!(wanted(soft, hard), Ok(expected), "{soft:?} {hard:?}");
        }
    }

    #[test]
    fn a_hard_limit_that_is_too_low_is_refused_with_what_fits() {
        for (hard, part) in [
            (831, "to 255 or less"),
            (326, "to 3 or less"),
            (64, "(`ulimit -n`, or LimitNOFILE= of a systemd unit)"),
        ] {
            let reason =
                wanted(256, Rlimit { current: Some(64), maximum: Some(hard) }).unwrap_err();
            assert!(reason.ends_with(part), "{reason}");
            assert!(reason.contains("needs 832 file descriptors"), "{reason}");
            assert!(reason.contains(&format!("only {hard}:")), "{reason}");
        }
    }
}
