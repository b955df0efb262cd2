//! Texts that lie in S3 and Secrets Manager.

use std::iter::successors;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_s3::{
    error::{ProvideErrorMetadata, SdkError},
    operation::get_object::GetObjectError,
};
use settings::{Address, MAX_BYTES, Origin, OriginError, Text};

/// What S3 answers when the object is still the version that is known.
const NOT_MODIFIED: u16 = 304;

/// A text in the cloud.
pub(crate) struct Remote {
    config: SdkConfig,
    address: Address,
}

impl Remote {
    pub(crate) fn new(config: SdkConfig, address: Address) -> Self {
        Self { config, address }
    }

    fn unread(&self, why: impl Into<String>) -> OriginError {
        OriginError { place: self.address.to_string(), why: why.into() }
    }

    async fn object(&self, bucket: &str, key: &str, known: Option<&str>) -> Result<Option<Text>, OriginError> {
        let request = crate::s3(&self.config).get_object().bucket(bucket).key(key);
        let found = match request.set_if_none_match(known.map(str::to_owned)).send().await {
            Ok(found) => found,
            Err(error) if not_modified(&error) => return Ok(None),
            Err(error) => return Err(self.unread(said(&error))),
        };
        if found.content_length.is_none_or(|bytes| u64::try_from(bytes).is_ok_and(|bytes| bytes > MAX_BYTES)) {
            return Err(self.unread(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let bytes = found.body.collect().await.map_err(|error| self.unread(error.to_string()))?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| self.unread("it is not UTF-8 text"))?;
        Ok(Some(Text { text, version: found.e_tag }))
    }

    async fn secret(&self, arn: &str, known: Option<&str>) -> Result<Option<Text>, OriginError> {
        let request = aws_sdk_secretsmanager::Client::new(&self.config).get_secret_value().secret_id(arn);
        let found = request.send().await.map_err(|error| self.unread(said(&error)))?;
        let text = found.secret_string.ok_or_else(|| self.unread("it has no text"))?;
        Ok(newer(text, found.version_id, known))
    }
}

#[async_trait]
impl Origin for Remote {
    async fn read(&self, known: Option<&str>) -> Result<Option<Text>, OriginError> {
        match &self.address {
            Address::Object { bucket, key } => self.object(bucket, key, known).await,
            Address::Secret(arn) => self.secret(arn, known).await,
            Address::File(path) => settings::FileOrigin(path.clone()).read(known).await,
        }
    }
}

fn newer(text: String, version: Option<String>, known: Option<&str>) -> Option<Text> {
    (version.is_none() || version.as_deref() != known).then_some(Text { text, version })
}

fn not_modified(error: &SdkError<GetObjectError>) -> bool {
    error.raw_response().is_some_and(|response| response.status().as_u16() == NOT_MODIFIED)
}

/// What the service said, or why it said nothing. Never what was asked for, and no body: it may be a secret.
pub(crate) fn said<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> String {
    if let Some((code, message)) = error.as_service_error().and_then(|service| service.code().zip(service.message())) {
        return format!("{code}: {message}");
    }
    let causes = successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
