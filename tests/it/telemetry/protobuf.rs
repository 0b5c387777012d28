//! The parts of protobuf and of OpenTelemetry's messages that the tests read.

/// A field of a message: its number, and what it holds.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a varint");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = match tag & 7 {
            0 => {
                fields.push((tag >> 3, Field::Number(varint(&mut message))));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)).unwrap(),
            5 => 4,
            kind => panic!("wire type {kind}"),
        };

        let (value, rest) = message.split_at(length);
        message = rest;
        fields.push((tag >> 3, Field::Bytes(value)));
    }
    fields
}

/// The fields of this number that hold bytes.
fn all(message: &[u8], number: u64) -> Vec<&[u8]> {
    let bytes = |(found, field)| match field {
        Field::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(bytes).collect()
}

fn text(message: &[u8], number: u64) -> String {
    String::from_utf8(all(message, number).concat()).unwrap()
}

/// The value of an attribute, as text.
fn value(any: &[u8]) -> String {
    match fields(any)[..] {
        [(1, Field::Bytes(text))] => String::from_utf8(text.to_vec()).unwrap(),
        [(2, Field::Number(flag))] => (flag == 1).to_string(),
        [(3, Field::Number(number))] => number.to_string(),
        [(4, Field::Bytes(double))] => f64::from_le_bytes(double.try_into().unwrap()).to_string(),
        [(5, Field::Bytes(list))] => {
            all(list, 1).iter().map(|any| value(any)).collect::<Vec<_>>().join(",")
        }
        ref other => panic!("{other:?}"),
    }
}

/// The attributes in the fields of this number.
fn attributes(message: &[u8], number: u64) -> Vec<(String, String)> {
    all(message, number).iter().map(|pair| (text(pair, 1), value(&all(pair, 2).concat()))).collect()
}

#[derive(Clone, Debug)]
pub struct Event {
    pub name: String,
    pub attributes: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct Span {
    pub trace_id: Vec<u8>,
    pub id: Vec<u8>,
    pub parent_id: Vec<u8>,
    pub name: String,
    /// Nanoseconds since 1970.
    pub start: u64,
    pub end: u64,
    pub attributes: Vec<(String, String)>,
    pub events: Vec<Event>,
}

pub fn attribute<'a>(attributes: &'a [(String, String)], name: &str) -> &'a str {
    let found = attributes.iter().find(|(found, _)| found == name);
    &found.unwrap_or_else(|| panic!("{name} is missing in {attributes:?}")).1
}

/// The name of the service that sent an `ExportTraceServiceRequest`, and its spans.
pub fn spans(request: &[u8]) -> (String, Vec<Span>) {
    let mut service = String::new();
    let mut spans = Vec::new();
    for resource_spans in all(request, 1) {
        let resource = all(resource_spans, 1).concat();
        attribute(&attributes(&resource, 1), "service.name").clone_into(&mut service);
        let time = |span: &[u8], number| {
            u64::from_le_bytes(all(span, number).concat().try_into().unwrap())
        };

        for span in all(resource_spans, 2).iter().flat_map(|scope| all(scope, 2)) {
            let event =
                |event: &&[u8]| Event { name: text(event, 2), attributes: attributes(event, 3) };
            spans.push(Span {
                trace_id: all(span, 1).concat(),
                id: all(span, 2).concat(),
                parent_id: all(span, 4).concat(),
                name: text(span, 5),
                start: time(span, 7),
                end: time(span, 8),
                attributes: attributes(span, 9),
                events: all(span, 11).iter().map(event).collect(),
            });
        }
    }
    (service, spans)
}
