//! Writes a run that is over as a bundle, a part at a time.

use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use sha2::{Digest as _, Sha256};

use super::format::{End, FORMAT, Head, Reviewed, VERSION, line_start, spec_start};
use crate::runs::error::RunError;
use crate::runs::reader::RunReader;
use crate::runs::reader::event_reader::EventBatch;
use crate::runs::record::timestamp;
use prime_journal::{ChainHash, FlaggedEvent, Head as ChainHead, Journal, JournalError};

/// Flagged events in a page.
const FLAGS: u32 = 1_000;

/// The position in a bundle.
struct Written {
    last: ChainHead,
    digest: Sha256,
}

impl Written {
    fn line(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        line.push(b'\n');
        self.digest.update(&line);
        line
    }

    fn events(&mut self, batch: &EventBatch) -> Vec<u8> {
        let mut text = Vec::new();
        for (seq, event) in batch.events() {
            self.last = ChainHead { seq, hash: self.last.hash.then(event) };
            let mut line = line_start(seq, self.last.hash).into_bytes();
            line.extend_from_slice(event.strip_prefix(b"{").unwrap_or(event));
            text.extend(self.line(line));
        }
        text
    }

    fn end(self) -> Vec<u8> {
        let sha256 = ChainHash(self.digest.finalize().into()).to_string();
        let end = End { end: FORMAT.to_owned(), sha256 };
        let mut line = serde_json::to_vec(&end).expect("invariant: texts serialise");
        line.push(b'\n');
        line
    }
}

fn reviews(journal: &dyn Journal, id: &str) -> Result<Vec<Reviewed>, JournalError> {
    let (mut found, mut last) = (Vec::new(), 0);
    loop {
        let page = journal.reviews(id, last, FLAGS)?;
        let Some(next) = page.last().map(|flagged| flagged.seq) else { return Ok(found) };
        let reviewed =
            page.into_iter().filter(|flagged: &FlaggedEvent| !flagged.reviews.is_empty());
        found.extend(reviewed.map(Reviewed::from));
        last = next;
    }
}

impl RunReader {
    /// A run that is over as a bundle, which another daemon can import. `node` is this one.
    ///
    /// # Errors
    /// When the run does not exist, is not over, or the journal cannot be read. A bundle whose
    /// stream fails lacks its end, so that it is not taken for a whole one.
    pub async fn bundle(
        &self,
        id: &str,
        node: &str,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, RunError>> + use<>, RunError> {
        let (_, record) = self.get(id).await?;
        if !record.status.is_over() {
            return Err(RunError::NotOver(id.to_owned()));
        }
        let row = self.store().row(id).await?;
        let name = id.to_owned();
        let reviews = self.store().read(move |journal| reviews(journal, &name)).await?;

        let head = Head {
            bundle: FORMAT.to_owned(),
            version: VERSION,
            run: id.to_owned(),
            node: record.imported.map_or_else(|| node.to_owned(), |imported| imported.node),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            exported_at: timestamp(self.store().now_ms()),
            created_ms: row.created_ms,
            resumed: row.resumed,
            status: record.status,
            failure: record.result.failure,
            labels: record.labels,
            events: row.head.seq,
            chain: row.head.hash.to_string(),
            reviews,
        };
        let mut written = Written { last: ChainHead::genesis(&row.spec), digest: Sha256::new() };
        let head = serde_json::to_vec(&head).expect("invariant: heads serialise");
        let mut first = written.line(head);
        let start = line_start(0, written.last.hash) + &spec_start(id) + &row.spec + "}";
        first.extend(written.line(start.into_bytes()));

        let events = Box::pin(self.events(id, 0, false));
        let lines = stream::try_unfold(Some((events, written, row.head)), |state| async move {
            let Some((mut events, mut written, head)) = state else { return Ok(None) };
            if let Some(batch) = events.try_next().await? {
                return Ok(Some((written.events(&batch), Some((events, written, head)))));
            }
            if written.last != head {
                return Err(RunError::Unreadable(format!(
                    "its events lead to {} at event {}, and its row says {} at event {}: run \
                         `prime-agents journal check`",
                    written.last.hash, written.last.seq, head.hash, head.seq
                )));
            }
            Ok(Some((written.end(), None)))
        });
        Ok(stream::iter([Ok(first)]).chain(lines))
    }
}
