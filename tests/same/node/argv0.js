console.log(require("path").basename(process.argv0), require("path").basename(process.argv[0]), process.title);
