//! Makes commits from trees, with the authorship of others preserved.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use lattice_model::id::Oid;

use super::error::GitError;
use super::objects::ObjectReader;
use super::process::Git;

/// A commit object, taken apart as far as rewriting needs.
#[derive(Debug, Clone)]
pub(crate) struct RawCommit {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
    /// `Name <mail> seconds zone`.
    pub(crate) author: Vec<u8>,
    encoding: Option<Vec<u8>>,
    /// Headers that git does not interpret, as they are. A signature is none of them: it does not outlive a change.
    others: Vec<u8>,
    pub(crate) message: Vec<u8>,
}

impl RawCommit {
    /// Git makes no commit for an author whose name is nothing but signs.
    pub(crate) fn has_author_name(&self) -> bool {
        let name = self.author.split(|byte| *byte == b'<').next().unwrap_or_default();
        name.iter().any(|byte| *byte > b' ' && !b".,:;<>\"\\'".contains(byte))
    }

    /// `Name <mail>`.
    pub(crate) fn author_name(&self) -> String {
        let author = String::from_utf8_lossy(&self.author).into_owned();
        author.rsplit_once('>').map_or(author.clone(), |(name, _)| format!("{name}>"))
    }
}

/// A commit to be made from a tree.
pub(crate) struct NewCommit<'a> {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
    pub(crate) message: Vec<u8>,
    /// Whose authorship to keep; the user's own if absent.
    pub(crate) authored_by: Option<&'a RawCommit>,
    pub(crate) sign: Sign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    No,
    Yes,
}

impl ObjectReader {
    pub(crate) fn commit(&mut self, oid: Oid) -> Result<RawCommit, GitError> {
        let mut found = self.contents(&[oid.to_string()])?;
        let bytes =
            found.pop().flatten().ok_or_else(|| GitError::unexpected("cat-file", format!("no commit {oid}")))?;
        RawCommit::parse(&bytes).ok_or_else(|| GitError::unexpected("cat-file", format!("{oid} is no commit")))
    }

    /// The tree of a commit, without reading either.
    pub(crate) fn tree_of(&mut self, commit: Oid) -> Result<Oid, GitError> {
        let mut found = self.info(&[format!("{commit}^{{tree}}")])?;
        let info = found.pop().flatten();
        Ok(info.ok_or_else(|| GitError::unexpected("cat-file", format!("no tree of {commit}")))?.oid)
    }
}

impl RawCommit {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let split = bytes.windows(2).position(|pair| pair == b"\n\n");
        let (header, message) = match split {
            Some(at) => (&bytes[..at], &bytes[at + 2..]),
            None => (bytes, &bytes[bytes.len()..]),
        };
        let (mut tree, mut parents, mut author, mut encoding) = (None, Vec::new(), None, None);
        let (mut others, mut continues) = (Vec::new(), false);
        for line in header.split(|byte| *byte == b'\n') {
            let (key, value) = line.split_at(line.iter().position(|byte| *byte == b' ').unwrap_or(line.len()));
            let value = value.get(1..).unwrap_or_default();
            match key {
                b"tree" => tree = Oid::from_hex(value),
                b"parent" => parents.push(Oid::from_hex(value)?),
                b"author" => author = Some(value.to_owned()),
                b"encoding" => encoding = Some(value.to_owned()),
                b"committer" | b"gpgsig" | b"gpgsig-sha256" => continues = false,
                // A line that begins with a space belongs to the one above it.
                b"" if !continues => {}
                _ => {
                    continues = true;
                    others.extend_from_slice(line);
                    others.push(b'\n');
                }
            }
        }
        let message = message.to_owned();
        Some(Self { tree: tree?, parents, author: author?, encoding, others, message })
    }

    /// The same change by the same author in another place.
    pub(crate) fn moved(&self, tree: Oid, parent: Oid, committer: &str) -> Vec<u8> {
        let mut bytes = format!("tree {tree}\nparent {parent}\nauthor ").into_bytes();
        bytes.extend_from_slice(&self.author);
        bytes.extend_from_slice(format!("\ncommitter {committer}").as_bytes());
        if let Some(encoding) = &self.encoding {
            bytes.extend_from_slice(b"\nencoding ");
            bytes.extend_from_slice(encoding);
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.others);
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.message);
        bytes
    }

    /// The first line of the message.
    pub(crate) fn subject(&self) -> String {
        String::from_utf8_lossy(&self.message).lines().next().unwrap_or_default().to_owned()
    }

    /// Name, mail and date, as the environment of git takes them: in whatever encoding the commit has.
    fn author_parts(&self) -> Option<[OsString; 3]> {
        let mut parts = self.author.splitn(3, |byte| b"<>".contains(byte));
        let (name, mail, date) = (parts.next()?, parts.next()?, parts.next()?);
        let date = [b"@", date.trim_ascii()].concat();
        Some([name.trim_ascii(), mail, &date].map(|part| OsStr::from_bytes(part).to_owned()))
    }
}

