//! The device flow and refreshing of tokens.

use serde_json::{Value, json};

use super::state::State;
use crate::http::{Request, Response};

pub(super) fn respond(state: &mut State, request: &Request) -> Option<Response> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let host = request.header("host").unwrap_or_default();
    let answer = match request.path.as_str() {
        "/login/device/code" if state.device_flow_disabled => json!({ "error": "device_flow_disabled" }),
        "/login/device/code" => json!({
            "device_code": "device-1", "user_code": "ABCD-1234", "expires_in": 900, "interval": 0,
            "verification_uri": format!("http://{host}/login/device"),
        }),
        "/login/oauth/access_token" => token(state, &body),
        _ => return None,
    };
    Some(Response::json(200, &answer))
}

fn token(state: &mut State, body: &Value) -> Value {
    if body["grant_type"] == "refresh_token" {
        let used = body["refresh_token"].as_str().unwrap_or_default();
        // A refresh token works once.
        return match state.refresh_tokens.remove(used) {
            Some(user) => state.grant(&user),
            None => json!({ "error": "bad_refresh_token" }),
        };
    }
    match state.login_answers.pop_front() {
        Some(error) => json!({ "error": error }),
        None => state.grant("octocat"),
    }
}
