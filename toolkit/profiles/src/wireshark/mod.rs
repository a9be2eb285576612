//! Wireshark 4.0: `tcp.stream`, completeness, window scale factor and the fields of `tcp.analysis` per segment, with its
//! default preferences.
//!
//! Sources: its User's Guide, and what tshark prints. Wireshark of later versions differs in a few rules.

mod conversation;
mod flow;
mod verdict;

use hashbrown::HashTable;
use hindflight_decoder::Segment;

use crate::cells::{Format, TextRows, separators};
use crate::packet::Ends;
use conversation::Conversation;
pub use verdict::{FLAGS, Verdict, flag};

/// Analyses the segments of a capture, one after another.
pub struct Wireshark {
    by_ends: HashTable<(Ends, Conversation)>,
    streams: u32,
}

impl Default for Wireshark {
    fn default() -> Self {
        Self {
            by_ends: HashTable::new(),
            streams: 0,
        }
    }
}

impl Wireshark {
    /// What Wireshark says of the next segment.
    pub fn push(&mut self, segment: &Segment) -> Verdict {
        let segment = &within_frame(segment);
        let ends = Ends::of(segment);
        let reversed = ends.reversed();
        let hash = ends.hash();
        let entry = self
            .by_ends
            .find_mut(hash, |(other, _)| *other == ends || *other == reversed);
        if let Some((other, conversation)) = entry {
            let forward = *other == ends;
            let reused = conversation.is_followed_by(segment, forward);
            if reused {
                *conversation = Conversation::after_another(self.streams);
                self.streams += 1;
            }
            return conversation.push(segment, forward, false, reused);
        }
        let mut conversation = Conversation::new(self.streams);
        self.streams += 1;
        let verdict = conversation.push(segment, true, true, false);
        self.by_ends
            .insert_unique(hash, (ends, conversation), |(ends, _)| ends.hash());
        verdict
    }
}

/// The segment with its payload as far as the frame reaches, even if the IP header says that it is longer.
fn within_frame(segment: &Segment) -> Segment {
    let captured = segment.payload_bytes - segment.missing_bytes;
    let not_captured = segment.frame_bytes.saturating_sub(segment.captured_bytes);
    let payload_bytes = segment.payload_bytes.min(captured + not_captured);
    Segment {
        payload_bytes,
        ..*segment
    }
}

/// Writes the verdicts of segments as rows of text.
pub struct WiresharkRows {
    wireshark: Wireshark,
    format: Format,
    separators: Vec<Vec<u8>>,
    rows: u64,
    out: Vec<u8>,
}

impl WiresharkRows {
    /// Without a segment.
    pub fn new(format: Format) -> Self {
        let names = verdict::names();
        let out = match format {
            Format::Csv => (names.join(",") + "\n").into_bytes(),
            Format::Json => Vec::new(),
        };
        Self {
            wireshark: Wireshark::default(),
            format,
            separators: separators(&names, format),
            rows: 0,
            out,
        }
    }

    /// Analyses a segment.
    pub fn push(&mut self, segment: &Segment) {
        let verdict = self.wireshark.push(segment);
        let mut text =
            TextRows::new(&mut self.out, self.format, &self.separators).with_empty_cells();
        text.begin(self.rows == 0);
        verdict.write(&mut text);
        text.end();
        self.rows += 1;
    }

    /// Takes the rows since the last call.
    pub fn take_text(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}
