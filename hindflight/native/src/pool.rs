//! Jobs over threads, batch by batch. The next batch is read while one runs, so that no thread waits for the last job of
//! a batch or for Python; Ctrl-C is looked for meanwhile. Decides nothing about what a job is.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::controller::Failure;
use crate::replay::{Job, Keep, Outcome};

/// How often the leading thread looks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// Where jobs come from and what becomes of them. Both are called on the thread of `run_all`.
pub trait Batches {
    /// The next batch; none behind the last.
    fn next(&mut self) -> PyResult<Option<Vec<Job>>>;

    /// A batch is done: its jobs in their order. Batches come in theirs.
    fn done(&mut self, finished: Vec<(Job, Outcome)>) -> PyResult<()>;
}

/// Hands the jobs to `threads` threads. All stop when one fails, with the cause in `failure`, or the user interrupts.
pub fn run_all(
    batches: &mut impl Batches,
    threads: usize,
    keep: &Keep,
    failure: &Failure,
) -> PyResult<()> {
    let threads = threads.max(1);
    let pool = Pool {
        keep,
        failure,
        state: Mutex::new(State {
            working: threads,
            ..State::default()
        }),
        queued: Condvar::new(),
        progressed: Condvar::new(),
    };
    let led = thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| pool.work());
        }
        let _ending = Ending(&pool);
        pool.lead(batches)
    });
    // What a job raised is the cause of all else.
    failure.take().map_or(led, Err)
}

/// What the threads share.
struct Pool<'a> {
    keep: &'a Keep,
    failure: &'a Failure,
    state: Mutex<State>,
    /// Jobs were added, or there will be no more.
    queued: Condvar,
    /// A batch is done, few jobs wait, or a thread has stopped.
    progressed: Condvar,
}

#[derive(Default)]
struct State {
    /// Jobs that have not begun, in the order in which they will.
    waiting: VecDeque<Turn>,
    /// Number of the first of `running`.
    first: usize,
    /// Batches that `done` has not been called for.
    running: VecDeque<Batch>,
    /// Turns of the last of these.
    newest: usize,
    /// No job will be added.
    closed: bool,
    /// Threads that have not stopped.
    working: usize,
}

/// A job with its place in the batch of this number, and others whose runs may turn out to be the same.
struct Turn {
    batch: usize,
    placed: Placed,
    others: Vec<Placed>,
}

type Placed = (usize, Job);

/// What is done of a batch.
struct Batch {
    finished: Vec<Option<(Job, Outcome)>>,
    left: usize,
}

impl State {
    fn add(&mut self, jobs: Vec<Job>) {
        let batch = self.first + self.running.len();
        self.running.push_back(Batch {
            finished: jobs.iter().map(|_| None).collect(),
            left: jobs.len(),
        });
        let mut turns: Vec<Turn> = Vec::new();
        for placed in jobs.into_iter().enumerate() {
            let like = |turn: &&mut Turn| turn.placed.1.may_cover(&placed.1);
            match turns.iter_mut().find(like) {
                Some(turn) => turn.others.push(placed),
                None => turns.push(Turn {
                    batch,
                    placed,
                    others: Vec::new(),
                }),
            }
        }
        // A recorded job takes several times as long as another: one that began last would leave other threads idle.
        turns.sort_by_key(|turn| !turn.placed.1.recorded);
        self.newest = turns.len();
        self.waiting.extend(turns);
    }

    /// Whether the next batch is to be read: as soon as the newest has begun.
    fn wants_more(&self) -> bool {
        !self.closed && (self.waiting.is_empty() || self.waiting.len() < self.newest)
    }

    /// Takes the first batch out if it is done.
    fn take_done(&mut self) -> Option<Vec<(Job, Outcome)>> {
        self.running.front().filter(|batch| batch.left == 0)?;
        let batch = self.running.pop_front()?;
        self.first += 1;
        Some(batch.finished.into_iter().flatten().collect())
    }
}

/// What the leading thread does next.
enum Step {
    Done(Vec<(Job, Outcome)>),
    Fetch,
    Wait,
    End,
}

