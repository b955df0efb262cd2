//! The store in this process, as the SDK sees it: no port, no timer, no thread; one file, many processes.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_sdk_dynamodb::{
    Client,
    error::ProvideErrorMetadata,
    types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        TimeToLiveSpecification,
    },
};
use embedded::{Embedded, EmbeddedError, FILE};

const TABLE: &str = "things";

async fn create_table(client: &Client) {
    let key = KeySchemaElement::builder().attribute_name("k").key_type(KeyType::Hash).build().unwrap();
    let attribute = AttributeDefinition::builder().attribute_name("k").attribute_type(ScalarAttributeType::S);
    let request = client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(key)
        .attribute_definitions(attribute.build().unwrap());
    match request.send().await {
        Ok(_) => {}
        Err(error) => {
            let error = error.into_service_error();
            assert!(error.is_resource_in_use_exception(), "{error:?}");
        }
    }
}

async fn put(client: &Client, key: &str, value: u64) {
    let request = client.put_item().table_name(TABLE).item("k", AttributeValue::S(key.to_owned()));
    request.item("n", AttributeValue::N(value.to_string())).send().await.unwrap();
}

async fn number(client: &Client, key: &str) -> Option<u64> {
    let request = client.get_item().table_name(TABLE).key("k", AttributeValue::S(key.to_owned()));
    let item = request.send().await.unwrap().item?;
    Some(item["n"].as_n().unwrap().parse().unwrap())
}

/// Adds one, unless another has taken it past what was read: `false` then.
async fn increment(client: &Client, key: &str, from: u64) -> bool {
    let request = client
        .update_item()
        .table_name(TABLE)
        .key("k", AttributeValue::S(key.to_owned()))
        .update_expression("SET n = :to")
        .condition_expression("n = :from")
        .expression_attribute_values(":from", AttributeValue::N(from.to_string()))
        .expression_attribute_values(":to", AttributeValue::N((from + 1).to_string()));
    match request.send().await {
        Ok(_) => true,
        Err(error) => {
            let error = error.into_service_error();
            assert!(error.is_conditional_check_failed_exception(), "{error:?}");
            false
        }
    }
}

#[test]
fn it_needs_no_timer_and_no_thread() {
    // A runtime without timers panics where something would sleep.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let client = embedded::memory().unwrap().client();
        create_table(&client).await;
        put(&client, "a", 1).await;
        assert!(increment(&client, "a", 1).await);
        assert!(!increment(&client, "a", 1).await);
        assert_eq!(number(&client, "a").await, Some(2));
    });
}

#[test]
fn a_call_is_done_at_its_first_poll() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let client = embedded::memory().unwrap().client();
        create_table(&client).await;
        let mut call = Box::pin(put(&client, "a", 1));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context))).await;
        assert!(polled.is_ready());
    });
}

#[tokio::test]
async fn its_errors_are_those_of_the_sdk() {
    let client = embedded::memory().unwrap().client();
    let missing = client.get_item().table_name("none").key("k", AttributeValue::S("a".to_owned())).send().await;
    assert!(missing.unwrap_err().into_service_error().is_resource_not_found_exception());
    create_table(&client).await;
    let wrong = client.get_item().table_name(TABLE).key("x", AttributeValue::S("a".to_owned())).send().await;
    assert_eq!(wrong.unwrap_err().code(), Some("ValidationException"));
    let unknown = client.list_backups().send().await.unwrap_err();
    assert_eq!(unknown.message(), Some("'ListBackups' is not supported by this build of the engine"));
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("not/there/yet");
    {
        let client = embedded::open(&data).unwrap().client();
        create_table(&client).await;
        put(&client, "a", 7).await;
    }
    assert_eq!(number(&embedded::open(&data).unwrap().client(), "a").await, Some(7));
}

#[cfg(unix)]
#[test]
fn the_folder_it_makes_is_its_owners_alone_and_its_name_need_not_be_utf_8() {
    use std::os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _};
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(std::ffi::OsStr::from_bytes(b"50% \xff?#'\""));
    drop(embedded::open(&data).unwrap());
    assert!(data.join(FILE).is_file(), "{:?}", fs::read_dir(folder.path()).unwrap().collect::<Vec<_>>());
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(embedded::open_existing(&data).unwrap().is_some());
}

