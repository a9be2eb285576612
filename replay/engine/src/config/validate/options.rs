//! Finds options that have no effect with the chosen variants: an option of a scenario must do something in at least one
//! of the runs that the scenario compares.
//!
//! Does not depend on how the options work. Only what a scenario gives is found, never a profile's own values.

use hindflight_kernels::{Purpose, StreamKey, StreamRng};

use super::{Found, Place, find_variant};
use crate::cc::catalogue::{VARIANTS, Variant};
use crate::cc::{ControllerParts, Decrease, Increase, ParamValues};
use crate::config::error::{ConfigError, ConfigErrorKind, NoEffectReason as Reason};
use crate::config::{Config, FlowConfig, Profile, RecoveryKind, RtoRule, StackParams};

/// One connection of a flow: the variant of its sender, and its stack as the variant leaves it.
struct Leg {
    variant: Variant,
    stack: StackParams,
    values: ParamValues,
}

impl Leg {
    /// Whether there is this reason why `option` has no effect on it.
    fn has(&self, reason: Reason, option: &str) -> bool {
        let Self { variant, stack, .. } = self;
        match reason {
            Reason::Ns2SlowStart => stack.profile == Profile::Ns2,
            Reason::OwnSlowStart => {
                self.owns_slow_start() || option == "slow_start" && variant.is_external()
            }
            // No ACK raises its window by more than one segment in the stack's slow start.
            Reason::Ns2IncreasePerAck => self.owns_slow_start() || self.counts_acks(),
            Reason::OwnWindow => self.has_fixed_window(),
            Reason::NoSsthresh => {
                let uses_ssthresh = (variant.info().uses_ssthresh)(&self.values);
                !uses_ssthresh || self.models_path() || self.has_fixed_window()
            }
            Reason::NotPaced => variant.is_external(),
            Reason::AlwaysPaced => matches!(self.parts(), ControllerParts::Whole(_)),
            Reason::IgnoresMarks => self.models_path() || self.has_fixed_window(),
            Reason::NoHandshake => !stack.handshake,
            Reason::OwnTimer => variant.info().fixes_rto,
            Reason::UnroundedTimer => stack.rto_rule == RtoRule::Linux,
            Reason::RecoveryWithoutSack => !stack.sack_enabled(),
            Reason::NeedsRackPrr => stack.recovery != RecoveryKind::RackPrr || !stack.sack,
            Reason::NoUndo => !self.can_undo(),
            Reason::NeedsUndoWithoutTimestamps => !self.uses_frto(),
            Reason::NeedsNewreno => stack.recovery != RecoveryKind::Newreno,
            Reason::NeedsDupacks => !self.uses_limited_transmit(),
        }
    }

    /// What its controller is made of.
    fn parts(&self) -> ControllerParts {
        let draws = StreamRng::new(StreamKey::new(0, 0, Purpose::Controller));
        (self.variant.info().parts)(&self.stack, &self.values, draws)
    }

    /// Whether it has its own slow start.
    fn owns_slow_start(&self) -> bool {
        match self.parts() {
            // The slow start of ns-2's agents belongs to the profile.
            ControllerParts::Rules(
                Increase::Ns2Reno(_) | Increase::Ns2LinuxReno(_) | Increase::Ns2LinuxCubic(_),
                _,
            ) => false,
            ControllerParts::Rules(increase, _) => increase.owns_slow_start(),
            ControllerParts::Window(_) | ControllerParts::Whole(_) => true,
        }
    }

    /// Whether it computes a fixed window, which no ACK moves.
    fn has_fixed_window(&self) -> bool {
        matches!(self.parts(), ControllerParts::Window(windowed) if windowed.is_fixed())
    }

    fn models_path(&self) -> bool {
        matches!(self.parts(), ControllerParts::Whole(controller) if controller.capabilities().models_path)
    }

    /// Whether it recovers as ns-2's agents do, which count ACKs and not the segments that they acknowledge.
    fn counts_acks(&self) -> bool {
        let of_agent = self.stack.profile == Profile::Ns2
            && matches!(
                self.stack.recovery,
                RecoveryKind::Reno | RecoveryKind::Newreno | RecoveryKind::Sack
            );
        (of_agent || self.recovers_as_tcp_linux()) && !self.models_path()
    }

