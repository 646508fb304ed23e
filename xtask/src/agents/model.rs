//! A model that has one idea: make a file, commit it, and say that it is done. It speaks as two vendors do.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// The subject of the commit that it has agents make.
pub(super) const SUBJECT: &str = "By the agent";
const COMMAND: &str = "echo made > made.txt; git add made.txt; git commit -qm 'By the agent'";

pub(super) struct Model {
    pub(super) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Model {
    /// Answers on loopback until the program ends.
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let heard = heads.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = heard.clone();
                std::thread::spawn(move || answer(stream, &heard));
            }
        });
        Self { port, heads }
    }

    /// Whether every request came with this in its head, and there was one.
    pub(super) fn heard(&self, text: &str) -> bool {
        let heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        !heads.is_empty() && heads.iter().all(|head| head.contains(text))
    }
}

fn answer(mut stream: TcpStream, heads: &Mutex<Vec<String>>) -> Option<()> {
    let (head, body) = request(&mut stream)?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let events = match head.split(' ').nth(1)?.split('?').next()? {
        "/v1/messages" => anthropic(&asked),
        "/v1/responses" => openai(&asked),
        _ => Vec::new(),
    };
    heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    let text: String = events.iter().map(event).collect();
    let status = if events.is_empty() { "404 Not Found" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all((head + &text).as_bytes()).ok()
}

/// The head and the body of one request.
fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 8192]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                return Some((head, bytes.split_off(end + 4)));
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend(&piece[..count]),
        }
    }
}

fn anthropic(asked: &Value) -> Vec<Value> {
    let is_done =
        asked["messages"].to_string().contains("tool_result") || asked["tools"].as_array().is_none_or(Vec::is_empty);
    let input = json!({ "command": COMMAND, "description": "Make a file" });
    let (block, delta, stop) = if is_done {
        (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": "Done." }), "end_turn")
    } else {
        (
            json!({ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        )
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn openai(asked: &Value) -> Vec<Value> {
    let items = asked["input"].as_array().cloned().unwrap_or_default();
    let is_output = |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output"));
    let item = if items.iter().any(is_output) {
        let content = json!([{ "type": "output_text", "text": "Done.", "annotations": [] }]);
        json!({ "type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content })
    } else {
        let script = format!("text(await tools.exec_command({}))", json!({ "cmd": COMMAND }));
        json!({
            "type": "custom_tool_call", "id": "t1", "call_id": "c1", "status": "completed", "name": "exec",
            "namespace": "functions", "input": script,
        })
    };
    let usage = json!({
        "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
        "input_tokens_details": { "cached_tokens": 0 }, "output_tokens_details": { "reasoning_tokens": 0 },
    });
    let response = json!({ "id": "r1", "object": "response", "status": "completed", "output": [item], "usage": usage });
    vec![
        json!({ "type": "response.created", "response": { "id": "r1", "status": "in_progress" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": response }),
    ]
}
