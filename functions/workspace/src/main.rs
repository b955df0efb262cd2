//! The workspace function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::lambda_runtime::Error> {
    workspace_function::lambda::run().await
}
