//! Admits connections up to two limits: in total, and per client address. A connection beyond them
//! takes the place of the one that has been idle longest; if none is idle, it goes to a reserve, on
//! which only `/livez` and `/readyz` are answered. Any other request there looks for a place once
//! more: in a burst, many connections count as idle until their requests are read.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::ioctl_fionread;
use rustix::net::{Shutdown, shutdown};

use super::address::network_of;
use prime_settings::Server;

/// Connections that the server accepts beyond `server.connections_max`.
pub const RESERVE: usize = 64;
/// Size of the reserve at which a further connection ends the one that has been idle longest. The
/// other half is for those that are being closed.
const RESERVE_IN_USE: usize = RESERVE / 2;
/// `idle_since` of a connection that is in use.
const IN_USE: u64 = 0;
/// `idle_since` of a connection that makes room before any idle one: less than every tick.
const DISPENSABLE: u64 = 1;

/// How many connections may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCounts {
    pub all_max: usize,
    pub address_max: usize,
}

impl From<&Server> for ConnectionCounts {
    fn from(server: &Server) -> Self {
        let (all, of_address) = (server.connections_max, server.address_connections_max);
        // A single address may have three quarters, so that it cannot keep out all others.
        let of_address = if of_address == 0 { (all * 3).div_ceil(4) } else { of_address };
        Self { all_max: all as usize, address_max: of_address as usize }
    }
}

/// Why a connection is in the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// This many connections are open, which is the limit in total.
    All(usize),
    /// This many connections of its address are open, which is the limit per address.
    OfAddress(usize),
}

/// A socket that another thread may shut down.
pub struct Socket {
    fd: OwnedFd,
    /// When it became idle, in ticks of the table; [`IN_USE`] while it is not; [`DISPENSABLE`].
    idle_since: AtomicU64,
}

impl Socket {
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// True if a request has arrived that the server has not read yet.
    fn has_input(&self) -> bool {
        ioctl_fionread(&self.fd).is_ok_and(|bytes| bytes > 0)
    }

    /// Ends the connection: the server drops everything that it holds for the client.
    pub fn shut_down(&self) {
        if let Err(error) = shutdown(&self.fd, Shutdown::Both) {
            tracing::trace!(%error, "the connection was closed already");
        }
    }
}

struct Entry {
    address: Option<IpAddr>,
    is_reserve: bool,
    socket: Arc<Socket>,
}

#[derive(Default)]
struct Entries {
    last_id: u64,
    open: HashMap<u64, Entry>,
    /// Number of connections in the reserve.
    reserve: usize,
    /// Numbers of the other connections, by address.
    of_addresses: HashMap<IpAddr, usize>,
}

impl Entries {
    fn regular(&self) -> usize {
        self.open.len() - self.reserve
    }

    fn of_address(&self, address: Option<IpAddr>) -> usize {
        address.and_then(|address| self.of_addresses.get(&address)).copied().unwrap_or_default()
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.open.remove(&id)?;
        if entry.is_reserve {
            self.reserve -= 1;
        } else if let Some(address) = entry.address
            && let Some(count) = self.of_addresses.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.of_addresses.remove(&address);
            }
        }
        Some(entry)
    }

    /// Ends a dispensable connection, or the one that has been idle longest, among those that fit.
    /// Returns whether there was one. A client whose request was not read yet must not find its
    /// connection closed.
    fn end_idle(&mut self, fits: impl Fn(&Entry) -> bool) -> bool {
        let idle = self.open.iter().filter(|(_, entry)| fits(entry)).filter_map(|(id, entry)| {
            let since = entry.socket.idle_since.load(Ordering::Acquire);
            (since != IN_USE).then_some((since, *id))
        });

        // A heap and not a sort: usually the first candidate will do.
        let mut idle: BinaryHeap<_> = idle.map(Reverse).collect();
        let ended = loop {
            let Some(Reverse((since, id))) = idle.pop() else { return false };
            // The reserve must not fill, whatever its clients send.
            let is_free = |entry: &Entry| {
                since == DISPENSABLE || entry.is_reserve || !entry.socket.has_input()
            };
            if self.open.get(&id).is_some_and(is_free) {
                break id;
            }
        };

        if let Some(entry) = self.remove(ended) {
            entry.socket.shut_down();
        }
        true
    }

    /// Makes room for a connection outside the reserve. Returns why there is none.
    fn find_place(&mut self, counts: ConnectionCounts, address: Option<IpAddr>) -> Option<Excess> {
        let ConnectionCounts { all_max, address_max } = counts;
        if self.of_address(address) >= address_max {
            let is_ended = self.end_idle(|entry| !entry.is_reserve && entry.address == address);
            (!is_ended).then_some(Excess::OfAddress(address_max))
        } else if self.regular() >= all_max {
            let is_ended = self.end_idle(|entry| !entry.is_reserve);
            (!is_ended).then_some(Excess::All(all_max))
        } else {
            None
        }
    }

    fn insert(&mut self, id: u64, entry: Entry) {
        if entry.is_reserve {
            self.reserve += 1;
        } else if let Some(address) = entry.address {
            *self.of_addresses.entry(address).or_default() += 1;
        }
        self.open.insert(id, entry);
    }
}

