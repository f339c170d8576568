// files: {"package.json": "{\"type\": \"module\"}"}
await new Promise((resolve) => setTimeout(resolve, 5));
throw new Error("after an await");
