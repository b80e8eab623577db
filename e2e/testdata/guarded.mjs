// A real authorization server (oidc-provider) and an MCP server that it
// guards, for the tests. Both listen on loopback; the first line printed says
// where. What happened can be read, and what shall happen set, under /test/.
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const modules = createRequire(path.join(process.env.E2E, 'package.json'))
const load = (name) => import(pathToFileURL(modules.resolve(name)).href)
const { default: Provider } = await load('oidc-provider')
const { Server } = await load('@modelcontextprotocol/sdk/server/index.js')
const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js')
const { CallToolRequestSchema, ListToolsRequestSchema } = await load('@modelcontextprotocol/sdk/types.js')

const settings = { life: Number(process.env.TOKEN_LIFE || 3600), down: false, hold: false, scope: 'mcp:read', dead: false, jwt: '' }
const stats = { codes: 0, refreshes: 0, replays: 0, own: 0, registered: 0, served: 0, refused: 0, turnedAway: 0, authorization: [], forwarded: [], expires: 0 }

const listen = (handler) => new Promise((done) => {
  const server = http.createServer(handler)
  server.listen(0, '127.0.0.1', () => done(server))
})

let oidc
const held = [] // requests for tokens that wait until hold ends
const as = await listen((req, res) => {
  if (settings.down && req.url.startsWith('/token')) {
    stats.turnedAway++
    res.writeHead(503).end()
    return
  }
  if (settings.hold && req.url.startsWith('/token')) held.push(() => oidc(req, res))
  else oidc(req, res)
})
const rs = await listen((req, res) => mcp(req, res).catch((err) => { console.error(err); res.destroy() }))
const issuer = `http://127.0.0.1:${as.address().port}`
const resource = `http://127.0.0.1:${rs.address().port}/mcp`

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'robot', client_secret: 'robot-secret-of-the-test', grant_types: ['client_credentials'],
    redirect_uris: [], response_types: [], token_endpoint_auth_method: 'client_secret_basic',
  }],
  scopes: ['openid', 'offline_access', 'mcp:read', 'mcp:write'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  claims: { openid: ['sub', 'groups'] },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, groups: [`${id}-team`] }) }),
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => false, // every request has to name it
      getResourceServerInfo: (ctx, asked) => {
        if (asked === settings.jwt) return { scope: 'mcp:read', audience: asked, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } }, accessTokenTTL: settings.life }
        if (asked !== resource) throw new Error(`resource ${asked}`)
        return { scope: 'mcp:read mcp:write', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: settings.life }
      },
    },
  },
})
provider.on('grant.success', (ctx) => {
  const grant = ctx.oidc.params.grant_type
  if (!ctx.oidc.params.resource) stats.replays = -1000
  stats.expires = Date.now() + settings.life * 1000
  if (grant === 'authorization_code') stats.codes++
  if (grant === 'refresh_token') stats.refreshes++
  if (grant === 'client_credentials') stats.own++
})
provider.on('grant.error', (ctx, err) => {
  if (ctx.oidc.params?.grant_type === 'refresh_token' && err.error === 'invalid_grant') stats.replays++
})
provider.on('registration_create.success', () => { stats.registered++ })
provider.on('server_error', (ctx, err) => console.error(err))
oidc = provider.callback()

async function token(req) {
  const value = /^Bearer (.+)$/.exec(req.headers.authorization || '')?.[1]
  if (!value || settings.dead === value) return undefined
  const found = await provider.AccessToken.find(value) ?? await provider.ClientCredentials.find(value)
  return found && !found.isExpired && [].concat(found.aud).includes(resource) ? found : undefined
}

async function mcp(req, res) {
  const url = new URL(req.url, resource)
  if (url.pathname === '/.well-known/oauth-protected-resource/mcp') {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ resource, authorization_servers: [issuer], scopes_supported: ['mcp:read'] }))
    return
  }
  if (url.pathname === '/test/stats') {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ ...stats, expired: Date.now() >= stats.expires, ending: Date.now() >= stats.expires - settings.life * 100 }))
    return
  }
  if (url.pathname === '/test/set') {
    for (const [key, value] of url.searchParams) settings[key] = JSON.parse(value)
    if (!settings.hold) for (const serve of held.splice(0)) serve()
    if (settings.dead === true) settings.dead = stats.last // the token in use is refused from now on
    res.end()
    return
  }
  if (url.pathname !== '/mcp') {
    res.writeHead(404).end()
    return
  }
  const where = `resource_metadata="${new URL('/.well-known/oauth-protected-resource/mcp', resource)}"`
  const found = await token(req)
  if (!found) {
    stats.refused++
    res.writeHead(401, { 'www-authenticate': `Bearer error="invalid_token", ${where}` }).end()
    return
  }
  if (!found.scope?.split(' ').includes(settings.scope)) {
    res.writeHead(403, { 'www-authenticate': `Bearer error="insufficient_scope", scope="${settings.scope}", ${where}` }).end()
    return
  }
  stats.served++
  stats.last = req.headers.authorization.slice(7)
  if (!stats.authorization.includes(req.headers.authorization)) stats.authorization.push(req.headers.authorization)
  const from = req.headers['x-forwarded-for']
  if (from && !stats.forwarded.includes(from)) stats.forwarded.push(from)
  const server = new Server({ name: 'guarded', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [{ name: 'whoami', description: 'Say who is signed in', inputSchema: { type: 'object' } }],
  }))
  server.setRequestHandler(CallToolRequestSchema, () => ({
    content: [{ type: 'text', text: `account ${found.accountId ?? found.clientId}` }],
  }))
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  res.on('close', () => { transport.close(); server.close() })
  await server.connect(transport)
  await transport.handleRequest(req, res)
}

console.log(JSON.stringify({ issuer, resource }))
process.stdin.resume()
process.stdin.on('end', () => process.exit(0)) // with the test
