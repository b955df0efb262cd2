//! The deployment in `infra/`: the template against the code, each alarm on what the code writes, and what it costs.
//!
//! What CloudFormation itself would refuse is for `.ci/run`, with AWS's own tools. Here is what those can't see.

mod alarms;
mod cloudwatch;
mod coherent;
mod costs;
mod openapi;
mod template;

const TEMPLATE: &str = include_str!("../infra/template.yaml");
