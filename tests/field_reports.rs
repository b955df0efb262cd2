//! What went wrong in the field, by others' reports, as tests of the whole path from observation to effect.
//!
//! The names carry the report. Each is one case of a kind; where the kind is tested in full elsewhere, the table
//! says where. `later` is what this part cannot show yet, with the part that will.
//!
//! | report | shown by |
//! |---|---|
//! | OpenHands/software-agent-sdk#1769 | `software_agent_sdk_1769_…` |
//! | OpenHands/software-agent-sdk#1770 | `software_agent_sdk_1770_…` |
//! | OpenHands/software-agent-sdk#1634 | `software_agent_sdk_1634_…` |
//! | OpenHands/software-agent-sdk#2698, #4790 | `software_agent_sdk_2698_…` |
//! | OpenHands/OpenHands#13665 | `openhands_13665_…` |
//! | daytonaio/daytona#5154 | `daytona_5154_…` |
//! | kvcache-ai/AgentENV#165, e2b-dev/infra#2100 | `agentenv_165_…`; at any moment: `pass::races` |
//! | NousResearch/hermes-agent#73671 | `hermes_agent_73671_…` |
//! | onyx-dot-app/onyx#12714 | `onyx_12714_…` |
//! | github-aws-runners/terraform-aws-github-runner#3589, #4391 | `github_runner_3589_…`; more in `pass::inventory` |
//! | github-aws-runners/terraform-aws-github-runner#5085 | `github_runner_5085_…` |
//! | knative/serving#4234 | `knative_serving_4234_…`; a worktree's sharers: `worktree` |
//! | testcontainers/testcontainers-go#2445 | `testcontainers_2445_…` |
//! | sablierapp/sablier#576, jupyterhub-idle-culler#55 | `sablier_576_…` |
//! | ColeMurray/background-agents#1263, coder/coder#15515 | `background_agents_1263_…` |
//! | Agent-Field/agentfield#1046 | `agentfield_1046_…` |
//! | gruntwork-io/cloud-nuke#245, #527 | `cloud_nuke_245_…`, over every act; over every backend: `contracts` |
//! | gitpod-io/gitpod#1270, #9544 | `gitpod_1270_…`; verified snapshots: later, with workspaces |
//! | e2b-dev/E2B#1104, #884 | `e2b_1104_…` on the fake; on an engine: `engines` |
//! | OpenHands/OpenHands#14878 | `openhands_14878_…`; archive while it answers: later, with workspaces |
//! | bytedance/deer-flow#4443 | `deer_flow_4443_…` |
//! | Cloudgeni-ai/opengeni#241, kortix-ai/suna#3571 | `opengeni_241_…` |
//! | anthropics/claude-code#74719 | `worktree`, on real git; the refusal here: `claude_code_74719_…` |
//! | AWS us-east-1, October 2025 | `aws_us_east_1_2025_…`; a pass's own halves: `pass::crash` |
//! | kortix-ai/suna#4228 | `suna_4228_…` |
//! | aws-samples/sample-host-openclaw…#48 | `openclaw_48_…` |
//! | coder/coder#12012 | `coder_12012_…`; shown by explain: `cli` |
//! | OpenHands/OpenHands#13082 | `openhands_13082_…` |
//! | OpenHands/software-agent-sdk#4893 | `software_agent_sdk_4893_…` |
//! | e2b-dev/infra#3199 | `e2b_infra_3199_…` |
//! | e2b-dev/infra#2388, terraform-aws-github-runner#5453 | `e2b_infra_2388_…`; at every call: `pass::crash` |
//! | terraform-aws-github-runner#4724 | `github_runner_4724_…` |
//! | paperclipinc/karpenter-provider-hetzner#53 | `hetzner_53_…` |
//! | knative/serving#4021, sablierapp/sablier#713 | `knative_serving_4021_…` |
//! | PrimeIntellect-ai/verifiers#2406 | `verifiers_2406_…` |
//! | proliferate-ai/proliferate#1264, #2160 | `proliferate_1264_…` |
//! | OpenHands/software-agent-sdk#5196, #5260 | `software_agent_sdk_5196_…` |
//! | OpenHands/OpenHands#16874 | `openhands_16874_…` |
//! | cloudflare/sandbox-sdk#415 | `sandbox_sdk_415_…` |
//! | coder/coder#13719 | `pass::races::a_poisoned_delete_backs_off_alone` |
//! | OpenHands/automation#503 | `automation_503_…` |
//! | openai/openai-agents-python#4831, UKGovernmentBEIS/inspect_ai#5390 | later, with workspaces: what a push and a pull refuse |

mod leaked;
mod live;

use backend::fake::RuntimeSpec;

use crate::pass::stage::{MINUTE, Stage};

/// One runtime with an agent server inside, seen, and idle for 31 minutes by every signal.
async fn idle() -> Stage {
    let stage = Stage::new().await;
    stage.add(RuntimeSpec::running("a"));
    stage.tick().await;
    stage.advance(31 * MINUTE);
    stage
}

/// Suspended by us.
async fn suspended() -> Stage {
    let stage = idle().await;
    stage.tick().await;
    assert_eq!(stage.effects(), ["a suspended"]);
    stage
}
