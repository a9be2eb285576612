//! Finds options that the chosen variant would not heed: what a scenario asks for is to do something in one at least of
//! the runs that it compares.
//!
//! Does not depend on how they work. A profile's own values are never found, only what a scenario asks for.

use hindflight_kernels::{Purpose, StreamKey, StreamRng};

use super::{Checked, ConfigError, known_variant, refuse};
use crate::cc::catalogue::{VARIANTS, Variant};
use crate::cc::variants::ledbat::LedbatParams;
use crate::cc::{Decrease, Increase, Made, ParamValues};
use crate::config::{Config, FlowConfig, Profile, RecoveryKind, RtoRule, StackParams};

/// One half-connection: who sends, with which stack in the end.
struct Leg {
    variant: Variant,
    stack: StackParams,
    values: ParamValues,
}

impl Leg {
    /// What its controller is made of.
    fn made(&self) -> Made {
        let draws = StreamRng::new(StreamKey {
            seed: 0,
            owner: 0,
            direction: 0,
            purpose: Purpose::Controller,
        });
        (self.variant.info().made)(&self.stack, &self.values, draws)
    }

    /// Whether it starts in a way of its own.
    fn owns_start(&self) -> bool {
        match self.made() {
            // Of ns-2's agents the profile is told.
            Made::Parts(Increase::Ns2Reno(_), _) => false,
            Made::Parts(growth, _) => growth.owns_slow_start(),
            Made::Window(_) | Made::Whole(_) => true,
        }
    }

    /// Whether its window is its own calculation, which no ACK moves.
    fn holds_window(&self) -> bool {
        matches!(self.made(), Made::Window(windowed) if windowed.is_held())
    }

    fn models_path(&self) -> bool {
        matches!(self.made(), Made::Whole(controller) if controller.models_path())
    }

    /// Whether it recovers as ns-2's agents do, who count ACKs, not what they acknowledge.
    fn counts_acks(&self) -> bool {
        self.stack.profile == Profile::Ns2
            && !self.models_path()
            && matches!(
                self.stack.recovery,
                RecoveryKind::Reno | RecoveryKind::Newreno | RecoveryKind::Sack
            )
    }

    /// Whether it reads a slow start threshold that it has not found itself.
    fn heeds_ssthresh(&self) -> bool {
        match self.variant {
            Variant::Ledbat => LedbatParams::of(&self.values).slow_start,
            Variant::Peach => false,
            _ => !self.models_path() && !self.holds_window(),
        }
    }

    /// Whether an ACK may raise its window by more than one segment in the stack's slow start.
    fn heeds_slow_start_limit(&self) -> bool {
        !self.owns_start() && !self.counts_acks()
    }

    /// Whether it spaces what it sends only where the stack says so.
    fn heeds_pacing_off(&self) -> bool {
        !matches!(self.made(), Made::Whole(_))
    }

    /// RFC 6675 §5 step (3): with SACK the pipe shrinks by itself, as under Linux without. Super TCP recovers from the
    /// first duplicate on.
    fn heeds_limited_transmit(&self) -> bool {
        let by_pipe = self.stack.sack_enabled() || self.acts_as_linux();
        self.counts_acks() || !by_pipe && self.stack.recovery != RecoveryKind::Supertcp
    }

    /// Whether a reduction that proves spurious can be taken back.
    fn heeds_undo(&self) -> bool {
        let owns = matches!(
            self.stack.recovery,
            RecoveryKind::Aerotcp | RecoveryKind::Supertcp
        );
        !owns && !self.counts_acks()
    }

    /// Whether new data asks after a timeout: an echo tells at once, and Linux asks besides.
    fn heeds_frto(&self) -> bool {
        let asks = self.acts_as_linux() || !self.stack.timestamps;
        asks && self.stack.undo && self.heeds_undo()
    }

    fn acts_as_linux(&self) -> bool {
        self.stack.profile == Profile::Linux && self.stack.recovery == RecoveryKind::RackPrr
    }

    /// Whether it is still what its name says over a window that nothing moves: one that is held in any case, or RFC
    /// 5681's, with a reduction that only recovery asks for.
    fn is_more_than_its_window(&self) -> bool {
        let usual = matches!(
            self.made(),
            Made::Parts(
                Increase::Reno(_) | Increase::Ns2Reno(_),
                Decrease::Factor(_) | Decrease::Ns2Half(_) | Decrease::Fack(_)
            )
        );
        usual || self.holds_window()
    }
}

