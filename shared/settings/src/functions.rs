//! What each function on AWS needs: its environment and its rights. The one table that the template in `infra/`
//! and the code are both held to.
//!
//! The SDK itself reads the standard variables too (`AWS_REGION`, `AWS_ENDPOINT_URL_DYNAMODB`, …).

use crate::system::Variable;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its name: that of its binary.
    pub name: &'static str,
    /// What it reads of the environment.
    pub variables: &'static [Use],
    /// What it may do, and nothing else.
    pub permissions: &'static [Permission],
}

/// A variable that a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Which.
    pub variable: Variable,
    /// Whether the function works without it.
    pub need: Need,
}

/// Whether a function works without a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It fails at the first event, and says so.
    Required,
    /// There is a default.
    Optional,
}

/// One thing that a function may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// The action, as IAM names it.
    pub action: &'static str,
    /// On what.
    pub on: Resource,
}

/// What a permission is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// The table of records ([`Variable::Table`]).
    Records,
    /// Its index of what is due.
    DueIndex,
    /// The table of what was done ([`Variable::ActionsTable`]).
    Actions,
    /// The objects of reports ([`Variable::Reports`]).
    Reports,
    /// The configuration, where it is an object ([`Variable::Config`]).
    ConfigObject,
    /// The keys of tokens ([`Variable::Keys`]).
    Keys,
    /// The keys of workspaces' tokens and secrets ([`Variable::WorkspaceKeys`]).
    WorkspaceKeys,
    /// The records of runtimes in the table of records, and no others.
    RuntimeRecords,
    /// The records of workspaces in the table of records, and no others.
    WorkspaceRecords,
    /// The objects of workspaces ([`Variable::Workspaces`]).
    WorkspaceObjects,
    /// Their bucket: who may not list it is told of a missing object that it is forbidden.
    Bucket,
    /// The secrets that the configuration names by ARN: providers' keys, what events are signed with.
    ConfiguredSecrets,
}

const fn may(action: &'static str, on: Resource) -> Permission {
    Permission { action, on }
}

const fn reads(variable: Variable, need: Need) -> Use {
    Use { variable, need }
}

/// Activity in.
pub const HEARTBEAT: Function = Function {
    name: "heartbeat",
    variables: &[
        reads(Variable::Config, Need::Required),
        reads(Variable::Keys, Need::Required),
        reads(Variable::Table, Need::Optional),
        reads(Variable::Log, Need::Optional),
    ],
    permissions: &[
        may("dynamodb:UpdateItem", Resource::RuntimeRecords),
        may("dynamodb:GetItem", Resource::WorkspaceRecords),
        may("secretsmanager:GetSecretValue", Resource::Keys),
        may("s3:GetObject", Resource::ConfigObject),
    ],
};

/// One pass per tick.
pub const RECONCILE: Function = Function {
    name: "reconcile",
    variables: &[
        reads(Variable::Config, Need::Required),
        reads(Variable::Reports, Need::Required),
        reads(Variable::Table, Need::Optional),
        reads(Variable::ActionsTable, Need::Optional),
        reads(Variable::Log, Need::Optional),
    ],
    permissions: &[
        may("dynamodb:BatchGetItem", Resource::Records),
        may("dynamodb:GetItem", Resource::Records),
        may("dynamodb:PutItem", Resource::Records),
        may("dynamodb:Scan", Resource::Records),
        may("dynamodb:UpdateItem", Resource::Records),
        may("dynamodb:Query", Resource::DueIndex),
        may("dynamodb:PutItem", Resource::Actions),
        may("s3:PutObject", Resource::Reports),
        may("s3:GetObject", Resource::ConfigObject),
        may("secretsmanager:GetSecretValue", Resource::ConfiguredSecrets),
    ],
};

/// Leases, signed requests and commits; `/init` and `/deinit`. What it signs, a sandbox sends under these rights.
pub const WORKSPACE: Function = Function {
    name: "workspace",
    variables: &[
        reads(Variable::WorkspaceKeys, Need::Required),
        reads(Variable::Workspaces, Need::Required),
        reads(Variable::Origin, Need::Required),
        reads(Variable::Table, Need::Optional),
        reads(Variable::Log, Need::Optional),
    ],
    permissions: &[
        may("dynamodb:GetItem", Resource::WorkspaceRecords),
        may("dynamodb:UpdateItem", Resource::WorkspaceRecords),
        may("secretsmanager:GetSecretValue", Resource::WorkspaceKeys),
        may("s3:AbortMultipartUpload", Resource::WorkspaceObjects),
        may("s3:GetObject", Resource::WorkspaceObjects),
        may("s3:ListMultipartUploadParts", Resource::WorkspaceObjects),
        may("s3:PutObject", Resource::WorkspaceObjects),
        may("s3:ListBucket", Resource::Bucket),
    ],
};

/// Every function.
pub const FUNCTIONS: &[Function] = &[HEARTBEAT, RECONCILE, WORKSPACE];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nothing_is_named_twice() {
        for function in FUNCTIONS {
            let permissions: BTreeSet<_> = function.permissions.iter().collect();
            assert_eq!(permissions.len(), function.permissions.len(), "{}", function.name);
            let variables: BTreeSet<_> = function.variables.iter().map(|used| used.variable.name()).collect();
            assert_eq!(variables.len(), function.variables.len(), "{}", function.name);
        }
    }
}