/// Everything in a folder, by name, with its size and the hash of its bytes.
fn tree(folder: &Path) -> Vec<(PathBuf, usize, u64)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let (bytes, mut hasher) = (fs::read(&path).unwrap(), DefaultHasher::new());
            bytes.hash(&mut hasher);
            (path, bytes.len(), hasher.finish())
        })
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn looking_at_what_is_not_there_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert!(embedded::open_existing(&data).unwrap().is_none());
    assert!(!data.exists());
    fs::create_dir(&data).unwrap();
    assert!(embedded::open_existing(&data).unwrap().is_none());
    assert_eq!(tree(&data), Vec::new());
}

#[tokio::test]
async fn looking_changes_no_byte_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    {
        let client = embedded::open(folder.path()).unwrap().client();
        create_table(&client).await;
        put(&client, "a", 7).await;
    }
    let before = tree(folder.path());
    assert_eq!(before.len(), 1, "{before:?}");
    let copy = embedded::open_existing(folder.path()).unwrap().unwrap();
    let client = copy.client();
    assert_eq!(number(&client, "a").await, Some(7));
    put(&client, "a", 8).await;
    assert_eq!(tree(folder.path()), before, "what is written to the copy goes nowhere");
    drop((copy, client));
    assert_eq!(tree(folder.path()), before);
}

#[tokio::test]
async fn looking_sees_what_a_writer_at_work_has_written_and_leaves_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let writer = embedded::open(folder.path()).unwrap().client();
    create_table(&writer).await;
    put(&writer, "a", 7).await;
    let before = tree(folder.path());
    assert!(before.iter().any(|(path, bytes, _)| path.ends_with(format!("{FILE}-wal")) && *bytes > 0));
    let copy = embedded::open_existing(folder.path()).unwrap().unwrap().client();
    assert_eq!(number(&copy, "a").await, Some(7));
    put(&writer, "a", 8).await;
    assert_eq!(number(&copy, "a").await, Some(7), "a copy is of one moment");
    assert_eq!(number(&writer, "a").await, Some(8));
}

#[tokio::test]
async fn what_a_killed_writer_had_acknowledged_is_seen_and_its_file_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left");
    {
        let client = embedded::open(&folder.path().join("live")).unwrap().client();
        create_table(&client).await;
        put(&client, "a", 7).await;
        // What a killed process leaves: the file and its log, as they are.
        fs::create_dir(&left).unwrap();
        for name in [FILE.to_owned(), format!("{FILE}-wal")] {
            fs::copy(folder.path().join("live").join(&name), left.join(&name)).unwrap();
        }
    }
    let main = |mut tree: Vec<(PathBuf, usize, u64)>| {
        tree.retain(|(path, ..)| !path.ends_with(format!("{FILE}-shm")));
        tree
    };
    let before = main(tree(&left));
    let copy = embedded::open_existing(&left).unwrap().unwrap();
    assert_eq!(number(&copy.client(), "a").await, Some(7));
    assert_eq!(main(tree(&left)), before);
    assert_eq!(number(&embedded::open(&left).unwrap().client(), "a").await, Some(7));
}

#[tokio::test]
async fn a_log_that_was_half_moved_into_the_file_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    let store = embedded::open(folder.path()).unwrap();
    create_table(&store.client()).await;
    drop(store);
    // A writer that was killed leaves its log; this one was killed while it moved the log's first page into the file.
    let killed = tempfile::tempdir().unwrap();
    let log = format!("{FILE}-wal");
    let writer = rusqlite::Connection::open(&file).unwrap();
    writer.execute_batch("PRAGMA wal_autocheckpoint = 0; CREATE TABLE more (k); DROP TABLE more;").unwrap();
    for name in [FILE, &log] {
        fs::copy(folder.path().join(name), killed.path().join(name)).unwrap();
    }
    let mut page = fs::read(&file).unwrap();
    page[100..4096].fill(0);
    fs::write(killed.path().join(FILE), page).unwrap();
    let seen = embedded::open_existing(killed.path()).unwrap().unwrap();
    put(&seen.client(), "a", 1).await;
    assert_eq!(number(&seen.client(), "a").await, Some(1));
    let store = embedded::open(killed.path()).unwrap();
    put(&store.client(), "a", 2).await;
    assert_eq!(number(&store.client(), "a").await, Some(2));
}

