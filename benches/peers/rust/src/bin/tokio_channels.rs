//! Three Tokio tasks joined by bounded channels; in the variant `durable` the coordinator writes a
//! record of each step before it says to proceed, with one `fdatasync` for all verdicts that wait.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use peers::{
    Action, Coordinator, Kick, MAILBOX, Measured, Phase, Request, Spec, Topology, Verdict, drive,
    execute, report, runtime, verify,
};
use tokio::sync::mpsc;

/// The file for the records. Its name is removed already, so that it vanishes with the process.
fn journal() -> std::io::Result<File> {
    let folder = std::env::var_os("PEERS_DATA").map_or_else(std::env::temp_dir, PathBuf::from);

    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("steps-{}", std::process::id()));
    let file = File::options().create(true).append(true).open(&path)?;

    std::fs::remove_file(&path)?;
    Ok(file)
}

fn record(buffer: &mut Vec<u8>, verdict: &Verdict) {
    buffer.extend_from_slice(&verdict.trajectory.to_le_bytes());
    buffer.extend_from_slice(&verdict.step.to_le_bytes());
    buffer.extend_from_slice(&verdict.score.to_le_bytes());
    buffer.extend_from_slice(&verdict.payload);
}

async fn coordinate(
    mut verdicts: mpsc::Receiver<Verdict>,
    mut coordinator: Coordinator,
    executor: mpsc::Sender<Request>,
) {
    while let Some(verdict) = verdicts.recv().await {
        if let Some(next) = coordinator.decide(verdict)
            && executor.send(next).await.is_err()
        {
            return;
        }
    }
}

async fn coordinate_durably(
    mut verdicts: mpsc::Receiver<Verdict>,
    mut coordinator: Coordinator,
    executor: mpsc::Sender<Request>,
    mut file: File,
) {
    let (mut batch, mut buffer) = (Vec::new(), Vec::new());

    while verdicts.recv_many(&mut batch, MAILBOX).await > 0 {
        buffer.clear();
        batch.iter().for_each(|verdict| record(&mut buffer, verdict));

        file.write_all(&buffer)
            .and_then(|()| file.sync_data())
            .expect("the disk takes the records");

        // The records are on disk, so the steps may proceed.
        for verdict in batch.drain(..) {
            if let Some(next) = coordinator.decide(verdict)
                && executor.send(next).await.is_err()
            {
                return;
            }
        }
    }
}

async fn ring(spec: Spec, is_durable: bool) -> Result<Measured, String> {
    let (phase, mut ended) = Phase::new(spec);
    let mut kicks: Vec<Kick> = Vec::new();
    for _ in 0..spec.trios() {
        let (to_executor, mut requests) = mpsc::channel::<Request>(MAILBOX);
        let (to_verifier, mut actions) = mpsc::channel::<Action>(MAILBOX);
        let (to_coordinator, verdicts) = mpsc::channel::<Verdict>(MAILBOX);

        tokio::spawn(async move {
            while let Some(request) = requests.recv().await {
                if to_verifier.send(execute(request)).await.is_err() {
                    return;
                }
            }
        });

        tokio::spawn(async move {
            while let Some(action) = actions.recv().await {
                if to_coordinator.send(verify(action)).await.is_err() {
                    return;
                }
            }
        });

        let coordinator = Coordinator::new(&phase);
        if is_durable {
            let file = journal().map_err(|error| format!("no file for the records: {error}"))?;
            tokio::spawn(coordinate_durably(verdicts, coordinator, to_executor.clone(), file));
        } else {
            tokio::spawn(coordinate(verdicts, coordinator, to_executor.clone()));
        }

        kicks.push(Box::new(move |request| {
            to_executor.try_send(request).expect("there is room for every trajectory")
        }));
    }

    Ok(drive(&kicks, &phase, &mut ended).await)
}

fn main() {
    report(|variant, spec| {
        let (is_multi_thread, is_durable) = match variant {
            "current" => (false, false),
            "multi" => (true, false),
            "durable" => (true, true),
            other => return Err(format!("`{other}` is none of current, multi, durable")),
        };

        // A journal has one file, not one for each trajectory.
        if is_durable && spec.topology == Topology::Trios {
            return Ok(None);
        }

        let runtime = runtime(is_multi_thread);
        let measured = runtime.block_on(ring(spec, is_durable));
        runtime.shutdown_background();
        measured.map(Some)
    });
}
