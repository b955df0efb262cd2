//! When a file was written, as far as it can be believed.
//!
//! Anybody can date a file. What only the kernel sets is when that was done, the time of its last change: so a file that is
//! dated later than now counts from there, as everything does that is stamped on arrival. Where the kernel's own stamp
//! is to come too, a clock was wrong: such a file counts as written now, at each look. Both are told with the file's name.

use std::{
    collections::hash_map::DefaultHasher,
    fmt, fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    time::Duration,
};

use lifecycle::Time;
use rustix::fs::Stat;

/// The most that the clock of a filesystem may be ahead of ours before it is told.
const SKEW: Duration = Duration::from_mins(1);

/// The two times of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stamps {
    /// When its content was written, as whoever wrote it may say.
    pub modified: Time,
    /// When anything of it was last changed, as the kernel says.
    pub changed: Time,
}

impl Stamps {
    /// When it was written, never later than `now`.
    pub(crate) fn believed(self, now: Time) -> Time {
        let dated = if self.is_ahead(now) { self.changed } else { self.modified };
        dated.min(now)
    }

    fn is_ahead(self, now: Time) -> bool {
        self.modified > now.plus(SKEW)
    }
}

impl From<&fs::Metadata> for Stamps {
    fn from(meta: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { modified: time(meta.mtime(), meta.mtime_nsec()), changed: time(meta.ctime(), meta.ctime_nsec()) }
    }
}

impl From<&Stat> for Stamps {
    fn from(stat: &Stat) -> Self {
        let nanos = |nanos| i64::try_from(nanos).unwrap_or(0);
        Self {
            modified: time(stat.st_mtime, nanos(stat.st_mtime_nsec)),
            changed: time(stat.st_ctime, nanos(stat.st_ctime_nsec)),
        }
    }
}

fn time(seconds: i64, nanos: i64) -> Time {
    Time::from_millis(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
}

/// What several files tell together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Newest {
    /// When the newest was written; `None`: there is none.
    pub at: Option<Time>,
    /// The one that is dated the farthest ahead.
    pub ahead: Option<Ahead>,
    /// Differs when a file came, went or changed, whatever its times say.
    pub print: u64,
}

impl Newest {
    /// Takes one more file into account.
    pub(crate) fn add(&mut self, path: &Path, stamps: Stamps, now: Time) {
        self.at = self.at.max(Some(stamps.believed(now)));
        let mut print = DefaultHasher::new();
        (path, stamps).hash(&mut print);
        self.print = self.print.wrapping_add(print.finish());
        let farthest = self.ahead.as_ref().map_or(Time::MIN, |ahead| ahead.stamps.modified);
        if stamps.is_ahead(now) && stamps.modified > farthest {
            self.ahead = Some(Ahead { path: path.to_owned(), stamps, now });
        }
    }

    /// Both together.
    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            at: self.at.max(other.at),
            ahead: self.ahead.or(other.ahead),
            print: self.print.wrapping_add(other.print),
        }
    }
}

/// A file that is dated later than it was looked at. Shows itself as a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ahead {
    path: PathBuf,
    stamps: Stamps,
    now: Time,
}

impl fmt::Display for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, Stamps { modified, changed }) = (self.path.display(), self.stamps);
        write!(f, "`{path}` is dated {modified}, later than now, ")?;
        if changed <= self.now {
            write!(f, "so it counts from {changed}, when it was last changed")
        } else {
            write!(f, "so it counts as active at every look: set the clock right, then `touch` that file")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    proptest! {
        /// No date of a file, whoever set it, makes it newer than now, or older than what the kernel and the date agree on.
        #[test]
        fn what_is_believed_is_never_later_than_now(modified in any::<i64>(), changed in any::<i64>(), now in any::<i64>()) {
            let stamps = Stamps { modified: at(modified), changed: at(changed) };
            let believed = stamps.believed(at(now));
            prop_assert!(believed <= at(now));
            prop_assert!(believed >= stamps.modified.min(stamps.changed).min(at(now)));
        }

        /// A later look at the same file never takes it for older.
        #[test]
        fn it_moves_only_forward_while_a_date_is_ahead(ahead in 1i64..1 << 44, changed in 0i64..1 << 44, now in 0i64..1 << 44, later in 0i64..1 << 20) {
            let modified = at(now + later).plus(SKEW).plus(Duration::from_millis(ahead.unsigned_abs()));
            let stamps = Stamps { modified, changed: at(changed) };
            prop_assert!(stamps.is_ahead(at(now + later)));
            prop_assert!(stamps.believed(at(now)) <= stamps.believed(at(now + later)));
        }
    }

    #[test]
    fn a_file_that_comes_goes_or_changes_changes_the_print() {
        let print = |files: &[(&str, i64)]| {
            let mut newest = Newest::default();
            for (path, millis) in files {
                newest.add(Path::new(path), Stamps { modified: at(9_000_000), changed: at(*millis) }, at(5));
            }
            newest.print
        };
        let first = print(&[("a", 1), ("b", 2)]);
        assert_eq!(print(&[("b", 2), ("a", 1)]), first, "in any order");
        for other in [&[("a", 1)][..], &[("a", 2), ("b", 1)], &[("a", 1), ("b", 3)], &[("a", 1), ("b", 2), ("c", 2)]] {
            assert_ne!(print(other), first, "{other:?}");
        }
    }
}
