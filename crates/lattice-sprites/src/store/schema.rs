//! The tables, and the way from one version to the next.

use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;

/// Each entry takes a database from its index to the next version; entries are never changed, only added.
const MIGRATIONS: [&str; 2] = ["
CREATE TABLE sprites (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    work_item_id  TEXT NOT NULL,
    agent         TEXT NOT NULL,
    task          TEXT NOT NULL,
    branch        TEXT NOT NULL,
    parent        TEXT NOT NULL,
    base          TEXT NOT NULL,
    run           TEXT NOT NULL,
    state         TEXT NOT NULL,
    phase         TEXT,
    outcome       TEXT,
    checkpoint    TEXT,
    supervisor    TEXT,
    started_at    TEXT NOT NULL,
    ended_at      TEXT
);
CREATE TABLE sessions (
    id            INTEGER PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    resumed_from  TEXT,
    started_at    TEXT NOT NULL,
    ended_at      TEXT,
    exit          TEXT
);
CREATE TABLE events (
    id            INTEGER PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    session       INTEGER NOT NULL REFERENCES sessions(id),
    seq           INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    side          TEXT NOT NULL,
    key           BLOB NOT NULL,
    json          TEXT NOT NULL,
    UNIQUE (sprite, seq)
);
-- An event that came on the other side too.
CREATE TABLE confirmations (
    sprite        INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    PRIMARY KEY (sprite, seq)
) WITHOUT ROWID;
CREATE TABLE violations (
    id            INTEGER PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    session       INTEGER,
    seq           INTEGER,
    side          TEXT,
    line          INTEGER,
    rule          TEXT NOT NULL,
    weight        TEXT NOT NULL,
    detail        TEXT NOT NULL,
    at            TEXT NOT NULL
);
CREATE TABLE artifacts (
    id            INTEGER PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    seq           INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    ref           TEXT,
    url           TEXT,
    metadata      TEXT,
    UNIQUE (sprite, seq)
);
CREATE TABLE checkpoints (
    id            TEXT PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    session       INTEGER NOT NULL,
    previous      TEXT,
    made_at       TEXT NOT NULL
);
CREATE TABLE actions (
    id            INTEGER PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    seq           INTEGER NOT NULL,
    action        TEXT NOT NULL,
    parameters    TEXT NOT NULL,
    blocking      INTEGER NOT NULL,
    checkpoint    TEXT,
    state         TEXT NOT NULL,
    reason        TEXT,
    result        TEXT,
    at            TEXT NOT NULL,
    UNIQUE (sprite, seq)
);
-- Intent before an effect, receipt after it: at most one of each.
CREATE TABLE action_log (
    action        INTEGER NOT NULL REFERENCES actions(id),
    step          TEXT NOT NULL,
    detail        TEXT NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (action, step)
) WITHOUT ROWID;
CREATE TABLE resumes (
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    checkpoint    TEXT NOT NULL,
    digest        TEXT NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (sprite, checkpoint, digest)
) WITHOUT ROWID;
CREATE TABLE proposals (
    id            TEXT PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    seq           INTEGER NOT NULL,
    seen          INTEGER NOT NULL,
    json          TEXT NOT NULL,
    state         TEXT NOT NULL,
    decided_at    TEXT
);
CREATE TABLE cursors (
    sprite        INTEGER PRIMARY KEY REFERENCES sprites(id),
    bytes         INTEGER NOT NULL,
    lines         INTEGER NOT NULL,
    digest        BLOB NOT NULL
);
CREATE TABLE notices (
    id            INTEGER PRIMARY KEY,
    sprite        INTEGER NOT NULL REFERENCES sprites(id),
    message       TEXT NOT NULL,
    at            TEXT NOT NULL
);
CREATE TRIGGER events_stay        BEFORE UPDATE ON events        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_remain      BEFORE DELETE ON events        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER confirmations_stay BEFORE UPDATE ON confirmations BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER confirmations_remain BEFORE DELETE ON confirmations BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER violations_stay    BEFORE UPDATE ON violations    BEGIN SELECT RAISE(ABORT, 'violations are append-only'); END;
CREATE TRIGGER violations_remain  BEFORE DELETE ON violations    BEGIN SELECT RAISE(ABORT, 'violations are append-only'); END;
CREATE TRIGGER action_log_stays   BEFORE UPDATE ON action_log    BEGIN SELECT RAISE(ABORT, 'the log of actions is append-only'); END;
CREATE TRIGGER action_log_remains BEFORE DELETE ON action_log    BEGIN SELECT RAISE(ABORT, 'the log of actions is append-only'); END;
", "
ALTER TABLE checkpoints ADD COLUMN files INTEGER;
ALTER TABLE checkpoints ADD COLUMN bytes INTEGER;
ALTER TABLE checkpoints ADD COLUMN pause_us INTEGER;
"];

/// Brings the database to the version of this program; one from the future is refused.
pub(super) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    let version = |db: &Connection| db.pragma_query_value(None, "user_version", |row| row.get::<_, usize>(0));
    if version(db)? == MIGRATIONS.len() {
        return Ok(());
    }
    // Another process may do the same now; the one that comes second finds nothing left to do.
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&change)?;
    let missing = MIGRATIONS.get(found..).ok_or(StoreError::TooNew { found, known: MIGRATIONS.len() })?;
    for migration in missing {
        change.execute_batch(migration)?;
    }
    change.pragma_update(None, "user_version", MIGRATIONS.len())?;
    change.commit()?;
    Ok(())
}
