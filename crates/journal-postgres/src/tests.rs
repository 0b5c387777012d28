//! The conformance suite on a real server.

mod connections;
mod faults;
mod needs;
mod nodes;
mod outbox;
mod room;
mod server;
mod uploads;

use self::server::Schema;
use super::{PostgresJournal, PostgresOptions};
use prime_journal::Journal;
use prime_journal::conformance::{Store, suite};

struct InSchema {
    schema: Schema,
    journal: Option<PostgresJournal>,
}

fn open(schema: &Schema) -> PostgresJournal {
    PostgresJournal::open(&schema.url(), PostgresOptions::default()).unwrap()
}

fn store() -> InSchema {
    let schema = Schema::new();
    let journal = Some(open(&schema));
    InSchema { schema, journal }
}

impl Store for InSchema {
    fn journal(&self) -> &dyn Journal {
        self.journal.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.journal = None;
        self.journal = Some(open(&self.schema));
    }
}

suite!(store);
