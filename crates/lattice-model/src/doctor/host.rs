//! Issues of the way to a host: no remote, no token, no access. Only the user can remove them.

use std::collections::BTreeSet;

use crate::capability::Capability;
use crate::host::{AccessReading, AuthReading, HostFacts, RemoteReading};
use crate::issue::{Issue, IssueKind, evidence};
use crate::settings::GitHubSettings;

/// What keeps a command from its host.
pub fn issues(facts: &HostFacts, github: &GitHubSettings) -> Vec<Issue> {
    let mut issues = Vec::new();
    issues.extend(remote(&facts.remote));
    issues.extend(auth(&facts.auth));
    issues.extend(access(&facts.access, github));
    issues
}

/// What is known to hold of the way to a host.
pub fn capabilities(facts: &HostFacts, github: &GitHubSettings) -> BTreeSet<Capability> {
    let removed: Vec<_> = issues(facts, github).iter().filter_map(|issue| issue.kind.removes()).collect();
    let holds = |capability: &Capability| match (&facts.remote, &facts.access) {
        (RemoteReading::Missing { .. } | RemoteReading::Unusable { .. }, _) => false,
        (RemoteReading::Resolved { .. }, AccessReading::NotAsked) => *capability != Capability::RepoAuthorized,
        (RemoteReading::Resolved { .. }, _) => true,
    };
    Capability::HOST.iter().copied().filter(holds).filter(|capability| !removed.contains(capability)).collect()
}

fn remote(reading: &RemoteReading) -> Option<Issue> {
    match reading {
        RemoteReading::Resolved { .. } => None,
        RemoteReading::Missing { name } => {
            let facts = evidence([("remote", name.clone())]);
            let summary = format!("there is no remote `{name}`");
            let issue = Issue::new(IssueKind::RemoteUnresolved, summary, facts);
            let add = format!("git remote add {name} <url>");
            Some(issue.action("add-remote", "add it; any Git repository will do", add).action(
                "choose-remote",
                "use another one",
                "lattice config set forge.remote <name>",
            ))
        }
        RemoteReading::Unusable { name, reason } => {
            let facts = evidence([("remote", name.clone()), ("reason", reason.clone())]);
            let issue =
                Issue::new(IssueKind::RemoteUnresolved, format!("the remote `{name}` cannot be used: {reason}"), facts);
            Some(issue.action("set-url", "correct its address", format!("git remote set-url {name} <url>")))
        }
    }
}

fn auth(reading: &AuthReading) -> Option<Issue> {
    let (kind, summary, host) = match reading {
        AuthReading::NotNeeded | AuthReading::Available => return None,
        AuthReading::Missing { host } => {
            (IssueKind::AuthenticationRequired, "Not authenticated. Run `lattice auth login`.", host)
        }
        AuthReading::Expired { host } => {
            (IssueKind::TokenExpired, "Authentication expired. Run `lattice auth login` again.", host)
        }
    };
    let issue = Issue::new(kind, summary, evidence([("host", host.clone())]));
    let issue = issue.action("log-in", "log in", format!("lattice auth login --host {host}"));
    Some(issue.action("give-token", "or give a token: GH_TOKEN, or on stdin", "lattice auth login --with-token"))
}

fn access(reading: &AccessReading, github: &GitHubSettings) -> Option<Issue> {
    match reading {
        AccessReading::NotAsked | AccessReading::Granted => None,
        AccessReading::AppNotInstalled { slug, app } => {
            let url = format!("{}/apps/{app}/installations/new", github.web_url.trim_end_matches('/'));
            let facts = evidence([("repository", slug.to_string()), ("app", app.clone())]);
            let summary = format!("GitHub App not installed for {slug}. Install at: {url}");
            let issue = Issue::new(IssueKind::AppNotInstalled, summary, facts);
            Some(issue.action("install-app", "install it for this repository", url))
        }
        AccessReading::ReadOnly { slug } => {
            let facts = evidence([("repository", slug.to_string())]);
            let issue = Issue::new(IssueKind::PushNotAllowed, format!("your token may not push to {slug}"), facts);
            let issue = issue.action("log-in", "use a token that may", "lattice auth login --with-token");
            Some(issue.action("use-fork", "push to a fork of yours", "lattice config set forge.remote <name>"))
        }
    }
}
