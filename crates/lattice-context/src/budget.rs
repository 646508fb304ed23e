//! How a total of tokens is shared between system prompt, context, request and response.

use serde::{Deserialize, Serialize};

/// The shares of a total. They always sum to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BudgetDocument", into = "BudgetDocument")]
pub struct TokenBudget {
    total: usize,
    input_allocation_pct: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetDocument {
    total: usize,
    #[serde(default = "default_share")]
    input_allocation_pct: f64,
    #[serde(default)]
    system_prompt: usize,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    user_request: usize,
    #[serde(default)]
    response_buffer: usize,
}

/// A budget that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BudgetError {
    #[error("the total must be at least 1 token")]
    NoTotal,
    #[error("the input allocation must be from 0 to 1, and is {0}")]
    Share(f64),
}

pub const DEFAULT_TOTAL: usize = 8000;
pub const DEFAULT_INPUT_ALLOCATION: f64 = 0.7;

impl TokenBudget {
    /// A total of which `input_allocation_pct`, from 0 to 1, is for the prompt.
    pub fn new(total: usize, input_allocation_pct: f64) -> Result<Self, BudgetError> {
        if total == 0 {
            return Err(BudgetError::NoTotal);
        }
        if !(0.0..=1.0).contains(&input_allocation_pct) {
            return Err(BudgetError::Share(input_allocation_pct));
        }
        Ok(Self { total, input_allocation_pct })
    }

    pub fn total(&self) -> usize {
        self.total
    }

    pub fn input_allocation_pct(&self) -> f64 {
        self.input_allocation_pct
    }

    /// What the prompt may have: system prompt, context and request together.
    pub fn input(&self) -> usize {
        ((self.total as f64 * self.input_allocation_pct).round() as usize).min(self.total)
    }

    pub fn system_prompt(&self) -> usize {
        self.input() / 7
    }

    pub fn user_request(&self) -> usize {
        self.input() / 7
    }

    pub fn context(&self) -> usize {
        self.input() - self.system_prompt() - self.user_request()
    }

    pub fn response_buffer(&self) -> usize {
        self.total - self.input()
    }
}

impl Default for TokenBudget {
    fn default() -> Self {
        Self { total: DEFAULT_TOTAL, input_allocation_pct: DEFAULT_INPUT_ALLOCATION }
    }
}

impl From<TokenBudget> for BudgetDocument {
    fn from(budget: TokenBudget) -> Self {
        Self {
            total: budget.total,
            input_allocation_pct: budget.input_allocation_pct,
            system_prompt: budget.system_prompt(),
            context: budget.context(),
            user_request: budget.user_request(),
            response_buffer: budget.response_buffer(),
        }
    }
}

impl TryFrom<BudgetDocument> for TokenBudget {
    type Error = BudgetError;
    fn try_from(document: BudgetDocument) -> Result<Self, BudgetError> {
        Self::new(document.total, document.input_allocation_pct)
    }
}

fn default_share() -> f64 {
    DEFAULT_INPUT_ALLOCATION
}
