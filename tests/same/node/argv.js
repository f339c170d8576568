// args: ["one", "two words", "", "--flag=x", "ünï"]
console.log(process.argv.length, process.argv.slice(1), process.execArgv);
