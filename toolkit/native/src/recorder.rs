//! Listens to a replay and turns what its senders saw into the tables of a capture: every leg is recorded at the node
//! that sends its data, and analysed by the tracker that analyses captures. Decides nothing but addresses.
//!
//! Losses are the one exception: the link that dropped a packet knows why, so its word replaces the tracker's guess.

use std::net::{IpAddr, Ipv4Addr};

use hindflight_decoder::{Captured, Segment as WireSegment, TcpOptions};
use hindflight_engine::Segment;
use hindflight_engine::{
    Direction, DropCause, Ecn, Event, Leg, Nanos, PhaseName, Purpose, SenderSample, Tap, Transport,
    flags,
};
use hindflight_flows::{
    Direction as FlowDirection, Event as FlowEvent, EventCause, EventKind, Phase, Sample, Source,
    Tracker,
};
use pyo3::PyResult;

use crate::columns::Columns;
use crate::rows::{self, Origin, SegmentColumns};

/// Hop limit that hosts set.
const TTL: u8 = 64;
/// Ethernet header of a frame.
const FRAME_HEADER_BYTES: u32 = 14;
/// Octets of a timestamps option with its padding (RFC 7323 appendix A), which the MSS option does not deduct.
const TIMESTAMPS_BYTES: u32 = 12;
/// First port of senders, and the port of receivers.
const SENDER_PORT: u16 = 40_000;
const RECEIVER_PORT: u16 = 5001;

/// Tables of one run, leg by leg.
#[derive(Default)]
pub struct RunTables {
    /// Batches of `segments`.
    pub segments: Vec<Columns>,
    /// Batches of `flows`.
    pub flows: Vec<Columns>,
    /// Batches of `events`.
    pub events: Vec<Columns>,
    /// Batches of `instruments`.
    pub instruments: Vec<Columns>,
}

impl RunTables {
    /// Adds the batches of another run behind these.
    pub fn append(&mut self, other: Self) {
        self.segments.extend(other.segments);
        self.flows.extend(other.flows);
        self.events.extend(other.events);
        self.instruments.extend(other.instruments);
    }
}

/// The recorder of one run.
#[derive(Default)]
pub struct Recorder {
    run_id: u32,
    record: u64,
    legs: Vec<LegRecorder>,
}

/// What is kept of one leg.
struct LegRecorder {
    leg: Leg,
    flow_id: u32,
    tracker: Tracker,
    segments: SegmentColumns,
    samples: Vec<Sample>,
    losses: Vec<FlowEvent>,
    /// Record and time of the latest packet with each IP identification.
    sent: Vec<(u64, i64)>,
}

impl Recorder {
    /// Is told, before the run, its number and its legs. Those of datagrams, which come last, leave no series.
    pub fn begin(&mut self, run_id: u32, legs: &[Leg]) {
        self.run_id = run_id;
        self.legs = legs
            .iter()
            .filter(|leg| leg.transport == Transport::Tcp)
            .map(|leg| LegRecorder::new(run_id, leg))
            .collect();
    }

    /// The tables.
    pub fn finish(self) -> PyResult<RunTables> {
        let mut tables = RunTables::default();
        for leg in self.legs {
            leg.finish(self.run_id, &mut tables)?;
        }
        Ok(tables)
    }
}

impl Tap for Recorder {
    /// It sits where data are sent.
    const FOLLOWS_RECEIVERS: bool = false;

    fn event(&mut self, now: Nanos, event: Event<'_>) {
        let now = now as i64;
        match event {
            Event::Sent(segment) | Event::Arrived(segment) | Event::Dropped { segment, .. }
                if segment.purpose == Purpose::Datagram => {}
            Event::Sent(segment) if segment.direction == Direction::Forward => {
                self.record += 1;
                self.legs[usize::from(segment.leg)].add(segment, self.record, now);
            }
            Event::Arrived(segment) if segment.direction == Direction::Reverse => {
                self.record += 1;
                self.legs[usize::from(segment.leg)].add(segment, self.record, now);
            }
            Event::Dropped { cause, segment, .. }
                if segment.payload_bytes > 0 && segment.direction == Direction::Forward =>
            {
                self.legs[usize::from(segment.leg)].note_loss(cause, segment);
            }
            Event::State { leg, sample } => self.legs[usize::from(leg)].note_state(sample, now),
            Event::Sent(_) | Event::Arrived(_) | Event::Dropped { .. } | Event::Marked { .. } => {}
        }
    }
}

