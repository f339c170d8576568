//! The files that are bound over those of /proc which would tell of the host: they show a
//! cell its own limits.

use std::fs;
use std::io;

use super::Root;
use crate::spawner::masks::{NO_FILE, NO_FOLDER};

/// The machine that a cell's /proc describes: the cell's limits, and nothing else of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub memory: u64,
    /// As many as the cell's affinity mask has.
    pub processors: usize,
}

impl Root {
    /// Writes what a cell of `slot` reads in its /proc.
    ///
    /// The host's own figures are a signal between tenants; these are the cell's limits.
    pub fn write_proc_files(&mut self, slot: u32, shown: Machine) -> io::Result<()> {
        if self.proc_files.get(&slot) == Some(&shown) {
            return Ok(());
        }
        let folder = self.at.join("facts").join(slot.to_string());
        fs::create_dir_all(folder.join(NO_FOLDER))?;
        fs::write(folder.join(NO_FILE), "")?;
        let kib = shown.memory / 1024;
        let processors = 0..shown.processors;
        let memory = format!(
            "MemTotal: {kib:>15} kB\nMemFree: {kib:>16} kB\nMemAvailable: {kib:>11} kB\nBuffers: {0:>16} kB\nCached: {0:>17} kB\nSwapCached: {0:>13} kB\nSwapTotal: {0:>14} kB\nSwapFree: {0:>15} kB\nShmem: {0:>18} kB\nSReclaimable: {0:>11} kB\n",
            0
        );
        let cpuinfo: String = processors
            .clone()
            .map(|n| format!("processor\t: {n}\n{}\n", self.processor))
            .collect();
        let zeros = "0 0 0 0 0 0 0 0 0 0";
        let per_cpu: String = processors.map(|n| format!("cpu{n} {zeros}\n")).collect();
        let stat = format!(
            "cpu  {zeros}\n{per_cpu}intr 0\nctxt 0\nbtime 0\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"
        );
        for (name, text) in [
            ("meminfo", memory),
            ("cpuinfo", cpuinfo),
            ("stat", stat),
            ("loadavg", "0.00 0.00 0.00 1/1 1\n".to_owned()),
            ("uptime", "0.00 0.00\n".to_owned()),
            (
                "version",
                format!("Linux version {} (hotcell)\n", self.kernel),
            ),
        ] {
            fs::write(folder.join(name), text)?;
        }
        self.proc_files.insert(slot, shown);
        Ok(())
    }
}

/// Everything /proc/cpuinfo says of the first processor, without its number and clock.
pub fn first_processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let block = text.split("\n\n").next().unwrap_or_default();
    block
        .lines()
        .filter(|line| {
            !["processor", "cpu MHz", "apicid", "initial apicid"]
                .contains(&line.split('\t').next().unwrap_or_default().trim())
        })
        .map(|line| format!("{line}\n"))
        .collect()
}