/// The open connections of a server.
pub struct ConnectionTable {
    counts: ConnectionCounts,
    ticks: AtomicU64,
    entries: Mutex<Entries>,
}

impl ConnectionTable {
    pub fn new(counts: ConnectionCounts) -> Arc<Self> {
        Arc::new(Self { counts, ticks: AtomicU64::new(DISPENSABLE), entries: Mutex::default() })
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Open connections.
    pub fn open(&self) -> usize {
        self.entries().open.len()
    }

    /// True if it has admitted this many connections, and read what came on those that are open.
    #[cfg(test)]
    pub fn has_read(&self, admitted: u64) -> bool {
        let entries = self.entries();
        entries.last_id >= admitted && !entries.open.values().any(|entry| entry.socket.has_input())
    }

    /// Admits a connection. It is idle.
    pub fn admit(self: &Arc<Self>, fd: OwnedFd, address: Option<IpAddr>) -> Place {
        // In IPv6 a whole network counts as one address.
        let address = address.map(network_of);
        let socket = Arc::new(Socket { fd, idle_since: AtomicU64::new(IN_USE) });

        let mut entries = self.entries();
        let excess = entries.find_place(self.counts, address);
        if excess.is_some() && entries.reserve >= RESERVE_IN_USE {
            entries.end_idle(|entry| entry.is_reserve);
        }

        entries.last_id += 1;
        let id = entries.last_id;
        entries.insert(
            id,
            Entry { address, is_reserve: excess.is_some(), socket: Arc::clone(&socket) },
        );
        // Until here it counted as in use, so that no other thread could end it.
        drop(entries);
        let place = Place { table: Arc::clone(self), id, excess: Cell::new(excess), socket };
        place.set_idle();
        place
    }
}

/// A connection's place in the table, until it is dropped.
pub struct Place {
    table: Arc<ConnectionTable>,
    id: u64,
    excess: Cell<Option<Excess>>,
    pub socket: Arc<Socket>,
}

impl Place {
    /// Why it is in the reserve, if it is.
    pub fn excess(&self) -> Option<Excess> {
        self.excess.get()
    }

    /// Leaves the reserve if there is room now. Returns why it cannot.
    pub fn leave_reserve(&self) -> Option<Excess> {
        self.excess.get()?;

        let mut entries = self.table.entries();
        // Missing if a further connection in the reserve has ended this one although its request
        // was read: it stays refused.
        let Some(address) = entries.open.get(&self.id).map(|entry| entry.address) else {
            return self.excess.get();
        };

        let excess = entries.find_place(self.table.counts, address);
        if excess.is_none()
            && let Some(entry) = entries.remove(self.id)
        {
            entries.insert(self.id, Entry { is_reserve: false, ..entry });
        }
        self.excess.set(excess);
        excess
    }

    /// Marks it as idle: from now on it may have to make room for another.
    pub fn set_idle(&self) {
        let now = self.table.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        self.socket.idle_since.store(now, Ordering::Release);
    }

    /// Marks it as dispensable: it makes room before those that are idle, although it is not idle.
    pub fn set_dispensable(&self) {
        self.socket.idle_since.store(DISPENSABLE, Ordering::Release);
    }

