const e = new (require("events"))();
e.emit("error", new Error("unheard"));
