//! The heartbeat function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::lambda_runtime::Error> {
    heartbeat::lambda::run().await
}
