console.log(__filename, __dirname, module.paths);
