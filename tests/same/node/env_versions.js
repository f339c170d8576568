console.log(process.version, process.platform, process.arch, process.release.name, process.config.variables.napi_build_version);