    /// The same of ns-2's TCP/Linux, under any profile.
    fn recovers_as_tcp_linux(&self) -> bool {
        self.stack.recovery == RecoveryKind::Ns2TcpLinux
    }

    /// RFC 6675 §5 step (3): with SACK each duplicate ACK reduces the pipe; under Linux it does so without SACK too. Super
    /// TCP enters recovery at the first duplicate ACK.
    fn uses_limited_transmit(&self) -> bool {
        let by_pipe = self.stack.sack_enabled() || self.acts_as_linux();
        let of_agent = self.counts_acks() && !self.recovers_as_tcp_linux();
        of_agent || !by_pipe && self.stack.recovery != RecoveryKind::Supertcp
    }

    /// Whether its recovery can undo a spurious window decrease.
    fn can_undo(&self) -> bool {
        let owns = matches!(
            self.stack.recovery,
            RecoveryKind::Aerotcp | RecoveryKind::Supertcp | RecoveryKind::Ns2TcpLinux
        );
        !owns && !self.counts_acks()
    }

    /// Whether F-RTO has an effect: a timestamp echo reveals a spurious timeout at once, but Linux uses F-RTO as well.
    fn uses_frto(&self) -> bool {
        let applies = self.acts_as_linux() || !self.stack.timestamps;
        applies && self.stack.undo && self.can_undo()
    }

    fn acts_as_linux(&self) -> bool {
        self.stack.profile == Profile::Linux && self.stack.recovery == RecoveryKind::RackPrr
    }

    /// Whether it is still what its name says with a fixed window: its window is fixed in any case, or it is that of
    /// RFC 5681 with a decrease that only recovery asks for.
    fn survives_fixed_window(&self) -> bool {
        let usual = matches!(
            self.parts(),
            ControllerParts::Rules(
                Increase::Reno(_) | Increase::Ns2Reno(_),
                Decrease::Factor(_) | Decrease::Ns2Half(_) | Decrease::Fack(_)
            )
        );
        (usual || self.has_fixed_window()) && !self.variant.is_external()
    }
}

/// Name of an option of the stack, and whether the scenario gives it, or gives it this value.
macro_rules! given {
    ($stack:ident.$name:ident) => {
        (stringify!($name), $stack.$name.is_some())
    };
    ($stack:ident.$name:ident = $value:literal) => {
        (stringify!($name), $stack.$name == Some($value))
    };
}

impl FlowConfig {
    /// Its connections, from the first on; none if a variant is unknown.
    fn legs(&self) -> Option<Vec<Leg>> {
        let params = StackParams::resolve(self.profile, &self.stack);
        let leg = |name: &str, values: &ParamValues| {
            let variant = find_variant(name).ok()?;
            Some(Leg {
                variant,
                stack: variant.fix(&params, values),
                values: values.clone(),
            })
        };
        // The options of the flow's stack do not act on a connection with another stack.
        let proxies = self.proxies.iter().filter(|proxy| proxy.stack.is_none());
        let proxies = proxies.filter_map(|proxy| {
            let variant = proxy.variant.as_ref()?;
            Some(leg(variant, &proxy.params))
        });
        std::iter::once(leg(&self.variant, &self.params))
            .chain(proxies)
            .collect()
    }

    /// Refuses a fixed window that leaves nothing of the variant, and the options that a fixed window makes useless.
    pub(super) fn validate_fixed_window(&self, place: &Place) {
        if self.stack.fixed_window_pkts.is_none() {
            return;
        }
        let suitable = |legs: Vec<Leg>| legs.iter().all(Leg::survives_fixed_window);
        if !self.legs().is_none_or(suitable) {
            let kind = ConfigErrorKind::FixedWindowVariant {
                variant: self.variant.clone(),
                suitable: self.variants_that_survive_fixed_window(),
            };
            place.key("fixed_window_pkts").refuse(kind);
        }
        let stack = &self.stack;
        for (name, is_given) in [
            given!(stack.slow_start),
            given!(stack.slow_start_limit_pkts),
            given!(stack.initial_window_pkts),
            given!(stack.initial_ssthresh_pkts),
            given!(stack.ecn_beta),
        ] {
            if is_given {
                let with = "fixed_window_pkts";
                place.key(name).refuse(ConfigErrorKind::Conflicts { with });
            }
        }
    }

