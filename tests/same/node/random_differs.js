console.log(Math.random() !== Math.random(), require("crypto").randomUUID().length, require("crypto").createHash("sha256").update("x").digest("hex"));
