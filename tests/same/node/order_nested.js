Promise.resolve().then(() => { process.nextTick(() => console.log("tick")); Promise.resolve().then(() => console.log("micro")); });
