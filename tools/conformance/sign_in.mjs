// Orders a book, which needs a person, by an official TypeScript SDK of MCP. Prints the address that the person has to open,
// reads from standard input the address to which the person is sent back, and prints what the tool answers.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { pathToFileURL } from "node:url";

const facts = JSON.parse(process.argv[2]);
const modules = createRequire(join(facts.modules, "none.js"));
const load = (name) => import(pathToFileURL(modules.resolve(`@modelcontextprotocol/${name}`)).href);
const isFirst = facts.package === "sdk";
const { Client } = await load(isFirst ? "sdk/client/index.js" : "client");
const { StreamableHTTPClientTransport } = await load(isFirst ? "sdk/client/streamableHttp.js" : "client");
const { UnauthorizedError } = await load(isFirst ? "sdk/client/auth.js" : "client");

const kept = {};
const provider = {
  redirectUrl: facts.redirect,
  clientMetadata: { client_name: "TypeScript", redirect_uris: [facts.redirect], token_endpoint_auth_method: "none" },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (discovery) => { kept.discovery = discovery; },
  redirectToAuthorization: (address) => { console.log(String(address)); },
};
const open = async () => {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(facts.address), { authProvider: provider });
  await client.connect(transport);
  return [client, transport];
};

let [client, transport] = await open();
const call = () => client.callTool({ name: "order_book", arguments: { title: "Emma" } });
let answer;
try {
  answer = await call();
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  const lines = createInterface({ input: process.stdin });
  const back = new URL(await lines.question(""));
  lines.close();
  await transport.finishAuth(isFirst ? back.searchParams.get("code") : back.searchParams);
  [client, transport] = await open();
  answer = await call();
}
await client.close();
console.log(answer.content[0].text);