impl LegRecorder {
    fn new(run_id: u32, leg: &Leg) -> Self {
        let flow_id = leg.flow as u32 + 1;
        Self {
            flow_id,
            tracker: Tracker::new(flow_id),
            segments: SegmentColumns::with_capacity(
                1024,
                Origin {
                    run_id,
                    leg: leg.index,
                    input_id: 0,
                },
            ),
            samples: Vec::new(),
            losses: Vec::new(),
            sent: vec![(0, 0); 1 << 16],
            leg: *leg,
        }
    }

    fn add(&mut self, segment: &Segment, record: u64, now: i64) {
        if segment.direction == Direction::Forward {
            self.sent[usize::from(segment.ip_id)] = (record, now);
        }
        let wire = self.wire(segment, record, now);
        let note = self.tracker.push(&wire);
        self.segments.push(
            &Captured {
                segment: wire,
                options_other: &[],
            },
            &note,
        );
    }

    fn note_loss(&mut self, cause: DropCause, segment: &Segment) {
        let (record, sent_at) = self.sent[usize::from(segment.ip_id)];
        self.losses.push(FlowEvent {
            flow_id: self.flow_id,
            t_ns: sent_at,
            end_ns: None,
            direction: FlowDirection::A2b,
            kind: EventKind::Loss,
            cause: match cause {
                DropCause::Queue => EventCause::Queue,
                DropCause::Aqm => EventCause::Aqm,
                DropCause::Channel => EventCause::Channel,
                DropCause::Outage => EventCause::Outage,
            },
            record: Some(record),
            seq_start: Some(segment.seq as i64),
            seq_end: Some(segment.end() as i64),
            evidence: None,
        });
    }

    fn note_state(&mut self, sample: &SenderSample, now: i64) {
        self.samples.push(state_row(self.flow_id, sample, now));
    }

    fn finish(mut self, run_id: u32, tables: &mut RunTables) -> PyResult<()> {
        let origin = Origin {
            run_id,
            leg: self.leg.index,
            input_id: 0,
        };
        self.tracker.finish();
        let mut events = self.tracker.take_events();
        events.retain(|event| event.kind != EventKind::Loss);
        events.append(&mut self.losses);
        events.sort_by_key(|event| event.t_ns);
        tables.segments.push(self.segments.finish()?);
        tables.events.push(rows::events(&events, origin)?);
        tables
            .instruments
            .push(rows::instruments(&self.samples, origin)?);
        tables
            .instruments
            .push(rows::instruments(&self.tracker.take_samples(), origin)?);
        // One row per flow: the leg that leaves the data sender.
        if self.leg.index == 0 {
            tables
                .flows
                .push(rows::flows(&self.tracker.take_finished_flows(), origin)?);
        }
        Ok(())
    }