/// The disk was full when it was to be made, or its process was killed: looking finds nothing, as if it were not there,
/// and the next one who writes makes it whole.
#[tokio::test]
async fn a_file_that_was_only_begun_is_nothing_to_look_at_and_is_made_whole_by_the_next_writer() {
    let begun: [fn(&Path); 3] = [
        |file| fs::write(file, "").unwrap(),
        |file| rusqlite::Connection::open(file).unwrap().execute_batch("PRAGMA user_version = 1").unwrap(),
        |file| {
            let batch = "PRAGMA journal_mode = WAL; PRAGMA user_version = 1";
            let connection = rusqlite::Connection::open(file).unwrap();
            connection.execute_batch(batch).unwrap();
            // As a killed process leaves it: the log is not moved into the file.
            std::mem::forget(connection);
        },
    ];
    for begin in begun {
        let folder = tempfile::tempdir().unwrap();
        begin(&folder.path().join(FILE));
        assert!(embedded::open_existing(folder.path()).unwrap().is_none());
        let store = embedded::open(folder.path()).unwrap();
        create_table(&store.client()).await;
        put(&store.client(), "a", 1).await;
        let seen = embedded::open_existing(folder.path()).unwrap().unwrap();
        assert_eq!(number(&seen.client(), "a").await, Some(1));
    }
}

#[test]
fn files_that_are_not_ours_are_named_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    let check = |kind: fn(&EmbeddedError) -> bool| {
        let before = tree(folder.path());
        for error in [embedded::open(folder.path()).unwrap_err(), embedded::open_existing(folder.path()).unwrap_err()] {
            assert!(kind(&error), "{error:?}");
            assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        }
        assert_eq!(tree(folder.path()), before);
    };
    fs::write(&file, "not a database at all, but a text of more than sixteen bytes").unwrap();
    check(|error| matches!(error, EmbeddedError::Foreign { .. }));

    fs::remove_file(&file).unwrap();
    let theirs = rusqlite::Connection::open(&file).unwrap();
    theirs.execute_batch("CREATE TABLE photos (id INTEGER)").unwrap();
    drop(theirs);
    check(|error| matches!(error, EmbeddedError::Foreign { why, .. } if why.contains("photos")));

    fs::remove_file(&file).unwrap();
    drop(embedded::open(folder.path()).unwrap());
    let mut bytes = fs::read(&file).unwrap();
    bytes[100..4_000].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    check(|error| matches!(error, EmbeddedError::Corrupt { .. }));
}

#[test]
fn a_folder_that_can_not_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "").unwrap();
    let error = embedded::open(&file.join("data")).unwrap_err();
    assert!(matches!(error, EmbeddedError::Folder { .. }), "{error:?}");
    assert!(error.to_string().contains("a-file/data"), "{error}");
    // A file in the place of the folder, for both.
    assert!(matches!(embedded::open(&file).unwrap_err(), EmbeddedError::Folder { .. }));
}

#[test]
fn what_stands_in_the_files_place_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(FILE)).unwrap();
    let error = embedded::open(folder.path()).unwrap_err();
    assert!(matches!(&error, EmbeddedError::Foreign { why, .. } if why == "it is not a file"), "{error:?}");
    assert!(error.to_string().contains(FILE), "{error}");
}

#[tokio::test]
async fn what_has_expired_by_the_given_clock_is_swept() {
    let clock = Arc::new(AtomicU64::new(1_000));
    let told = clock.clone();
    let store = embedded::memory_with_clock(move || told.load(Ordering::Relaxed)).unwrap();
    let client = store.client();
    create_table(&client).await;
    let wish = TimeToLiveSpecification::builder().enabled(true).attribute_name("n").build().unwrap();
    client.update_time_to_live().table_name(TABLE).time_to_live_specification(wish).send().await.unwrap();
    put(&client, "a", 1_500).await;
    put(&client, "b", 2_500).await;
    assert_eq!(store.sweep_expired().unwrap(), 0);
    clock.store(2_000, Ordering::Relaxed);
    assert_eq!(store.sweep_expired().unwrap(), 1);
    assert_eq!((number(&client, "a").await, number(&client, "b").await), (None, Some(2_500)));
}

/// How often a contender counts up, and the folder under its working directory that it shares with others.
const ROUNDS: u64 = 30;
const SHARED: &str = "contended";