    pub fn set_in_use(&self) {
        self.socket.idle_since.store(IN_USE, Ordering::Release);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.entries().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn table() -> Arc<ConnectionTable> {
        ConnectionTable::new(ConnectionCounts { all_max: 4, address_max: 3 })
    }

    fn connect(table: &Arc<ConnectionTable>, address: IpAddr) -> (Place, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        (table.admit(server.into(), Some(address)), client)
    }

    fn is_open(mut client: &UnixStream) -> bool {
        client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    #[test]
    fn the_connection_that_is_idle_longest_makes_room_for_the_next() {
        let table = table();
        let first: Vec<_> = (0..3).map(|_| connect(&table, ONE)).collect();
        first[0].0.set_in_use();
        first[1].0.set_in_use();
        first[1].0.set_idle();

        let next = connect(&table, ONE);

        assert_eq!(next.0.excess(), None);
        assert_eq!(
            first.iter().map(|(_, client)| is_open(client)).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!(is_open(&next.1));
    }

    #[test]
    fn a_request_that_was_not_read_yet_keeps_its_connection() {
        let table = table();
        let first: Vec<_> = (0..3).map(|_| connect(&table, ONE)).collect();
        (&first[0].1).write_all(b"GET /").unwrap();
        let next = connect(&table, ONE);
        assert_eq!(
            first.iter().map(|(_, client)| is_open(client)).collect::<Vec<_>>(),
            [true, false, true]
        );

        (&first[2].1).write_all(b"GET /").unwrap();
        (&next.1).write_all(b"GET /").unwrap();
        assert_eq!(
            connect(&table, ONE).0.excess(),
            Some(Excess::OfAddress(3)),
            "each has a request"
        );
    }

    #[test]
    fn dispensable_connections_make_room_first() {
        let table = table();
        let first: Vec<_> = (0..3).map(|_| connect(&table, ONE)).collect();

        // Whatever its client sends.
        first[1].0.set_dispensable();
        (&first[1].1).write_all(b"GET /").unwrap();
        first[2].0.set_in_use();
        let next = connect(&table, ONE);
        assert_eq!(
            first.iter().map(|(_, client)| is_open(client)).collect::<Vec<_>>(),
            [true, false, true]
        );

        next.0.set_dispensable();
        next.0.set_in_use();
        drop(connect(&table, ONE));
        assert!(is_open(&next.1), "it is in use again");
    }

    #[test]
    fn connections_in_use_stay_and_others_go_to_the_reserve() {
        let table = table();
        let busy = |address| {
            let made = connect(&table, address);
            made.0.set_in_use();
            made
        };

        let of_one: Vec<_> = (0..3).map(|_| busy(ONE)).collect();
        assert_eq!(connect(&table, ONE).0.excess(), Some(Excess::OfAddress(3)));

        let of_other = busy(OTHER);
        assert_eq!(of_other.0.excess(), None, "another address still has places");
        let beyond = connect(&table, OTHER);
        assert_eq!(beyond.0.excess(), Some(Excess::All(4)));
        assert!(of_one.iter().chain([&of_other, &beyond]).all(|(_, client)| is_open(client)));

        drop(of_one);
        assert_eq!(connect(&table, ONE).0.excess(), None);
        assert_eq!(table.entries().reserve, 1);
        drop(beyond);
        assert_eq!(table.entries().reserve, 0);
    }

    #[test]
    fn a_connection_leaves_the_reserve_when_there_is_room() {
        let table = table();
        let first: Vec<_> = (0..3).map(|_| connect(&table, ONE)).collect();
        first.iter().for_each(|(_, client)| (&mut &*client).write_all(b"GET /").unwrap());

        let beyond = connect(&table, ONE);
        assert_eq!(
            beyond.0.excess(),
            Some(Excess::OfAddress(3)),
            "each has a request that was not read"
        );
        beyond.0.set_in_use();
        assert_eq!(beyond.0.leave_reserve(), Some(Excess::OfAddress(3)));
        first.iter().for_each(|(place, _)| place.set_in_use());
        assert_eq!(beyond.0.leave_reserve(), Some(Excess::OfAddress(3)));

        first[1].0.set_dispensable();
        assert_eq!((beyond.0.leave_reserve(), beyond.0.excess()), (None, None));
        assert_eq!(
            first.iter().map(|(_, client)| is_open(client)).collect::<Vec<_>>(),
            [true, false, true]
        );

        let counts =
            |entries: MutexGuard<'_, Entries>| (entries.reserve, entries.of_address(Some(ONE)));
        assert_eq!(counts(table.entries()), (0, 3));
        assert_eq!(connect(&table, ONE).0.excess(), Some(Excess::OfAddress(3)));

        let ended = connect(&table, ONE);
        table.entries().end_idle(|entry| entry.is_reserve);
        first[2].0.set_dispensable();
        assert_eq!(
            ended.0.leave_reserve(),
            Some(Excess::OfAddress(3)),
            "an ended connection gets no place"
        );
        assert!(is_open(&first[2].1));

        drop((first, beyond, ended));
        assert_eq!((table.open(), counts(table.entries())), (0, (0, 0)));
    }

    #[test]
    fn the_reserve_never_fills_with_idle_connections() {
        let table = table();
        let _busy: Vec<_> = (0..3)
            .map(|_| {
                let made = connect(&table, ONE);
                made.0.set_in_use();
                made
            })
            .collect();

        let idle: Vec<_> = (0..500)
            .map(|_| {
                let made = connect(&table, ONE);
                (&made.1).write_all(b"GET /").unwrap();
                made
            })
            .collect();

        assert!(idle.iter().all(|(place, _)| place.excess().is_some()));
        assert_eq!(idle.iter().filter(|(_, client)| is_open(client)).count(), RESERVE_IN_USE);
        assert!(is_open(&idle[499].1), "the newest may still ask");
        drop(idle);
        assert_eq!(table.entries().reserve, 0);
    }
}