/// An option, whether the scenario gives it, what heeds it, and what to say where nothing does.
type Heeded = (&'static str, bool, fn(&Leg) -> bool, &'static str);

impl FlowConfig {
    /// Its half-connections, from the first on.
    fn legs(&self) -> Result<Vec<Leg>, ConfigError> {
        let params = StackParams::resolve(self.profile, &self.stack);
        let leg = |name: &str, values: &ParamValues| {
            known_variant("variant", name).map(|variant| Leg {
                variant,
                stack: variant.fix(&params, values),
                values: values.clone(),
            })
        };
        let proxies = self.proxies.iter().filter_map(|proxy| {
            let variant = proxy.variant.as_ref()?;
            Some(leg(variant, &proxy.params))
        });
        std::iter::once(leg(&self.variant, &self.params))
            .chain(proxies)
            .collect()
    }

    /// Refuses a fixed window where it leaves nothing of the variant, and what it leaves no room for.
    pub(super) fn validate_fixed_window(&self, key: &str) -> Checked {
        if self.stack.fixed_window_pkts.is_none() {
            return Ok(());
        }
        let at = |name: &str| format!("{key}.stack.{name}");
        if !self.legs()?.iter().all(Leg::is_more_than_its_window) {
            let problem = format!(
                "nothing is left of variant {:?} over a window that nothing moves; take one of {}",
                self.variant,
                self.more_than_their_windows().join(", ")
            );
            return refuse(at("fixed_window_pkts"), problem);
        }
        let stack = &self.stack;
        for (name, given) in [
            ("slow_start", stack.slow_start.is_some()),
            (
                "slow_start_limit_pkts",
                stack.slow_start_limit_pkts.is_some(),
            ),
            ("initial_window_pkts", stack.initial_window_pkts.is_some()),
            (
                "initial_ssthresh_pkts",
                stack.initial_ssthresh_pkts.is_some(),
            ),
            ("ecn_beta", stack.ecn_beta.is_some()),
        ] {
            if given {
                return refuse(at(name), "means nothing over a fixed_window_pkts");
            }
        }
        Ok(())
    }

