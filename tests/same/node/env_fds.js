// Those beyond belong to the event loop, in any node.
const fs = require("fs");
console.log([0, 1, 2].map((n) => fs.readlinkSync(`/proc/self/fd/${n}`).split(":")[0]));
