//! MPLS (RFC 3032): the label stack does not name what it carries.
//!
//! IP is recognised by its version field. Ethernet in MPLS (a pseudowire, RFC 4448) has in the same place a control word,
//! whose first four bits are 0 (RFC 4385 §3), or the first octet of an address, which may be anything: a frame is
//! only read if the IP packet in it is confirmed by its checksum or length.

use super::{Network, by_version, ethernet_at};
use crate::checksum::ipv4_header_is_valid;
use crate::octets::{be16, be32};
use crate::skipped::Skipped;

/// Minimum length of an Ethernet frame without its check sequence; a shorter packet is padded.
const MIN_FRAME_BYTES: usize = 60;
/// The check sequence of the frame, which a pseudowire may retain (RFC 4720).
const CHECK_BYTES: usize = 4;
const CONTROL_WORD_BYTES: usize = 4;

/// The MPLS label stack at `at` (RFC 3032 §2.1).
pub(crate) fn by_mpls(frame: &[u8], mut at: usize) -> Option<Network> {
    const BOTTOM_OF_STACK: u32 = 0x100;
    while be32(frame, at)? & BOTTOM_OF_STACK == 0 {
        at += 4;
    }
    Some(Network::Labelled(at + 4))
}

/// What the labels before `at` were put before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// An IP packet, or nothing that is read.
    Plain(Network),
    /// An IP packet in an Ethernet frame.
    Pseudowire(Network),
}

/// Where the part of a packet that a frame holds ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketEnd {
    pub at: usize,
    /// The rest of the packet is in other fragments.
    pub continues: bool,
}

/// What follows a label stack at `at` of `frame`, in a packet that ends at `end`.
#[cold]
pub(crate) fn labelled(frame: &[u8], at: usize, end: PacketEnd) -> Labelled {
    let Some(&first) = frame.get(at) else {
        return Labelled::Plain(Network::Truncated);
    };
    let ip = by_version(frame, at).filter(|ip| !matches!(ip, Network::Other(_)));
    if let Some(ip) = ip.filter(|&ip| proves_itself(frame, ip, at, end)) {
        return Labelled::Plain(ip);
    }
    let control_word = (first >> 4 == 0).then_some(at + CONTROL_WORD_BYTES);
    for start in control_word.into_iter().chain([at]) {
        if let Some(inner) = ethernet_at(frame, start)
            && proves_itself(frame, inner, start, end)
        {
            return Labelled::Pseudowire(inner);
        }
    }
    let ip = ip.filter(|&ip| fits(frame, ip, end));
    Labelled::Plain(ip.unwrap_or(Network::Other(Some(Skipped::Mpls))))
}

/// Whether an IP packet may be one whose checksum is wrong, or whose header was cut: the length says that it ends by `end`.
/// That of an address of Ethernet in its place says so by chance only.
///
/// In a first fragment an IPv6 packet reaches beyond the end, which most addresses say too: nothing else shows that
/// it is not a frame without IP.
fn fits(frame: &[u8], ip: Network, end: PacketEnd) -> bool {
    let ends_at = match ip {
        Network::Ipv4(at) => be16(frame, at + 2).map(|length| at + usize::from(length)),
        Network::Ipv6(at) => be16(frame, at + 4).map(|length| at + 40 + usize::from(length)),
        _ => return false,
    };
    let is_within = |ends_at| match ip {
        Network::Ipv6(_) if end.continues => reaches(ends_at, end),
        _ => ends_at <= end.at,
    };
    ends_at.is_none_or(is_within)
        || matches!(ip, Network::Ipv4(at) if frame.get(at..).is_some_and(ipv4_header_is_valid))
}

/// Whether a packet that ends at `ends_at` extends to the `end` of a first fragment, or of all but a check sequence.
fn reaches(ends_at: usize, end: PacketEnd) -> bool {
    ends_at + CHECK_BYTES > end.at
}

/// Whether `ip` is an IP packet beyond doubt, in the frame or packet from `start` to `end`: IPv4 by the checksum of its
/// header, IPv6, which has none, by its length; in a first fragment, whose length says little, by the type in the header
/// of a frame before it.
fn proves_itself(frame: &[u8], ip: Network, start: usize, end: PacketEnd) -> bool {
    match ip {
        Network::Ipv4(at) => frame.get(at..).is_some_and(|packet| {
            let fits = be16(packet, 2).is_some_and(|length| at + usize::from(length) <= end.at);
            (fits || end.continues) && ipv4_header_is_valid(packet)
        }),
        Network::Ipv6(at) => {
            let (Some(first), Some(length)) = (frame.get(at), be16(frame, at + 4)) else {
                return false;
            };
            let ip_end = at + 40 + usize::from(length);
            let is_padded = ip_end < end.at && end.at - start <= MIN_FRAME_BYTES + CHECK_BYTES;
            let fills = if end.continues {
                at > start && reaches(ip_end, end)
            } else {
                ip_end == end.at || ip_end + CHECK_BYTES == end.at || is_padded
            };
            first >> 4 == 6 && fills
        }
        _ => false,
    }
}