/// Counts a shared number up, step by step, and returns which steps it won.
async fn contend(store: &Embedded) -> Vec<u64> {
    let client = store.client();
    create_table(&client).await;
    let first = client
        .put_item()
        .table_name(TABLE)
        .item("k", AttributeValue::S("count".to_owned()))
        .item("n", AttributeValue::N("0".to_owned()))
        .condition_expression("attribute_not_exists(k)");
    if let Err(error) = first.send().await {
        assert!(error.into_service_error().is_conditional_check_failed_exception());
    }
    let mut won = Vec::new();
    while let Some(count) = number(&client, "count").await.filter(|count| *count < ROUNDS) {
        if increment(&client, "count", count).await {
            won.push(count);
        }
    }
    won
}

/// Alone, this counts up by itself. As a child of the test below, which starts this very test in processes of
/// their own, it finds the folder that it is to share, and leaves there what it won.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "names this process's own file in the shared folder")]
async fn a_contender_counts_up() {
    if !Path::new(SHARED).is_dir() {
        let folder = tempfile::tempdir().unwrap();
        let won = contend(&embedded::open(folder.path()).unwrap()).await;
        assert_eq!(won, (0..ROUNDS).collect::<Vec<_>>());
        return;
    }
    // Says that it is ready, and begins when its input is closed: at the same moment as the others.
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let won = contend(&embedded::open(Path::new(SHARED)).unwrap()).await;
    let lines: Vec<_> = won.iter().map(u64::to_string).collect();
    fs::write(format!("won-by-{}", std::process::id()), lines.join("\n")).unwrap();
}

#[test]
fn processes_on_one_folder_that_none_of_them_has_made_take_turns_and_lose_no_step() {
    for round in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(SHARED)).unwrap();
        let mut children: Vec<_> = (0..4).map(|_| contender(folder.path())).collect();
        for child in &mut children {
            let told = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
            assert!(told.into_iter().any(|line| line.ends_with("ready")), "round {round}");
        }
        for child in &mut children {
            drop(child.stdin.take());
        }
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "round {round}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let won = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        let won: Vec<_> = won.map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!(won.len(), 4, "round {round}");
        let mut steps: Vec<u64> = won.iter().flat_map(|won| won.lines()).map(|step| step.parse().unwrap()).collect();
        steps.sort_unstable();
        assert_eq!(steps, (0..ROUNDS).collect::<Vec<_>>(), "round {round}: each step once, by one of them");
    }
}

/// Another process on the same folder.
fn contender(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "embedded_store::a_contender_counts_up", "--nocapture"]).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// How many items a hoarder writes, and the folder that it finds where a limit is set on its files.
const HOARD: u64 = 200;
const CRAMPED: &str = "cramped";

/// Alone, this writes and reads back. As a child of the test below, under a limit on the size of a file, it
/// goes on until a write is refused, and leaves what was said then.
#[tokio::test]
async fn a_hoarder_keeps_what_was_acknowledged() {
    let cramped = Path::new(CRAMPED).is_dir();
    let folder = tempfile::tempdir().unwrap();
    let client = embedded::open(if cramped { Path::new(CRAMPED) } else { folder.path() }).unwrap().client();
    create_table(&client).await;
    let mut kept = 0;
    for n in 0..HOARD {
        let item = client.put_item().table_name(TABLE).item("k", AttributeValue::S(format!("{n}")));
        let item = item.item("n", AttributeValue::N(n.to_string())).item("pad", AttributeValue::S("x".repeat(9_999)));
        match item.send().await {
            Ok(_) => kept += 1,
            Err(error) if cramped => {
                fs::write("refused", error.message().unwrap_or_default()).unwrap();
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    for n in 0..kept {
        assert_eq!(number(&client, &n.to_string()).await, Some(n));
    }
    assert_eq!(kept == HOARD, !cramped, "{kept}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_that_the_disk_refuses_is_an_error_that_names_the_folder_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(CRAMPED)).unwrap();
    // 1 MiB a file, in blocks of 512 bytes; the signal that would end the process is ignored, so writes fail.
    let script =
        "trap '' XFSZ; ulimit -f 2048; exec \"$0\" --exact embedded_store::a_hoarder_keeps_what_was_acknowledged";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(std::env::current_exe().unwrap()).current_dir(folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let said = fs::read_to_string(folder.path().join("refused")).unwrap();
    assert_eq!(said, "the data folder `cramped`: I/O error: disk I/O error (look at the disk it lies on)");
}
