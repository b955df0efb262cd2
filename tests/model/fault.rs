//! Faults that are planted in the model, to see that its properties can fail.

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A claim without its activity condition.
    ActivityIgnored,
    /// A heartbeat that is taken in a middle state.
    BeatInAMiddleState,
    /// A refused heartbeat that nobody remembers.
    WishForgotten,
    /// A wanted runtime that is not due.
    WishNotDue,
    /// A claim that a refused heartbeat does not stop.
    WishIgnored,
    /// A suspend that ends as if nobody had asked meanwhile.
    EndOverAWish,
    /// Back to running without a whole idle period.
    AbandonLeavesTheClock,
    /// An end of a claim without its token.
    EndWithoutToken,
    /// A token that a registration resets.
    TokenReset,
    /// A claim over a live one.
    ClaimOverALiveOne,
    /// A claim that is free when its holder's clock says that it is not.
    SkewLeftOut,
    /// A registration under a live claim.
    RegisterUnderAClaim,
    /// A registration that sets the clock to when it was sent, whatever was heard since.
    RegisterSetsTheClock,
    /// A registration of before what it is written over came to rest.
    RegisterOverARest,
    /// A wake that does not look whether there is a claim.
    WakeBesideAClaim,
    /// A deletion whose notice a hold has not taken back.
    CondemnedAfterAHold,
    /// Gone at first sight.
    SecondSightingDropped,
    /// A claim that leaves the due index, or is due later than its end and the skew.
    ClaimLeavesTheIndex,
    ClaimDueTooLate,
    /// A claim that a hold does not stop.
    HoldIgnored,
    /// A heartbeat that moves the clock back.
    ClockBackwards,
    /// An act of ours that counts as activity.
    OwnTraceCounts,
    /// The switch read once a pass.
    PauseReadOnce,
}
