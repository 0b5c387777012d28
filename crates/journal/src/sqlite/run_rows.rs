//! Writes events into the rows of their run.

use rusqlite::{Connection, params};

use super::entries::Entry;
use super::joined;
use super::schema::SEQ_BITS;
use super::values::{blob, hash, unsigned};
use crate::chain::{ChainHash, Head};
use crate::compression::Packer;
use crate::error::JournalError;

/// A segment in a batch.
#[derive(Clone, Copy)]
pub(super) struct Part<'b> {
    pub(super) entry: &'b Entry,
    pub(super) body: &'b [u8],
}

/// Writes parts of a run as rows, except those that it has already. Returns the first part that the
/// journal refused and all after it: they stay in a batch, so that they do not block other runs.
pub(super) fn fold_run<'p, 'b>(
    transaction: &Connection,
    packer: &mut Packer,
    run: i64,
    parts: &'p [Part<'b>],
) -> Result<&'p [Part<'b>], JournalError> {
    // A run that was removed has no row, and no other run gets its number.
    let Some(head) = head_of_rows(transaction, run)? else { return Ok(&[]) };

    let folded = parts.iter().take_while(|part| part.entry.first_seq <= head.seq).count();
    append(transaction, packer, head.hash, &parts[folded..])
}

/// The head of the events in a run's own rows; `None` if there is no such run.
fn head_of_rows(connection: &Connection, run: i64) -> Result<Option<Head>, JournalError> {
    let sql = "SELECT g.at & 4294967295, g.count, g.hash FROM run r
        LEFT JOIN segment g
            ON g.at = (SELECT max(at) FROM segment WHERE at BETWEEN r.no << 32 AND (r.no << 32) + 4294967295)
        WHERE r.no = ?1";

    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([run])?;
    let Some(row) = rows.next()? else { return Ok(None) };

    if let Some(count) = row.get::<_, Option<u32>>(1)? {
        return Ok(Some(Head {
            seq: unsigned(row, 0)? + u64::from(count) - 1,
            hash: hash(blob(row, 2)?)?,
        }));
    }
    // The run has no rows yet, so that its chain begins with its spec.
    let sql = "SELECT body FROM spec WHERE run = ?1";
    let spec: String = connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))?;
    Ok(Some(Head::genesis(&spec)))
}

/// Appends parts to a run's rows. Returns the first part that the journal refused and all after it.
fn append<'p, 'b>(
    transaction: &Connection,
    packer: &mut Packer,
    mut before: ChainHash,
    parts: &'p [Part<'b>],
) -> Result<&'p [Part<'b>], JournalError> {
    let mut left = parts;
    let mut body = Vec::new();

    while let Some(first) = left.first() {
        body.clear();
        // Collects the bodies of the next row as it goes. The first always fits, however long it
        // is.
        let fits = |part: &&Part<'_>| {
            let fits = body.is_empty() || body.len() + part.body.len() <= joined::BYTES_MAX;
            body.extend_from_slice(if fits { part.body } else { &[] });
            fits
        };

        let (row, later) = left.split_at(left.iter().take_while(fits).count());
        let Some(last) = row.last() else { break };

        let counts = row.iter().map(|part| part.entry.count);
        let count: u32 = counts.clone().sum();
        let joined = (row.len() > 1).then(|| joined::parts(before, counts));
        let entry = Entry { count, length: body.len(), hash: last.entry.hash, ..*first.entry };

        match insert_row(transaction, packer, &entry, &body, joined.as_deref()) {
            Err(JournalError::Refused(_)) => return Ok(left),
            inserted => inserted?,
        }

        before = entry.hash;
        left = later;
    }
    Ok(left)
}

/// Writes a row of a run, which joins several segments if it has `parts`.
pub(super) fn insert_row(
    transaction: &Connection,
    packer: &mut Packer,
    entry: &Entry,
    body: &[u8],
    parts: Option<&[u8]>,
) -> Result<(), JournalError> {
    let sql = "INSERT INTO segment (at, count, hash, packing, bytes, body, parts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let packed = packer.pack(body)?;

    let at = (entry.run << SEQ_BITS) + entry.first_seq.cast_signed();
    let values =
        params![at, entry.count, entry.hash.0, packed.packing, packed.bytes, packed.body, parts];

    transaction.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
