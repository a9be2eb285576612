//! Listens to a replay and turns what its senders saw into the tables of a capture: every leg is recorded at the node
//! that sends its data, and analysed by the tracker that analyses captures. Decides nothing.
//!
//! Losses, timeouts and fast recoveries are the exceptions: the link knows why it dropped a packet and the sender knows what
//! it did (`sender_events`), so their reports replace what the tracker inferred.

use hindflight_decoder::Captured;
use hindflight_engine::Segment;
use hindflight_engine::{
    Direction, DropCause, Event, Leg, Nanos, PhaseName, ProxySample, Purpose, SenderSample, Tap,
    Transport,
};
use hindflight_flows::{
    Direction as FlowDirection, Event as FlowEvent, EventCause, EventKind, Phase, Sample, Source,
    Tracker,
};
use pyo3::PyResult;

use crate::columns::Columns;
use crate::rows::{self, Origin, SegmentColumns};
use crate::sender_events::SenderEvents;
use crate::wire::{DATA_SENDER, wire};

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
    /// One row per measured run.
    pub transfers: Vec<Columns>,
    /// Congestion windows per data segment, a batch per measured run.
    pub windows: Vec<Columns>,
}

impl RunTables {
    /// Adds the batches of another run behind these.
    pub fn append(&mut self, other: Self) {
        self.segments.extend(other.segments);
        self.flows.extend(other.flows);
        self.events.extend(other.events);
        self.instruments.extend(other.instruments);
        self.transfers.extend(other.transfers);
        self.windows.extend(other.windows);
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
    /// Of each sample: the state of the proxy that the sender belongs to.
    proxies: Vec<Option<ProxySample>>,
    losses: Vec<FlowEvent>,
    sender_events: SenderEvents,
    /// Record and time of the latest packet with each IP identification.
    sent: Vec<(u64, i64)>,
}

impl Recorder {
    /// Called before the run with its number and its legs. Datagram legs, which come last, have no series.
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

    fn leg_changes(&mut self, number: u16, leg: &Leg) {
        self.legs[usize::from(number)].leg = *leg;
    }

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
            proxies: Vec::new(),
            losses: Vec::new(),
            sender_events: SenderEvents::new(flow_id),
            sent: vec![(0, 0); 1 << 16],
            leg: *leg,
        }
    }

    fn add(&mut self, segment: &Segment, record: u64, now: i64) {
        if segment.direction == Direction::Forward {
            self.sent[usize::from(segment.ip_id)] = (record, now);
        }
        self.sender_events.note_segment(segment, record, now);
        let wire = wire(&self.leg, segment, record, now, DATA_SENDER);
        let note = self.tracker.push(&wire);
        self.segments.push(
            &Captured {
                segment: &wire,
                options_other: &[],
            },
            &note,
            0,
        );
    }

    fn note_loss(&mut self, cause: DropCause, segment: &Segment) {
        let (record, sent_at) = self.sent[usize::from(segment.ip_id)];
        let cause = match cause {
            DropCause::Queue => EventCause::Queue,
            DropCause::Aqm => EventCause::Aqm,
            DropCause::Channel => EventCause::Channel,
            // Only ACKs are filtered, and this is about data.
            DropCause::Outage | DropCause::Filtered => EventCause::Outage,
        };
        let direction = FlowDirection::A2b;
        self.losses.push(FlowEvent {
            record: Some(record),
            seq_start: Some(segment.seq as i64),
            seq_end: Some(segment.end() as i64),
            ..FlowEvent::new(self.flow_id, sent_at, direction, EventKind::Loss, cause)
        });
    }

    fn note_state(&mut self, sample: &SenderSample, now: i64) {
        self.samples.push(state_row(self.flow_id, sample, now));
        self.proxies.push(sample.proxy);
        self.sender_events.note_state(sample, now);
    }

    fn finish(mut self, run_id: u32, tables: &mut RunTables) -> PyResult<()> {
        let origin = Origin {
            run_id,
            leg: self.leg.index,
            input_id: 0,
        };
        self.tracker.finish();
        let (rtos, recoveries) = (self.sender_events.rtos, self.sender_events.recoveries);
        let mut events = self.tracker.take_events();
        events.retain(|event| event.kind != EventKind::Loss);
        events.append(&mut self.losses);
        self.sender_events.replace(&mut events);
        events.sort_by_key(|event| event.t_ns);
        tables.segments.push(self.segments.finish()?);
        tables.events.push(rows::events(&events, origin)?);
        tables
            .instruments
            .push(rows::instruments(&self.samples, &self.proxies, origin)?);
        tables.instruments.push(rows::instruments(
            &self.tracker.take_samples(),
            &[],
            origin,
        )?);
        // One row per flow: the leg that leaves the data sender.
        if self.leg.index == 0 {
            let mut flows = self.tracker.take_finished_flows();
            for flow in &mut flows {
                let row = &mut flow.directions[FlowDirection::A2b as usize];
                (row.rtos, row.recoveries) = (rtos, recoveries);
            }
            tables.flows.push(rows::flows(&flows, origin)?);
        }
        Ok(())
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
        cwnd_low_bytes: None,
        cwnd_high_bytes: None,
        ssthresh_bytes: sample.ssthresh_bytes,
        flight_bytes: sample.flight_bytes,
        pipe_bytes: None,
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
