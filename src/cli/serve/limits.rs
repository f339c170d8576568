//! The flags by which the owner of a server decides about limits: for each what a program gets, and the most that a call may ask for.

use crate::request::{
    AskedLimits, OwnerLimits, RequestError, parse_count, parse_cpus, parse_duration, parse_size,
};

#[derive(clap::Args)]
#[command(next_help_heading = "Limits of programs")]
pub struct LimitArguments {
    /// End a program after this time if its call asks for no other [default: 30s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Let calls ask for at most this time [default: 10m]
    #[arg(long, value_name = "TIME")]
    max_timeout: Option<String>,
    /// Memory of a program whose call asks for no other [default: 512m]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Let calls ask for at most this much memory [default: 16g]
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<String>,
    /// Processors of a program whose call asks for no other number [default: 1.0]
    #[arg(long, value_name = "NUMBER")]
    cpus: Option<String>,
    /// Let calls ask for at most this many processors [default: 64]
    #[arg(long, value_name = "NUMBER")]
    max_cpus: Option<String>,
    /// Processes and threads of a program whose call asks for no other number [default: 128]
    #[arg(long, value_name = "COUNT", alias = "pids")]
    processes: Option<String>,
    /// Let calls ask for at most this many processes and threads [default: 4096]
    #[arg(long, value_name = "COUNT", alias = "max-pids")]
    max_processes: Option<String>,
}

impl LimitArguments {
    pub fn read(&self) -> Result<OwnerLimits, RequestError> {
        Ok(OwnerLimits {
            default: AskedLimits {
                timeout: parse(&self.timeout, parse_duration)?,
                memory: parse(&self.memory, parse_size)?,
                tasks: parse(&self.processes, parse_count)?,
                cpus: parse(&self.cpus, parse_cpus)?,
                output: None,
            },
            max: AskedLimits {
                timeout: parse(&self.max_timeout, parse_duration)?,
                memory: parse(&self.max_memory, parse_size)?,
                tasks: parse(&self.max_processes, parse_count)?,
                cpus: parse(&self.max_cpus, parse_cpus)?,
                output: None,
            },
        })
    }
}

fn parse<T>(
    text: &Option<String>,
    parse: impl Fn(&str) -> Result<T, RequestError>,
) -> Result<Option<T>, RequestError> {
    text.as_deref().map(parse).transpose()
}
