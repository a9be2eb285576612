//! Problems of an input: issues, after which reading continues, and the few errors that prevent reading.

use std::fmt;
use std::io;

/// The kind of an issue. The names are the values of the column `kind` of the table `issues`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueKind {
    /// The file header has an unexpected value.
    FileHeader,
    /// A record header is invalid. Reading resumes at the next valid one.
    RecordHeader,
    /// The fractional part of a timestamp is a second or more.
    RecordTime,
    /// The captured length exceeds the frame length or the snapshot length.
    RecordLength,
    /// The input ends within a record.
    Cut,
    /// The compressed stream is damaged or ends early.
    Compression,
    /// The operating system reported a read error.
    ReadError,
    /// The time runs back by more than a second, or jumps ahead by more than a day, from one packet to the next.
    Clock,
    /// The capture itself lost packets, according to its statistics.
    CaptureDrop,
    /// Records hold segments that the interface has yet to cut, or has put together.
    SegmentationOffload,
    /// Checksums that the interface has yet to fill in.
    ChecksumOffload,
    /// Checksums are wrong.
    Checksum,
    /// An interface has an unsupported link type.
    LinkType,
    /// The captured part of a frame ends before the TCP header is complete.
    FrameCut,
    /// An IP header is invalid.
    IpHeader,
    /// The IP length field is 0 (segmentation offload).
    IpLengthZero,
    /// The IP length exceeds the frame.
    IpLength,
    /// The first fragment of an IP packet. The payload of the other fragments is not counted.
    Fragment,
    /// A TCP header is invalid.
    TcpHeader,
    /// A TCP option has an invalid length.
    TcpOptions,
    /// The captured part of a frame ends within the TCP options.
    OptionsCut,
    /// Packets of a protocol that is not read and may contain TCP: one issue per protocol, with their number.
    Skipped,
    /// Frames of a link layer that a [`Dissector`](crate::Dissector) went through: one issue per link type.
    SlowPath,
    /// Ethernet frames in MPLS, which only their contents show.
    Pseudowire,
}

const KINDS: usize = IssueKind::Pseudowire as usize + 1;

impl IssueKind {
    /// Name in the table `issues`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileHeader => "file_header",
            Self::RecordHeader => "record_header",
            Self::RecordTime => "record_time",
            Self::RecordLength => "record_length",
            Self::Cut => "cut",
            Self::Compression => "compression",
            Self::ReadError => "read_error",
            Self::Clock => "clock",
            Self::CaptureDrop => "capture_drop",
            Self::SegmentationOffload => "segmentation_offload",
            Self::ChecksumOffload => "checksum_offload",
            Self::Checksum => "checksum",
            Self::LinkType => "link_type",
            Self::FrameCut => "frame_cut",
            Self::IpHeader => "ip_header",
            Self::IpLengthZero => "ip_length_zero",
            Self::IpLength => "ip_length",
            Self::Fragment => "fragment",
            Self::TcpHeader => "tcp_header",
            Self::TcpOptions => "tcp_options",
            Self::OptionsCut => "options_cut",
            Self::Skipped => "skipped",
            Self::SlowPath => "slow_path",
            Self::Pseudowire => "pseudowire",
        }
    }
}

/// One thing in an input that could not be decoded or is suspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Index of the file among those of a merged capture, from 0.
    pub file: u32,
    /// Number of the record in its file, from 1; 0 for the file as a whole.
    pub record: u64,
    /// Offset in the uncompressed input.
    pub offset: u64,
    /// Kind.
    pub kind: IssueKind,
    /// What was found and how it was handled.
    pub text: String,
}

/// A list of issues. It keeps the first hundred of each kind and counts the rest, so that a capture with the same
/// problem in every record does not fill the memory.
#[derive(Debug, Default)]
pub(crate) struct Issues {
    /// The file that is being read.
    pub file: u32,
    rows: Vec<Issue>,
    counts: [u64; KINDS],
    closed: bool,
}

const MAX_ROWS_PER_KIND: u64 = 100;

