//! Where the report of a pass goes.

use std::path::PathBuf;

use async_trait::async_trait;

/// Takes reports.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Puts one under `name`, and says where. The error is for people.
    async fn put(&self, name: &str, body: Vec<u8>) -> Result<String, String>;
}

/// A folder of reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(pub PathBuf);

#[async_trait]
impl Reports for Folder {
    async fn put(&self, name: &str, body: Vec<u8>) -> Result<String, String> {
        let path = self.0.join(name);
        let folder = path.parent().unwrap_or(&self.0);
        let told = |error: std::io::Error| format!("can't write `{}`: {error}", path.display());
        tokio::fs::create_dir_all(folder).await.map_err(told)?;
        tokio::fs::write(&path, body).await.map_err(told)?;
        Ok(path.display().to_string())
    }
}
