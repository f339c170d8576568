// stdin: "x🐈y"
(async () => { for await (const chunk of process.stdin) console.log(chunk, chunk.toString()); })();
