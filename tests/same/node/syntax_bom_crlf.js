console.log("with a BOM", __filename);
throw new Error("crlf");
