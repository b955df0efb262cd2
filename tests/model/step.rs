//! The steps of a world, and what a counterexample calls them.

/// Who does what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Tick,
    Registers,
    Sends,
    Arrives,
    Beats { ahead: bool, busy: bool },
    Holds,
    Releases,
    Pauses,
    Stops,
    Removes,
    Hides,
    Reads(usize),
    Asks(usize),
    Claims(usize),
    Acts(usize),
    Ends(usize),
    Abandons(usize),
    Fails(usize),
    Dies(usize),
    Looks(usize),
    Calls(usize),
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match *self {
            Self::Tick => "a second passes",
            Self::Registers => "the host registers it anew",
            Self::Sends => "the host sends a registration",
            Self::Arrives => "the registration arrives",
            Self::Beats { busy: true, .. } => "a heartbeat, at work for 2 s",
            Self::Beats { ahead: true, .. } => "a heartbeat, by the clock ahead",
            Self::Beats { .. } => "a heartbeat",
            Self::Holds => "somebody holds it",
            Self::Releases => "somebody releases it",
            Self::Pauses => "somebody pulls the switch",
            Self::Stops => "somebody stops it",
            Self::Removes => "somebody removes it",
            Self::Hides => "the listing falls behind",
            Self::Reads(pass) => return write!(f, "pass {pass} reads the record"),
            Self::Asks(pass) => return write!(f, "pass {pass} asks whether it is paused"),
            Self::Claims(pass) => return write!(f, "pass {pass} claims"),
            Self::Acts(pass) => return write!(f, "pass {pass} calls the provider"),
            Self::Ends(pass) => return write!(f, "pass {pass} ends its claim"),
            Self::Abandons(pass) => return write!(f, "pass {pass} gives its claim back"),
            Self::Fails(pass) => return write!(f, "pass {pass} fails, and gives its claim back"),
            Self::Dies(pass) => return write!(f, "pass {pass} dies"),
            Self::Looks(pass) => return write!(f, "pass {pass} looks at the listing"),
            Self::Calls(pass) => return write!(f, "pass {pass} is told to wake it"),
        };
        f.write_str(text)
    }
}