    /// The segment as it would stand in a capture at the data sender.
    fn wire(&self, segment: &Segment, record: u64, now: i64) -> WireSegment {
        let leg = &self.leg;
        let sent = segment.direction == Direction::Forward;
        let source = (address(leg.source_site), SENDER_PORT + leg.flow as u16);
        let sink = (address(leg.sink_site), RECEIVER_PORT);
        let ((src, src_port), (dst, dst_port)) = if sent { (source, sink) } else { (sink, source) };
        let [own_isn, other_isn] = if sent {
            leg.isn
        } else {
            [leg.isn[1], leg.isn[0]]
        };
        let routers = (leg.sink_site - leg.source_site - 1) as u8;
        let has_ack = segment.has(flags::ACK);
        // RFC 7323 §2.2: the window of a SYN is not scaled.
        let shift = if sent || segment.has(flags::SYN) {
            0
        } else {
            leg.wscale
        };
        let ip_bytes = u32::from(segment.ip_bytes);
        WireSegment {
            record,
            t_ns: now,
            frame_bytes: ip_bytes + FRAME_HEADER_BYTES,
            captured_bytes: ip_bytes + FRAME_HEADER_BYTES,
            src,
            dst,
            src_port,
            dst_port,
            ip_id: Some(segment.ip_id),
            ttl: if sent {
                TTL
            } else {
                TTL.saturating_sub(routers)
            },
            dscp_ecn: segment.dscp << 2 | ecn_bits(segment.ecn),
            ip_bytes,
            seq: own_isn.wrapping_add(segment.seq as u32),
            ack: if has_ack {
                other_isn.wrapping_add(segment.ack as u32)
            } else {
                0
            },
            flags: u16::from(segment.flags),
            window: (segment.wnd_bytes >> shift) as u16,
            payload_bytes: u32::from(segment.payload_bytes),
            options: self.options(segment, other_isn),
        }
    }

    fn options(&self, segment: &Segment, other_isn: u32) -> TcpOptions {
        let params = &self.leg.params;
        let mut options = TcpOptions {
            timestamps: params
                .timestamps
                .then_some((segment.ts_val, segment.ts_ecr)),
            ..TcpOptions::default()
        };
        if segment.has(flags::SYN) {
            let deducted = if params.timestamps {
                TIMESTAMPS_BYTES
            } else {
                0
            };
            options.mss = Some((params.smss_bytes + deducted) as u16);
            options.wscale = Some(if segment.direction == Direction::Forward {
                0
            } else {
                self.leg.wscale
            });
            options.sack_permitted = params.sack_enabled();
        }
        for (left, right) in segment.sack_blocks() {
            options.sack.push(
                other_isn.wrapping_add(left as u32),
                other_isn.wrapping_add(right as u32),
            );
        }
        options
    }
}

/// A state of a sender as a row of `instruments`.
pub fn state_row(flow_id: u32, sample: &SenderSample, t_ns: i64) -> Sample {
    let span = |span: Option<Nanos>| span.map(|ns| ns as i64);
    Sample {
        flow_id,
        t_ns,
        source: Source::Replay,
        phase: phase(sample.phase),
        cwnd_bytes: Some(sample.cwnd_bytes),
        ssthresh_bytes: sample.ssthresh_bytes,
        flight_bytes: sample.flight_bytes,
        smss_bytes: i64::from(sample.smss_bytes),
        srtt_ns: span(sample.srtt_ns),
        rttvar_ns: span(sample.rttvar_ns),
        rto_ns: Some(sample.rto_ns as i64),
        min_rtt_ns: span(sample.min_rtt_ns),
        snd_una: sample.snd_una as i64,
        snd_nxt: sample.snd_nxt as i64,
        snd_wnd_bytes: Some(i64::from(sample.snd_wnd_bytes)),
        segments_out: sample.counters.segments_out as i64,
        retransmissions: sample.counters.retransmissions as i64,
        rtos: sample.counters.rtos as i64,
        recoveries: sample.counters.recoveries as i64,
        dup_acks_in: sample.counters.dup_acks_in as i64,
        app_limited: None,
    }
}

/// Address of the node at `site`, out of a private range.
fn address(site: usize) -> IpAddr {
    let host = site as u32 + 1;
    IpAddr::V4(Ipv4Addr::from_bits(
        Ipv4Addr::new(10, 0, 0, 0).to_bits() + host,
    ))
}

/// RFC 3168 §5.
fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

fn phase(name: PhaseName) -> Phase {
    match name {
        PhaseName::Handshake => Phase::Handshake,
        PhaseName::SlowStart => Phase::SlowStart,
        PhaseName::CongestionAvoidance => Phase::CongestionAvoidance,
        PhaseName::Recovery => Phase::Recovery,
        PhaseName::Loss => Phase::Loss,
        PhaseName::Limited => Phase::Limited,
    }
}
