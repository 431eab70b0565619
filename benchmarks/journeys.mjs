// Buys two copies of a book with an official TypeScript SDK of MCP, and prints what it counted. See journeys.py.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const facts = JSON.parse(process.argv[2]);
const parcel = JSON.parse(facts.parcel);
const modules = createRequire(join(facts.modules, "none.js"));
const load = (name) => import(pathToFileURL(modules.resolve(`@modelcontextprotocol/${name}`)).href);

const counted = { requests: 0, sent: 0, received: 0 };
const countingFetch = async (address, options) => {
  counted.requests += 1;
  counted.sent += Buffer.byteLength(options?.body ?? "");
  const answer = await fetch(address, options);
  const body = await answer.arrayBuffer();
  counted.received += body.byteLength;
  const { status, statusText, headers } = answer;
  return new Response([202, 204, 304].includes(status) ? null : body, { status, statusText, headers });
};

const isFirst = facts.package === "sdk";
const { Client } = await load(isFirst ? "sdk/client/index.js" : "client");
const { StreamableHTTPClientTransport } = await load(isFirst ? "sdk/client/streamableHttp.js" : "client");

let question;
const options = facts.revision
  ? { versionNegotiation: { mode: { pin: facts.revision } }, capabilities: { elicitation: { form: {} } } }
  : {};
const client = new Client({ name: "journey", version: "1" }, options);
if (facts.revision) {
  client.setRequestHandler("elicitation/create", async (request) => {
    question = request.params.message;
    return { action: "accept", content: {} };
  });
}
const requestInit = { headers: JSON.parse(facts.headers) };
await client.connect(new StreamableHTTPClientTransport(new URL(facts.address), { fetch: countingFetch, requestInit }));
const tools = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
const call = (name, given) => {
  const known = tools.get(name).inputSchema.properties;
  for (const argument of Object.keys(given)) {
    if (!(argument in known)) throw new Error(`${name} has no argument ${argument}`);
  }
  return client.callTool({ name, arguments: given });
};

const found = (await call("search_books", { q: facts.title })).structuredContent;
const { slug } = found.books.find((book) => book.title === facts.title);
await call("add_to_basket", { slug, quantity: Number(facts.copies) });
let placed = await call("check_out", parcel);
if (!facts.revision) {
  const { summary, token } = JSON.parse(placed.content[0].text).confirmation;
  question = summary;
  placed = await call("check_out", { ...parcel, confirmation: token });
}
if (placed.isError) throw new Error(placed.content[0].text);
await client.close();
console.log(JSON.stringify({ ...counted, question, order: placed.structuredContent }));
