//! Which provider a program is started by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use jail::View;
use jail::nested::is_inside_gvisor;

use super::gvisor::Gvisor;
use super::jail::Sources;
use super::nested::InGvisor;
use super::{
    Boxed, Cell, CellError, Containers, EngineKind, JailProvider, Launch, Provider, Requirement,
    Start, Warming,
};
use crate::caller::Caller;
use crate::config::{ContainerSettings, Isolations};
use crate::request::IsolationChoice;

/// Who starts the programs of an engine: usually one provider, and others for those that ask for them.
pub struct Providers {
    usual: Arc<dyn Provider>,
    others: HashMap<IsolationChoice, Arc<dyn Provider>>,
}

impl Providers {
    pub fn only(usual: Arc<dyn Provider>) -> Self {
        Self {
            usual,
            others: HashMap::new(),
        }
    }

    /// Those that `choices` name, where the one that is there is the jail. None is started by this.
    pub fn chosen(
        self,
        choices: &Isolations,
        settings: &ContainerSettings,
        warming: Option<&Warming>,
    ) -> Self {
        let own = self.usual;
        let made = |choice| choose(choice, own.clone(), settings, warming.cloned());
        let others = choices.others().map(|choice| (choice, made(choice)));
        Self {
            others: others.collect(),
            usual: made(choices.usual),
        }
    }

    /// Who starts a program that asks for `choice`, which the owner has allowed.
    pub fn of(&self, choice: Option<IsolationChoice>) -> &dyn Provider {
        let other = choice.and_then(|choice| self.others.get(&choice));
        &**other.unwrap_or(&self.usual)
    }

    /// Waits until nothing runs any more in cells that were dropped. Blocks.
    pub fn settle(&self) {
        self.usual.settle();
        self.others.values().for_each(|other| other.settle());
    }
}

/// What the choice comes to, where `own` is the jail.
fn choose(
    choice: IsolationChoice,
    own: Arc<dyn Provider>,
    settings: &ContainerSettings,
    warming: Option<Warming>,
) -> Arc<dyn Provider> {
    let containers = |kind| in_containers(kind, settings, warming.clone());
    match choice {
        IsolationChoice::Jail if is_inside_gvisor() => Arc::new(JailProvider::of(InGvisor)),
        IsolationChoice::Jail => own,
        IsolationChoice::Container => Arc::new(containers(None)),
        IsolationChoice::Podman => Arc::new(containers(Some(EngineKind::Podman))),
        IsolationChoice::Docker => Arc::new(containers(Some(EngineKind::Docker))),
        IsolationChoice::Gvisor => Arc::new(warmed(Gvisor::new(settings), warming)),
        IsolationChoice::Auto => Arc::new(Auto {
            own,
            is_lacking: AtomicBool::new(false),
            engine: OnceLock::new(),
            settings: settings.clone(),
            warming,
        }),
    }
}

/// The engines of this machine beside our own jail, with what makes their sandboxes. None is started by this.
pub fn engines(settings: &ContainerSettings) -> Vec<(&'static str, JailProvider)> {
    let kinds = [EngineKind::Podman, EngineKind::Docker].into_iter();
    let containers = kinds
        .filter(|kind| kind.is_there())
        .map(|kind| (kind.name(), in_containers(Some(kind), settings, None)));
    let gvisor = Some(Gvisor::new(settings)).filter(Gvisor::is_there);
    let gvisor = gvisor.map(|it| (Gvisor::NAME, warmed(it, None)));
    containers.chain(gvisor).collect()
}

/// Programs in containers of this engine, or of the first that is there.
fn in_containers(
    kind: Option<EngineKind>,
    settings: &ContainerSettings,
    warming: Option<Warming>,
) -> JailProvider {
    let containers = Containers::new(kind, settings.clone(), warming.is_some());
    warmed(containers, warming)
}

fn warmed(sources: impl Sources + 'static, warming: Option<Warming>) -> JailProvider {
    let provider = JailProvider::of(sources);
    match warming {
        Some(warming) => provider.with_warming(warming),
        None => provider,
    }
}

/// The jail where it is whole, else the first container engine that is there.
struct Auto {
    own: Arc<dyn Provider>,
    /// Whether the jail could not be built, and a container could.
    is_lacking: AtomicBool,
    engine: OnceLock<Option<JailProvider>>,
    settings: ContainerSettings,
    warming: Option<Warming>,
}

impl Auto {
    fn engine(&self) -> Option<&JailProvider> {
        let find = || {
            let kind = EngineKind::first()?;
            Some(in_containers(
                Some(kind),
                &self.settings,
                self.warming.clone(),
            ))
        };
        self.engine.get_or_init(find).as_ref()
    }

    /// The one that is asked first.
    fn first(&self) -> &dyn Provider {
        match self.is_lacking.load(Ordering::Relaxed) {
            true => self.engine().map_or(&*self.own, |it| it as &dyn Provider),
            false => &*self.own,
        }
    }
}

impl Provider for Auto {
    fn start<'a>(&'a self, start: Start<'a>) -> Boxed<'a, Result<Box<dyn Cell>, CellError>> {
        Box::pin(async move {
            let lacking = match self.first().start(start).await {
                Err(error) if error.is_of_host() && !self.is_lacking.load(Ordering::Relaxed) => {
                    error
                }
                started => return started,
            };
            let Some(engine) = self.engine() else {
                return Err(lacking);
            };
            match engine.start(start).await {
                Ok(cell) => {
                    self.is_lacking.store(true, Ordering::Relaxed);
                    Ok(cell)
                }
                // What the jail lacks is the shorter way to a sandbox.
                Err(_) => Err(lacking),
            }
        })
    }

    fn prestart(
        &self,
        launch: &Launch,
        requirement: Requirement,
        caller: &Caller,
    ) -> Result<(), CellError> {
        self.first().prestart(launch, requirement, caller)
    }

    fn prepares(&self) -> bool {
        self.first().prepares()
    }

    fn prepare(&self, view: &View) -> Result<(), CellError> {
        match self.first().prepare(view) {
            // The start will find another.
            Err(error) if error.is_of_host() => Ok(()),
            prepared => prepared,
        }
    }

    fn settle(&self) {
        self.own.settle();
    }
}
