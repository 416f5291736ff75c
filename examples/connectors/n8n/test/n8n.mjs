// n8n, for the tests: the real one, without a browser, with our package installed as a community node. test/run sets
// N8N_NODE, N8N_HOME and N8N_PACKAGE: the Node.js that runs it, where it is installed, and the tarball of our package.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'

import { eventually } from '../../testing/service.mjs'

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const { N8N_NODE, N8N_HOME, N8N_PACKAGE } = process.env
assert.ok(N8N_NODE && N8N_HOME && N8N_PACKAGE, 'run examples/connectors/n8n/test/run, which installs n8n')

export const actionType = 'n8n-nodes-formsvc.formsvc'
export const triggerType = 'n8n-nodes-formsvc.formsvcTrigger'
export const pollTriggerType = 'n8n-nodes-formsvc.formsvcPollTrigger'

// Starts an n8n with an owner and an API key. Its stop() must be called at the end.
export async function startN8n() {
  return await prepare(new N8n(await mkdtemp(join(tmpdir(), 'formsvc-n8n-')), quiet))
}

// The same with nothing set but where its data is and its ports.
export async function startDefaultN8n() {
  return await prepare(new N8n(await mkdtemp(join(tmpdir(), 'formsvc-n8n-')), n8n => {
    n8n.url = `http://localhost:${n8n.port}`
    return {}
  }))
}

async function prepare(n8n) {
  await n8n.install()
  n8n.port = await freePort()
  n8n.brokerPort = await freePort()
  await n8n.start()
  await n8n.setUp()
  return n8n
}

async function freePort() {
  const server = createServer()
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}

// Most tests need no network beyond this machine, and a zone of time that is not that of the machine.
function quiet(n8n) {
  n8n.url = `http://127.0.0.1:${n8n.port}`
  return {
    N8N_ENCRYPTION_KEY: n8n.encryptionKey,
    N8N_LISTEN_ADDRESS: '127.0.0.1',
    N8N_HOST: '127.0.0.1',
    N8N_WEBHOOK_URL: `${n8n.url}/`,
    N8N_RUNNERS_BROKER_LISTEN_ADDRESS: '127.0.0.1',
    DB_TYPE: 'sqlite',
    GENERIC_TIMEZONE: 'Europe/Paris',
    // Nothing is fetched from or sent to anybody.
    N8N_DIAGNOSTICS_ENABLED: 'false',
    N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
    N8N_TEMPLATES_ENABLED: 'false',
    N8N_PERSONALIZATION_ENABLED: 'false',
    N8N_DISABLED_MODULES: 'mcp-registry',
  }
}

class N8n {
  constructor(folder, settings) {
    this.folder = folder
    this.settings = settings
    this.log = ''
    this.encryptionKey = randomBytes(24).toString('hex')
  }

  // Installs our package as the documentation has it.
  async install() {
    const nodes = join(this.folder, '.n8n', 'nodes')
    await mkdir(nodes, { recursive: true })
    await promisify(execFile)('npm', ['install', '--legacy-peer-deps', '--ignore-scripts', '--no-audit', N8N_PACKAGE], { cwd: nodes })
  }

