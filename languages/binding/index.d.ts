// The tools of upstream servers. `await mcp.types("server")` gives the types of one's tools.
/** A server: its tools are functions of one object. */
export type Server = Record<string, (args?: Record<string, any>) => Promise<any>>;
export class ToolError extends Error {
  kind: "tool" | "arguments" | "unknown_tool" | "unknown_server" | "denied" | "timeout" | "unavailable";
  server: string;
  tool: string;
  details: any;
}
/** A picture, a sound or a file that a tool gave. */
export interface ToolFile {
  kind: string;
  mime?: string;
  name?: string;
  uri?: string;
  size?: number;
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  save(path: string): Promise<string>;
}
export interface Found { server: string; serverAlias: string; name: string; alias: string; description: string; inputSchema: any; signature: string }
export function call(name: string, args?: Record<string, any>): Promise<any>;
export function callRaw(name: string, args?: Record<string, any>): Promise<any>;
export function help(about?: string): Promise<string>;
export function search(words: string, limit?: number): Promise<Found[]>;
export function types(server?: string): Promise<string>;
export function resources(server: string): Promise<any[]>;
export function read(server: string, uri: string): Promise<(string | ToolFile)[]>;
export function prompts(server: string): Promise<any[]>;
export function prompt(server: string, name: string, args?: Record<string, string>): Promise<any>;
export const servers: Record<string, Server>;
export const {typed_aliases};
