//! Getting cells and holding them: what one is started with ([`Launch`]), where one comes from ([`Provider`]), and what can be done with one
//! ([`Cell`]).
//!
//! Programs run in the jail, or in containers. What runs in a cell, and why, is not known here.

mod branch;
mod changes;
mod choice;
mod container;
mod error;
mod gvisor;
mod isolation;
mod jail;
mod launch;
mod nested;
mod pool;
mod provider;
mod streams;
mod terminal;
mod workspace;

pub use ::jail::cgroup::Usage;
pub use ::jail::{Exit, Limits, Mount, Terminal, Tree, View, Zygote};

pub use branch::Branch;
pub use changes::{ChangedContent, ChangedFile, Changes, Version, WantedChanges, changes};
pub use choice::{Providers, engines};
pub use container::{ContainerError, Containers, EngineKind, ImageOf, build_image};
pub use error::CellError;
pub use isolation::{Isolation, Level, OF_ROOT, Requirement, WallReport};
pub use jail::{JailProvider, Trust, Warming};
pub use launch::{Ahead, Gathering, Launch, Loopback, Prestart, Share};
pub use provider::{Boxed, Cell, Event, Provider, Start};
pub use streams::{Channel, Streams};
pub use terminal::TerminalEnd;
pub use workspace::{Carried, Pending, PlaceError, Workspace, replace_file};
