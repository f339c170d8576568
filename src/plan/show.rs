//! A plan as JSON: the contents of files become their sizes.

use std::time::Duration;

use jail::{Access, Mount};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::RunPlan;
use crate::request::{FileSource, InputFile};

impl Serialize for RunPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let launch = &self.launch;
        let trees: Vec<Value> = launch
            .view
            .trees
            .iter()
            // Lossy, since a path need not be UTF-8 and this is for reading.
            .map(|tree| json!({"host": tree.host.to_string_lossy(), "cell": tree.cell.to_string_lossy()}))
            .collect();
        let limits = &launch.limits;
        let (source, files) = launch.files.split_first().unzip();
        let size = match source.map(|it| &it.source) {
            Some(FileSource::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        let mut plan = json!({
            "language": self.language,
            "runtime": {"command": self.runtime.command, "path": self.runtime.path.to_string_lossy()},
            "argv": launch.argv,
            "env": launch.env,
            "trees": trees,
            "source": {"path": self.source, "bytes": size},
            "files": files.unwrap_or_default().iter().map(file).collect::<Vec<_>>(),
            "timeout_ms": u64::try_from(launch.timeout.as_millis()).unwrap_or(u64::MAX),
            "limits": {
                "memory": limits.memory,
                "tasks": limits.tasks,
                "cpus": limits.cpus,
                "cpu_seconds": limits.cpu_seconds,
                "file_size": limits.file_size,
                "open_files": limits.open_files,
                "workspace": limits.workspace,
                "workspace_inodes": limits.workspace_inodes,
                "tmp": limits.tmp,
                "shm": limits.shm,
                "output": launch.output_limit,
            },
            "notes": self.notes,
        });
        if let Some(egress) = &self.egress {
            plan["network"] = egress.network.to_string().into();
            let names = egress.secrets.iter().map(|secret| secret.name.as_str());
            let names: Vec<&str> = names.collect();
            if !names.is_empty() {
                plan["secrets"] = json!(names);
            }
        }
        if !self.servers.is_empty() {
            plan["servers"] = json!(self.servers);
        }
        if !launch.view.mounts.is_empty() {
            plan["mounts"] = launch.view.mounts.iter().map(mount).collect();
        }
        if let Some(build) = &self.build {
            plan["compile"] = json!({
                "steps": build.all_steps().collect::<Vec<_>>(),
                "env": build.env,
                "timeout_ms": u64::try_from(build.timeout.as_millis()).unwrap_or(u64::MAX),
                "memory": build.limits.memory,
            });
        }
        let packages = self.packages.iter().map(|it| &**it).chain(&self.lent);
        let wishes = packages.flat_map(|it| it.wishes.all(true));
        let wishes: Vec<String> = wishes.map(|it| it.to_string()).collect();
        if !wishes.is_empty() {
            plan["packages"] = json!(wishes);
        }
        plan.serialize(serializer)
    }
}

fn mount(mount: &Mount) -> Value {
    json!({
        "host": mount.host.to_string_lossy(),
        "cell": mount.cell.to_string_lossy(),
        "write": mount.access == Access::Write,
    })
}

fn file(file: &InputFile) -> Value {
    let mode = format!("{:04o}", file.mode);
    match &file.source {
        FileSource::Bytes(bytes) => json!({"path": file.path, "bytes": bytes.len(), "mode": mode}),
        FileSource::Kept(kept) => json!({"path": file.path, "bytes": kept.len(), "mode": mode}),
        FileSource::EmptyFolder => json!({"path": file.path, "folder": true}),
        FileSource::Link(to) => json!({"path": file.path, "link": to.to_string_lossy()}),
        FileSource::HostFile(from) | FileSource::HostFolder(from) => {
            json!({"path": file.path, "from": from.to_string_lossy(), "mode": mode})
        }
    }
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