impl Pool<'_> {
    fn work(&self) {
        let _leaving = Leaving(self);
        while let Some(turn) = self.take() {
            if let Err(error) = self.run(turn)
                && !self.failure.interrupt.load(Ordering::Relaxed)
            {
                self.failure.note(error);
            }
            // Otherwise another job failed first, or the user interrupts: this error is not the cause.
        }
    }

    fn run(&self, turn: Turn) -> PyResult<()> {
        let interrupt = &self.failure.interrupt;
        let Turn {
            batch,
            placed: (place, job),
            others,
        } = turn;
        let among: Vec<&Job> = others.iter().map(|(_, other)| other).collect();
        let (outcome, known) = job.run_for(&among, self.keep, interrupt)?;
        self.finish(batch, place, (job, outcome));
        for ((place, job), known) in others.into_iter().zip(known) {
            let outcome = known.map_or_else(|| job.run(self.keep, interrupt), Ok)?;
            self.finish(batch, place, (job, outcome));
        }
        Ok(())
    }

    /// Waits for a job; none if there will be no more.
    fn take(&self) -> Option<Turn> {
        let mut state = lock(&self.state);
        loop {
            if self.failure.interrupt.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(turn) = state.waiting.pop_front() {
                self.progressed.notify_one();
                return Some(turn);
            }
            if state.closed {
                return None;
            }
            let woken = self.queued.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, batch: usize, place: usize, finished: (Job, Outcome)) {
        let mut state = lock(&self.state);
        let at = batch - state.first;
        let batch = &mut state.running[at];
        batch.finished[place] = Some(finished);
        batch.left -= 1;
        self.progressed.notify_one();
    }

    /// Reads batches and hands on those that are done, until all threads have stopped. Where a batch cannot be read or
    /// handed on, or the user interrupts, has them stop, also inside a controller's Python code, and returns the error.
    fn lead(&self, batches: &mut impl Batches) -> PyResult<()> {
        let mut ended = Ok(());
        let mut signal = Ok(());
        loop {
            let (state, step) = self.step();
            match step {
                Step::End => return ended.and(signal),
                // Python is called without the lock: a thread may want a job, or to end.
                Step::Done(finished) => {
                    drop(state);
                    ended = batches.done(finished);
                }
                Step::Fetch => {
                    drop(state);
                    ended = batches.next().map(|jobs| self.add(jobs));
                }
                Step::Wait => drop(self.progressed.wait_timeout(state, SIGNAL_CHECK)),
            }
            if signal.is_ok() {
                signal = check_signals();
            }
            if ended.is_err() || signal.is_err() {
                self.failure.interrupt.store(true, Ordering::Relaxed);
            }
            if signal.is_err() {
                let raised = self.failure.interrupt_calls();
                signal = signal.and(raised);
            }
        }
    }

    /// What to do next, with the lock. After an interrupt nothing begins.
    fn step(&self) -> (MutexGuard<'_, State>, Step) {
        let mut state = lock(&self.state);
        if self.failure.interrupt.load(Ordering::Relaxed) {
            self.close(&mut state);
            state.waiting.clear();
        } else if let Some(finished) = state.take_done() {
            return (state, Step::Done(finished));
        }
        let step = if state.working == 0 {
            Step::End
        } else if state.wants_more() {
            Step::Fetch
        } else {
            Step::Wait
        };
        (state, step)
    }

    /// Adds a batch; none closes the pool.
    fn add(&self, jobs: Option<Vec<Job>>) {
        let mut state = lock(&self.state);
        match jobs {
            Some(jobs) => state.add(jobs),
            None => state.closed = true,
        }
        self.queued.notify_all();
    }

    fn close(&self, state: &mut State) {
        state.closed = true;
        self.queued.notify_all();
    }
}

fn check_signals() -> PyResult<()> {
    Python::attach(|py| {
        let signal: PyResult<()> = py.check_signals();
        signal
    })
}

/// Counts a thread as stopped when it is dropped, also after a panic.
struct Leaving<'a, 'b>(&'a Pool<'b>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        lock(&self.0.state).working -= 1;
        self.0.progressed.notify_all();
    }
}

/// Has the threads end when it is dropped, also after a panic of the leading thread.
struct Ending<'a, 'b>(&'a Pool<'b>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failure.interrupt.store(true, Ordering::Relaxed);
        }
        self.0.close(&mut lock(&self.0.state));
    }
}

/// A panic of a thread that had the lock leaves plain values behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
