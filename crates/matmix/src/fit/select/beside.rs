//! From the chosen candidate to those beside it: other ranks, then other numbers of components.

use rand_chacha::ChaCha8Rng;

use super::Selecting;
use super::choose::{Judged, choose};
use super::rank::{larger_ranks, ranks_beside};
use crate::error::Result;
use crate::model::Candidate;

/// Rounds over ranks and components.
const ROUNDS: usize = 2;

/// Numbers of components in a row that are no better before there are no more in that direction.
const FAILURES: usize = 2;

/// One component in so many, more or fewer, does not ask for other ranks.
const FEW: usize = 8;

impl Selecting<'_, '_> {
    /// Ranks and numbers of components in turn, each beside those of the chosen candidate.
    pub(super) fn go_beside(&mut self, rng: &mut ChaCha8Rng) -> Result<()> {
        for _ in 0..ROUNDS {
            let before = self.chosen().candidate.rank.clone();
            self.climb_ranks()?;
            let Candidate { components, rank, .. } = self.chosen().candidate.clone();
            if rank == before {
                break;
            }
            self.walk_components(rng)?;
            if FEW * components.abs_diff(self.chosen().candidate.components) <= components {
                break;
            }
        }
        Ok(())
    }

    /// Tries ranks beside those of the chosen candidate as long as another one is chosen: all modes at once, then a mode at a time.
    fn climb_ranks(&mut self) -> Result<()> {
        let keep = self.options.values_kept(self.engine.shape())?;
        let most = self.options.most_rank(self.engine.shape())?;
        let mut far = true;
        loop {
            let at = choose(&self.judged, self.options);
            let rank = self.judged[at].candidate.rank.clone();
            // Cores that are too small are mostly so in every mode: one candidate a step instead of two per mode.
            if far && keep.is_none() {
                self.try_rank(at, &larger_ranks(&rank, &most))?;
                if choose(&self.judged, self.options) != at {
                    continue;
                }
            }
            for other in ranks_beside(&rank, &most, far, keep) {
                self.try_rank(at, &other)?;
            }
            if choose(&self.judged, self.options) == at {
                if !far {
                    return Ok(());
                }
                far = false;
            }
        }
    }

    /// Judges the candidate at a place with other ranks, unless that has been done.
    fn try_rank(&mut self, at: usize, rank: &[usize]) -> Result<()> {
        let components = self.judged[at].candidate.components;
        if self.place(components, rank).is_none() {
            let judged = self.reranked(at, rank)?;
            self.judged.push(judged);
        }
        Ok(())
    }

    /// Tries more and fewer components than the chosen candidate has, one at a time, until some in a row are no better than the best.
    fn walk_components(&mut self, rng: &mut ChaCha8Rng) -> Result<()> {
        let (options, criterion) = (self.options, self.options.criterion());
        let from = choose(&self.judged, options);
        let rank = self.judged[from].candidate.rank.clone();
        for up in [true, false] {
            let (mut at, mut failures) = (from, 0);
            let mut best = self.judged[from].candidate.cost(criterion);
            while failures < FAILURES {
                let now = self.judged[at].candidate.components;
                let next = if up { now + 1 } else { now - 1 };
                if !(options.least_components..=options.most_components).contains(&next) {
                    break;
                }
                let Some(worths) = self.walked(at, next, rng)? else { break };
                self.judge(worths);
                let Some(there) = self.place(next, &rank) else { break };
                let cost = self.judged[there].candidate.cost(criterion);
                failures = if cost < best { 0 } else { failures + 1 };
                (at, best) = (there, best.min(cost));
            }
        }
        Ok(())
    }

    /// Where a candidate with these numbers is.
    fn place(&self, components: usize, rank: &[usize]) -> Option<usize> {
        let same = |j: &Judged| j.candidate.components == components && j.candidate.rank == rank;
        self.judged.iter().position(same)
    }
}
