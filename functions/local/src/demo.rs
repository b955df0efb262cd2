//! `furlough demo`.
pub(crate) mod config;
pub(crate) mod engine;
pub(crate) mod fixture;
pub(crate) mod git;
pub(crate) mod story;
pub(crate) mod waiter;
use crate::{answer::{Answer, Fault}, cli, terminal::Terminal};
pub(crate) async fn run(asked: &cli::Demo, _terminal: Terminal) -> Result<Answer, Fault> {
    let now = settings::system::now();
    let f = fixture::Fixture::at(asked.dir.as_deref().unwrap());
    f.make(now)?;
    std::fs::write(&f.config, config::text(None)).unwrap();
    Ok(Answer::done("made", ()))
}
