//! `Expect: 100-continue`. A client that sends it waits before it sends a large body, so that it
//! need not send one that is refused. It gets `100 Continue` when a handler asks for the body and
//! none of it has arrived: a request that is refused earlier gets its final status alone.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage as _;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::Version;
use actix_web::web::Bytes;
use futures::Stream;

use super::heads::EXPECT_CONTINUE;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What a connection is to send before the response under way.
#[derive(Default)]
pub struct Expectation(Cell<&'static [u8]>);

impl Expectation {
    /// What remains to be sent.
    pub fn due(&self) -> &'static [u8] {
        self.0.get()
    }

    pub fn has_sent(&self, count: usize) {
        self.0.set(&self.0.get()[count..]);
    }

    /// True if its first bytes were sent, so that the others must follow.
    pub fn is_begun(&self) -> bool {
        let due = self.0.get().len();
        0 < due && due < CONTINUE.len()
    }

    fn ask(&self) {
        self.0.set(CONTINUE);
    }

    /// The response is there: what was not begun need not be sent.
    pub fn withdraw(&self) {
        if !self.is_begun() {
            self.0.set(&[]);
        }
    }

    /// The expectation of a request, whose body asks for it from now on.
    pub fn of(request: &mut ServiceRequest) -> Option<Rc<Self>> {
        let is_expected = request.version() == Version::HTTP_11
            && request.headers().contains_key(EXPECT_CONTINUE);
        if !is_expected {
            return None;
        }

        let expectation = Rc::clone(request.conn_data::<Rc<Self>>()?);
        let body = request.take_payload();
        let awaited = Awaited { body, expectation: Some(Rc::clone(&expectation)) };
        request.set_payload(Payload::Stream { payload: Box::pin(awaited) });
        Some(expectation)
    }
}

/// A body that is asked for when it is first waited for.
struct Awaited {
    body: Payload,
    expectation: Option<Rc<Expectation>>,
}

impl Stream for Awaited {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_next(context);
        // Asked for once, and not if the client did not wait.
        if let Some(expectation) = this.expectation.take()
            && polled.is_pending()
        {
            expectation.ask();
        }
        polled
    }
}