    /// The variants that a fixed window leaves what they are, under this stack.
    fn more_than_their_windows(&self) -> Vec<&'static str> {
        let params = StackParams::resolve(self.profile, &self.stack);
        let leg = |&variant: &Variant| Leg {
            variant,
            stack: variant.fix(&params, &ParamValues::new()),
            values: ParamValues::new(),
        };
        let left = VARIANTS
            .iter()
            .map(leg)
            .filter(Leg::is_more_than_its_window);
        left.map(|leg| leg.variant.info().name).collect()
    }

    /// The options that none of its legs heeds.
    fn unheeded(&self, key: &str) -> Vec<ConfigError> {
        let Ok(legs) = self.legs() else {
            return Vec::new();
        };
        let groups = [self.of_start(), self.of_timer(), self.of_repairs()];
        let options = groups.into_iter().flatten();
        let unheeded = options.filter(|(_, given, heeds, _)| *given && !legs.iter().any(heeds));
        let variant = format!("variant {:?}", self.variant);
        unheeded
            .map(|(name, _, _, why)| ConfigError {
                key: format!("{key}.stack.{name}"),
                problem: why
                    .replace("{variant}", &variant)
                    .replace("{recovery}", legs[0].stack.recovery.name()),
            })
            .collect()
    }

    /// What decides on the start, the spacing and the marks.
    fn of_start(&self) -> Vec<Heeded> {
        let stack = &self.stack;
        vec![
            (
                "slow_start",
                stack.slow_start.is_some(),
                |leg| leg.stack.profile != Profile::Ns2,
                "profile \"ns2\" starts as ns-2's agents do, without an end by delay",
            ),
            (
                "slow_start",
                stack.slow_start.is_some(),
                |leg| !leg.owns_start() && leg.variant != Variant::External,
                "{variant} has a start of its own",
            ),
            (
                "slow_start_limit_pkts",
                stack.slow_start_limit_pkts.is_some(),
                |leg| !leg.owns_start(),
                "{variant} has a start of its own",
            ),
            (
                "slow_start_limit_pkts",
                stack.slow_start_limit_pkts.is_some(),
                Leg::heeds_slow_start_limit,
                "profile \"ns2\" grows by one segment per ACK, whatever that acknowledges",
            ),
            (
                "initial_window_pkts",
                stack.initial_window_pkts.is_some(),
                |leg| !leg.holds_window(),
                "{variant} has a window of its own",
            ),
            (
                "initial_ssthresh_pkts",
                stack.initial_ssthresh_pkts.is_some(),
                Leg::heeds_ssthresh,
                "{variant} has no slow start threshold to set",
            ),
            (
                "pacing",
                stack.pacing == Some(true),
                |leg| leg.variant != Variant::External,
                "{variant} is a controller that is not paced",
            ),
            (
                "pacing",
                stack.pacing == Some(false),
                Leg::heeds_pacing_off,
                "{variant} paces whatever the stack does",
            ),
            (
                "ecn_beta",
                stack.ecn_beta.is_some(),
                |leg| !leg.models_path() && !leg.holds_window(),
                "{variant} keeps its window at a mark",
            ),
        ]
    }

    /// What sets the timers.
    fn of_timer(&self) -> Vec<Heeded> {
        let stack = &self.stack;
        let own = |name, given| -> Heeded {
            let heeds: fn(&Leg) -> bool = |leg| leg.variant != Variant::Aerotcp;
            (name, given, heeds, "{variant} has a timer of its own")
        };
        vec![
            (
                "syn_retry_limit",
                stack.syn_retry_limit.is_some(),
                |leg| leg.stack.handshake,
                "means nothing without handshake = true, whose SYN is sent again",
            ),
            own("rto_rule", stack.rto_rule.is_some()),
            own("min_rto_ns", stack.min_rto_ns.is_some()),
            own("clock_granularity_ns", stack.clock_granularity_ns.is_some()),
            (
                "clock_granularity_ns",
                stack.clock_granularity_ns.is_some(),
                |leg| leg.stack.rto_rule != RtoRule::Linux,
                "means nothing to rto_rule linux, which rounds no time",
            ),
        ]
    }

    /// What decides on probes and repairs.
    fn of_repairs(&self) -> Vec<Heeded> {
        let stack = &self.stack;
        vec![
            (
                "dsack",
                stack.dsack == Some(true),
                |leg| leg.stack.sack_enabled(),
                "is a SACK block, and {variant} has recovery {recovery}, which reads none; leave it out",
            ),
            (
                "tail_loss_probe",
                stack.tail_loss_probe == Some(true),
                |leg| leg.stack.recovery == RecoveryKind::RackPrr && leg.stack.sack,
                "needs recovery rack_prr with sack, which sends the probes; {variant} has {recovery}",
            ),
            (
                "undo",
                stack.undo.is_some(),
                Leg::heeds_undo,
                "{variant} has a recovery that takes nothing back",
            ),
            (
                "frto",
                stack.frto.is_some(),
                Leg::heeds_frto,
                "means nothing without undo, nor beside timestamps, whose echo tells of a spurious timeout at once",
            ),
            (
                "reset_timer_on_each_partial_ack",
                stack.reset_timer_on_each_partial_ack == Some(true),
                |leg| leg.stack.recovery == RecoveryKind::Newreno,
                "needs recovery newreno; {variant} has {recovery}",
            ),
            (
                "limited_transmit",
                stack.limited_transmit == Some(false),
                Leg::heeds_limited_transmit,
                "needs a recovery that counts duplicate ACKs; {variant} has {recovery}, which counts what is in flight",
            ),
        ]
    }
}

impl Config {
    /// The options that would change nothing, each with why.
    #[must_use]
    pub fn unheeded(&self) -> Vec<ConfigError> {
        let flows = self.flows.iter().enumerate();
        flows
            .flat_map(|(i, flow)| flow.unheeded(&format!("flows[{i}]")))
            .collect()
    }
}

/// The first option that changes nothing in any of `configs`, which compare variants over one scenario.
#[must_use]
pub fn unheeded_by_all(configs: &[Config]) -> Option<ConfigError> {
    let (first, others) = configs.split_first()?;
    let others: Vec<_> = others.iter().map(Config::unheeded).collect();
    let mut unheeded = first.unheeded().into_iter();
    unheeded.find(|option| {
        let too = |found: &Vec<ConfigError>| found.iter().any(|other| other.key == option.key);
        others.iter().all(too)
    })
}
