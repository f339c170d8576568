process.env.MINE = 5;
delete process.env.LANG;
console.log(require("child_process").execSync("echo $MINE ${LANG-unset}").toString(), typeof process.env.MINE);