  async start() {
    const settings = this.settings(this)
    const child = spawn(N8N_NODE, [join(N8N_HOME, 'node_modules', 'n8n', 'bin', 'n8n'), 'start'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that the task runner, which n8n starts, ends with it.
      detached: true,
      env: {
        PATH: process.env.PATH,
        HOME: this.folder,
        N8N_USER_FOLDER: this.folder,
        N8N_PORT: String(this.port),
        N8N_RUNNERS_BROKER_PORT: String(this.brokerPort),
        ...settings,
      },
    })
    this.child = child
    const ended = new Promise(resolve => child.once('exit', resolve))
    this.ended = ended
    const kill = () => process.kill(-child.pid, 'SIGKILL')
    process.once('exit', kill) // n8n must not outlive tests that fail
    ended.then(() => process.off('exit', kill))
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', text => { this.log += text })
    }
    await eventually('n8n is ready', async () => {
      assert.equal(child.exitCode, null, `n8n ended:\n${this.log}`)
      const ready = await fetch(`${this.url}/healthz/readiness`).catch(() => undefined)
      const login = await fetch(`${this.url}/rest/login`).catch(() => undefined)
      return ready?.ok && login && login.status !== 404
    }, 180_000)
  }

  async end(signal = 'SIGTERM') {
    process.kill(-this.child.pid, signal)
    await this.ended
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.end('SIGKILL')
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }

  // Makes the owner and an API key, as a person would do it in the browser.
  async setUp() {
    this.owner = { email: 'owner@example.com', password: `Aa1${randomBytes(12).toString('hex')}` }
    const answer = await fetch(`${this.url}/rest/owner/setup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'browser-id': 'tests' },
      body: JSON.stringify({ ...this.owner, firstName: 'Test', lastName: 'Owner' }),
    })
    assert.ok(answer.ok, `owner: ${answer.status} ${await answer.clone().text()}`)
    this.cookie = answer.headers.getSetCookie().map(cookie => cookie.split(';')[0]).join('; ')
    const scopes = await this.rest('GET', '/rest/api-keys/scopes')
    const { rawApiKey } = await this.rest('POST', '/rest/api-keys', { label: 'tests', expiresAt: null, scopes })
    this.key = rawApiKey
  }

  // What the editor asks n8n for.
  async rest(method, path, body) {
    return (await this.request(method, path, body, { cookie: this.cookie, 'browser-id': 'tests' })).data
  }

  // n8n's public API.
  api(method, path, body) {
    return this.request(method, `/api/v1${path}`, body, { 'x-n8n-api-key': this.key })
  }

  async request(method, path, body, headers) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body),
    })
    const text = await answer.text()
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
    return text && JSON.parse(text)
  }

  // Makes a credential for a service and returns what nodes refer to it by.
  async credential({ url, key }) {
    const { id, name } = await this.api('POST', '/credentials', {
      name: `service ${randomUUID()}`, type: 'formsvcApi', data: { baseUrl: url, apiKey: key },
    })
    return { formsvcApi: { id, name } }
  }

  // Gives a credential another address and key.
  changeCredential({ formsvcApi: { id } }, { url, key }) {
    return this.api('PATCH', `/credentials/${id}`, { type: 'formsvcApi', data: { baseUrl: url, apiKey: key } })
  }

  // Makes a workflow of nodes that come one after the other, and returns its identifier.
  async workflow(...nodes) {
    const { id } = await this.api('POST', '/workflows', {
      name: `test ${randomUUID()}`,
      settings: { executionOrder: 'v1', saveDataSuccessExecution: 'all', saveDataErrorExecution: 'all' },
      nodes: nodes.map((node, i) => ({
        id: randomUUID(), name: `node ${i}`, typeVersion: 1, position: [200 * i, 0], parameters: {}, ...node,
      })),
      connections: Object.fromEntries(nodes.slice(1).map((_, i) =>
        [nodes[i].name ?? `node ${i}`, { main: [[{ node: nodes[i + 1].name ?? `node ${i + 1}`, type: 'main', index: 0 }]] }])),
    })
    return id
  }

  activate(id) {
    return this.api('POST', `/workflows/${id}/activate`)
  }

  // Returns why a trigger of a workflow could not be set up, as the editor shows it.
  async whyNotPublished(id) {
    return await eventually('n8n shows why', async () => {
      const { triggers } = await this.rest('GET', `/rest/workflows/${id}/publication-status`)
      return triggers[0]?.errorMessage
    })
  }

  // Waits until the triggers of a workflow are set up.
  async published(id) {
    await eventually('the workflow is published', async () => {
      const { triggers } = await this.rest('GET', `/rest/workflows/${id}/publication-status`)
      return triggers.length > 0 && triggers.every(({ status }) => status === 'activated')
    })
  }

  deactivate(id) {
    return this.api('POST', `/workflows/${id}/deactivate`)
  }

  // Makes n8n lose what the nodes of a workflow have remembered.
  async forget(id) {
    const database = new DatabaseSync(join(this.folder, '.n8n', 'database.sqlite'), { timeout: 5000 })
    const { changes } = database.prepare('UPDATE workflow_entity SET staticData = NULL WHERE id = ?').run(id)
    database.close()
    assert.equal(changes, 1)
  }

  // Returns the executions of a workflow that have ended, the oldest first, with their data.
  async executions(id) {
    const { data } = await this.api('GET', `/executions?workflowId=${id}&includeData=true&limit=250`)
    return data.filter(({ stoppedAt }) => stoppedAt).reverse()
  }

  // Returns the events that a workflow of a trigger was started with, in order.
  async events(id) {
    return (await this.executions(id)).map(execution => output(execution, 'node 0')[0].json)
  }
}

// Returns the items that a node put out in an execution.
export function output(execution, node) {
  return execution.data.resultData.runData[node].at(-1).data.main[0]
}
