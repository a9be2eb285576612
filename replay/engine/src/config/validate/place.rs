//! A place in a configuration while it is checked: its key path, and the list that errors go to.

use std::cell::RefCell;

use crate::config::error::{ConfigError, ConfigErrorKind, ConfigErrors, KeyPath, Number, PathStep};

/// Errors found so far, by all places of a configuration.
#[derive(Debug, Default)]
pub struct Found(RefCell<Vec<ConfigError>>);

impl Found {
    /// The place of the whole configuration.
    pub fn root(&self) -> Place<'_> {
        Place {
            found: self,
            parent: None,
            step: Step::Root,
        }
    }

    /// Number of errors so far.
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// All errors.
    pub fn into_vec(self) -> Vec<ConfigError> {
        self.0.into_inner()
    }

    /// All errors, as a result.
    ///
    /// # Errors
    /// All of them, unless there are none.
    pub fn finish(self) -> Result<(), ConfigErrors> {
        ConfigErrors::unless_empty(self.into_vec())
    }
}

/// A place. It knows its parent, so that a path costs nothing until there is an error.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    found: &'a Found,
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// The place of `key` in this object.
    pub fn key<'b>(&'b self, key: &'b str) -> Place<'b> {
        Place {
            found: self.found,
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    /// The place of item `index` in this list.
    pub fn index(&self, index: usize) -> Place<'_> {
        Place {
            found: self.found,
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// Errors found so far, here and elsewhere.
    pub fn found(&self) -> &'a Found {
        self.found
    }

    /// The value here is refused.
    pub fn refuse(&self, kind: ConfigErrorKind) {
        let error = ConfigError {
            path: self.path(),
            kind,
        };
        self.found.0.borrow_mut().push(error);
    }

    /// The value here has no effect unless `key` is given; with `value`, unless it has that value.
    pub fn requires(&self, key: &'static str, value: Option<bool>) {
        self.refuse(ConfigErrorKind::Requires { key, value });
    }

    /// The value here must not be less than `min` nor greater than `max`. Returns whether it is so.
    pub fn within<T: Copy + PartialOrd + Into<Number>>(&self, value: T, min: T, max: T) -> bool {
        let allowed = value >= min && value <= max;
        if !allowed {
            let [value, min, max] = [value, min, max].map(Into::into);
            self.refuse(ConfigErrorKind::OutOfRange { value, min, max });
        }
        allowed
    }

    /// The value here, if it is given, must not be less than `min` nor greater than `max`.
    pub fn within_if_given<T: Copy + PartialOrd + Into<Number>>(
        &self,
        value: Option<T>,
        min: T,
        max: T,
    ) {
        if let Some(value) = value {
            self.within(value, min, max);
        }
    }

    /// The value here must be a probability.
    pub fn probability(&self, value: f64) -> bool {
        self.within(value, 0.0, 1.0)
    }

    fn path(&self) -> KeyPath {
        let mut steps = Vec::new();
        let mut place = Some(self);
        while let Some(Place { parent, step, .. }) = place {
            match step {
                Step::Root => {}
                Step::Key(key) => steps.push(PathStep::Key((*key).to_owned())),
                Step::Index(index) => steps.push(PathStep::Index(*index)),
            }
            place = *parent;
        }
        steps.reverse();
        KeyPath(steps)
    }
}
