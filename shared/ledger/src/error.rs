//! Why the ledger could not be asked, and what to do.

use aws_sdk_dynamodb::{
    error::{DisplayErrorContext, ProvideErrorMetadata, SdkError},
    operation::RequestId as _,
};

/// The ledger could not be asked. Each says what to do; a lost race is no error but an answer.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Too many requests. Nothing was done: the next pass tries again.
    #[error("{operation}: the ledger is throttled; the next pass tries again")]
    Throttled {
        /// What was tried.
        operation: &'static str,
    },
    /// No answer, or a fault over there. It may have been done: look before trying again.
    #[error("{operation}: the ledger did not answer ({why}); the next pass looks again")]
    Unavailable {
        /// What was tried.
        operation: &'static str,
        /// What was said.
        why: String,
    },
    /// There is no such table.
    #[error("{operation}: table `{table}` is missing; create it (infra/ does on AWS, `furlough` does locally)")]
    TableMissing {
        /// What was tried.
        operation: &'static str,
        /// Which table.
        table: String,
    },
    /// We have no right to do it. A person must mend the role or the credentials.
    #[error("{operation}: the ledger refuses us ({why}); mend the credentials or the role's rights")]
    Denied {
        /// What was tried.
        operation: &'static str,
        /// What was said.
        why: String,
    },
    /// An item of a newer format than this Furlough knows. It was not touched.
    #[error("`{item}` has format {found}, and this furlough knows {known}; upgrade furlough")]
    Newer {
        /// Which item.
        item: String,
        /// Its format.
        found: u64,
        /// The newest that is known here.
        known: u32,
    },
    /// An attribute that can't be read. Its runtime is kept until somebody mends it.
    #[error("`{item}` has a malformed `{attribute}` ({why}); it is kept untouched until somebody mends or removes it")]
    Malformed {
        /// Which item.
        item: String,
        /// Which attribute.
        attribute: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something longer than an item may hold.
    #[error("{what} of `{item}` has {bytes} bytes; at most {limit} are allowed")]
    TooLong {
        /// Of which item.
        item: String,
        /// What.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// Others wrote the item between each read and write of ours.
    #[error("{operation}: `{item}` changed during each of {rounds} attempts; the next pass tries again")]
    Contended {
        /// What was tried.
        operation: &'static str,
        /// On which item.
        item: String,
        /// How often.
        rounds: u32,
    },
    /// The request was not valid: a fault of Furlough's own.
    #[error("{operation}: the ledger takes it for invalid ({why}); please report this")]
    Request {
        /// What was tried.
        operation: &'static str,
        /// What was said.
        why: String,
    },
}

impl LedgerError {
    /// Whether the same call may succeed at the next pass without a person's help.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. } | Self::Contended { .. })
    }
}

/// Sorts an answer of the SDK by what the caller can do about it.
pub(crate) fn asked<E>(operation: &'static str, table: &str, error: &SdkError<E>) -> LedgerError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let Some(service) = error.as_service_error() else {
        return LedgerError::Unavailable { operation, why: DisplayErrorContext(error).to_string() };
    };
    let why = describe(service, error.request_id());
    match service.code().unwrap_or_default() {
        "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "RequestLimitExceeded"
        | "LimitExceededException"
        | "TransactionConflictException" => LedgerError::Throttled { operation },
        "ResourceNotFoundException" => LedgerError::TableMissing { operation, table: table.to_owned() },
        "AccessDeniedException"
        | "UnrecognizedClientException"
        | "ExpiredTokenException"
        | "MissingAuthenticationTokenException"
        | "IncompleteSignatureException"
        | "InvalidSignatureException" => LedgerError::Denied { operation, why },
        "ValidationException" | "SerializationException" => LedgerError::Request { operation, why },
        _ => LedgerError::Unavailable { operation, why },
    }
}

fn describe(service: &impl ProvideErrorMetadata, request: Option<&str>) -> String {
    let message = service.message().or(service.code()).unwrap_or("no message");
    match request {
        Some(request) => format!("{message}, request `{request}`"),
        None => message.to_owned(),
    }
}
