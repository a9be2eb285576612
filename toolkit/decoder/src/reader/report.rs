//! Issues of records that cannot be decoded, or are suspect.

use crate::container::Record;
use crate::ip::{IpError, IpHeader};
use crate::issue::IssueKind;
use crate::link;
use crate::segment::Segment;
use crate::tally::Other;
use crate::tcp::{OptionsEnd, TcpError};

use super::Decoder;

impl Decoder {
    #[cold]
    pub(super) fn report_link(&mut self, record: &Record<'_>, number: u16) -> Option<Segment> {
        self.issues
            .add(record.place.record, record.place.offset, IssueKind::LinkType, || {
                let name = link::unsupported_name(number);
                format!("the interface has link type {number} ({name}), which is not supported; not decoded")
            });
        self.tally.other(Other::Undecoded, record.frame_bytes)
    }

    #[cold]
    pub(super) fn report_truncated(&mut self, record: &Record<'_>, what: &str) -> Option<Segment> {
        let (captured, frame) = (record.data.len(), record.frame_bytes);
        self.issues
            .add(record.place.record, record.place.offset, IssueKind::FrameCut, || {
                format!(
                    "{captured} of {frame} octets were captured, ending within the {what}; not decoded"
                )
            });
        self.tally.other(Other::Undecoded, frame)
    }

    #[cold]
    pub(super) fn report_bad_ip(&mut self, record: &Record<'_>, error: IpError) -> Option<Segment> {
        let text = match error {
            IpError::Truncated => return self.report_truncated(record, "IP header"),
            IpError::Version(version) => format!("the IP version is {version}"),
            IpError::HeaderLength(bytes) => {
                format!("the IP header length of {bytes} octets is invalid")
            }
        };
        self.issues.add(
            record.place.record,
            record.place.offset,
            IssueKind::IpHeader,
            || format!("{text}; not decoded"),
        );
        self.tally.other(Other::Undecoded, record.frame_bytes)
    }

    #[cold]
    pub(super) fn report_bad_tcp(
        &mut self,
        record: &Record<'_>,
        error: TcpError,
        length: u32,
    ) -> Option<Segment> {
        let text = match error {
            TcpError::Truncated => return self.report_truncated(record, "TCP header"),
            TcpError::Short => format!("the IP payload of {length} octets is too short for TCP"),
            TcpError::DataOffset(bytes) => {
                format!(
                    "the TCP data offset of {bytes} octets is invalid in an IP payload of {length}"
                )
            }
        };
        self.issues.add(
            record.place.record,
            record.place.offset,
            IssueKind::TcpHeader,
            || format!("{text}; not decoded"),
        );
        self.tally.other(Other::Undecoded, record.frame_bytes)
    }

    #[cold]
    pub(super) fn report_ip(&mut self, record: &Record<'_>, ip: &IpHeader, available_bytes: u32) {
        let bytes = ip.ip_bytes;
        let mut add = |kind, text: &dyn Fn() -> String| {
            self.issues
                .add(record.place.record, record.place.offset, kind, text);
        };
        if ip.length_zero {
            add(IssueKind::IpLengthZero, &|| {
                format!("the IP length is 0 (segmentation offload); took {bytes} from the frame")
            });
        } else if bytes > available_bytes {
            add(IssueKind::IpLength, &|| {
                format!("the IP length is {bytes}, the frame has {available_bytes}; took {bytes}")
            });
        }
    }

    #[cold]
    pub(super) fn report_options(&mut self, record: &Record<'_>, end: OptionsEnd) {
        match end {
            OptionsEnd::Complete => {}
            OptionsEnd::Truncated => {
                self.issues.add(
                    record.place.record,
                    record.place.offset,
                    IssueKind::OptionsCut,
                    || {
                        "the captured octets end within the TCP options; earlier options are kept"
                            .to_owned()
                    },
                );
            }
            OptionsEnd::Malformed { kind, length } => {
                self.issues
                    .add(record.place.record, record.place.offset, IssueKind::TcpOptions, || {
                        format!("TCP option {kind} has an invalid length of {length}; earlier options are kept")
                    });
            }
        }
    }
}
