setTimeout(() => console.log("never"), 60000).unref();
console.log("done");
