// The official TypeScript client signs in to a gateway: node oauth-client.mjs
// URL. It prints the address to open, reads the address to which the browser
// was sent, calls a tool, and prints the result; then it does so again with a
// refreshed token.
import readline from 'node:readline'
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'

const url = new URL(process.argv[2])
const kept = {}
const provider = {
  redirectUrl: 'http://127.0.0.1:9/callback', // nothing listens there
  clientMetadata: { client_name: 'TypeScript SDK', redirect_uris: ['http://127.0.0.1/callback'], token_endpoint_auth_method: 'none' },
  state: () => 'ts-state',
  clientInformation: () => kept.client,
  saveClientInformation: (c) => { kept.client = c },
  tokens: () => kept.tokens,
  saveTokens: (t) => { kept.tokens = t },
  redirectToAuthorization: (to) => { console.log(JSON.stringify({ open: String(to) })) },
  saveCodeVerifier: (v) => { kept.verifier = v },
  codeVerifier: () => kept.verifier,
}
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(url, { authProvider: provider })
  const client = new Client({ name: 'e2e', version: '1.0.0' }, {})
  try {
    await client.connect(transport)
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e
    for await (const line of readline.createInterface({ input: process.stdin })) {
      const answer = new URL(line).searchParams
      if (answer.get('state') !== 'ts-state') throw new Error('wrong state')
      await transport.finishAuth(answer)
      break
    }
    return connect()
  }
  return client
}
const run = async (client) => (await client.callTool({ name: 'execute_tool', arguments: { server: 'junctor', tool: 'calculate', arguments: { expression: '6*7' } } })).content[0].text
const client = await connect()
const first = await run(client)
await client.close()
const before = kept.tokens.refresh_token
kept.tokens = { ...kept.tokens, access_token: 'expired' } // the client has to refresh it
const again = await connect()
console.log(JSON.stringify({ first, second: await run(again), refreshed: kept.tokens.refresh_token !== before }))
await again.close()
process.exit(0)
