//! The reconcile function.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    reconcile::lambda::run().await
}
