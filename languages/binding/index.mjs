// `import { server } from "mcp"`: the same names as the program has without it.
const mcp = globalThis.mcp;
export default mcp;
export const { call, callRaw, help, search, types, resources, read, prompts, prompt, servers, ToolError } = mcp;
export const { {aliases} } = mcp.servers;
