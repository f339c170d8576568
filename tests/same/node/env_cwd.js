console.log(process.cwd(), process.umask().toString(8), require("os").homedir(), require("os").tmpdir());
