// Lists the tools of a server with an official TypeScript SDK of MCP, calls some, and prints the structured answers.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const facts = JSON.parse(process.argv[2]);
const modules = createRequire(join(facts.modules, "none.js"));
const load = (name) => import(pathToFileURL(modules.resolve(`@modelcontextprotocol/${name}`)).href);
const isFirst = facts.package === "sdk";
const { Client } = await load(isFirst ? "sdk/client/index.js" : "client");
const { StreamableHTTPClientTransport } = await load(isFirst ? "sdk/client/streamableHttp.js" : "client");

const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(facts.address)));
const answers = { tools: (await client.listTools()).tools.map((tool) => tool.name) };
for (const [name, given] of Object.entries(facts.calls)) {
  answers[name] = (await client.callTool({ name, arguments: given })).structuredContent;
}
await client.close();
console.log(JSON.stringify(answers));