impl Git {
    pub(crate) fn write_tree(&self, index: Option<&Path>) -> Result<Oid, GitError> {
        const COMMAND: &str = "write-tree";
        let call = self.call(COMMAND);
        let call = match index {
            Some(path) => call.index(path),
            None => call,
        };
        let line = call.line()?;
        Oid::new(&line).map_err(|_| GitError::unexpected(COMMAND, line))
    }

    /// The tree `base` with these paths as `with` has them, made in an index of its own.
    pub(crate) fn tree_with(&self, index: &Path, base: Oid, with: Oid, paths: &[String]) -> Result<Oid, GitError> {
        let from = [base.to_string(), with.to_string()];
        let paths = paths.iter().map(|path| format!(":(top,literal){path}"));
        let changed =
            self.call("diff-tree").args(["-r", "-z", "--no-renames"]).args(from).arg("--").args(paths).run()?;
        let mut entries = Vec::new();
        let mut fields = changed.split(|byte| *byte == 0);
        while let (Some(header), Some(path)) = (fields.next(), fields.next()) {
            let words: Vec<_> = header.split(|byte| *byte == b' ').collect();
            let [_, mode, _, id, _] = words[..] else { return Err(GitError::unexpected("diff-tree", "another form")) };
            entries.extend_from_slice(&[mode, b" ", id, b"\t", path, b"\0"].concat());
        }
        self.call("read-tree").arg(base.to_string()).index(index).run()?;
        self.call("update-index").args(["-z", "--index-info"]).index(index).stdin(entries).run()?;
        self.write_tree(Some(index))
    }

    /// A commit with its texts in UTF-8, to go into texts of ours. One in an encoding that nobody knows is left as it is.
    pub(crate) fn readable_commit(&self, objects: &mut ObjectReader, oid: Oid) -> Result<RawCommit, GitError> {
        let commit = objects.commit(oid)?;
        if commit.encoding.is_none() {
            return Ok(commit);
        }
        let arguments = ["--no-walk", "--no-show-signature", "--encoding=UTF-8", "--date=raw"];
        let call = self.call("log").args(arguments).arg("--format=tformat:%an <%ae> %ad%n%B").arg(oid.to_string());
        let Ok(text) = String::from_utf8(call.run()?) else { return Ok(commit) };
        let Some((author, message)) = text.split_once('\n') else { return Ok(commit) };
        let message = format!("{}\n", message.trim_end()).into_bytes();
        Ok(RawCommit { author: author.as_bytes().to_vec(), encoding: None, message, ..commit })
    }

    pub(crate) fn commit_tree(&self, commit: NewCommit<'_>) -> Result<Oid, GitError> {
        const COMMAND: &str = "commit-tree";
        let mut call = self.call(COMMAND).arg(commit.tree.to_string());
        for parent in &commit.parents {
            call = call.args(["-p".to_owned(), parent.to_string()]);
        }
        if commit.sign == Sign::Yes {
            call = call.arg("-S");
        }
        if let Some([name, mail, date]) = commit.authored_by.and_then(RawCommit::author_parts) {
            call = call.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", mail).env("GIT_AUTHOR_DATE", date);
        }
        // What we write is in UTF-8, whatever the user's other programs write.
        let encoding = commit.authored_by.and_then(|original| original.encoding.as_deref()).unwrap_or(b"UTF-8");
        call = call.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "i18n.commitEncoding");
        call = call.env("GIT_CONFIG_VALUE_0", OsStr::from_bytes(encoding));
        let line = call.args(["-F", "-"]).stdin(commit.message).line()?;
        Oid::new(&line).map_err(|_| GitError::unexpected(COMMAND, line))
    }

    /// Whether the user signs commits.
    pub(crate) fn signing(&self) -> Result<Sign, GitError> {
        let finished = self.call("config").args(["--type=bool", "--default=false", "commit.gpgSign"]).finish()?;
        Ok(if finished.stdout.starts_with(b"true") { Sign::Yes } else { Sign::No })
    }

    /// `Name <mail> seconds zone` of the user, now.
    pub(crate) fn committer(&self) -> Result<String, GitError> {
        self.call("var").arg("GIT_COMMITTER_IDENT").line()
    }

    pub(crate) fn write_blob(&self, content: &[u8]) -> Result<Oid, GitError> {
        const COMMAND: &str = "hash-object";
        let line = self.call(COMMAND).args(["-t", "blob", "-w", "--stdin"]).stdin(content.to_vec()).line()?;
        Oid::new(&line).map_err(|_| GitError::unexpected(COMMAND, line))
    }

    pub(crate) fn write_commit(&self, content: Vec<u8>) -> Result<Oid, GitError> {
        const COMMAND: &str = "hash-object";
        let line = self.call(COMMAND).args(["-t", "commit", "-w", "--stdin"]).stdin(content).line()?;
        Oid::new(&line).map_err(|_| GitError::unexpected(COMMAND, line))
    }
}
