//! What was done, to what, why and on what evidence: one line an act, kept after its runtime is gone.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use lifecycle::{Evidence, RuntimeId, Time, Token};

use crate::{
    AUDIT_KEEP, Ledger, LedgerError,
    attribute::{Item, number, stored, text, time},
    error::asked,
    expression::{Values, names},
    item::Reader,
};

/// The longest evidence that is stored, in bytes; an item may have 400 KB.
const MAX_EVIDENCE_BYTES: usize = 64 * 1024;

/// The action of a line that takes an act back; its token is that act's.
pub const UNDO: &str = "undo";

/// One act. Written before its completion, so that a retry of both writes the same line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// On which runtime.
    pub runtime: RuntimeId,
    /// Under which token: with the runtime (and whether it is an undo), the line's key.
    pub token: Token,
    /// When it ended.
    pub at: Time,
    /// What was done: the action's words.
    pub action: String,
    /// How it ended, for people.
    pub outcome: String,
    /// Who did it.
    pub owner: String,
    /// Why, as JSON.
    pub reason: String,
    /// On what evidence, as JSON; cut to 64 KiB.
    pub evidence: String,
    /// Where the work was saved first, if something was.
    pub saved: Option<String>,
    /// What it can be taken back by.
    pub undo: Vec<String>,
    /// Bytes reclaimed.
    pub bytes: u64,
}

impl AuditLine {
    /// What people know the runtime by: a path, an image with the container's name. Empty where the evidence does not
    /// tell, or was too long to be kept whole.
    pub fn about(&self) -> Arc<str> {
        let evidence: Option<Evidence> = serde_json::from_str(&self.evidence).ok();
        evidence.map_or_else(|| "".into(), |evidence| evidence.about)
    }
}

impl Ledger {
    /// Writes a line. The same runtime and token write the same line.
    pub async fn audit(&self, line: &AuditLine) -> Result<(), LedgerError> {
        let table = &self.options.tables.actions;
        let request = self.client.put_item().table_name(table).set_item(Some(written(line)));
        request.send().await.map_err(|error| asked("audit", table, &error)).map(drop)
    }

    /// The last `limit` lines of a runtime, newest first. One that can't be read is left out and logged.
    pub async fn history(&self, id: &RuntimeId, limit: usize) -> Result<Vec<AuditLine>, LedgerError> {
        let table = &self.options.tables.actions;
        let condition = "#runtime = :runtime AND begins_with(#act, :act)";
        let values = Values::default().text("runtime", id.to_string()).text("act", "act/");
        let (mut lines, mut start) = (Vec::new(), None);
        while lines.len() < limit {
            let left = i32::try_from((limit - lines.len()).min(1_000)).unwrap_or(1_000);
            let request = self
                .client
                .query()
                .table_name(table)
                .key_condition_expression(condition)
                .set_expression_attribute_names(names(&[condition]))
                .set_expression_attribute_values(values.used(&[condition]))
                .scan_index_forward(false)
                .consistent_read(true)
                .limit(left)
                .set_exclusive_start_key(start);
            let page = request.send().await.map_err(|error| asked("history", table, &error))?;
            for found in page.items.unwrap_or_default() {
                match read(id, &found) {
                    Ok(line) => lines.push(line),
                    Err(error) => tracing::warn!(runtime = %id, %error, "a line of the history is left out"),
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(lines)
    }
}

/// Evidence that an item can hold.
pub(crate) fn shortened(evidence: &str) -> String {
    if evidence.len() <= MAX_EVIDENCE_BYTES {
        return evidence.to_owned();
    }
    let mut end = MAX_EVIDENCE_BYTES;
    while !evidence.is_char_boundary(end) {
        end -= 1;
    }
    serde_json::json!({ "cut": &evidence[..end], "bytes": evidence.len() }).to_string()
}

/// Padded, so that the order of the keys is that of the tokens. An undo stands after the act that it takes back.
fn key(line: &AuditLine) -> String {
    let undo = if line.action == UNDO { "/undo" } else { "" };
    format!("act/{:020}{undo}", line.token)
}

fn written(line: &AuditLine) -> Item {
    let expires = line.at.plus(AUDIT_KEEP).millis().div_euclid(1000);
    let undo = line.undo.iter().map(text).collect();
    let always = [
        ("runtime", text(line.runtime.to_string())),
        ("act", text(key(line))),
        ("token", number(line.token)),
        ("at", time(line.at)),
        ("action", text(&line.action)),
        ("outcome", text(&line.outcome)),
        ("owner", text(&line.owner)),
        ("reason", text(&line.reason)),
        ("evidence", text(shortened(&line.evidence))),
        ("undo", AttributeValue::L(undo)),
        ("bytes", number(line.bytes)),
        ("expires_at", number(expires)),
    ];
    let saved = line.saved.iter().map(|saved| ("saved", text(saved)));
    always.into_iter().chain(saved).map(|(word, value)| (stored(word).to_owned(), value)).collect()
}

fn read(id: &RuntimeId, found: &Item) -> Result<AuditLine, LedgerError> {
    let name = format!("the history of {id}");
    let read = Reader::new(&name, found);
    let text = |word: &str| read.text(word).map(|text| text.unwrap_or_default().to_owned());
    let undo = found.get("undo").and_then(|undo| undo.as_l().ok()).into_iter().flatten();
    Ok(AuditLine {
        runtime: id.clone(),
        token: read.needed("token", read.number("token")?)?,
        at: read.needed("at", read.time("at")?)?,
        action: text("action")?,
        outcome: text("outcome")?,
        owner: text("owner")?,
        reason: text("reason")?,
        evidence: text("evidence")?,
        saved: read.text("saved")?.map(str::to_owned),
        undo: undo.filter_map(|entry| entry.as_s().ok().cloned()).collect(),
        bytes: read.number("bytes")?.unwrap_or(0),
    })
}
