//! The floor of `bench`: what the hops of one data packet and its acknowledgement cost with no TCP at either end.
//! As in the engine, a packet lies in a slot and its number travels: over two hops each way, through the ring of
//! each serialiser and the ring of packets in flight, with the loss process of the first hop and the earliest of both
//! ways first. Prints nanoseconds per data packet, the median of the repetitions of all threads; an argument says how many
//! threads do the same at once, each with its own. Run with `--release`.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::collections::VecDeque;
use std::fs;
use std::hint::black_box;
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::Instant;

use hindflight_engine::{Direction, Segment};
use hindflight_kernels::{Bernoulli, Purpose, StreamKey, StreamRng};

const PACKETS: u64 = 2_000_000;
const WINDOW: usize = 1800;
const DELAY_NS: u64 = 125_000_000;
const FORWARD_NS: u64 = 600_000;
const REVERSE_NS: u64 = 16_000;
const REPETITIONS: usize = 5;

/// The serialiser of one direction of one link; it never refuses.
struct Serialiser {
    service_ns: u64,
    busy_until: u64,
    departures: VecDeque<u64>,
}

impl Serialiser {
    /// Arrival at the far end of a packet that comes `now`.
    fn pass(&mut self, now: u64) -> u64 {
        while self.departures.front().is_some_and(|&time| time <= now) {
            self.departures.pop_front();
        }
        self.busy_until = now.max(self.busy_until) + self.service_ns;
        self.departures.push_back(self.busy_until);
        self.busy_until + DELAY_NS
    }
}

/// Two hops one way, and what flies over them: arrivals and slots.
struct Way {
    hops: [Serialiser; 2],
    flying: VecDeque<(u64, usize)>,
}

impl Way {
    fn new(service_ns: u64) -> Self {
        let hop = |()| Serialiser {
            service_ns,
            busy_until: 0,
            departures: VecDeque::new(),
        };
        Self {
            hops: [(), ()].map(hop),
            flying: VecDeque::new(),
        }
    }

    fn send(&mut self, slot: usize, now: u64) {
        let arrival = self.hops[0].pass(now);
        let arrival = self.hops[1].pass(arrival);
        self.flying.push_back((arrival, slot));
    }

    fn next_arrival(&self) -> u64 {
        self.flying.front().map_or(u64::MAX, |&(time, _)| time)
    }
}

/// Lets packets circulate until `PACKETS` have left; a lost one is replaced at once. Returns what arrived.
fn circulate() -> u64 {
    let key = StreamKey {
        seed: 1,
        owner: 0,
        direction: 0,
        purpose: Purpose::Loss,
    };
    let mut loss = Bernoulli::new(1e-6, StreamRng::new(key));
    let mut forward = Way::new(FORWARD_NS);
    let mut reverse = Way::new(REVERSE_NS);
    let mut slots = vec![Segment::new(0, Direction::Forward); WINDOW];
    for slot in 0..WINDOW {
        forward.send(slot, 0);
    }
    let (mut left, mut arrived) = (WINDOW as u64, 0);
    while left < PACKETS {
        let data_first = forward.next_arrival() <= reverse.next_arrival();
        let way = if data_first {
            &mut forward
        } else {
            &mut reverse
        };
        let Some((now, slot)) = way.flying.pop_front() else {
            break;
        };
        let was = slots[slot].seq;
        if data_first && !loss.lost() {
            slots[slot] = Segment {
                ack: was + 1448,
                ..Segment::new(0, Direction::Reverse)
            };
            reverse.send(slot, now);
        } else {
            arrived += slots[slot].ack;
            slots[slot] = Segment {
                seq: left * 1448,
                ..Segment::new(0, Direction::Forward)
            };
            left += 1;
            forward.send(slot, now);
        }
    }
    arrived
}

/// Time of this thread on the processor so far; the wall clock where the system does not tell.
fn cpu_ns() -> f64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    let on_cpu = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_cpu = on_cpu.and_then(|text| text.split(' ').next()?.parse().ok());
    on_cpu.unwrap_or_else(|| begin.elapsed().as_nanos() as f64)
}

/// Nanoseconds per data packet of each repetition, once all threads have come to `start`.
fn measure(start: &Barrier) -> Vec<f64> {
    start.wait();
    let repetition = |_| {
        let begin = cpu_ns();
        black_box(circulate());
        (cpu_ns() - begin) / PACKETS as f64
    };
    (0..REPETITIONS).map(repetition).collect()
}

fn main() {
    let argument = std::env::args().nth(1);
    let threads = argument.map_or(1, |n| n.parse().expect("a number of threads"));
    let start = Barrier::new(threads);
    let mut each: Vec<f64> = thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| measure(&start)))
            .collect();
        let ended = all
            .into_iter()
            .map(|thread| thread.join().expect("it ends"));
        ended.flatten().collect()
    });
    each.sort_by(f64::total_cmp);
    println!("{:.2}", each[each.len() / 2]);
}