impl Issues {
    /// Adds an issue. Calls `text` only if the list keeps the issue.
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
        if *count <= MAX_ROWS_PER_KIND {
            self.rows.push(Issue {
                file: self.file,
                record,
                offset,
                kind,
                text: text(),
            });
        }
    }

    /// Adds the issues of a list that was not closed, as those of the file that is being read.
    pub fn absorb(&mut self, list: Self) {
        for row in list.rows {
            self.add(row.record, row.offset, row.kind, || row.text);
        }
        for (all, found) in self.counts.iter_mut().zip(list.counts) {
            *all += found.saturating_sub(MAX_ROWS_PER_KIND);
        }
    }

    /// Ends the list with one row per kind for the issues that were only counted. A second call has no effect.
    pub fn close(&mut self, offset: u64) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let mut kinds: Vec<IssueKind> = Vec::new();
        for row in &self.rows {
            if self.counts[row.kind as usize] > MAX_ROWS_PER_KIND && !kinds.contains(&row.kind) {
                kinds.push(row.kind);
            }
        }
        for kind in kinds {
            let more = self.counts[kind as usize] - MAX_ROWS_PER_KIND;
            let text = format!("{more} more like the {MAX_ROWS_PER_KIND} listed");
            self.rows.push(Issue {
                file: self.file,
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

/// Why an input cannot be read as a capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// The operating system could not read it.
    Io(io::Error),
    /// It is empty.
    Empty,
    /// It ends within the file header.
    HeaderCut {
        /// Octets present.
        have_bytes: usize,
        /// Length of the header.
        need_bytes: usize,
    },
    /// It does not start with the magic number of a capture format.
    UnknownFormat {
        /// Description of the first octets.
        found: String,
    },
    /// It starts like a capture and is none.
    NotACapture {
        /// What was found.
        found: String,
    },
    /// Its link type is not supported.
    LinkType {
        /// Number in the file header.
        number: u16,
    },
    /// The compressed stream is damaged before the end of the capture's file header.
    Compression {
        /// Name of the compression.
        name: &'static str,
        /// Octets decompressed before the damage.
        offset: u64,
        /// Error message of the decompressor.
        detail: String,
    },
    /// Unpacking needs more memory than allowed.
    UnpackingMemory {
        /// Name of the compression.
        name: &'static str,
        /// How much.
        detail: String,
    },
}

impl DecodeError {
    /// What the user can do about the error, if anything.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io(_) => None,
            Self::Empty | Self::HeaderCut { .. } => Some(
                "was the capture stopped before the first packet, or was the file copied in part?",
            ),
            Self::UnknownFormat { .. } | Self::NotACapture { .. } => Some(
                "give a pcap or pcapng file as tcpdump and Wireshark write them (snoop and ERF are read too), uncompressed or as .xz, .gz, .zst, .bz2 or .lz4",
            ),
            Self::LinkType { .. } => Some(
                "capture on an Ethernet, Linux cooked (-i any), wireless LAN, PPP, loopback or raw IP interface",
            ),
            Self::Compression { .. } => {
                Some("download the file again, or compress the original again")
            }
            Self::UnpackingMemory { .. } => {
                Some("unpack it first (xz -d), and give the unpacked file")
            }
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Empty => write!(f, "is empty"),
            Self::HeaderCut {
                have_bytes,
                need_bytes,
            } => write!(
                f,
                "ends within the file header, after {have_bytes} of {need_bytes} octets"
            ),
            Self::UnknownFormat { found } | Self::NotACapture { found } => {
                write!(f, "is not a capture: {found}")
            }
            Self::LinkType { number } => {
                let name = crate::link::unsupported_name(*number);
                write!(f, "has link type {number} ({name}), which is not supported")
            }
            Self::UnpackingMemory { name, detail } => {
                write!(f, "is not unpacked as an {name} stream: {detail}")
            }
            Self::Compression {
                name,
                offset,
                detail,
            } => {
                write!(
                    f,
                    "is a damaged {name} stream without a complete file header: {detail}, after {offset} octets"
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
