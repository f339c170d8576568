console.log("parent");
require("child_process").execSync("echo child", { stdio: "inherit" });
