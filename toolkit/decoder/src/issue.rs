//! What is wrong with an input: issues, which reading survives, and the few errors that end it.
//! Knows no format; every other file of this crate reports through it.

use std::fmt;
use std::io;

/// What kind of thing is wrong. The names are the values of the column `kind` of the table `issues`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueKind {
    /// The file header holds values that no writer should put there.
    FileHeader,
    /// A record header makes no sense; reading goes on behind it where another one is found.
    RecordHeader,
    /// The fraction of a record's time stamp is a second or more.
    RecordTime,
    /// More octets were captured than the frame or the snapshot length has.
    RecordLength,
    /// The input ends within a record.
    Cut,
    /// The compressed stream is damaged or ends early.
    Compression,
    /// The operating system could not read on.
    ReadError,
    /// The capture kept too little of a frame to find a TCP header.
    FrameCut,
    /// An IP header contradicts itself or its frame.
    IpHeader,
    /// The IP header says length 0 (segmentation was left to the network card).
    IpLengthZero,
    /// The IP packet claims to be longer than its frame.
    IpLength,
    /// First fragment of a fragmented IP packet: the payload of the others is not counted.
    Fragment,
    /// A TCP header contradicts itself or its packet.
    TcpHeader,
    /// The list of TCP options cannot be read to its end.
    TcpOptions,
    /// The capture cut the TCP options.
    OptionsCut,
}

const KINDS: usize = IssueKind::OptionsCut as usize + 1;

impl IssueKind {
    /// Short name, as in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileHeader => "file_header",
            Self::RecordHeader => "record_header",
            Self::RecordTime => "record_time",
            Self::RecordLength => "record_length",
            Self::Cut => "cut",
            Self::Compression => "compression",
            Self::ReadError => "read_error",
            Self::FrameCut => "frame_cut",
            Self::IpHeader => "ip_header",
            Self::IpLengthZero => "ip_length_zero",
            Self::IpLength => "ip_length",
            Self::Fragment => "fragment",
            Self::TcpHeader => "tcp_header",
            Self::TcpOptions => "tcp_options",
            Self::OptionsCut => "options_cut",
        }
    }
}

/// One thing in an input that could not be decoded or is suspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Number of the record, from 1; 0 for the file as a whole.
    pub record: u64,
    /// Where in the uncompressed input.
    pub offset: u64,
    /// What kind of thing.
    pub kind: IssueKind,
    /// What was found, and what was done about it.
    pub text: String,
}

/// Collects issues: a hundred of each kind in full, the rest as one row with their number, so that a capture that
/// has the same flaw in each record costs no memory.
#[derive(Debug, Default)]
pub(crate) struct Issues {
    rows: Vec<Issue>,
    counts: [u64; KINDS],
    closed: bool,
}

const FULL_ROWS_PER_KIND: u64 = 100;

impl Issues {
    /// Notes an issue; `text` is called only where it will be kept.
    #[cold]
    pub fn add(
        &mut self,
        record: u64,
        offset: u64,
        kind: IssueKind,
        text: impl FnOnce() -> String,
    ) {
        let count = &mut self.counts[kind as usize];
        *count += 1;
        if *count <= FULL_ROWS_PER_KIND {
            self.rows.push(Issue {
                record,
                offset,
                kind,
                text: text(),
            });
        }
    }

    /// Ends the list: adds the row for those that were only counted. A second call changes nothing.
    pub fn close(&mut self, offset: u64) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let mut kinds: Vec<IssueKind> = Vec::new();
        for row in &self.rows {
            if self.counts[row.kind as usize] > FULL_ROWS_PER_KIND && !kinds.contains(&row.kind) {
                kinds.push(row.kind);
            }
        }
        for kind in kinds {
            let more = self.counts[kind as usize] - FULL_ROWS_PER_KIND;
            let text = format!("{more} more like the {FULL_ROWS_PER_KIND} listed");
            self.rows.push(Issue {
                record: 0,
                offset,
                kind,
                text,
            });
        }
    }

    /// The issues so far.
    pub fn rows(&self) -> &[Issue] {
        &self.rows
    }
}

/// Why an input is no capture that can be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// The operating system could not read it.
    Io(io::Error),
    /// It holds nothing.
    Empty,
    /// It ends within the file header.
    HeaderCut {
        /// Octets that are there, of 24.
        have_bytes: usize,
    },
    /// It starts like no capture.
    NotACapture {
        /// What its first octets look like.
        found: String,
    },
    /// It is in the pcapng format.
    Pcapng,
    /// Its frames are of a link type that cannot be read.
    LinkType {
        /// The number in the file header.
        number: u16,
    },
    /// It is compressed, and the compressed stream is damaged before the capture's header is complete.
    Compression {
        /// Name of the compression.
        name: &'static str,
        /// Octets that came out before the damage.
        offset: u64,
        /// What the decompressor says.
        detail: String,
    },
}

impl DecodeError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io(_) => None,
            Self::Empty | Self::HeaderCut { .. } => {
                Some("was the capture stopped before its first packet, or the copy cut short?")
            }
            Self::NotACapture { .. } => {
                Some("give a pcap file as tcpdump -w writes it, plain or as .xz, .gz or .zst")
            }
            Self::Pcapng => Some("convert it first: editcap -F pcap IN.pcapng OUT.pcap"),
            Self::LinkType { .. } => Some(
                "capture on an Ethernet, Linux cooked (-i any), PPP, loopback or raw IP interface",
            ),
            Self::Compression { .. } => Some("fetch the file again, or recompress the original"),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Empty => write!(f, "is empty"),
            Self::HeaderCut { have_bytes } => {
                write!(
                    f,
                    "ends within the file header: {have_bytes} of 24 octets are there"
                )
            }
            Self::NotACapture { found } => write!(f, "is no capture: {found}"),
            Self::Pcapng => write!(f, "is a pcapng file, which cannot be read yet"),
            Self::LinkType { number } => {
                let name = crate::link::unreadable_name(*number);
                write!(
                    f,
                    "has frames of link type {number} ({name}), which cannot be read"
                )
            }
            Self::Compression {
                name,
                offset,
                detail,
            } => {
                write!(
                    f,
                    "is a damaged {name} stream ({detail}, after {offset} octets): no capture header in it"
                )
            }
        }
    }
}

impl std::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
