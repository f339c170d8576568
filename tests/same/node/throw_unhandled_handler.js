process.on("unhandledRejection", (e) => console.log("handled", e.message));
Promise.reject(new Error("y"));
