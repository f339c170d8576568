console.log(Object.entries(process.env).sort());
