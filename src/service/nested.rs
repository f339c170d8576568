//! A run that belongs to another: a program waits for it.

use std::future::Future;
use std::sync::Arc;

use super::Service;
use super::observer::Observer;
use super::recording::Recording;
use super::run::{Ran, RunContext};
use crate::request::RunRequest;

impl Service {
    /// Runs a program that another one waits for: it has no turn of its own, since the other would hold its turn meanwhile.
    pub async fn run_within<O: Observer>(
        self: &Arc<Self>,
        request: RunRequest,
        context: RunContext<O, impl Future<Output = ()>>,
    ) -> Ran<O::Heard> {
        let caller = context.caller.clone();
        let mut recording = Recording::begin(self, &request, &context);
        let ran = self.run_now(request, context, &caller, &mut recording);
        let mut ran = Box::pin(ran).await;
        ran.id.clone_from(&recording.id);
        recording.end(&ran.output);
        ran
    }
}
