//! What API Gateway says of a request. It stands in the event, which no caller can write.

use lambda_http::{Request, RequestExt as _, request::RequestContext};

/// The principal that it has authenticated by IAM, if it has.
pub fn principal(request: &Request) -> Option<String> {
    let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else { return None };
    let iam = context.authorizer.as_ref().and_then(|authorizer| authorizer.iam.as_ref());
    iam.and_then(|iam| iam.user_arn.clone()).filter(|arn| !arn.is_empty())
}
