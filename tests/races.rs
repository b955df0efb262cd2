//! Many hands on one record at once: real threads, real processes, the SDK's own client.
//!
//! | race | what must hold in every round |
//! |---|---|
//! | `claims` | of fifty claims, wakes, take-overs, and of wakes against claims, exactly one wins |
//! | `heartbeats` | no claim beside an acknowledged heartbeat newer than its cutoff; no re-arm that is too late; a refused one is not forgotten, also when its holder died |
//! | `lives` | what a holder of the life before writes late changes nothing of the new one |
//! | `counters` | a budget is never over its limit; a backend's lease has one holder, whose fence ends with it |
//! | `brawl` | everything at once by twelve hands, audited afterwards from who did what and when |
//! | `passes` | whole passes against heartbeats and wakes: nothing is suspended after an acknowledged sign of life |
//! | `workspaces` | of fifty who want a lease one has it; of fifty commits onto one generation one is the next, and no stale writer's |
//! | `processes` | several processes on one data folder: one winner a round |
//!
//! Each is written once over a client, and runs on the engine in this process and, in `.ci/run`, on a server:
//!
//! ```text
//! cargo test -p furlough-tests -- races::                                          thousands of rounds
//! FURLOUGH_TEST_ROUNDS=50 cargo test --release -p furlough-tests -- races::        fifty times as many
//! FURLOUGH_TEST_DYNAMODB=http://127.0.0.1:4566 cargo test -p furlough-tests --features engines -- races::server::
//! ```

mod brawl;
mod claims;
mod counters;
mod ground;
mod heartbeats;
mod lives;
mod passes;
mod processes;
mod workspaces;

/// Each race, with its rounds on the engine in this process and on a server.
macro_rules! races {
    ($($module:ident::$race:ident: $here:literal, $there:literal;)*) => {
        mod in_process {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $race() {
                    super::$module::$race(&super::ground::Ground::in_process($here).await).await;
                }
            )*
        }

        #[cfg(feature = "engines")]
        mod server {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $race() {
                    super::$module::$race(&super::ground::Ground::server(stringify!($race), $there).await).await;
                }
            )*
        }
    };
}

races! {
    claims::of_fifty_claims_one_wins: 12, 10;
    claims::of_fifty_wakes_and_of_fifty_take_overs_one_wins: 6, 5;
    claims::of_wakes_and_claims_of_what_rests_one_wins: 100, 20;
    heartbeats::of_heartbeats_and_a_claim_one_side_loses_visibly: 300, 50;
    heartbeats::a_refused_heartbeat_outlives_its_dead_holder: 150, 30;
    heartbeats::a_re_arm_is_never_later_than_the_newest_sign_allows: 200, 30;
    heartbeats::observations_heartbeats_and_holds_lose_nothing: 2, 2;
    lives::what_the_life_before_writes_late_changes_nothing: 150, 40;
    counters::a_budget_is_never_overspent: 10, 5;
    counters::a_backend_has_one_holder: 5, 5;
    brawl::everything_at_once_keeps_the_promises: 8, 8;
    passes::nothing_is_suspended_after_an_acknowledged_sign_of_life: 20, 8;
    passes::a_wake_beside_passes_ends_in_one_state: 20, 8;
    workspaces::a_lease_has_one_holder: 10, 5;
    workspaces::commits_make_one_history: 10, 5;
}