    /// The variants that a fixed window leaves as they are, under this stack.
    fn variants_that_survive_fixed_window(&self) -> Vec<&'static str> {
        let params = StackParams::resolve(self.profile, &self.stack);
        let leg = |&variant: &Variant| Leg {
            variant,
            stack: variant.fix(&params, &ParamValues::new()),
            values: ParamValues::new(),
        };
        let legs = VARIANTS.iter().map(leg);
        legs.filter(Leg::survives_fixed_window)
            .map(|leg| leg.variant.info().name)
            .collect()
    }

    /// Refuses the options that have no effect on any of its legs.
    fn find_ineffective(&self, place: &Place) {
        let Some(legs) = self.legs() else {
            return;
        };
        let stack = &self.stack;
        for ((name, is_given), reason) in [
            (given!(stack.slow_start), Reason::Ns2SlowStart),
            (given!(stack.slow_start), Reason::OwnSlowStart),
            (given!(stack.slow_start_limit_pkts), Reason::OwnSlowStart),
            (
                given!(stack.slow_start_limit_pkts),
                Reason::Ns2IncreasePerAck,
            ),
            (given!(stack.initial_window_pkts), Reason::OwnWindow),
            (given!(stack.initial_ssthresh_pkts), Reason::NoSsthresh),
            (given!(stack.pacing = true), Reason::NotPaced),
            (given!(stack.pacing = false), Reason::AlwaysPaced),
            (given!(stack.ecn_beta), Reason::IgnoresMarks),
            (given!(stack.syn_retry_limit), Reason::NoHandshake),
            (given!(stack.rto_rule), Reason::OwnTimer),
            (given!(stack.min_rto_ns), Reason::OwnTimer),
            (given!(stack.clock_granularity_ns), Reason::OwnTimer),
            (given!(stack.clock_granularity_ns), Reason::UnroundedTimer),
            (given!(stack.dsack = true), Reason::RecoveryWithoutSack),
            (given!(stack.tail_loss_probe = true), Reason::NeedsRackPrr),
            (given!(stack.undo), Reason::NoUndo),
            (given!(stack.frto), Reason::NeedsUndoWithoutTimestamps),
            (
                given!(stack.reset_timer_on_each_partial_ack = true),
                Reason::NeedsNewreno,
            ),
            (given!(stack.limited_transmit = false), Reason::NeedsDupacks),
        ] {
            if is_given && legs.iter().all(|leg| leg.has(reason, name)) {
                place.key(name).refuse(ConfigErrorKind::NoEffect {
                    variant: self.variant.clone(),
                    recovery: legs[0].stack.recovery.name(),
                    reason,
                });
            }
        }
    }
}

impl Config {
    /// The options that have no effect, each with the reason.
    #[must_use]
    pub fn ineffective_options(&self) -> Vec<ConfigError> {
        let found = Found::default();
        for (i, flow) in self.flows.iter().enumerate() {
            let root = found.root();
            let flows = root.key("flows");
            let flow_place = flows.index(i);
            flow.find_ineffective(&flow_place.key("stack"));
        }
        found.into_vec()
    }
}

/// The options that have no effect in any of `configs`, which compare variants over one scenario; as the first of them
/// has them.
#[must_use]
pub fn ineffective_in_all(configs: &[Config]) -> Vec<ConfigError> {
    let Some((first, others)) = configs.split_first() else {
        return Vec::new();
    };
    let others: Vec<_> = others.iter().map(Config::ineffective_options).collect();
    let mut ineffective = first.ineffective_options();
    ineffective.retain(|option| {
        let too = |found: &Vec<ConfigError>| found.iter().any(|other| other.path == option.path);
        others.iter().all(too)
    });
    ineffective
}
