//! The same in a bucket of the server that `FURLOUGH_TEST_S3` names.

use serde_json::json;

use super::{credentials, same, tree};
use crate::cli::bench::{Folder, Ran, ran};

/// Runs the command as somebody who has that bucket's credentials.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests starts the server")]
fn run(folder: &Folder, args: &[&str]) -> Ran {
    let endpoint = std::env::var("FURLOUGH_TEST_S3").expect("FURLOUGH_TEST_S3 names a server");
    let mut command = folder.command(args);
    credentials(&mut command, &endpoint);
    ran(&mut command)
}

#[expect(clippy::disallowed_methods, reason = "whoever runs the tests starts the server")]
async fn make(name: &str) {
    let endpoint = std::env::var("FURLOUGH_TEST_S3").expect("FURLOUGH_TEST_S3 names a server");
    reqwest::Client::new().put(format!("{endpoint}/{name}")).send().await.unwrap();
}

#[tokio::test]
async fn a_configured_bucket_takes_the_place_of_the_data_folder() {
    let name = "furlough-command";
    make(name).await;
    let folder = tree();
    let prefix = folder.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_owned();
    folder.write("furlough.toml", &format!("[workspaces]\nstore = \"s3://{name}/{prefix}\"\n"));
    let pushed = run(&folder, &["workspace", "push", "here", "--as", "w", "--json"]).ending(0).json();
    assert_eq!(pushed["generation"], 1);
    run(&folder, &["workspace", "pull", "w", "there"]).ending(0);
    same(&folder, "here", "there");
    run(&folder, &["workspace", "verify", "w"]).ending(0);
    let collected = run(&folder, &["workspace", "gc", "--json"]).ending(0).json();
    assert_eq!(collected["workspaces"][0]["objects"].as_array().unwrap().len(), 3, "{collected:#}");
    assert!(!folder.path().join("demo/data/workspaces/objects").exists(), "no byte is in the data folder");
    let missing = json!("s3://no-such-bucket-here");
    folder.write("furlough.toml", &format!("[workspaces]\nstore = {missing}\n"));
    let told = run(&folder, &["workspace", "verify", "w"]).ending(1).err;
    assert!(told.contains("NoSuchBucket") || told.contains("404"), "{told}");
}
