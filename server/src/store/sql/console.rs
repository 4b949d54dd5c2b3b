//! Operators' sessions, and what they did.

use async_trait::async_trait;
use payment::id::OrderId;

use super::SqlStore;
use super::engine::{Columns, Engine, Sql, values};
use crate::clock::EpochMs;
use crate::store::console::{ActionRow, ConsoleStore, NewAction, OperatorSession};
use crate::store::{AttemptId, StoreError};

#[async_trait]
impl<D: Engine> ConsoleStore for SqlStore<D> {
    async fn open_session(
        &self,
        token_hash: &str,
        session: &OperatorSession,
        dead: EpochMs,
    ) -> Result<(), StoreError> {
        let db = &mut *self.writer().await?;
        let sql = "-- sweep_sessions\nDELETE FROM operator_sessions WHERE seen_at < $1";
        db.execute("dropping old sessions", sql, values![dead])
            .await?;
        let sql = "-- open_session\nINSERT INTO operator_sessions (token_hash, operator, opened_at, seen_at) \
                   VALUES ($1, $2, $3, $4)";
        let operator = session.operator.as_str();
        let values = values![token_hash, operator, session.opened_at, session.seen_at];
        db.execute("opening a session", sql, values).await?;
        Ok(())
    }

    async fn session(&self, token_hash: &str) -> Result<Option<OperatorSession>, StoreError> {
        let db = &mut *self.reader().await?;
        let sql = "-- session\nSELECT operator, opened_at, seen_at FROM operator_sessions WHERE token_hash = $1";
        let row = db
            .row("reading a session", sql, values![token_hash])
            .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(OperatorSession {
            operator: row.text("operator")?.to_owned(),
            opened_at: EpochMs(row.integer("opened_at")?),
            seen_at: EpochMs(row.integer("seen_at")?),
        }))
    }

    async fn session_seen(&self, token_hash: &str, at: EpochMs) -> Result<(), StoreError> {
        let db = &mut *self.writer().await?;
        let sql =
            "-- session_seen\nUPDATE operator_sessions SET seen_at = $2 WHERE token_hash = $1";
        db.execute("noting a session's use", sql, values![token_hash, at])
            .await?;
        Ok(())
    }

    async fn close_session(&self, token_hash: &str) -> Result<(), StoreError> {
        let db = &mut *self.writer().await?;
        let sql = "-- close_session\nDELETE FROM operator_sessions WHERE token_hash = $1";
        db.execute("closing a session", sql, values![token_hash])
            .await?;
        Ok(())
    }

    async fn act(&self, action: NewAction) -> Result<i64, StoreError> {
        let db = &mut *self.writer().await?;
        let sql = "-- act\nINSERT INTO operator_actions (at, operator, action, order_id, attempt_id, detail) \
                   VALUES ($1, $2, $3, $4, $5, $6) RETURNING id";
        let values = values![
            action.at,
            action.operator.as_str(),
            action.action.as_str(),
            action.order_id.as_ref().map(OrderId::as_str),
            action.attempt.map(|attempt| attempt.0),
            action.detail.as_str()
        ];
        let row = db.row("keeping an action", sql, values).await?;
        let lost = StoreError::Corrupt { what: "action" };
        row.ok_or(lost)?.integer("id")
    }

    async fn acted(&self, number: i64, result: &str) -> Result<(), StoreError> {
        let db = &mut *self.writer().await?;
        let sql = "-- acted\nUPDATE operator_actions SET result = $2 WHERE id = $1";
        db.execute("keeping an action's result", sql, values![number, result])
            .await?;
        Ok(())
    }

    async fn actions(
        &self,
        order: Option<&OrderId>,
        most: u32,
    ) -> Result<Vec<ActionRow>, StoreError> {
        let db = &mut *self.reader().await?;
        let sql = "-- actions\nSELECT at, operator, action, order_id, attempt_id, detail, result FROM operator_actions \
                   WHERE CAST($1 AS TEXT) IS NULL OR order_id = $1 ORDER BY id DESC LIMIT $2";
        let values = values![order.map(OrderId::as_str), most];
        let rows = db.rows("reading what operators did", sql, values).await?;
        rows.iter().map(action).collect()
    }
}

fn action<R: Columns>(row: &R) -> Result<ActionRow, StoreError> {
    Ok(ActionRow {
        at: EpochMs(row.integer("at")?),
        operator: row.text("operator")?.to_owned(),
        action: row.text("action")?.to_owned(),
        order_id: row.text_or_null("order_id")?.map(str::to_owned),
        attempt: row.integer_or_null("attempt_id")?.map(AttemptId),
        detail: row.text("detail")?.to_owned(),
        result: row.text_or_null("result")?.map(str::to_owned),
    })
}
