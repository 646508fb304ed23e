//! Gatherers and prioritizers of somebody else's, through the public interface alone.

use std::sync::Arc;

use lattice_context::chunk::{ChunkType, ContextChunk, ContextPriority, ScoreParts};
use lattice_context::gather::{ContextGatherer, GatherFuture, Gathered, Gatherer, chunk};
use lattice_context::log::Log;
use lattice_context::pack::{PackBudget, PackRequest, pack};
use lattice_context::prioritize::{ContextPrioritizer, Prioritizer};
use lattice_context::task::{TaskEnvelope, TaskType};
use lattice_context::tokens::TokenCounter;
use lattice_context::workspace::Workspace;
use lattice_testkit::TestRepo;

use crate::{envelope, file, now, workspace};

/// The example of the protocol: 200 more for what lies in the domain.
struct DomainPrioritizer(ContextPrioritizer);

impl Prioritizer for DomainPrioritizer {
    fn score_parts(&self, chunk: &ContextChunk, envelope: &TaskEnvelope) -> ScoreParts {
        let mut parts = self.0.score_parts(chunk, envelope);
        if chunk.source.contains("domain/models") {
            parts.custom_boost += 200.0;
        }
        parts.summed()
    }
}

/// Reads with the workspace and counts with its counter.
struct Glossary;

impl Gatherer for Glossary {
    fn name(&self) -> &str {
        "glossary"
    }

    fn gather<'a>(&'a self, workspace: &'a Arc<Workspace>) -> GatherFuture<'a> {
        Box::pin(async move {
            match workspace.read("glossary.txt", 1000) {
                Ok(found) => {
                    let kind = ChunkType::Other("glossary".to_owned());
                    Gathered::one(chunk(workspace, found.text, "glossary.txt", kind, ContextPriority::High))
                }
                Err(skip) => Gathered::nothing(skip.to_string()),
            }
        })
    }
}

pub(crate) fn request(task: TaskType, input: &str, budget: usize) -> PackRequest {
    let asked = PackRequest::new(task, input, PackBudget::Prompt(budget), now());
    PackRequest { session_id: Some("session_test".to_owned()), threads: 2, ..asked }
}

/// A counter of somebody else's that remembers what it was asked.
struct Remembering(std::sync::Mutex<std::collections::BTreeMap<String, usize>>);

impl TokenCounter for Remembering {
    fn name(&self) -> &'static str {
        "remembering"
    }

    fn count(&self, text: &str) -> usize {
        *self.0.lock().expect("no panic elsewhere").entry(text.to_owned()).or_default() += 1;
        text.len() / 3
    }
}

// proves: CE-104
#[test]
fn each_content_is_counted_once_by_a_counter_of_somebody_elses() {
    let repo = TestRepo::new();
    for n in 0..20 {
        let content = format!("def helper_{n}(cart):\n    first = cart + {n}\n    return first\n");
        repo.write(&format!("src/cart_{n}.py"), content);
    }
    let counter = Arc::new(Remembering(std::sync::Mutex::default()));
    let mut shared = Arc::into_inner(workspace(&repo)).expect("one owner");
    shared.counter = Arc::clone(&counter) as Arc<dyn TokenCounter>;
    let wanted = request(TaskType::Implement, "the cart of helper_3", 700);
    let packed = lattice_context::drive(pack(Arc::new(shared), wanted, Log::SILENT)).expect("a prompt");
    assert!(packed.prompt_tokens <= 700);
    let counts = counter.0.lock().expect("no panic elsewhere");
    for n in 0..20 {
        let content = std::fs::read_to_string(repo.dir().join(format!("src/cart_{n}.py"))).expect("a file");
        assert_eq!(counts.get(&content), Some(&1), "cart_{n}");
    }
}

// proves: CE-125
#[test]
fn a_prioritizer_can_wrap_the_standard_one() {
    let custom = DomainPrioritizer(ContextPrioritizer::default());
    let target = envelope(TaskType::Analyze, "");
    let model = file("src/domain/models/user.rs", "x", ContextPriority::Medium);
    let before = ContextPrioritizer::default().score_chunk(&model, &target);
    assert_eq!(custom.score_chunk(&model, &target), before + 200.0);
}

// proves: CE-121, CE-123
#[test]
fn chunks_of_a_custom_gatherer_go_through_the_whole_chain() {
    let repo = TestRepo::new();
    repo.commit_file("glossary.txt", "cart: what is bought\n", "words");
    repo.commit_file("src/domain/models/cart.py", "def total(cart):\n    return sum(cart)\n", "cart");
    let shared = workspace(&repo);
    let mut wanted = request(TaskType::Implement, "change the total of a cart", 600);
    wanted.gatherers = vec![Arc::new(Glossary)];
    wanted.prioritizer = Some(Arc::new(DomainPrioritizer(ContextPrioritizer::default())));
    let packed = lattice_context::drive(pack(Arc::clone(&shared), wanted, Log::SILENT)).expect("a prompt");
    assert!(packed.prompt.contains("\n## Glossary\ncart: what is bought\n"), "{}", packed.prompt);
    let own = packed.envelope.context.chunks.iter().find(|chunk| chunk.source == "glossary.txt").expect("it is in");
    assert_eq!(own.tokens, shared.counter.count("cart: what is bought\n"));
    let model = packed.envelope.context.decisions.iter().find(|decision| decision.source.contains("domain"));
    assert_eq!(model.expect("it was scored").parts.custom_boost, 200.0);
}

// proves: CE-29, CE-122, CE-124
#[test]
fn api_docs_are_a_summary_with_the_tokens_of_the_summary() {
    let repo = TestRepo::new();
    let yaml = "openapi: 3.0.0\npaths:\n  /users:\n    get:\n      summary: List users\n      parameters: []\n    post:\n      summary: 'Add one'\n  /users/{id}:\n    delete:\n      responses: {}\ncomponents:\n  schemas:\n    get: {}\n";
    repo.write("openapi.yaml", yaml);
    repo.write("openapi.json", r#"{"paths":{"/a":{"get":{"summary":"A"},"x-other":{}},"/b":{"put":{}}}}"#);
    let shared = workspace(&repo);
    let gatherer = ContextGatherer::new(Arc::clone(&shared));
    let found = lattice_context::drive(gatherer.gather_api_docs("openapi.yaml")).chunks;
    let [spec] = found.as_slice() else { panic!("one chunk: {found:?}") };
    assert_eq!(spec.content, "- GET /users: List users\n- POST /users: Add one\n- DELETE /users/{id}\n");
    assert_eq!(
        (spec.chunk_type.as_str(), spec.priority, spec.source.as_str()),
        ("api_spec", ContextPriority::High, "openapi.yaml")
    );
    assert_eq!(spec.tokens, shared.counter.count(&spec.content));
    let json = lattice_context::drive(gatherer.gather_api_docs("openapi.json")).chunks;
    assert_eq!(json[0].content, "- GET /a: A\n- PUT /b\n");
}
