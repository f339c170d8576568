// `require("mcp")`: the same names as the program has without it.
module.exports = { ...globalThis.mcp, ...globalThis.mcp.servers };
